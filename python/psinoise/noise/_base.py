"""Laws with a smooth density: evaluation, quantiles and sampling from compiled tables."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.compile import LAYOUT, FarTail, Layout, compile_law
from psinoise.costs import Power, Sum
from psinoise.errors import DomainError
from psinoise.noise import _checks, _integrals
from psinoise.noise._beyond import fill_beyond
from psinoise.noise._interface import NoiseLaw
from psinoise.noise._steepest import steepest
from psinoise.numerics import double_double as dd
from psinoise.numerics.double_double import Pair

__all__ = ["Noise", "ScaleFamily"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]

# Shapes whose tables are kept, of 100 to 700 kB each.
_MOST_TABLES = 64
# Read with every sample.
_WIDE = _checks.WIDE
# The node of the Gauss-Legendre rule with two points, 1 / sqrt(12), in a cell of width 1.
_NODE = float.fromhex("0x1.279a74590331cp-2")
# By how much the density may change between the nodes. The rule errs by the fourth power of the
# change; differences of the distribution function lose as many digits as the change is small.
_CHANGE = 2.0**-6


def _of_any_shape(score: Callable[[Any, Float], Float]) -> Callable[[Any, Any], Any]:
    """A function of 1-d arrays, which are passed as they are, of checked numbers of any shape."""

    @wraps(score)
    def checked(self: Any, t: Any) -> Any:
        if type(t) is np.ndarray and t.ndim == 1 and t.dtype == np.float64:
            return score(self, t)
        points = _checks.real_array("t", t)
        if (points < 0.0).any():
            raise DomainError(f"t must be at least 0, got {t!r}")
        return np.asarray(score(self, points.reshape(-1))).reshape(points.shape)[()]

    return checked


class Noise(NoiseLaw):
    """A symmetric noise law ``scale * Z`` whose standardized density decreases in ``|x|``.

    A subclass states what is known about the standardized law ``Z`` on the half line; sampling and
    evaluation come from the tables that ``psinoise.compile.compile_law`` makes of it, once for each
    shape.

    Examples
    --------
    >>> import psinoise as pn
    >>> noise: pn.Noise = pn.Airy(mean_abs=2.0)
    >>> round(float(noise.cdf(1.0)), 6), round(float(noise.icdf(0.975)), 6)
    (0.660807, 5.08423)
    """

    ordered_by_scale = True

    _tables: ClassVar[OrderedDict[tuple[Any, ...], core.LawTable]] = OrderedDict()
    _steepest_points: ClassVar[OrderedDict[tuple[Any, ...], tuple[float, float]]] = OrderedDict()

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "score" in vars(cls):
            cls.score = _of_any_shape(cls.score)  # type: ignore[assignment, method-assign]

    # -- what a law states about itself ----------------------------------------------------------

    @abstractmethod
    def log_density(self, t: Float) -> Pair:
        """``log p(t)`` of the standardized law for ``t >= 0``, as an exact sum ``hi + lo``."""

    @abstractmethod
    def log_mills(self, t: Float) -> Float:
        """Logarithm of the Mills ratio ``P(Z > t) / p(t)`` of the standardized law, ``t >= 0``."""

    @abstractmethod
    def score(self, t: Any) -> Any:
        """``-(log p)'(t)`` of the standardized law for ``t >= 0``.

        Subclasses write it for 1-d arrays; it is then called with numbers of any shape.
        """

    #: The limit of ``score`` at infinity; a bound of it where the law is log-concave.
    _score_limit: ClassVar[float]

    @property
    def log_concave(self) -> bool:
        """True if ``log p`` is concave: the privacy loss of a shift is monotone."""
        return True

    #: True if ``p`` does not increase in ``|x|``: the largest shift is the worst one.
    unimodal: bool = True

    @property
    def layout(self) -> Layout:
        """The panels of the tables, in units of the scale."""
        return LAYOUT

    @property
    def costly(self) -> bool:
        """True if the formulas cost far more than tables.

        Newton's method for quantiles then runs on the fitted tables, and the formulas correct what
        that leaves.
        """
        return False

    @property
    def fit_tolerance(self) -> float:
        """Largest error of a fit relative to ``max(1, |value|)``: a little above the formulas'."""
        return 2e-15

    @property
    def far_tail(self) -> FarTail | None:
        """The quantile where tables do not reach; None where they reach a depth of 2048.

        That is so of all light tails.
        """
        return None

    def log_survival(self, t: Float) -> Pair:
        """``log P(Z > t)`` of the standardized law, ``t >= 0``, as hi + lo."""
        return dd.add(self.log_density(t), (self.log_mills(t), np.zeros_like(t)))

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points where ``log p`` is not analytic, in absolute units."""
        return (0.0,)

    @property
    def breaks(self) -> tuple[float, ...]:
        """The kinks above 0, in units of the scale."""
        return tuple(kink / self._scale for kink in self.kinks if kink > 0.0)

    @property
    def score_limit(self) -> float:
        """``lim -(log p)'(x)`` as ``x`` grows: ``inf`` for light tails, 0 for heavy ones."""
        return self._score_limit / self._scale

    @property
    def spread(self) -> float:
        """The length that a lattice must resolve: the scale, which every law has."""
        return self._scale

    def divided(self, unit: float) -> Self:
        """The law of noise divided by a number above 0."""
        return type(self)(**self._shape_arguments(), scale=self._scale / unit)

    # -- evaluation and sampling -----------------------------------------------------------------

    def _inverse_survival(self, p: Numbers, out: Numbers, workers: int) -> None:
        core.inverse_survival(self._table, self._scale, p, out, workers)

    def _evaluate(self, quantity: str, x: Numbers, out: Numbers, workers: int) -> None:
        if core.evaluate(self._table, quantity, self._scale, x, out, workers):
            fill_beyond(self, quantity, x, out)

    @cached_property
    def _kind(self) -> tuple[Any, ...]:
        """What laws that share their tables have in common."""
        return type(self), self._shape

    @property
    def _table(self) -> core.LawTable:
        table = self._tables.get(self._kind)
        if table is None:
            # Two threads may compile the same law at once; the tables are equal and one is kept.
            table = self._tables.setdefault(self._kind, compile_law(self))
            # The oldest goes first: who sweeps over a parameter does not fill the memory.
            if len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
        return table

    def _draw(self, key: bytes, first: int, out: NDArray[Any], workers: int) -> None:
        if self._scale > _WIDE:
            _checks.wide_enough(self, out.dtype)
        core.sample(self._table, key, first, self._scale, out, workers)

    # -- what bounds of the privacy loss read ----------------------------------------------------

    @property
    def _panel_edges(self) -> Float:
        """From 0 to the end of the tables: between two of them the log density of the standardized
        law is a polynomial."""
        centers, halves = self.layout.centers()
        edges = np.concatenate([[0.0], centers + halves])
        within = [point for point in self.breaks if point < edges[-1]]
        return np.union1d(edges, within) if within else edges

    @property
    def _steepest(self) -> tuple[float, float]:
        """Where the score of the standardized law is largest, and an upper bound of it."""
        found = self._steepest_points.get(self._kind)
        if found is None:
            found = self._steepest_points.setdefault(self._kind, steepest(self))
            if len(self._steepest_points) > _MOST_TABLES:
                self._steepest_points.popitem(last=False)
        return found

    def lattice_masses(self, grid: float, start: int, stop: int) -> Float:
        """``P(|X|`` rounds to ``k grid)``; see `psinoise.noise.NoiseLaw.lattice_masses`.

        From the density at two points of a cell where it changes little, else, and at 0, from the
        distribution function. Relative error below 1e-9.
        """
        k = np.arange(float(start), float(stop))
        near, far = self.pdf((k - _NODE) * grid), self.pdf((k + _NODE) * grid)
        masses = np.asarray((near + far) * grid)
        steep = np.abs(near - far) > _CHANGE * near
        if start == 0:
            steep[0] = True
        if steep.any():
            low = np.maximum((k[steep] - 0.5) * grid, 0.0)
            masses[steep] = 2.0 * (self.ccdf(low) - self.ccdf((k[steep] + 0.5) * grid))
        return masses

    # -- expectations ----------------------------------------------------------------------------

    def _standard_moment(self, order: float) -> float:
        return math.exp(self._log_unit_moment(order))

    def _log_unit_moment(self, order: float) -> float:
        return _integrals.log_moment(self, order)

    def expected_cost(self, cost: Callable[[Float], ArrayLike]) -> float:
        """Expected cost ``E[cost(X)]`` of an even cost function, by quadrature on ``x > 0``; that
        of a power is its moment, as its values underflow at small scales, where a tail decides, and
        that of a sum is the sum over its terms."""
        if isinstance(cost, Power):
            return cost.weight * self.moment(cost.p)
        if isinstance(cost, Sum):
            return sum(self.expected_cost(term) for term in cost.terms)
        return super().expected_cost(cost)

    def _standard_expectation(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> float:
        return _integrals.expectation(self, function, kinks)

    def _standard_fisher_information(self) -> float:
        return _integrals.expectation(self, lambda t: self.score(t) ** 2)

    def _kl(self, shift: float) -> float:
        distance = shift / self._scale
        return self._standard_kl(distance) if distance > 0.0 else 0.0

    def _kl_variance(self, shift: float) -> float:
        distance = shift / self._scale
        return self._standard_kl_variance(distance) if distance > 0.0 else 0.0

    def _standard_kl(self, shift: float) -> float:
        """Divergence of the standardized law for a positive shift."""
        return _integrals.divergence(self, shift)

    def _standard_kl_variance(self, shift: float) -> float:
        """Variance of its loss."""
        return _integrals.variance_of_loss(self, shift)


class ScaleFamily(Noise):
    """A law whose only parameter is its size, given as exactly one of several statistics."""

    #: The three statistics that may be given, with their values for the standardized law.
    _statistics: ClassVar[dict[str, float]]

    #: The statistic that ``repr`` shows.
    _canonical: ClassVar[str]

    def __init__(
        self,
        *,
        scale: float | None = None,
        std: float | None = None,
        mean_abs: float | None = None,
    ) -> None:
        name, value = _validate.exactly_one(
            type(self).__name__, scale=scale, std=std, mean_abs=mean_abs
        )
        scale = value / self._statistics[name]
        self._set(_scale=_validate.positive("scale", scale))

    @property
    def std(self) -> float:
        """Standard deviation."""
        return self._scale * self._statistics["std"]

    @property
    def mean_abs(self) -> float:
        """Mean absolute value ``E|X|``."""
        return self._scale * self._statistics["mean_abs"]

    def _arguments(self) -> dict[str, float]:
        return {self._canonical: self._scale * self._statistics[self._canonical]}
