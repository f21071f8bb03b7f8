"""Symmetric stable noise on the whole numbers: what clients can add up in secure aggregation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.errors import DomainError
from psinoise.noise import _checks
from psinoise.noise._discrete_stable_masses import far, log_masses, log_masses_between, log_tails
from psinoise.noise._distribution import from_survival
from psinoise.noise._interface import NoiseLaw

__all__ = ["DiscreteStable"]

Float = NDArray[np.float64]

_SMALLEST_INDEX, _HIGHEST_INDEX = 1.1, 1.99
_SMALLEST_SCALE, _LARGEST_SCALE = 0.25, 2.0**30
# Whole numbers among which the largest loss is looked for, and up to how many scales.
_MOST_LOSSES, _LOSSES_REACH = 1 << 20, 24.0
# Beyond, whole numbers are rounded.
_LARGEST_NUMBER = 2.0**1000


class DiscreteStable(NoiseLaw):
    """Whole-number noise with characteristic function ``exp(-(2 scale abs(sin(u / 2)))**alpha)``.

    The sum of independent draws of scales ``c_i`` is of this law, with the scale
    ``sum(c_i**alpha)**(1 / alpha)``: characteristic functions multiply (`aggregate`). ``alpha = 2``
    is the Skellam law of variance ``2 scale**2``. As the scale grows, ``DiscreteStable / scale``
    tends to `SymmetricStable` of scale 1.

    Parameters
    ----------
    alpha : float
        The index, in [1.1, 1.99], or 2.
    scale : float
        In [0.25, 2**30].

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
    shift is the worst one.

    *Pure privacy for alpha < 2.* All masses are positive, and ``P(X = k) ~ C / k**(1 + alpha)`` by
    the singularity of the characteristic function at 0, so that the ratio of the masses of ``k``
    and ``k - s`` tends to 1: its logarithm is bounded (`largest_loss`).

    *Modular sums.* Reducing to ``x mod 2**b`` is a homomorphism of rings: the residue of a sum is
    the sum of the residues. A residue is a function of the message, and the sum of residues one of
    the sum: by post-processing no epsilon grows. The sum is right if it is below ``2**(b - 1)`` in
    absolute value; ``aggregate(n).ccdf`` says how often the noise is not.

    *What is proven of a release.* ``Mechanism(law, s).on_lattice()`` draws from a table of
    integers, and its epsilon is certified for that table: one message, or one draw of the law of
    the sum. That of a sum of table draws is at most that of a message, as a function of it and of
    independent noise; `largest_loss` of ``aggregate(n)`` is that of the law itself.

    Masses have a relative error below 1e-13, tails below 1e-8 (``tests/test_discrete_stable.py``).
    There is no density: ``pmf`` and ``logpmf`` take the place of ``pdf`` and ``logpdf``.

    Examples
    --------
    >>> import psinoise as pn
    >>> message = pn.DiscreteStable(alpha=1.5, scale=4.0)
    >>> round(message.aggregate(8).scale, 12)
    16.0
    >>> message.pmf([0, 1, 5]).round(6)
    array([0.072267, 0.070571, 0.041831])
    """

    log_concave = False
    unimodal = True
    for_whole_numbers = True

    _alpha: float
    _length: float

    def __init__(self, *, alpha: float, scale: float) -> None:
        index = _validate.real("alpha", alpha)
        if not (_SMALLEST_INDEX <= index <= _HIGHEST_INDEX or index == 2.0):
            raise DomainError(f"alpha must be in [1.1, 1.99] or 2, got {alpha!r}")
        length = _validate.positive("scale", scale)
        if not _SMALLEST_SCALE <= length <= _LARGEST_SCALE:
            raise DomainError(f"scale must be in [0.25, 2**30], got {scale!r}")
        object.__setattr__(self, "_alpha", index)
        object.__setattr__(self, "_length", length)
        # Whole numbers do not stretch: the standardized law is the law itself.
        object.__setattr__(self, "_scale", 1.0)

    @property
    def alpha(self) -> float:
        """The index of stability."""
        return self._alpha

    @property
    def scale(self) -> float:
        """That of the characteristic function."""
        return self._length

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
        number = _validate.count("count", count)
        if number == 0:
            raise DomainError("count must be at least 1, got 0")
        growth = float(np.float64(number) ** (1.0 / self._alpha))
        return DiscreteStable(alpha=self._alpha, scale=self._length * growth)

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
        step = 0.05
        low = -(_LARGEST_SCALE_LOG + 45.0) / (self._alpha - 1.0)
        t = np.arange(low, 45.0, step)
        x, rest = math.pi / (1.0 + np.exp(-t)), math.pi / (1.0 + np.exp(t))
        chord = 2.0 * np.sin(0.5 * np.minimum(x, math.pi))
        # exp(-42) of x leaves nothing of 1 - phi but its leading term.
        lost = -np.expm1(-((self._length * chord) ** self._alpha)) / chord**2
        return float(np.sum(lost * x * rest)) * step * 2.0 / math.pi**2

    # -- evaluation ------------------------------------------------------------------------------

    def pmf(self, k: ArrayLike) -> Any:
        """``P(X = k)``; 0 where ``k`` is not whole."""
        return np.exp(self.logpmf(k))

    def logpmf(self, k: ArrayLike) -> Any:
        """Logarithm of ``pmf``."""
        points = np.abs(_checks.real_array("k", k))
        whole = (points == np.floor(points)) & (points <= _LARGEST_NUMBER)
        logs = log_masses(self._alpha, self._length, np.where(whole, points, 0.0).ravel())
        found = np.where(whole, logs.reshape(points.shape), -np.inf)
        return np.where(np.isnan(points), np.nan, found)[()]

    def _evaluate(self, quantity: str, x: Float) -> Float:
        if quantity in ("pdf", "logpdf"):
            raise DomainError(f"{self!r} has no density; use pmf")
        # P(X > x) for x >= 0 is P(X >= floor(x) + 1), P(X <= x) for x < 0 is P(X >= -floor(x)).
        floor = np.floor(np.where(np.isnan(x), 0.0, np.clip(x, -_LARGEST_NUMBER, _LARGEST_NUMBER)))
        ahead = np.where(x >= 0.0, floor + 1.0, np.maximum(-floor, 1.0))
        logs = log_tails(self._alpha, self._length, ahead.ravel()).reshape(x.shape)
        logs = np.where(np.isinf(x), -np.inf, logs)
        return from_survival(quantity, x, np.exp(logs), logs)

    def icdf(self, p: ArrayLike) -> Any:
        """The smallest whole number with ``cdf(k) >= p``; NaN for ``p`` outside [0, 1]."""
        probability = _checks.real_array("p", p)
        found = self._bisected(probability, lambda k, p: self._evaluate("cdf", k) >= p)
        found = np.where(probability == 0.0, -np.inf, found)
        return np.where(probability == 1.0, np.inf, found)[()]

    def _inverse_survival(self, p: Float) -> Float:
        """The smallest whole number with ``ccdf(k) <= p``."""
        found = self._bisected(p, lambda k, p: self._evaluate("ccdf", k) <= p)
        return np.where(p == 0.0, np.inf, np.where(p == 1.0, -np.inf, found))

    def _bisected(self, p: Float, enough: Callable[[Float, Float], Any]) -> Float:
        """The least whole number that is enough; beyond 2**53 the least float64."""
        valid = (p >= 0.0) & (p <= 1.0)
        asked = np.where(valid, p, 0.5)
        low, high = np.full(p.shape, -1.0), np.full(p.shape, 1.0)
        for side, sign in ((low, -1.0), (high, 1.0)):
            while True:
                ok = enough(side, asked)
                short = (~ok if sign > 0.0 else ok) & (np.abs(side) < _LARGEST_NUMBER)
                if not short.any():
                    break
                side[short] *= 4.0
        while True:
            middle = np.floor(0.5 * (low + high))
            if not ((middle > low) & (middle < high)).any():
                break
            ok = enough(middle, asked)
            high, low = np.where(ok, middle, high), np.where(ok, low, middle)
        found = np.where(enough(low, asked), -np.inf, high)
        found = np.where(enough(high, asked), found, np.inf)
        return np.where(valid, found, np.nan)

    # -- privacy ---------------------------------------------------------------------------------

    def largest_loss(self, sensitivity: int) -> float:
        """The largest of ``log P(X = k - s) / P(X = k)``: the pure epsilon of one use.

        All ``k`` up to 24 scales beyond the shift are tried, at most 2**20 of them evenly spread
        and then those around the best. Beyond, the loss falls like ``(1 + alpha) s / k``.

        Parameters
        ----------
        sensitivity : int
            By how much neighboring data sets can move the query, at least 1.

        Returns
        -------
        float
            ``inf`` for ``alpha = 2``.
        """
        shift = _validate.count("sensitivity", sensitivity)
        if shift == 0:
            raise DomainError("sensitivity must be at least 1, got 0")
        if self._alpha == 2.0:
            return math.inf
        start, reach = shift // 2 + 1, math.ceil(_LOSSES_REACH * self._length) + 64
        best = 0.0
        stride = max(1, (reach + shift) // 256)
        while True:
            k = np.arange(start, start + reach + shift, stride, dtype=np.float64)
            logs = [log_masses(self._alpha, self._length, np.abs(at)) for at in (k - shift, k)]
            losses = logs[0] - logs[1]
            best = max(best, float(losses.max()))
            if stride == 1:
                return best
            at = int(k[int(losses.argmax())])
            low = max(shift // 2 + 1, at - 2 * stride)
            start, reach = low, 4 * stride - shift
            stride = max(1, stride // 64)

    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]:
        """The sensitivity itself: the law is unimodal."""
        if not (sensitivity >= 1.0 and sensitivity == math.floor(sensitivity)):
            raise DomainError(
                f"sensitivity must be a whole number for {self!r}, got {sensitivity!r}"
            )
        return (sensitivity,)

    @property
    def score_limit(self) -> float:
        """Not of this law, which is accounted on its lattice."""
        raise DomainError(f"{self!r} is accounted as Mechanism(noise, sensitivity).on_lattice()")

    @property
    def own_grid(self) -> float:
        """That of the whole numbers."""
        return 1.0

    def lattice_masses(self, grid: float, start: int, stop: int) -> Float:
        """``P(|X| = k)``; see `NoiseLaw.lattice_masses`.

        Raises
        ------
        DomainError
            If the lattice is not that of the whole numbers.
        """
        if grid != 1.0:
            raise DomainError(f"grid must be 1.0 for {self!r}, got {grid!r}")
        masses = np.exp(log_masses_between(self._alpha, self._length, start, stop))
        return masses * np.where(np.arange(start, stop) == 0, 1.0, 2.0)

    # -- sampling --------------------------------------------------------------------------------

    def _draw(self, key: bytes, out: NDArray[Any], workers: int) -> None:
        """By quantiles of a uniform stream, the rare ones one by one; for simulation."""
        generator = np.random.Generator(np.random.Philox(int.from_bytes(key, "little")))
        flat = out.reshape(-1)
        listed = int(min(far(self._length), 1 << 20))
        masses = self.lattice_masses(1.0, 0, listed)
        sums = np.cumsum(masses)
        u = generator.random(flat.size)
        sizes = np.searchsorted(sums, u, side="right").astype(np.float64)
        rare = sizes >= listed
        if rare.any():
            # P(|X| >= listed) times a uniform number is what is beyond |X|.
            beyond = math.exp(log_tails(self._alpha, self._length, np.array([float(listed)]))[0])
            part = 1.0 - generator.random(int(rare.sum()))
            sizes[rare] = np.maximum(self._inverse_survival(beyond * part), listed)
        flat[:] = sizes * np.where(generator.random(flat.size) < 0.5, -1.0, 1.0)

    # -- expectations ----------------------------------------------------------------------------

    def _standard_moment(self, order: float) -> float:
        if order in (0.0, 1.0):
            return 1.0 if order == 0.0 else self.mean_abs
        if order == 2.0 or (self._alpha < 2.0 and order >= self._alpha):
            return self.std**2
        return self._standard_expectation(lambda x: x**order)

    def _standard_expectation(self, function: Callable[[Float], Float]) -> float:
        raise DomainError(f"{self!r} has no expectations but moments of order 0, 1 and 2 or more")

    def _standard_fisher_information(self) -> float:
        raise DomainError(f"{self!r} has no density, and so no Fisher information")

    def _standard_kl(self, shift: float) -> float:
        raise DomainError(f"{self!r} has no divergence in closed form; put it on a lattice")

    def _standard_kl_variance(self, shift: float) -> float:
        return self._standard_kl(shift)


_LARGEST_SCALE_LOG = math.log(_LARGEST_SCALE)
