"""Symmetric alpha-stable noise: heavy tails, pure differential privacy, closed under sums."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise import _validate
from psinoise._kept import cached_property
from psinoise.compile import FarTail, Layout
from psinoise.errors import DomainError
from psinoise.noise import _checks, _integrals
from psinoise.noise._base import Float, Noise
from psinoise.noise._family import Parameter
from psinoise.noise._stable_forms import Form, form
from psinoise.numerics.double_double import Pair

__all__ = ["Cauchy", "SymmetricStable"]

# What each way to give the index is a distance from, and its range.
_INDEX = {
    "alpha": (0.0, 0.1, 2.0),
    "two_minus_alpha": (2.0, 0.0, 1.9),
    "alpha_minus_one": (1.0, -0.9, 1.0),
}
# Below this distance from 2, other than 0, panels are too wide for the bend of the density.
_SMALLEST_DISTANCE = 1e-16


class SymmetricStable(Noise):
    """Noise with characteristic function ``exp(-abs(scale * u)**alpha)``.

    The SaS mechanism: for ``alpha < 2`` its privacy loss is bounded, so that one use is purely
    differentially private (Zawacki and Abed 2025, theorem 16), and the sum of independent draws is
    of the same kind (`aggregate`). ``alpha = 2`` is the normal law of variance ``2 scale**2`` and
    ``alpha = 1`` is `Cauchy`. The tail is ``P(X > x) ~ Gamma(alpha) sin(pi alpha / 2) / pi *
    (scale / x)**alpha``.

    Parameters
    ----------
    alpha, two_minus_alpha, alpha_minus_one : float
        Exactly one of: the index, in [0.1, 2]; or its distance from 2 or 1, which keeps its digits
        where ``alpha`` would round them away (``two_minus_alpha=1e-12``): 0 or at least 1e-16.
    scale, mean_abs, std : float
        Exactly one of: the scale; the mean absolute value, which is finite for ``alpha > 1``:
        ``mean_abs = (2 / pi) Gamma(1 - 1 / alpha) scale`` (table 1 of the paper: the distortion);
        the standard deviation, which is finite at ``alpha = 2`` alone.

    Raises
    ------
    TypeError, DomainError
        For other arguments; for a statistic that is infinite.

    Notes
    -----
    Unimodal for every alpha (Yamazato, Annals of Probability 6, 1978; Wintner 1936 for symmetric
    laws), log-concave at ``alpha = 2`` alone. Relative error of the density and of both tails at
    most 2e-14 for ``alpha >= 0.1``, and 2e-13 where ``2 - alpha < 1e-5``, at any ``x``.

    ``sample`` raises DomainError where draws would overflow the type with a probability of more
    than 2**-64: in float32 for indices below about 0.5, and for more of them at large scales.

    Examples
    --------
    >>> import psinoise as pn
    >>> noise = pn.SymmetricStable(alpha=1.5, scale=2.0)
    >>> round(float(noise.pdf(0.0)), 12)
    0.143676375726
    >>> round(noise.aggregate(8).scale, 12)
    8.0
    """

    representatives = ({"alpha": 1.5},)
    shape_parameters = MappingProxyType(
        {
            "alpha": Parameter("index of stability, in [0.1, 2]"),
            "two_minus_alpha": Parameter("... or 2 - alpha"),
            "alpha_minus_one": Parameter("... or alpha - 1"),
        }
    )

    _index: tuple[float, float]

    def __init__(
        self,
        *,
        alpha: float | None = None,
        two_minus_alpha: float | None = None,
        alpha_minus_one: float | None = None,
        scale: float | None = None,
        std: float | None = None,
        mean_abs: float | None = None,
    ) -> None:
        index = _index_of(alpha, two_minus_alpha, alpha_minus_one)
        name, value = _validate.exactly_one(
            type(self).__name__, scale=scale, std=std, mean_abs=mean_abs
        )
        unit = {"scale": 1.0, "std": _std(index), "mean_abs": _mean_abs(index)}[name]
        if math.isinf(unit):
            raise DomainError(f"{name} must be left out, since it is infinite: give the scale")
        self._set(_index=index, _scale=_validate.positive("scale", value / unit))
        self._set(_score_limit=math.inf if self.log_concave else 0.0)

    @property
    def alpha(self) -> float:
        """The index of stability, rounded to a float64."""
        return self._index[0]

    @property
    def two_minus_alpha(self) -> float:
        """``2 - alpha`` without that rounding."""
        return (2.0 - self._index[0]) - self._index[1]

    @property
    def alpha_minus_one(self) -> float:
        """``alpha - 1`` without that rounding."""
        return (self._index[0] - 1.0) + self._index[1]

    @property
    def _shape(self) -> tuple[float, float]:
        return self._index

    def _shape_arguments(self) -> dict[str, Any]:
        hi, lo = self._index
        if lo == 0.0:
            return {"alpha": hi}
        distance = self.two_minus_alpha
        if _index_of(None, distance, None) == self._index:
            return {"two_minus_alpha": distance}
        return {"alpha_minus_one": self.alpha_minus_one}

    def _arguments(self) -> dict[str, Any]:
        return {**self._shape_arguments(), "scale": self._scale}

    @property
    def log_concave(self) -> bool:
        """True of the normal law alone: the others have tails that are powers."""
        return self._index == (2.0, 0.0)

    @property
    def normal_variance(self) -> int | None:
        """2 of the normal law: its characteristic function is ``exp(-(scale t)^2)``."""
        return 2 if self.log_concave else None

    # -- the standardized law --------------------------------------------------------------------

    @property
    def _form(self) -> Form:
        return form(*self._index)

    @property
    def layout(self) -> Layout:
        """Panels that suit the index."""
        return self._form.layout

    @property
    def costly(self) -> bool:
        """True where the law is an integral."""
        return self._form.costly

    @property
    def fit_tolerance(self) -> float:
        """A little above the error of the formulas."""
        return self._form.fit_tolerance

    @property
    def far_tail(self) -> FarTail | None:
        """The tail as its series."""
        return self._form.far_tail

    def log_density(self, t: Float) -> Pair:
        """Series at 0 and infinity, Zolotarev's integral between them."""
        return self._form.log_density(t)

    def log_mills(self, t: Float) -> Float:
        """From the same formulas."""
        return self._form.log_mills(t)

    def log_survival(self, t: Float) -> Pair:
        """From the same formulas, not by way of the Mills ratio."""
        return self._form.log_survival(t)

    def score(self, t: Float) -> Float:
        """From the same formulas; ``t`` times it is right to 1e-14 absolute."""
        return self._form.score(t)

    @property
    def kinks(self) -> tuple[float, ...]:
        """None for ``alpha >= 1``; below, the density is smooth but not analytic at 0."""
        return () if self.alpha_minus_one >= 0.0 else (0.0,)

    # -- statistics ------------------------------------------------------------------------------

    @property
    def std(self) -> float:
        """``sqrt(2) scale`` at ``alpha = 2``, otherwise ``inf``."""
        return _std(self._index) * self._scale

    @property
    def mean_abs(self) -> float:
        """``(2 / pi) Gamma(1 - 1 / alpha) scale``; ``inf`` for ``alpha <= 1``."""
        return _mean_abs(self._index) * self._scale

    def _log_unit_moment(self, order: float) -> float:
        # Nolan, Univariate Stable Distributions (2020), corollary 3.2.
        if order == 0.0:
            return 0.0
        normal = order * math.log(2.0) + math.lgamma(0.5 * (1.0 + order)) - math.lgamma(0.5)
        if self.log_concave:
            return normal
        left = (self._index[0] - order) + self._index[1]
        if not left > 0.0:
            return math.inf
        return normal + math.lgamma(left / self._index[0]) - math.lgamma(1.0 - 0.5 * order)

    def _standard_fisher_information(self) -> float:
        return 0.5 if self._closed else _integrals.expectation(self, lambda t: self.score(t) ** 2)

    def _standard_kl(self, shift: float) -> float:
        if self.log_concave:
            return 0.25 * shift * shift
        if self._closed and shift < math.inf:
            return math.log1p((0.5 * shift) ** 2) if shift < 1e100 else 2.0 * math.log(0.5 * shift)
        return _integrals.divergence(self, shift)

    @property
    def _closed(self) -> bool:
        return self._index in {(1.0, 0.0), (2.0, 0.0)}

    def aggregate(self, count: int) -> SymmetricStable:
        """The law of the sum of ``count`` independent draws: scale times ``count**(1 / alpha)``.

        Characteristic functions multiply. With it a server accounts for the noise that many clients
        have added, each for itself.

        Raises
        ------
        TypeError, DomainError
            If ``count`` is not a positive integer.
        """
        number = _validate.positive_count("count", count)
        growth = float(np.float64(number) ** (1.0 / self._index[0]))
        return SymmetricStable(**self._shape_arguments(), scale=self._scale * growth)

    @staticmethod
    def weighted_sum(
        laws: Iterable[SymmetricStable], weights: Iterable[float] | None = None
    ) -> SymmetricStable:
        """The law of ``sum(weight * draw)`` of independent draws of laws of one index.

        Its scale is ``sum(abs(weight * scale)**alpha)**(1 / alpha)`` (lemma 29 of the paper),
        relative error below ``2**-48``.

        Parameters
        ----------
        laws : iterable of SymmetricStable
            At least one, all of the same index.
        weights : iterable of float, optional
            As many finite numbers, not all 0; 1 each if they are left out.

        Raises
        ------
        TypeError, DomainError
            For anything else.

        Examples
        --------
        >>> import psinoise as pn
        >>> a, b = pn.Cauchy(scale=1.0), pn.Cauchy(scale=2.0)
        >>> pn.SymmetricStable.weighted_sum([a, b], [3.0, -0.5])
        SymmetricStable(alpha=1.0, scale=4.0)
        """
        summands = list(laws)
        if not summands:
            raise DomainError("laws must not be empty")
        for law in summands:
            if not isinstance(law, SymmetricStable):
                raise TypeError(f"laws must be SymmetricStable, got {law!r}")
            if law._index != summands[0]._index:
                raise DomainError(f"laws must be of one index, got {summands[0]!r} and {law!r}")
        factors = [1.0] * len(summands) if weights is None else list(weights)
        if len(factors) != len(summands):
            raise DomainError(f"weights must be {len(summands)} numbers, got {len(factors)}")
        lengths = [
            abs(_validate.real("weights", factor)) * law._scale
            for factor, law in zip(factors, summands, strict=True)
        ]
        largest = max(lengths)
        if not 0.0 < largest < math.inf:
            raise DomainError(f"weights must be finite and not all 0, got {factors!r}")
        alpha = summands[0]._index[0]
        growth = math.fsum((length / largest) ** alpha for length in lengths) ** (1.0 / alpha)
        return SymmetricStable(**summands[0]._shape_arguments(), scale=largest * growth)

    @cached_property
    def _overflow(self) -> dict[int, float]:
        """How probable a draw beyond float32 and float64 is, by the bytes of the type."""
        return {4: _checks.overflow(self, np.float32), 8: _checks.overflow(self, np.float64)}

    def _draw(self, key: bytes, first: int, out: NDArray[Any], workers: int) -> None:
        _checks.wide_enough(self, out.dtype, self._overflow[out.itemsize])
        super()._draw(key, first, out, workers)


