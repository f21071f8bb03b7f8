"""What every noise law has: what it states about itself, sampling, expectations."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from psinoise._kept import cached_property
from psinoise._rng import RandomSource, fresh_key, stream_key
from psinoise.costs import Cost
from psinoise.costs._cost import name_by_values
from psinoise.errors import CalibrationError, DomainError
from psinoise.noise import _checks
from psinoise.noise._evaluation import Evaluated
from psinoise.noise._family import Parameter, family_name
from psinoise.noise._identity import Value
from psinoise.noise._moments import Moments
from psinoise.noise._names import Named
from psinoise.noise._target import PrivacyTarget

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["NoiseLaw"]

Float = NDArray[np.float64]
_Array = TypeVar("_Array")


class NoiseLaw(Named, Evaluated, Moments, Value):
    """A noise law symmetric about 0.

    A law is immutable and hashable, pickles, and its ``repr`` evaluates back to it. Subclasses say
    how it is evaluated and drawn: :class:`~psinoise.Noise` from tables of a
    smooth density, ``PiecewiseNoise`` from cells.

    Examples
    --------
    >>> import psinoise as pn
    >>> law = pn.Staircase(epsilon=1.0)
    >>> law.sample(3, rng=1).shape, law.log_concave, pn.Airy(std=1.0) == pn.Airy(std=1.0)
    ((3,), False, True)
    """

    #: Arguments other than the size, of the members that stand for this law in contract tests,
    #: benchmarks and comparisons.
    representatives: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    #: Keyword arguments other than the size and the sensitivity, and how each is read: options of
    #: the command line.
    shape_parameters: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})

    #: Whether the law is for queries whose values are whole numbers.
    for_whole_numbers: ClassVar[bool] = False

    #: Whether members differ by their ``scale`` and hide more the larger it is, so that the least
    #: one for a target is searched for. Of others ``for_target``, or a program, makes the member.
    ordered_by_scale: ClassVar[bool] = False

    #: The least and the largest scale.
    scale_limits: ClassVar[tuple[float, float]] = 0.0, math.inf

    #: Whether arguments alone make the law again; else it carries a solution, and saves itself.
    made_by_arguments: ClassVar[bool] = True

    _scale: float

    @classmethod
    def for_target(cls, target: PrivacyTarget, **arguments: Any) -> NoiseLaw:
        """The member that a theorem says meets a privacy target, of laws that are made for one.

        Without sampling for neighbors of any kind, with Poisson sampling for "add-remove".

        Raises
        ------
        CalibrationError
            If the law is not made for such a target; the message says why.
        """
        raise CalibrationError(f"{cls.__name__} noise is not made for a target in closed form")

    # -- what a law states about itself ----------------------------------------------------------

    @property
    @abstractmethod
    def log_concave(self) -> bool:
        """True if ``log p`` is concave: the privacy loss of a shift is monotone."""

    @property
    @abstractmethod
    def unimodal(self) -> bool:
        """True if ``p`` does not increase in ``|x|``: the largest shift is the worst one."""

    @property
    def rotation_invariant(self) -> bool:
        """True if rotations do not change the law of independent coordinates: normal laws."""
        return self.normal_variance is not None

    @property
    def normal_variance(self) -> int | None:
        """Of a normal law the variance for a scale of 1, exactly; None of others."""
        return None

    @property
    def axis_is_worst(self) -> bool:
        """True if, of all shifts of one l1 norm, one along an axis dominates: is easiest to see."""
        return self.rotation_invariant

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
        """Points where ``log p`` is not analytic, in absolute units; of laws that have few."""
        raise DomainError(f"{self!r} cannot be accounted from a smooth density")

    @property
    def _log_kept(self) -> float:
        """Log of the probability that the law of the tables gives to what this law keeps."""
        return 0.0

    # -- what a lattice needs ---------------------------------------------------------------------

    def lattice_masses(self, grid: float, start: int, stop: int) -> Float:
        """``P(|X|`` rounds to ``k grid)`` for ``start <= k < stop``, but for a common factor.

        The same bits on every machine; relative error below 1e-9 where ``grid`` is small against
        the scale.

        Raises
        ------
        DomainError
            If the law cannot be put on this lattice.
        """
        raise DomainError(f"{self!r} cannot be put on a lattice")

    @property
    def own_grid(self) -> float | None:
        """The grid of a law that lives on a lattice itself."""
        return None

    def widened(self, factor: float) -> NoiseLaw:
        """A law with a grid of its own that costs no more: so many times as wide, if there is one.

        Of other laws the same is said by a grid that is as much finer.
        """
        del factor
        return self

    @property
    def spread(self) -> float:
        """The length that a lattice must resolve."""
        return self.mean_abs

    @property
    def period(self) -> float:
        """The length after which the tail repeats itself but for a factor; 0 if it does not."""
        return 0.0

    @property
    def decay(self) -> float:
        """By how much the logarithm of a tail that repeats itself falls in a unit of length."""
        return 0.0

    @property
    def repeats_from(self) -> float:
        """The distance from the center where such a tail begins."""
        return 0.0

    @property
    def tail_index(self) -> float:
        """The a of a tail that falls like ``x**-a`` in the end, of a law that says so; else 0."""
        return 0.0

    @property
    def adds_up(self) -> bool:
        """Whether sums of draws are accounted: then a table is nowhere rarer than the law, but for
        a common factor."""
        return False

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
        offset: int = 0,
    ) -> float: ...

    @overload
    def sample(
        self,
        shape: int | tuple[int, ...] | None = None,
        *,
        rng: RandomSource | None = None,
        dtype: DTypeLike = np.float64,
        out: None = None,
        threads: int | None = None,
        offset: int = 0,
    ) -> NDArray[Any]: ...

    @overload
    def sample(
        self,
        shape: int | tuple[int, ...] | None = None,
        *,
        rng: RandomSource | None = None,
        dtype: DTypeLike = np.float64,
        out: _Array,
        threads: int | None = None,
        offset: int = 0,
    ) -> _Array: ...

    def sample(
        self,
        shape: int | tuple[int, ...] | None = (),
        *,
        rng: RandomSource | None = None,
        dtype: DTypeLike = np.float64,
        out: Any = None,
        threads: int | None = None,
        offset: int = 0,
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
            float32 takes half the random bits and a fifth to two fifths less time.
        out : array, optional
            C-contiguous, writable, of type float64 or float32; saves the first touch of fresh
            memory, which costs more than the sampling. Of NumPy, or of any library whose arrays
            have memory of this computer: by ``__dlpack__``, as a tensor of PyTorch, or as a
            writable buffer. Arrays of JAX are immutable: see `psinoise.adapters.arrays`.
        threads : int or None
            ``None`` uses one thread below 2**17 elements and all cores above, 0 all cores. More
            than 64, or the cores if these are more, are not started. The result does not depend
            on it.
        offset : int
            The element of the stream to begin with, at least 0: of one seed the samples from i to
            j are the same bytes however they are cut, in one process or in many. A Generator
            names a new stream in each call.

        Returns
        -------
        float or ndarray
            ``out`` itself, if it is given.

        Raises
        ------
        TypeError, ValueError
            For a wrong shape, dtype, ``out``, seed or offset, and a dtype that does not hold the
            draws: they would be infinite, or all 0.

        Examples
        --------
        >>> import psinoise as pn
        >>> noise = pn.Airy(mean_abs=2.0)
        >>> whole = noise.sample(8, rng=7)
        >>> bool((noise.sample(3, rng=7, offset=5) == whole[5:]).all())
        True
        """
        # Most calls; those for a few numbers would feel more checks.
        plain = out is None and threads is None and dtype is np.float64 and type(offset) is int
        if plain and type(shape) is int and 0 < shape < _checks.SERIAL and offset == 0:
            few = np.empty(shape)
            self._draw(fresh_key() if rng is None else stream_key(rng, self._tag), 0, few, 1)
            return few
        array = _checks.output(shape, dtype, out)
        scale = self._scale
        if array.itemsize == 4 and not (_checks.LEAST_FLOAT32 <= scale <= 2.0**120):
            raise DomainError(f"scale must be within the range of float32, got {scale!r}")
        size = array.size
        workers = _checks.worker_count(threads, size)
        first = _checks.first_element(offset, size)
        if size:
            key = fresh_key() if rng is None else stream_key(rng, self._tag)
            self._draw(key, first, array, workers)
        if out is not None:
            return out
        return array if array.ndim else array[()]

    @cached_property
    def _tag(self) -> bytes:
        """Which streams of a seed are those of this law."""
        text = f"{type(self).__name__}{self._shape!r}"
        for part in self._shape:
            # Where a function is in memory is no part of its name.
            if getattr(part, "of_functions", callable(part)):
                text = text.replace(repr(part), name_by_values(part))
        return text.encode()

    def plot(self, ax: Axes | None = None, *, log: bool = False) -> Axes:
        """Draw the density; of laws on the whole numbers the masses.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; None makes a new figure.
        log : bool
            Logarithmic density axis.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed.

        See Also
        --------
        psinoise.plotting.plot_density : several laws, and points to draw at.

        Examples
        --------
        >>> import psinoise as pn
        >>> from psinoise.plotting import new_figure
        >>> ax = pn.Airy(mean_abs=2.0).plot(new_figure().subplots())
        >>> ax.get_ylabel()
        'Density'
        """
        from psinoise.noise._plot import plot_density

        return plot_density(self, ax, log=log)

    @abstractmethod
    def _draw(self, key: bytes, first: int, out: NDArray[Any], workers: int) -> None:
        """Fill an array from the stream of a key, with its elements from the first on."""

    # -- expectations ----------------------------------------------------------------------------

    def expected_cost(self, cost: Callable[[Float], ArrayLike]) -> float:
        """Expected cost ``E[cost(X)]`` of an even cost function, by quadrature on ``x > 0``.

        Parameters
        ----------
        cost : callable
            Takes an array of positive numbers and returns an array of the same shape. Smooth on
            ``x > 0``, but for the breakpoints of a cost of `psinoise.costs`: other kinks cost
            digits, and so does a cost that oscillates in the tail of a heavy-tailed law, where
            panels are as wide as ``x``.

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
        points = cost.breakpoints if isinstance(cost, Cost) else ()
        return self._standard_expectation(
            lambda t: _checks.cost_values(cost, t * self._scale),
            tuple(point / self._scale for point in points),
        )

    @abstractmethod
    def _standard_expectation(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> float:
        """``E[function(|Z|)]`` of the standardized law; the function is smooth between kinks."""

    def score(self, t: Any) -> Any:
        """``-(log p)'(t)`` of the standardized law, ``t >= 0`` of any shape in units of the scale.

        TypeError if ``t`` is not real, DomainError if it is negative or the density has steps.
        """
        raise DomainError(f"{self!r} has no score: its density is not smooth")

    def fisher_information(self) -> float:
        """Fisher information of location, ``E[(log p)'(X)**2]``."""
        return self._standard_fisher_information() / self._scale / self._scale

    @abstractmethod
    def _standard_fisher_information(self) -> float:
        """Fisher information of the standardized law."""

    def kl(self, shift: float) -> float:
        """Kullback-Leibler divergence between the law and the law shifted by ``shift``.

        Relative error below 1e-11, for shifts of any size; ``inf`` where it overflows. DomainError
        where the shift in units of the scale does so and the divergence of a heavy tail does not.
        """
        length = _checks.length("shift", shift)
        return self._kl(length) if length > 0.0 else 0.0

    def kl_variance(self, shift: float) -> float:
        """Variance of the loss whose mean is ``kl(shift)``.

        ``V(p || T_a p) = E_p[(log(p / T_a p) - D(p || T_a p))**2]``, equation (6) of Alghamdi et
        al., "Schrodinger mechanisms" (ISIT 2023); where it is bounded over shifts, epsilon of
        ``n`` uses is ``n`` times the largest divergence and a term of order ``sqrt(n)`` (theorem
        1). Relative error below 1e-11, for shifts of any size; ``inf`` where supports differ, and
        where the divergence overflows.

        Examples
        --------
        >>> import psinoise as pn
        >>> noise = pn.Gaussian(std=2.0)
        >>> noise.kl(1.0), noise.kl_variance(1.0)
        (0.125, 0.25)
        """
        length = _checks.length("shift", shift)
        return self._kl_variance(length) if length > 0.0 else 0.0

    @abstractmethod
    def _kl(self, shift: float) -> float:
        """Divergence for a positive shift."""

    @abstractmethod
    def _kl_variance(self, shift: float) -> float:
        """Variance of the loss for a positive shift."""
