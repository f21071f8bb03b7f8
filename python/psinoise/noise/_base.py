"""What every noise law has: evaluation, quantiles and sampling from its compiled tables."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise._rng import RandomSource, stream_key
from psinoise.compile import LAYOUT, Layout, compile_law
from psinoise.errors import DomainError
from psinoise.noise import _integrals
from psinoise.noise._beyond import fill_beyond
from psinoise.noise._parameter import Parameter
from psinoise.noise._samples import checked_out, sample_dtype, shape_of, worker_count
from psinoise.reference import double_double as dd
from psinoise.reference.double_double import Pair

__all__ = ["Noise", "ScaleFamily", "family_name"]

Float = NDArray[np.float64]

# Shapes whose tables are kept, of 100 to 700 kB each.
_MOST_TABLES = 64


class Noise(ABC):
    """A symmetric noise law ``scale * Z`` whose standardized density decreases in ``|x|``.

    A law is immutable and hashable, pickles, and its ``repr`` evaluates back to it. A subclass
    states what is known about the standardized law ``Z`` on the half line; sampling and evaluation
    come from the tables that :func:`psinoise.compile.compile_law` makes of it, once for each shape.
    """

    _tables: ClassVar[OrderedDict[tuple[Any, ...], core.LawTable]] = OrderedDict()

    #: Arguments other than the size, of the members that stand for this law in contract tests,
    #: benchmarks and comparisons.
    representatives: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    #: Keyword arguments that fix the shape, and how each is read: options of the command line.
    shape_parameters: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})

    _scale: float

    # -- what a law states about itself ----------------------------------------------------------

    @abstractmethod
    def log_density(self, t: Float) -> Pair:
        """``log p(t)`` of the standardized law for ``t >= 0``, as an exact sum ``hi + lo``."""

    @abstractmethod
    def log_mills(self, t: Float) -> Float:
        """Logarithm of the Mills ratio ``P(Z > t) / p(t)`` of the standardized law, ``t >= 0``."""

    @abstractmethod
    def score(self, t: Float) -> Float:
        """``-(log p)'(t)`` of the standardized law for ``t >= 0``."""

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
    def far_depth(self) -> float:
        """Depth ``-log(2 P(Z > t))`` from which `far_quantile` serves.

        ``inf`` for laws whose tables reach a depth of 2048, as all light tails do.
        """
        return math.inf

    def far_quantile(self, depth: Float) -> Pair:
        """``log t`` from the depth of ``t``, from ``far_depth`` on; ``t`` may overflow float64."""
        raise NotImplementedError(f"{type(self).__name__} has no quantile beyond its tables")

    def log_survival(self, t: Float) -> Pair:
        """``log P(Z > t)`` of the standardized law, ``t >= 0``, as hi + lo."""
        return dd.add(self.log_density(t), (self.log_mills(t), np.zeros_like(t)))

    @property
    def _shape(self) -> tuple[Any, ...]:
        """Parameters other than the scale; laws of equal shape share their tables."""
        return ()

    def _shape_arguments(self) -> dict[str, Any]:
        """Keyword arguments of this law other than its size."""
        return {}

    @property
    def name(self) -> str:
        """Name of the family: the class, with any arguments other than the size."""
        return family_name(type(self), self._shape_arguments())

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation; ``inf`` where it does not exist."""

    @property
    @abstractmethod
    def mean_abs(self) -> float:
        """Mean absolute value ``E|X|``; ``inf`` where it does not exist."""

    @property
    def scale(self) -> float:
        """The factor between the standardized law and this one."""
        return self._scale

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

    # -- evaluation ------------------------------------------------------------------------------

    def pdf(self, x: ArrayLike) -> Any:
        """Density at ``x``.

        Relative error below 5e-14 wherever the result is a normal number; NaN at NaN.

        Parameters
        ----------
        x : array_like of real numbers
            Any shape; a scalar gives a scalar.

        Raises
        ------
        TypeError
            If ``x`` is not real.
        """
        return self._evaluate("pdf", x)

    def logpdf(self, x: ArrayLike) -> Any:
        """Logarithm of the density; absolute error below ``5e-14 * max(1, |value|)``."""
        return self._evaluate("logpdf", x)

    def cdf(self, x: ArrayLike) -> Any:
        """``P(X <= x)``; relative error below 5e-14 in both tails."""
        return self._evaluate("cdf", x)

    def ccdf(self, x: ArrayLike) -> Any:
        """``P(X > x)``; relative error below 5e-14 in both tails."""
        return self._evaluate("ccdf", x)

    def logcdf(self, x: ArrayLike) -> Any:
        """Logarithm of ``cdf``; does not underflow."""
        return self._evaluate("logcdf", x)

    def logccdf(self, x: ArrayLike) -> Any:
        """Logarithm of ``ccdf``; does not underflow."""
        return self._evaluate("logccdf", x)

    def icdf(self, p: ArrayLike) -> Any:
        """The point with ``cdf(point) = p``; NaN for ``p`` outside [0, 1].

        Relative error a few ulp beyond what the rounding of ``log p`` implies, down to the
        smallest positive float64.
        """
        return -self.iccdf(p)

    def iccdf(self, p: ArrayLike) -> Any:
        """The point with ``ccdf(point) = p``; NaN for ``p`` outside [0, 1]."""
        probability = _real_array("p", p)
        out = np.empty_like(probability)
        core.inverse_survival(self._table, self._scale, probability, out)
        return out[()]

    def _evaluate(self, quantity: str, x: ArrayLike) -> Any:
        points = _real_array("x", x)
        out = np.empty_like(points)
        if core.evaluate(self._table, quantity, self._scale, points, out):
            fill_beyond(self, self._scale, quantity, points, out)
        return out[()]

    @property
    def _table(self) -> core.LawTable:
        key = (type(self), self._shape)
        table = self._tables.get(key)
        if table is None:
            # Two threads may compile the same law at once; the tables are equal and one is kept.
            table = self._tables.setdefault(key, compile_law(self))
            # The oldest goes first: who sweeps over a parameter does not fill the memory.
            if len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
        return table

    # -- sampling --------------------------------------------------------------------------------

    @overload
    def sample(
        self,
        shape: tuple[()] = (),
        *,
        rng: RandomSource | None = None,
        dtype: DTypeLike = np.float64,
        out: None = None,
        threads: int | None = None,
    ) -> float: ...

    @overload
    def sample(
        self,
        shape: int | tuple[int, ...] | None = None,
        *,
        rng: RandomSource | None = None,
        dtype: DTypeLike = np.float64,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]: ...

    def sample(
        self,
        shape: int | tuple[int, ...] | None = (),
        *,
        rng: RandomSource | None = None,
        dtype: DTypeLike = np.float64,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> Any:
        """Draw independent samples, for simulation.

        Adding these floating-point numbers to data is *not* a safe release: low-order bits tell
        data apart whatever the accountant says (see SECURITY.md).

        Parameters
        ----------
        shape : int or tuple of int
            Shape of the result; ``()`` gives a scalar. With ``out`` it may be left out and must
            otherwise match.
        rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator
            ``None`` draws from the operating system's entropy. A seed gives the same bytes on
            every machine, with every instruction set and any number of threads, for one version
            of the stream. Laws of one family differ only by the factor ``scale``; different
            families drawn from one seed are independent.
        dtype : float64 or float32
            float32 takes half the random bits and a little less time.
        out : ndarray, optional
            C-contiguous, writable, of type float64 or float32; saves the first touch of fresh
            memory, which costs more than the sampling.
        threads : int or None
            ``None`` uses one thread below 2**17 elements and all cores above, 0 all cores.
            The result does not depend on it.

        Returns
        -------
        float or ndarray

        Raises
        ------
        TypeError, ValueError
            For a wrong shape, dtype, ``out`` or seed.

        Examples
        --------
        >>> import psinoise as pn
        >>> pn.Airy(mean_abs=2.0).sample(3, rng=7).shape
        (3,)
        """
        if out is None:
            chosen = sample_dtype(dtype)
            array = np.empty(() if shape is None else shape_of(shape), dtype=chosen)
        else:
            array = checked_out(out, shape, dtype)
        scale = self._scale
        if array.dtype == np.float32 and not (2.0**-126 <= scale <= 2.0**120):
            raise DomainError(f"scale must be within the range of float32, got {scale!r}")
        workers = worker_count(threads, array.size)
        if array.size:
            tag = f"{type(self).__name__}{self._shape!r}".encode()
            core.sample(self._table, stream_key(rng, tag), 0, scale, array, workers)
        return array if array.ndim or out is not None else array[()]

    # -- expectations ----------------------------------------------------------------------------

    def moment(self, order: float) -> float:
        """Absolute moment ``E|X|**order``.

        For even whole orders this is the ordinary moment; odd ordinary moments are 0 by symmetry.

        Parameters
        ----------
        order : float
            At least 0.

        Returns
        -------
        float
            ``inf`` where the moment does not exist or overflows. Relative error below 1e-13.
        """
        power = _validate.real("order", order)
        if not (0.0 <= power < math.inf):
            raise DomainError(f"order must be at least 0 and finite, got {order!r}")
        try:
            return float(self._standard_moment(power) * self._scale**power)
        except OverflowError:
            return math.inf

    def _standard_moment(self, order: float) -> float:
        return _integrals.moment(self, order)

    def expected_cost(self, cost: Callable[[Float], ArrayLike]) -> float:
        """Expected cost ``E[cost(X)]`` of an even cost function, by quadrature on ``x > 0``.

        Parameters
        ----------
        cost : callable
            Takes an array of positive numbers and returns an array of the same shape. Smooth on
            ``x > 0``; a kink there costs digits, and so does a cost that oscillates in the tail of
            a heavy-tailed law, where panels are as wide as ``x``.

        Returns
        -------
        float
            ``inf`` if the integral does not converge.

        Raises
        ------
        TypeError
            If ``cost`` is not callable or its values are not real numbers of the right shape.
        DomainError
            If a value is NaN; the message names the point. If the expectation exists but a tail is
            so heavy that part of it lies beyond the range of float64.
        """
        if not callable(cost):
            raise TypeError(f"cost must be callable, got {cost!r}")
        return _integrals.expectation(self, lambda t: _cost_values(cost, t * self._scale))

    def fisher_information(self) -> float:
        """Fisher information of location, ``E[(log p)'(X)**2]``."""
        return self._standard_fisher_information() / self._scale**2

    def _standard_fisher_information(self) -> float:
        return _integrals.expectation(self, lambda t: self.score(t) ** 2)

    def kl(self, shift: float) -> float:
        """Kullback-Leibler divergence between the law and the law shifted by ``shift``.

        Relative error below 1e-11, for small shifts too.
        """
        distance = abs(_validate.real("shift", shift))
        if distance == math.inf:
            raise DomainError(f"shift must be finite, got {shift!r}")
        return self._standard_kl(distance / self._scale) if distance > 0.0 else 0.0

    def _standard_kl(self, shift: float) -> float:
        return _integrals.divergence(self, shift)

    # -- identity --------------------------------------------------------------------------------

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Keyword arguments that make this law again."""

    def _canonical_arguments(self) -> dict[str, Any]:
        """Keyword arguments that make this law again, the same for equal laws."""
        return self._arguments()

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments().items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._arguments() == other._arguments()

    def __hash__(self) -> int:
        return hash((type(self), *self._arguments().items()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arguments())


class ScaleFamily(Noise):
    """A law whose only parameter is its size, given as exactly one of several statistics."""

    #: Statistics that may be given, with their values for the standardized law.
    _statistics: ClassVar[dict[str, float]]

    #: The statistic that ``repr`` shows.
    _canonical: ClassVar[str]

    def __init__(self, **statistic: float) -> None:
        name, value = _validate.exactly_one(type(self).__name__, self._statistics, statistic)
        scale = value / self._statistics[name]
        object.__setattr__(self, "_scale", _validate.positive("scale", scale))

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


def family_name(law: type[Noise], shape: Mapping[str, Any]) -> str:
    """The name of a law's class with the arguments other than the size."""
    listed = ", ".join(f"{name}={value!r}" for name, value in shape.items())
    return f"{law.__name__}({listed})" if listed else law.__name__


def _rebuild(law: type[Noise], arguments: dict[str, float]) -> Noise:
    return law(**arguments)


def _real_array(name: str, values: ArrayLike) -> Float:
    if np.ma.is_masked(values):
        raise TypeError(f"{name} must not be masked")
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)


def _cost_values(cost: Callable[[Float], ArrayLike], x: Float) -> Float:
    values = _real_array("cost(x)", cost(x))
    if values.shape != x.shape:
        raise TypeError(f"cost(x) must have the shape of x, {x.shape}, got {values.shape}")
    if np.isnan(values).any():
        raise DomainError(f"cost must not be NaN, got NaN at x = {x[np.isnan(values)][0]!r}")
    return values
