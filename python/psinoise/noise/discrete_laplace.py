"""Discrete Laplace noise, also called geometric: for counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.compile.cells import alias_columns
from psinoise.errors import DomainError
from psinoise.noise import _checks
from psinoise.noise._by_numpy import fill_in_blocks
from psinoise.noise._elementary import exponential, exponential_minus_one
from psinoise.noise._family import Parameter
from psinoise.noise._whole import WholeNoise
from psinoise.numerics.rational import least_quotient, rounded

__all__ = ["DiscreteLaplace"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]

# Whole numbers that the sampler lists before the geometric tail.
_LISTED = 1 << 11
# Sums over whole numbers have 200 terms for each unit of the scale.
_LONGEST_SUM, _SHORT_SHIFT = 2.0**16, 1 << 20
_ROUNDING = 2.0**-50


class DiscreteLaplace(WholeNoise):
    """Whole-number noise with probabilities proportional to ``exp(-|k| / scale)``.

    For a query with whole values that neighboring data sets move by at most ``sensitivity`` it is
    epsilon-private with ``scale = sensitivity / epsilon``. For counts (sensitivity 1) it is
    optimal for every user at once who has a prior and a loss that grows with the error.

    Parameters
    ----------
    scale : float
        In [0.01, 2**40].
    epsilon : float
        Instead of ``scale``, together with ``sensitivity``.
    sensitivity : int
        By how much neighboring data sets can move the query, at least 1; only with ``epsilon``.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or value.

    Notes
    -----
    Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms" (STOC
    2009). There is no density: ``pmf`` and ``logpmf`` take the place of ``pdf`` and ``logpdf``,
    which raise an error. Samples are whole numbers of the type that was asked for; beyond 2**53 (in
    float32, 2**24) they are rounded.

    A larger scale hides more, being the sum of a smaller one and of independent noise. With
    ``a = exp(-1 / scale)`` the characteristic function is
    ``(1 - a)**2 / (1 - 2 a cos(u) + a**2)``; for ``a < b`` the one of ``b`` over that of ``a`` is
    ``c + d / (1 - 2 b cos(u) + b**2)`` with positive ``c`` and ``d``, since
    ``1 + a**2 - (1 + b**2) a / b = (1 - a / b) (1 - a b)``: that of a mixture of 0 and noise of
    the larger scale.

    Examples
    --------
    >>> import math
    >>> import psinoise as pn
    >>> law = pn.DiscreteLaplace(epsilon=math.log(3.0))
    >>> law.pmf([0, 1, 2]).round(6)
    array([0.5     , 0.166667, 0.055556])
    >>> law.sample(5, rng=1).astype(int).shape
    (5,)
    """

    axis_is_worst = True
    ordered_by_scale = True
    scale_limits = 1e-2, 2.0**40
    representatives = ({"scale": 2.5},)
    shape_parameters = MappingProxyType(
        {"epsilon": Parameter("epsilon that it is made for; or --scale")}
    )

    def __init__(
        self,
        *,
        scale: float | None = None,
        epsilon: float | None = None,
        sensitivity: int | None = None,
    ) -> None:
        name, value = _validate.exactly_one("DiscreteLaplace", scale=scale, epsilon=epsilon)
        if name == "scale":
            if sensitivity is not None:
                raise TypeError("sensitivity must be given with epsilon, not with scale")
            scale = value
        else:
            steps = 1 if sensitivity is None else sensitivity
            budget = _validate.positive_below("epsilon", epsilon)
            scale = least_quotient(float(_validate.positive_count("sensitivity", steps)), budget)
        if not self.scale_limits[0] <= scale <= self.scale_limits[1]:
            raise DomainError(f"scale must be in [0.01, 2**40], got {scale!r}")
        self._set(_length=scale, _scale=1.0)

    @property
    def _fall(self) -> float:
        """``P(k + 1) / P(k)`` for ``k >= 0``."""
        return exponential(-1.0 / self._length)

    @property
    def _complement(self) -> float:
        """``1 - exp(-1 / scale)``."""
        return -math.expm1(-1.0 / self._length)

    @property
    def std(self) -> float:
        """Standard deviation ``sqrt(2 a) / (1 - a)``, ``a = exp(-1 / scale)``."""
        return math.sqrt(2.0 * self._fall) / self._complement

    @property
    def mean_abs(self) -> float:
        """Mean absolute value ``2 a / (1 - a**2)``, ``a = exp(-1 / scale)``."""
        return 2.0 * self._fall / (self._complement * (1.0 + self._fall))

    # -- evaluation ------------------------------------------------------------------------------

    def logpmf(self, k: ArrayLike) -> Any:
        """Logarithm of ``pmf``."""
        points = _checks.real_array("k", k)
        start = math.log(self._complement) - math.log1p(self._fall)
        logs = start - np.abs(points) / self._length
        whole = np.where(points == np.floor(points), logs, -np.inf)
        return np.where(np.isnan(points), np.nan, whole)[()]

    def _log_tails(self, k: Float) -> Float:
        return -k / self._length - math.log1p(self._fall)

    def _inverse_cdf(self, p: Numbers, out: Numbers, workers: int) -> None:
        """The smallest whole numbers with ``cdf(k) >= p``.

        A probability that is that of a whole number but for its rounding counts as equal to it.
        """
        fill_in_blocks(lambda part: self._nearest_quantile(part, part < 0.5), p, out)

    def _inverse_survival(self, p: Numbers, out: Numbers, workers: int) -> None:
        """The smallest whole numbers with ``ccdf(k) <= p``."""
        fill_in_blocks(lambda part: self._nearest_quantile(part, part > 0.5), p, out)

    def _nearest_quantile(self, p: Float, lower: NDArray[np.bool_]) -> Float:
        """The smallest whole number that leaves at most ``min(p, 1 - p)`` above itself, or has at
        least that at or below itself."""
        valid = (p >= 0.0) & (p <= 1.0)
        tail = np.where(valid, np.minimum(p, 1.0 - p), 0.5)
        with np.errstate(divide="ignore", invalid="ignore"):
            # P(X >= m) = exp(-m / scale) / (1 + a), so that the depth of its tail is m.
            depth = -self._length * (np.log(tail) + math.log1p(self._fall))
            nearest = np.rint(depth)
            rounding = _ROUNDING * (self._length * (1.0 + (p > 0.5) / tail) + np.abs(depth))
            depth = np.where(np.abs(depth - nearest) <= rounding, nearest, depth)
        found = np.where(lower, -np.floor(depth), np.ceil(depth) - 1.0)
        found = np.where(lower, np.minimum(found, 0.0), np.maximum(found, 0.0))
        return np.where(valid, found + 0.0, np.nan)

    # -- what the accountant reads ---------------------------------------------------------------

    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]:
        """The sensitivity itself, if it is a whole number up to 2**20."""
        found = super().worst_shifts(sensitivity)
        if not sensitivity <= _SHORT_SHIFT:
            raise DomainError(f"sensitivity must be at most {_SHORT_SHIFT}, got {sensitivity!r}")
        return found

    def pieces(self, shift: float) -> tuple[Float, Float]:
        """Probabilities of sets of whole numbers under the law moved by ``shift``, and under it.

        The ratio is constant on each set. Beyond 0 and the shift both laws fall alike.
        """
        end = math.exp(self.logpmf(0.0)) / self._complement  # P(X <= 0)
        inner = np.arange(1.0, shift)
        base, shifted = self.pmf(inner), self.pmf(inner - shift)
        below = np.array([end]), np.array([end * math.exp(-shift / self._length)])
        return (
            np.concatenate([below[1], shifted, below[0]]),
            np.concatenate([below[0], base, below[1]]),
        )

    def piece_losses(self, shift: float) -> Float:
        """``log`` of the ratio of the probabilities on each of the `pieces`, to an ulp."""
        inner = np.arange(1.0, shift)
        return np.concatenate([[-shift], 2.0 * inner - shift, [shift]]) / self._length

    def largest_piece_loss(self, shift: float) -> float:
        """The largest of the `piece_losses`, rounded up once."""
        return rounded(Fraction(shift) / Fraction(self._length), up=True)

    # -- sampling --------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> core.CellTable:
        k = np.arange(1.0, float(_LISTED))
        falls = core.exponential(-k / self._length, np.zeros_like(k))
        keep = int(np.searchsorted(-falls, -(2.0**-60)))
        k, falls = k[: keep + 1], falls[: keep + 1]
        # In units of P(X = 0); the last cell stands for all that follow.
        weights = np.append(1.0, 2.0 * falls)
        weights[-1] /= -exponential_minus_one(-1.0 / self._length)
        points = np.append(0.0, k)
        zeros = np.zeros_like(points)
        columns = alias_columns(weights.tolist())
        return core.CellTable(*columns, points, zeros, 0.0, k.size, 1.0 / self._length, 1.0)

    def _draw(self, key: bytes, first: int, out: NDArray[Any], workers: int) -> None:
        core.sample_cells(self._table, key, first, 1.0, out, workers)

    @property
    def decay(self) -> float:
        """``1 / scale``, everywhere."""
        return 1.0 / self._length

    def _size_masses(self, k: Float) -> Float:
        masses = 2.0 * core.exponential(-k / self._length, np.zeros_like(k))
        center = -exponential_minus_one(-1.0 / self._length) / (1.0 + self._fall)
        return np.where(k == 0.0, 1.0, masses) * center

    # -- expectations ----------------------------------------------------------------------------

    def _standard_moment(self, order: float) -> float:
        if order in (0.0, 1.0, 2.0):
            return {0.0: 1.0, 1.0: self.mean_abs, 2.0: self.std**2}[order]
        with np.errstate(over="ignore"):
            return self._standard_expectation(lambda x: x**order)

    def _standard_expectation(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> float:
        if self._length > _LONGEST_SUM:
            raise DomainError(f"scale must be at most 2**16 to sum a cost, got {self._length!r}")
        k = np.arange(0.0, math.ceil(200.0 * self._length) + 2.0)
        return float(np.sum(np.where(k == 0.0, 1.0, 2.0) * self.pmf(k) * function(k)))

    def _kl(self, shift: float) -> float:
        if shift != math.floor(shift):
            return math.inf  # no point in common
        # E|X - s| - E|X|, over the scale: (1 - a**(j + 1) + a (1 - a**j)) / (1 + a), summed over j.
        a = self._fall
        if shift <= _SHORT_SHIFT:
            j = np.arange(shift)
            ahead, here = -np.expm1(-(j + 1.0) / self._length), -np.expm1(-j / self._length)
            return float(np.sum(ahead + a * here)) / (1.0 + a) / self._length
        turned = -2.0 * a * math.expm1(-shift / self._length) / (self._complement * (1.0 + a))
        return (shift - turned) / self._length

    def _kl_variance(self, shift: float) -> float:
        if shift != math.floor(shift):
            return math.inf
        if shift > _LONGEST_SUM:
            raise DomainError(f"shift must be at most 2**16, got {shift!r}")
        # The loss is (|k - s| - |k|) / scale: constant up to 0 and from s on.
        k = np.arange(1.0, shift)
        masses = np.concatenate(
            [[0.5 * (1.0 + self.pmf(0))], self.pmf(k), [self.ccdf(shift - 1.0)]]
        )
        losses = np.concatenate([[shift], shift - 2.0 * k, [-shift]]) / self._length
        return float(masses @ (losses - self._kl(shift)) ** 2)

    def _arguments(self) -> dict[str, float]:
        return {"scale": self._length}
