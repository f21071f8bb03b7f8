"""Truncated Laplace noise: near optimal for approximate differential privacy of one release."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise.errors import CalibrationError, DomainError
from psinoise.noise import _checks, _integrals
from psinoise.noise._by_numpy import fill_in_blocks, from_survival
from psinoise.noise._elementary import exponential_minus_one
from psinoise.noise._family import Parameter
from psinoise.noise._interface import NoiseLaw
from psinoise.noise._moments import OwnUnit
from psinoise.noise._target import PrivacyTarget
from psinoise.noise.laplace import Laplace
from psinoise.numerics.distinct import distinct
from psinoise.numerics.rational import least_quotient

__all__ = ["TruncatedLaplace"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]

_LARGEST_EPSILON = 700.0
_BLOCK = 1 << 16
# What ends here is constant to an ulp.
_NO_LENGTH = 2.0**-60
# So many scales no draw is away from 0.
_UNIT = 2.0**10
_LAPLACE = Laplace(scale=1.0)


class TruncatedLaplace(OwnUnit, NoiseLaw):
    """Laplace noise on a bounded interval, for one release under (epsilon, delta)-privacy.

    The density ``exp(-epsilon |x| / s)`` on ``[-A, A]``, with ``A`` hardly above the least that
    ``delta`` allows: a shift by the sensitivity ``s`` moves a mass of ``delta / (1 + 2**-36)`` out
    of the support, which is below ``delta`` by 1.5e-11 of it, and changes the density by
    ``exp(epsilon)`` at most elsewhere. With the least ``A`` rounding would move more than ``delta``
    out of every third law. The noise is bounded; the privacy loss is infinite with the probability
    of what is moved out.

    Parameters
    ----------
    epsilon : float
        In (0, 700].
    delta : float
        In (0, 1/2), and above ``exp(epsilon) / 3.5e308``, which is 3e-5 at an epsilon of 700.
    sensitivity : float
        By how much neighboring data sets can move the query. Both ``sensitivity / epsilon`` and
        ``half_width`` are normal float64.

    Attributes
    ----------
    half_width : float
        ``A = s / epsilon log(1 + (1 + 2**-36) (exp(epsilon) - 1) / (2 delta))``; no sample is
        larger.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or value.

    Notes
    -----
    Geng, Ding, Guo and Kumar, "Tight analysis of privacy and utility tradeoff in approximate
    differential privacy" (AISTATS 2020), where the law is defined and shown to be asymptotically
    optimal for ``|x|`` and ``x**2`` in several regimes of small ``delta``.

    Samples are Laplace samples modulo ``A``: exactly this law, since the exponential has no
    memory; where ``epsilon`` is small it costs their low-order bits.

    Examples
    --------
    >>> import psinoise as pn
    >>> law = pn.TruncatedLaplace(epsilon=1.0, delta=1e-6)
    >>> round(law.half_width, 6), round(float(law.ccdf(law.half_width - 1.0)) * 1e6, 6)
    (13.663689, 1.0)
    """

    log_concave = True
    unimodal = True
    _score_limit = 1.0
    representatives = ({"epsilon": 1.0, "delta": 1e-6},)
    shape_parameters = MappingProxyType(
        {
            "epsilon": Parameter("epsilon that it is made for", required=True),
            "delta": Parameter("delta that it is made for", required=True),
        }
    )

    epsilon: float
    delta: float
    sensitivity: float

    def __init__(self, *, epsilon: float, delta: float, sensitivity: float = 1.0) -> None:
        budget = _validate.positive_below("epsilon", epsilon)
        if not budget <= _LARGEST_EPSILON:
            raise DomainError(f"epsilon must be at most {_LARGEST_EPSILON}, got {epsilon!r}")
        probability = _validate.positive_below("delta", delta)
        if not probability < 0.5:
            raise DomainError(f"delta must be in (0, 1/2), got {delta!r}")
        length = _validate.positive_above("sensitivity", sensitivity)
        scale = _validate.positive("sensitivity / epsilon", least_quotient(length, budget))
        self._set(epsilon=budget, delta=probability, sensitivity=length, _scale=scale)
        if not self._growth < math.inf:
            raise DomainError(f"delta must be above exp(epsilon) / 3.5e308, got {delta!r}")
        if self._scale > _checks.WIDE:  # there are less than 2**10 scales in it
            _validate.positive("half_width", self.half_width)

    @classmethod
    def for_target(cls, target: PrivacyTarget, **arguments: Any) -> TruncatedLaplace:
        """The member for epsilon and delta, of one use without sampling."""
        if target.count > 1 or target.sampling_rate < 1.0:
            raise CalibrationError("TruncatedLaplace noise is made for one use without sampling")
        epsilon, delta = target.epsilon, target.delta
        if not (epsilon > 0.0 and 0.0 < delta < 0.5):
            raise CalibrationError(
                "TruncatedLaplace noise is made for epsilon above 0 and delta in (0, 1/2)"
            )
        return cls(epsilon=epsilon, delta=delta, sensitivity=target.sensitivity, **arguments)

    @property
    def _growth(self) -> float:
        """``exp(A / scale) - 1``, the ratio of the densities at 0 and ``A`` less one."""
        # A little more, so that the mass that a shift moves out of the support is not above delta
        # by rounding, where no epsilon would be finite.
        return exponential_minus_one(self.epsilon) / (2.0 * self.delta) * (1.0 + 2.0**-36)

    @property
    def _reach(self) -> float:
        """``A / scale``."""
        return float(core.log_one_plus(np.array([self._growth]))[0])

    @property
    def half_width(self) -> float:
        """The largest possible absolute value."""
        return self._reach * self._scale

    # -- what the accountant reads ---------------------------------------------------------------

    @property
    def kinks(self) -> tuple[float, ...]:
        """At 0; the ends of the support are no kinks."""
        return (0.0,)

    @property
    def score_limit(self) -> float:
        """``1 / scale``, inside the support."""
        return 1.0 / self._scale

    @property
    def support(self) -> float:
        """``half_width``."""
        return self.half_width

    def divided(self, unit: float) -> TruncatedLaplace:
        """The law of noise divided by a number above 0."""
        sensitivity = self.sensitivity / unit
        return TruncatedLaplace(epsilon=self.epsilon, delta=self.delta, sensitivity=sensitivity)

    def _left_by(self, shift: float) -> float:
        if shift >= self.half_width:
            return super()._left_by(shift)
        # exp(-(A - s)) - exp(-A) over twice what is kept, in units of the scale.
        return exponential_minus_one(shift / self._scale) / (2.0 * self._growth)

    @property
    def _log_kept(self) -> float:
        return math.log(self._inside)

    @property
    def _table(self) -> Any:
        return _LAPLACE._table

    @property
    def _inside(self) -> float:
        """``1 - exp(-A / scale)``, the part of the Laplace law that is kept."""
        return self._growth / (1.0 + self._growth)

    @property
    def _shape(self) -> tuple[Any, ...]:
        return (self.epsilon, self.delta)

    # -- evaluation ------------------------------------------------------------------------------

    def _evaluate(self, quantity: str, x: Numbers, out: Numbers, workers: int) -> None:
        fill_in_blocks(lambda part: self._evaluate_block(quantity, part), x, out)

    def _evaluate_block(self, quantity: str, x: Float) -> Float:
        t, end = np.abs(x) / self._scale, self.half_width
        if quantity in ("pdf", "logpdf"):
            log_density = -t - math.log(2.0 * self._inside * self._scale)
            log_density = np.where(np.abs(x) <= end, log_density, -np.inf)
            found = np.exp(log_density) if quantity == "pdf" else log_density
            return np.where(np.isnan(x), np.nan, found)
        left = np.maximum((end - np.abs(x)) / self._scale, 0.0)  # exact next to the end
        with np.errstate(divide="ignore"):
            # P(X > t) is exp(-t) - exp(-A), over twice what is kept, without the cancellation.
            log_part = np.log(-np.expm1(-left))
            log_survival = np.where(left > 0.0, log_part - t, -np.inf) - math.log(2 * self._inside)
        return from_survival(quantity, x, np.exp(log_survival), log_survival)

    def _inverse_survival(self, p: Numbers, out: Numbers, workers: int) -> None:
        fill_in_blocks(self._inverse_survival_block, p, out)

    def _inverse_survival_block(self, p: Float) -> Float:
        valid = (p >= 0.0) & (p <= 1.0)
        tail = np.where(valid, np.minimum(p, 1.0 - p), 0.5)
        # From the center, or from the end of the support, whichever is near.
        center = -np.log1p(-2.0 * (0.5 - np.maximum(tail, 0.25)) * self._inside)
        end = self._reach - np.log1p(2.0 * tail * self._growth)
        t = np.where(tail > 0.25, center, np.maximum(end, 0.0)) * self._scale
        return np.where(valid, np.where(p > 0.5, -t, t), np.nan)

    def _draw(self, key: bytes, first: int, out: NDArray[Any], workers: int) -> None:
        half_width, scale = self.half_width, self._scale
        _checks.fine_enough(self, out.dtype, half_width)
        # Next to the limits of float64 in another unit: infinite draws would have no remainder.
        unit = _UNIT if scale > _checks.WIDE else 1.0
        core.sample(_LAPLACE._table, key, first, scale / unit, out, workers)
        # The exponential law has no memory: beyond A it starts again. The remainder is exact.
        longest = half_width / unit
        reach = out.dtype.type(min(longest, float(np.finfo(out.dtype).max)))
        if float(reach) > longest:  # a float32 and a float are compared as float32
            reach = np.nextafter(reach, out.dtype.type(0.0))
        flat = out.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            part = flat[start : start + _BLOCK]
            beyond = np.abs(part) > reach
            if beyond.any():
                part[beyond] = np.fmod(part[beyond], reach)
            if unit != 1.0:
                part *= unit

    def lattice_masses(self, grid: float, start: int, stop: int) -> Float:
        """``P(|X|`` rounds to ``k grid)``; see `psinoise.noise.NoiseLaw.lattice_masses`."""
        end, unit = self.half_width / grid, grid / self._scale
        borders = np.clip(np.arange(start, stop + 1.0) - 0.5, 0.0, end)
        # Few lengths, which are exact: differences of a density that hardly falls are not.
        lengths, place = np.unique(np.diff(borders), return_inverse=True)
        parts = np.array([length * _mean_fall(length * unit) for length in lengths.tolist()])
        falls = core.exponential(-borders[:-1] * unit, np.zeros(place.size))
        return np.asarray(parts[place] * falls * (self._reach / self._inside / end))

    # -- expectations ----------------------------------------------------------------------------

    @property
    def _moment_unit(self) -> float:
        """The half width, or the scale where that is smaller."""
        return min(1.0, self._reach) * self._scale

    def _unit_moment(self, order: float) -> float:
        reach = self._reach
        if order in (1.0, 2.0) and reach > 1.0:
            ratio = reach / self._growth
            return 1.0 - ratio if order == 1.0 else 2.0 - ratio * (2.0 + reach)
        longest = max(1.0, reach)
        with np.errstate(over="ignore"):
            # In two steps, as a power far out overflows where its product with the density is small
            half, density = self._over_parts(lambda part: (longest * part) ** (0.5 * order))
            return float(np.sum(half * density * half))

    def _log_unit_moment(self, order: float) -> float:
        logs, density = self._over_parts(lambda part: order * np.log(part))
        top = float(logs.max())
        found = math.log(float(np.sum(density * np.exp(logs - top))))
        return top + found + order * math.log(max(1.0, self._reach))

    def _standard_expectation(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> float:
        reach = self._reach
        cuts = tuple(kink / reach for kink in kinks)
        values, density = self._over_parts(lambda part: function(reach * part), cuts)
        return float(np.sum(density * values))

    def _over_parts(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> tuple[Float, Float]:
        """Values at parts of the half width, in (0, 1), and the probabilities that they stand for.

        Of parts, since the half width may be 1e-300 of the scale.
        """
        # Powers of high orders are all at the end.
        graded, last = 2.0 ** np.arange(-60.0, 0.0), 1.0 - 2.0 ** np.arange(-7.0, -40.0, -1.0)
        edges = np.concatenate([[0.0], graded, np.arange(0.5, 1.0, 1 / 64), last, [1.0]])
        part, weights = _integrals.panels(_integrals.cut(distinct(edges), kinks))
        density = np.exp(-self._reach * part) * (self._reach / self._inside)
        return function(part), weights * density

    def _standard_fisher_information(self) -> float:
        return math.inf  # the density jumps at the ends of its support

    def _kl(self, shift: float) -> float:
        return math.inf  # supports differ

    def _kl_variance(self, shift: float) -> float:
        return math.inf

    def _arguments(self) -> dict[str, float]:
        return {"epsilon": self.epsilon, "delta": self.delta, "sensitivity": self.sensitivity}


def _mean_fall(length: float) -> float:
    """The mean of ``exp(-t)`` for ``t`` from 0 to a length."""
    return -exponential_minus_one(-length) / length if length > _NO_LENGTH else 1.0
