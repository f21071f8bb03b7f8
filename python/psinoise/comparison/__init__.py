"""All noise laws side by side, at one expected cost or at one privacy target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

from psinoise import _validate
from psinoise.calibration.mean_cost import is_schrodinger
from psinoise.comparison.equal_cost import Comparison, ComparisonRow, compare_at_equal_cost
from psinoise.comparison.target import TargetComparison, TargetRow, compare_at_target
from psinoise.costs import Power, as_cost
from psinoise.errors import DomainError
from psinoise.noise import DESIGNED, FAMILIES, Family, Noise, NoiseLaw, Schrodinger

__all__ = ["Comparison", "ComparisonRow", "TargetComparison", "TargetRow", "compare"]


@overload
def compare(
    *,
    mean_abs: float = ...,
    cost: Callable[[Any], Any] = ...,
    mean_cost: float = ...,
    sensitivity: float = ...,
    delta: float = ...,
    counts: Iterable[int] = ...,
    sampling_rate: float = ...,
    laws: Iterable[Family | type[Noise]] | None = ...,
    adjacency: str = ...,
    contribution: float | None = ...,
    speed: bool = ...,
    speed_seconds: float = ...,
    progress: bool = ...,
) -> Comparison: ...


@overload
def compare(
    *,
    epsilon: float,
    delta: float,
    cost: str | Callable[[Any], Any] = ...,
    sensitivity: float = ...,
    count: int = ...,
    sampling_rate: float = ...,
    laws: Iterable[Family | type[NoiseLaw]] | None = ...,
    adjacency: str = ...,
    contribution: float | None = ...,
    method: str = ...,
    progress: bool = ...,
) -> TargetComparison: ...


def compare(
    *,
    sensitivity: float = 1.0,
    sampling_rate: float = 1.0,
    laws: Iterable[Family | type[NoiseLaw]] | None = None,
    adjacency: str = "add-remove",
    contribution: float | None = None,
    progress: bool = True,
    **words: Any,
) -> Comparison | TargetComparison:
    """Put noise laws side by side: equal cost, or equal privacy.

    With ``epsilon`` every law is calibrated to the target (epsilon, delta) and the rows show what
    its least noise costs. Without, every law has the same ``mean_abs`` and the rows show epsilon
    for each number of compositions. Keywords of the two modes do not mix.

    Parameters
    ----------
    sensitivity : float
        How far neighboring data sets can move the query.
    sampling_rate : float
        Rate of Poisson sampling, in [0, 1]; 1 is no sampling.
    laws : iterable of classes or families, optional
        Subclasses of :class:`psinoise.Noise` that take ``mean_abs`` and ``scale``; None takes all
        of ``psinoise.noise.FAMILIES``. Target: of ``psinoise.noise.DESIGNED`` as well, made for the
        target where they can be; those for queries whose values are whole numbers if they are
        named, ``Family(DiscreteStable, alpha=1.9)`` or ``DiscreteLaplace``. With a callable
        ``cost``, in both modes, the Schrodinger law of that cost as well, unless it is in
        ``FAMILIES`` already: Airy noise is that of ``abs(x)``, Gaussian noise that of ``x**2``. A
        law whose tails are too heavy for the cost has an infinite one (target); at an equal cost it
        is left out, and refused if it was named.
    adjacency : str
        The neighboring relation; see :meth:`psinoise.Mechanism.epsilon`.
    contribution : float, optional
        For "replace" with sampling; see :class:`psinoise.Mechanism`.
    progress : bool
        Show progress on standard error if it is a terminal and tqdm is installed.
    mean_abs : float
        Equal cost: mean absolute value of every law, in units of the query (default 1).
    mean_cost : float
        Equal cost, with a callable ``cost``: its expectation under every law (default 1). Laws are
        scaled to it; ``psinoise.Schrodinger`` is the law of the cost.
    counts : iterable of int
        Equal cost: numbers of compositions at which epsilon is computed (default 1, 10, 100,
        1000).
    speed : bool
        Equal cost: measure the sampling speed too (default): float64, one thread, 2**20 samples
        into a warm array, best of at least three passes. The only part of the result that differs
        from run to run.
    speed_seconds : float
        Equal cost: seconds spent on that for each law (default 0.1).
    epsilon : float
        Target: selects this mode.
    delta : float
        In [0, 1]. Target: required. Equal cost: default 1e-6.
    count : int
        Target: number of compositions (default 1).
    cost : "mean_abs", "variance" or callable
        Target: the cost to sort by (default "mean_abs"); a callable is an even function of arrays,
        as in :meth:`psinoise.Noise.expected_cost`. Equal cost: a callable instead of ``mean_abs``.
    method : str
        Target: "certified" (default) or "estimate"; see :func:`psinoise.calibrate`.

    Returns
    -------
    Comparison or TargetComparison
        Immutable; sorted by the epsilon at the largest count, or by the cost, least first.

    Raises
    ------
    TypeError, DomainError, OverflowError
        For arguments of the wrong kind, outside their ranges, or too large, and for keywords of
        both modes.
    CalibrationError
        If no law meets the target.

    Examples
    --------
    >>> import psinoise as pn
    >>> laws = [pn.Gaussian, pn.Laplace, pn.Airy]
    >>> comparison = pn.compare(mean_abs=2.0, delta=1e-8, counts=[1000], laws=laws, speed=False)
    >>> [row.law for row in comparison.rows]
    ['Airy', 'Gaussian', 'Laplace']
    >>> comparison = pn.compare(
    ...     epsilon=1.0, delta=1e-6, count=1000, sampling_rate=0.01, laws=laws
    ... )
    >>> comparison.best.law
    'Airy'
    """
    shared: dict[str, Any] = {
        "sensitivity": _validate.positive_above("sensitivity", sensitivity),
        "sampling_rate": _validate.probability_above("sampling_rate", sampling_rate),
        "adjacency": adjacency,
        "contribution": contribution,
        "progress": _validate.flag("progress", progress),
    }
    _check_words(words)
    own = _made_for(words.get("cost"))
    if "epsilon" in words:
        every: tuple[Family | type[NoiseLaw], ...] = (*own, *FAMILIES, *DESIGNED)
        chosen = _checked_laws(laws, every, designed=True)
        return compare_at_target(chosen, whole_numbers=laws is not None, **shared, **words)
    smooth: tuple[Any, ...] = _checked_laws(laws, (*own, *FAMILIES), designed=False)
    return compare_at_equal_cost(smooth, named=laws is not None, **shared, **words)


def _made_for(cost: object) -> tuple[type[Schrodinger], ...]:
    """The law that is made for a cost of one's own, where no family is that law already."""
    if not callable(cost):
        return ()
    chosen = as_cost(cost)
    if isinstance(chosen, Power):
        # The same laws at any weight.
        chosen = Power(chosen.p)
        if chosen.p in _POWERS_OF_FAMILIES:
            return ()
    return () if any(is_schrodinger(law, chosen) for law in FAMILIES) else (Schrodinger,)