def Cauchy(*, scale: float) -> SymmetricStable:
    """Cauchy noise, density ``scale / (pi (scale**2 + x**2))``: `SymmetricStable` of ``alpha=1``.

    Parameters
    ----------
    scale : float
        Half the distance of the quartiles.

    Examples
    --------
    >>> import psinoise as pn
    >>> pn.Cauchy(scale=2.0)
    SymmetricStable(alpha=1.0, scale=2.0)
    >>> round(float(pn.Cauchy(scale=2.0).iccdf(0.25)), 12)
    2.0
    """
    return SymmetricStable(alpha=1.0, scale=scale)


def _index_of(
    alpha: float | None, two_minus_alpha: float | None, alpha_minus_one: float | None
) -> tuple[float, float]:
    """The index as the sum of two floats, ``hi`` its nearest one."""
    given = dict(zip(_INDEX, (alpha, two_minus_alpha, alpha_minus_one), strict=True))
    present = {name: value for name, value in given.items() if value is not None}
    if len(present) != 1:
        raise TypeError(
            f"SymmetricStable takes exactly one of {', '.join(given)}, got {len(present)} "
            "(psinoise.calibrate_stable finds the best index for a target)"
        )
    ((name, value),) = present.items()
    number = _validate.real(name, value)
    base, lowest, highest = _INDEX[name]
    if not lowest <= number <= highest:
        raise DomainError(f"{name} must be in [{lowest!r}, {highest!r}], got {value!r}")
    if base and number and abs(number) < _SMALLEST_DISTANCE:
        raise DomainError(f"{name} must be 0 or at least {_SMALLEST_DISTANCE!r}, got {value!r}")
    signed = -number if name == "two_minus_alpha" else number
    hi = base + signed
    # Exact, since |base| >= |signed| or base is 0 (Dekker).
    return hi, signed - (hi - base)


def _std(index: tuple[float, float]) -> float:
    return math.sqrt(2.0) if index == (2.0, 0.0) else math.inf


def _mean_abs(index: tuple[float, float]) -> float:
    above_one = (index[0] - 1.0) + index[1]
    if not above_one > 0.0:
        return math.inf
    return 2.0 / math.pi * math.gamma(above_one / index[0])
