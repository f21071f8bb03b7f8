"""Symmetric stable noise on the whole numbers: what clients can add up in secure aggregation."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.errors import DomainError
from psinoise.noise import _checks
from psinoise.noise._discrete_stable_masses import DiscreteStableMasses
from psinoise.noise._discrete_stable_sums import expectation, loss_moments
from psinoise.noise._family import Parameter
from psinoise.noise._whole import LARGEST_NUMBER, WholeNoise

__all__ = ["DiscreteStable"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]

_SMALLEST_INDEX, _LARGEST_INDEX = 0.1, 2.0
# Sizes that the sampler lists.
_MOST_LISTED = 1 << 18
# Of ChaCha, as in all sampling.
_ROUNDS = 8
# Of divergences: a longer shift takes too many terms; of a shorter one, in scales, the differences
# of logarithms that are its losses have too few digits.
_LONGEST_SHIFT, _LARGEST_RATIO = 2.0**20, 64.0


class DiscreteStable(WholeNoise):
    """Whole-number noise with characteristic function ``exp(-(2 scale abs(sin(u / 2)))**alpha)``.

    The sum of independent draws of scales ``c_i`` is of this law, with the scale
    ``sum(c_i**alpha)**(1 / alpha)``: characteristic functions multiply (`aggregate`). ``alpha = 2``
    is the Skellam law of variance ``2 scale**2``. As the scale grows, ``DiscreteStable / scale``
    tends to `SymmetricStable` of scale 1.

    Parameters
    ----------
    alpha : float
        The index, in [0.1, 2]. Below 0.1 tables hardly reach to where the tail sets in; above 2
        there is no such law.
    scale : float
        In [2**-6, 2**40].

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or value.

    Notes
    -----
    *It is a law, and unimodal.* ``exp(-z**(alpha / 2))`` is the Laplace transform of a positive
    stable variable T of index ``alpha / 2``. With ``z = 4 scale**2 sin(u / 2)**2`` the
    characteristic function is a mixture over T of ``exp(-4 T scale**2 sin(u / 2)**2)``, which is
    that of the difference of two Poisson variables of mean ``T scale**2``. Its mass at k is
    ``exp(-2 m) I_k(2 m)``, ``m = T scale**2``, and falls with ``abs(k)``, since Bessel functions
    ``I_k(x)`` fall with the order; a mixture of such laws has masses that fall too. So the largest
    shift is the worst one. And a larger scale hides more, being the sum of a smaller one and of
    another draw.

    *Pure privacy for alpha < 2.* All masses are positive, and ``P(X = k) ~ C / k**(1 + alpha)`` by
    the singularity of the characteristic function at 0, so that the ratio of the masses of ``k``
    and ``k - s`` tends to 1: its logarithm is bounded. ``Mechanism(law, s).pure_epsilon()`` is the
    bound, of independent draws of the law; of the sum of n draws it is that of ``aggregate(n)``.

    *What is released.* ``Mechanism(law, s).on_lattice()`` draws from a table of integers, and its
    epsilon is certified for that table; ``Mechanism(law, s).for_sum(n)`` has the certified epsilon
    of the sum of n such draws, also after dropouts and modulo a power of two. Tables take 2**20
    numbers to reach to where the tail is a power law to 0.5 %; on_lattice refuses larger scales.
    The last power of two that it takes is 2**13 for indices above 1.2, 2**8 at 0.5, 2**2 at 0.1.

    Masses and tails have a relative error below 1e-13 (``tests/test_discrete_stable.py``; 2e-13
    where thousands are asked for at once).
    There is no density: ``pmf`` and ``logpmf`` take the place of ``pdf`` and ``logpdf``. Costs and
    divergences are sums over the whole numbers (``psinoise.noise._discrete_stable_sums``).

    Examples
    --------
    >>> import psinoise as pn
    >>> message = pn.DiscreteStable(alpha=1.5, scale=4.0)
    >>> round(message.aggregate(8).scale, 12)
    16.0
    >>> message.pmf([0, 1, 5]).round(6)
    array([0.072267, 0.070571, 0.041831])
    """

    ordered_by_scale = True
    scale_limits = 2.0**-6, 2.0**40
    representatives = ({"alpha": 1.9, "scale": 4.0},)
    shape_parameters = MappingProxyType(
        {"alpha": Parameter("index of stability, in [0.1, 2]", required=True)}
    )

    _alpha: float

    def __init__(self, *, alpha: float, scale: float) -> None:
        index = _validate.real("alpha", alpha)
        if not _SMALLEST_INDEX <= index <= _LARGEST_INDEX:
            raise DomainError(f"alpha must be in [0.1, 2], got {alpha!r}")
        length = _validate.positive("scale", scale)
        if not self.scale_limits[0] <= length <= self.scale_limits[1]:
            raise DomainError(f"scale must be in [2**-6, 2**40], got {scale!r}")
        self._set(_alpha=index, _length=length, _scale=1.0)

    @property
    def alpha(self) -> float:
        """The index of stability."""
        return self._alpha

    @property
    def _shape(self) -> tuple[float, float]:
        return self._alpha, self._length

    def _shape_arguments(self) -> dict[str, Any]:
        return {"alpha": self._alpha}

    def _arguments(self) -> dict[str, float]:
        return {"alpha": self._alpha, "scale": self._length}

    def aggregate(self, count: int) -> DiscreteStable:
        """The law of the sum of ``count`` independent draws: scale times ``count**(1 / alpha)``.

        Of those that did not drop out, if ``count`` is how many they are.

        Raises
        ------
        TypeError, DomainError
            If ``count`` is not a positive integer.
        """
        number = _validate.positive_count("count", count)
        growth = float(np.float64(number) ** (1.0 / self._alpha))
        return DiscreteStable(alpha=self._alpha, scale=self._length * growth)

    def widened(self, factor: float) -> DiscreteStable:
        """The law with so many times the scale: the sum of a draw and of another, independent one.

        Raises
        ------
        TypeError, DomainError
            If ``factor`` is no number of at least 1, or makes the scale too large.
        """
        if not _validate.positive("factor", factor) >= 1.0:
            raise DomainError(f"factor must be at least 1, got {factor!r}")
        return DiscreteStable(alpha=self._alpha, scale=self._length * float(factor))

    @property
    def std(self) -> float:
        """``sqrt(2) scale`` at ``alpha = 2``, otherwise ``inf``."""
        return math.sqrt(2.0) * self._length if self._alpha == 2.0 else math.inf

    @property
    def mean_abs(self) -> float:
        """``integral of (1 - phi(u)) / (4 sin(u / 2)**2) du 2 / pi`` from 0 to pi.

        ``E|X|`` of any law is that of ``(1 - phi(u)) / u**2`` over all ``u > 0``; the periods of
        ``phi`` are added up by ``sum of 1 / (u + 2 pi m)**2 = 1 / (4 sin(u / 2)**2)``.
        """
        if self._alpha <= 1.0:
            return math.inf
        step, rate = 0.05, self._alpha - 1.0
        low = min(-math.log(self._length) - 42.0 / self._alpha, -20.0)
        t = np.arange(low, 45.0, step)
        x, rest = math.pi / (1.0 + np.exp(-t)), math.pi / (1.0 + np.exp(t))
        chord = 2.0 * np.sin(0.5 * np.minimum(x, math.pi))
        terms = -np.expm1(-((self._length * chord) ** self._alpha)) / chord**2 * x * rest
        # The trapezoidal rule in t; before ``low`` its terms fall like exp(rate t).
        total = float(np.sum(terms)) + float(terms[0]) / math.expm1(rate * step)
        return total * step * 2.0 / math.pi**2

    @cached_property
    def _masses(self) -> DiscreteStableMasses:
        return DiscreteStableMasses(self._alpha, self._length)

    # -- evaluation ------------------------------------------------------------------------------

    def logpmf(self, k: ArrayLike) -> Any:
        """Logarithm of ``pmf``."""
        points = np.abs(_checks.real_array("k", k))
        whole = (points == np.floor(points)) & (points <= LARGEST_NUMBER)
        logs = self.log_mass(np.where(whole, points, 0.0).ravel())
        found = np.where(whole, logs.reshape(points.shape), -np.inf)
        return np.where(np.isnan(points), np.nan, found)[()]

    def _log_tails(self, k: Float) -> Float:
        found = self.log_tail(np.fmin(k, LARGEST_NUMBER))
        return np.where(np.isinf(k), -np.inf, found)

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def finest(self) -> float:
        """``sqrt(p(0) / abs(p''(0)))`` of the stable law of this scale: what a peak is wide."""
        moments = math.lgamma(1.0 / self._alpha) - math.lgamma(3.0 / self._alpha)
        return self._length * math.exp(0.5 * moments)

    @property
    def bounded_loss(self) -> bool:
        """Whether the tail is a power: below 2."""
        return self._alpha < 2.0

    @property
    def adds_up(self) -> bool:
        """Sums of draws are of this kind (`aggregate`)."""
        return True

    @property
    def spread(self) -> float:
        """The scale, which there always is."""
        return self._length

    @property
    def tail_index(self) -> float:
        """The index; of the Skellam law there is none."""
        return self._alpha if self._alpha < 2.0 else 0.0

    def log_mass(self, k: Float) -> Float:
        """``log P(X = k)`` at ``k >= 0``, as a smooth function where that is beyond 32 or the scale
        is large."""
        return self._masses.log_masses(k)

    def log_tail(self, k: Float) -> Float:
        """``log P(X >= k)`` at whole ``k >= 1``."""
        return self._masses.log_tails(k)

    def _size_masses(self, k: Float) -> Float:
        """Right to 1e-13, by NumPy's elementary functions: last bits may differ between machines,
        and with them the hash of a table. Its privacy is that of its own integers."""
        return np.exp(self.log_mass(k)) * np.where(k == 0.0, 1.0, 2.0)

    # -- sampling --------------------------------------------------------------------------------

    @cached_property
    def _listed(self) -> Float:
        """``P(|X| <= k)`` of the sizes that the sampler looks up."""
        count = int(min(64.0 * self._length + 128.0, _MOST_LISTED))
        return np.cumsum(self.lattice_masses(1.0, 0, count))

    def _draw(self, key: bytes, first: int, out: NDArray[Any], workers: int) -> None:
        """By quantiles of uniform numbers, two words of the stream for each element."""
        _checks.wide_enough(self, out.dtype)
        flat = out.reshape(-1)
        words = core.stream_words(key, _ROUNDS, 2 * first, 2 * flat.size).reshape(-1, 2)
        # Numbers in [0, 1) of 53 bits; the sign is another bit of the first word.
        uniform = (words >> np.uint64(11)) * 2.0**-53
        listed = self._listed
        sizes = np.searchsorted(listed, uniform[:, 0], side="right").astype(np.float64)
        rare = sizes >= listed.size
        if rare.any():
            # P(X >= listed) times a uniform number is what is beyond |X|, on one side; where that
            # is nothing the sum of the list is short of 1 by its rounding.
            rest = self.ccdf(listed.size - 1.0)
            beyond = rest * (1.0 - uniform[rare, 1])
            farther = np.maximum(self._quantile("ccdf", beyond), listed.size)
            sizes[rare] = farther if rest > 0.0 else listed.size - 1.0
        flat[:] = np.where(words[:, 0] & np.uint64(1), -sizes, sizes)

    # -- expectations ----------------------------------------------------------------------------

    def _standard_moment(self, order: float) -> float:
        if order in (0.0, 1.0):
            return 1.0 if order == 0.0 else self.mean_abs
        if order == 2.0 or (self._alpha < 2.0 and order >= self._alpha):
            return self.std**2
        return self._standard_expectation(lambda x: x**order)

    def _standard_expectation(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> float:
        return expectation(self._masses, function)

    def _kl(self, shift: float) -> float:
        return self._loss_moments(shift)[0]

    def _kl_variance(self, shift: float) -> float:
        return self._loss_moments(shift)[1]

    def _loss_moments(self, shift: float) -> tuple[float, float]:
        if shift != math.floor(shift):
            return math.inf, math.inf  # no point in common
        if not self._length / _LARGEST_RATIO <= shift <= _LONGEST_SHIFT:
            raise DomainError(
                f"shift must be from 1/{_LARGEST_RATIO:g} of the scale to 2**20, got {shift!r}"
            )
        return loss_moments(self._masses, int(shift))