# The ground states of |x| and x^2 are Airy and Gaussian noise.
_POWERS_OF_FAMILIES = (1.0, 2.0)
_EQUAL_COST_WORDS = ("mean_abs", "mean_cost", "counts", "speed", "speed_seconds")
_TARGET_WORDS = ("epsilon", "count", "cost", "method")
_SHARED_WORDS = (
    *("delta", "sensitivity", "sampling_rate", "laws"),
    *("adjacency", "contribution", "progress"),
)


def _check_words(words: dict[str, Any]) -> None:
    """Refuse unknown keywords, and those of both modes at once."""
    known = (*_EQUAL_COST_WORDS, *_TARGET_WORDS, *_SHARED_WORDS)
    for word in words:
        if word not in known:
            raise _validate.unknown_keyword("compare", word, known)
    own = callable(words.get("cost")) and "epsilon" not in words
    if own and "mean_abs" in words:
        raise TypeError("compare() takes either mean_abs or a cost, got both")
    if "mean_cost" in words and not own and "epsilon" not in words:
        raise TypeError("mean_cost belongs to a cost: cost must be a callable")
    target = [word for word in _TARGET_WORDS if word in words and not (own and word == "cost")]
    equal_cost = [word for word in _EQUAL_COST_WORDS if word in words]
    if target and equal_cost:
        raise TypeError(
            f"compare() takes either a target ({', '.join(_TARGET_WORDS)}) or an equal cost "
            f"({', '.join(_EQUAL_COST_WORDS)}), got {target[0]} and {equal_cost[0]}"
        )
    if target and "epsilon" not in words:
        raise TypeError(f"{target[0]} belongs to a target: epsilon must be given too")
    if target and "delta" not in words:
        raise TypeError("a target needs both epsilon and delta: delta must be given too")


def _checked_laws(
    laws: Iterable[Family | type[NoiseLaw]] | None,
    every: tuple[Family | type[NoiseLaw], ...],
    *,
    designed: bool,
) -> tuple[Family | type[NoiseLaw], ...]:
    if laws is None:
        return every
    if not isinstance(laws, Iterable):
        raise TypeError(f"laws must be an iterable of noise classes, got {laws!r}")
    chosen = tuple(laws)
    kinds: tuple[type, ...] = (Noise, *DESIGNED) if designed else (Noise,)
    for law in chosen:
        if isinstance(law, Family) or (isinstance(law, type) and issubclass(law, kinds)):
            continue
        if isinstance(law, type) and issubclass(law, NoiseLaw):
            raise TypeError(
                f"laws must have a scale to be compared at one cost, got {law.__name__}, which a "
                "target compares: epsilon and delta"
            )
        raise TypeError(
            "laws must be noise classes such as psinoise.Airy, or psinoise.noise.Family of one and "
            f"its parameters, got {law!r}"
        )
    if not chosen:
        raise DomainError("laws must name at least one law, got none")
    return chosen
