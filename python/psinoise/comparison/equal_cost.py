"""All noise laws side by side at one expected cost: epsilon for each number of compositions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psinoise import _validate
from psinoise._backend import core
from psinoise._progress import track
from psinoise.calibration.mean_cost import is_schrodinger
from psinoise.comparison.tables import Sheet, Tabulated, column, cost_name, sampling_terms
from psinoise.errors import DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise import Noise, Schrodinger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Comparison", "ComparisonRow", "compare_at_equal_cost"]

_SPEED_SIZE = 1 << 20
_FEWEST_PASSES = 3
_MOST_TICKS = 8
_COUNTS = (1, 10, 100, 1000)
# Logarithms of scales.
_FARTHEST = 300.0


@dataclass(frozen=True)
class ComparisonRow:
    """One law of a :class:`Comparison`."""

    noise: Noise
    """The law, with its size."""
    epsilons: tuple[float, ...]
    """Epsilon at each of the comparison's ``counts``; estimates, without a proven bound."""
    nanoseconds_per_sample: float | None
    """Measured time of one float64 sample on one thread; None if it was left out."""

    @property
    def law(self) -> str:
        """Name of the law."""
        return self.noise.name

    @property
    def mean_square(self) -> float:
        """``E Z**2``, in squared units of the query; inf where it does not exist."""
        return float(self.noise.moment(2))

    def to_dict(self) -> dict[str, Any]:
        """The row as numbers and strings; ``epsilons`` is a list in the order of the counts."""
        return {
            "law": self.law,
            "noise": repr(self.noise),
            "epsilons": list(self.epsilons),
            "mean_abs": float(self.noise.mean_abs),
            "mean_square": float(self.mean_square),
            "std": float(self.noise.std),
            "fisher_information": float(self.noise.fisher_information()),
            "nanoseconds_per_sample": self.nanoseconds_per_sample,
        }


@dataclass(frozen=True, repr=False)
class Comparison(Tabulated):
    """What :func:`psinoise.compare` found: its conditions and one row for each law, best first.

    It is shown as a table; :meth:`to_dict` gives plain numbers, ``to_pandas()`` a data frame,
    :meth:`plot` draws the epsilons.
    """

    rows: tuple[ComparisonRow, ...]
    """Sorted by the epsilon at the largest count, least first."""
    mean_abs: float | None
    """The expected cost ``E|Z|`` that all laws share, in units of the query; None if they share
    that of another cost."""
    sensitivity: float
    """In units of the query."""
    delta: float
    counts: tuple[int, ...]
    sampling_rate: float
    adjacency: str
    contribution: float | None = None
    """In units of the query; None if it was not given."""
    cost: str = "mean_abs"
    """Name of the cost: "mean_abs" or that of a callable."""
    mean_cost: float | None = None
    """Its expectation, which all laws share; None for "mean_abs"."""
    left_out: tuple[str, ...] = ()
    """Laws that nobody named and that have no such expectation at any scale, since the cost grows
    too fast for their tails."""
    unproven: tuple[str, ...] = ()
    """Laws that nobody named and whose worst case with this adjacency and sampling is not known."""

    def to_dict(self) -> dict[str, Any]:
        """Conditions and rows as numbers, strings, lists and dictionaries; may hold ``inf``."""
        return {
            "mean_abs": self.mean_abs,
            "cost": self.cost,
            "mean_cost": self.mean_cost,
            "sensitivity": self.sensitivity,
            "delta": self.delta,
            "counts": list(self.counts),
            "sampling_rate": self.sampling_rate,
            "adjacency": self.adjacency,
            "contribution": self.contribution,
            "method": "estimate",
            "left_out": list(self.left_out),
            "unproven": list(self.unproven),
            "rows": [row.to_dict() for row in self.rows],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw epsilon against the number of compositions.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed; the message says how to install it.
        DomainError
            If all counts are 0.
        """
        from psinoise import plotting  # matplotlib is optional

        # Zero compositions have no place on a logarithmic axis.
        order = [i for i in np.argsort(self.counts, kind="stable") if self.counts[i]]
        if not order:
            raise DomainError("plot needs a count above 0: epsilon is 0 of no compositions")
        counts = [self.counts[i] for i in order]
        lines = {row.law: [row.epsilons[i] for i in order] for row in self.rows}
        ax = plotting.plot_lines(counts, lines, ax=ax, log_x=True, log_y=True)
        if len(counts) <= _MOST_TICKS:
            ax.set_xticks(counts, [str(count) for count in counts])
            ax.minorticks_off()
        ax.set(xlabel="Compositions", ylabel="Epsilon (estimate)")
        plotting.set_title(ax, f"Equal expected cost {self._cost_terms()}", self._privacy_terms())
        return ax

    def _records(self) -> list[dict[str, Any]]:
        records = super()._records()
        for record in records:
            epsilons = zip(self.counts, record.pop("epsilons"), strict=True)
            record.update({f"epsilon_at_{count}": epsilon for count, epsilon in epsilons})
        return records

    def _sheet(self) -> Sheet:
        rows = self.rows
        epsilons = zip(*(row.epsilons for row in rows), strict=True)
        columns = [
            ["law", *(row.law for row in rows)],
            *(
                column(f"eps n={count}", list(found))
                for count, found in zip(self.counts, epsilons, strict=True)
            ),
            column("E|Z|", [row.noise.mean_abs for row in rows], mark=False),
            column("std", [row.noise.std for row in rows]),
            column("Fisher inf.", [row.noise.fisher_information() for row in rows]),
        ]
        head = [
            f"Noise laws at equal expected cost {self._cost_terms()}",
            f"{self._privacy_terms()}; n compositions",
        ]
        speeds = [row.nanoseconds_per_sample for row in rows]
        if None not in speeds:
            columns.append(column("ns/sample", [s for s in speeds if s is not None], digits=3))
            head.append(_speed_terms())
        notes = ["eps is estimated to working precision, without a certified bound"]
        notes += [f"{law}: left out: no scale has this expected cost" for law in self.left_out]
        notes += [f"{law}: left out: its worst case is not proven" for law in self.unproven]
        return Sheet(head, columns, notes)

    def _cost_terms(self) -> str:
        if self.mean_cost is None:
            return f"E|Z| = {self.mean_abs:g}"
        return f"E {self.cost}(Z) = {self.mean_cost:g}"

    def _privacy_terms(self) -> str:
        return (
            f"sensitivity {self.sensitivity:g}, delta {self.delta:g}, "
            f"{sampling_terms(self.sampling_rate)}, {self.adjacency}"
        )


def compare_at_equal_cost(
    laws: tuple[Callable[..., Noise], ...],
    *,
    sensitivity: float,
    sampling_rate: float,
    adjacency: str,
    contribution: float | None,
    progress: bool,
    named: bool,
    mean_abs: float = 1.0,
    cost: Callable[[Any], Any] | None = None,
    mean_cost: float = 1.0,
    delta: float = 1e-6,
    counts: Iterable[int] = _COUNTS,
    speed: bool = True,
    speed_seconds: float = 0.1,
) -> Comparison:
    """Compare laws of equal ``mean_abs`` or mean cost; see :func:`psinoise.compare`.

    Laws that were ``named`` must have the cost each; else those are compared that do.
    """
    mean_abs = _validate.positive("mean_abs", mean_abs)
    delta = _validate.probability("delta", delta)
    speed = _validate.flag("speed", speed)
    seconds = _validate.positive("speed_seconds", speed_seconds)
    chosen_counts = _checked_counts(counts)
    left_out: list[str] = []
    if cost is None:
        noises = [law(mean_abs=mean_abs) for law in laws]
    else:
        mean_cost = _validate.positive("mean_cost", mean_cost)
        noises = []
        for law in laws:
            try:
                noises.append(_at_cost(law, cost, mean_cost))
            except _NoScaleError:
                if named:
                    raise
                left_out.append(law(scale=1.0).name)
        if not noises:
            raise DomainError(f"mean_cost must be one that some law has, got {mean_cost!r}")

    def mechanism(noise: Noise) -> Mechanism:
        return Mechanism(noise, sensitivity, contribution=contribution)

    proven = []
    for noise in noises:
        try:
            mechanism(noise).sampled(sampling_rate, None, adjacency)
        except DomainError:
            if named:
                raise
        else:
            proven.append(noise)
    # Where no law has a proof the arguments are to blame, as the first one says.
    unproven = tuple(noise.name for noise in noises if noise not in proven) if proven else ()
    noises = proven or noises

    def epsilon(noise: Noise, count: int) -> float:
        composed = mechanism(noise).composed(count, sampling_rate, adjacency)
        return float(composed.estimate.epsilon(delta))

    tasks = [(noise, count) for noise in noises for count in chosen_counts]
    found = [epsilon(*task) for task in track(tasks, "accounting", enabled=progress)]
    # Speed comes last and alone, so that nothing else warms up or slows down the machine.
    speeds: list[float | None] = [None] * len(noises)
    if speed:
        speeds = [
            _nanoseconds_per_sample(noise, seconds)
            for noise in track(noises, "sampling", enabled=progress)
        ]
    width = len(chosen_counts)
    rows = [
        ComparisonRow(noise, tuple(found[width * i : width * (i + 1)]), speeds[i])
        for i, noise in enumerate(noises)
    ]
    largest = chosen_counts.index(max(chosen_counts))
    rows.sort(key=lambda row: row.epsilons[largest])
    return Comparison(
        tuple(rows),
        mean_abs if cost is None else None,
        sensitivity,
        delta,
        chosen_counts,
        sampling_rate,
        adjacency,
        contribution,
        "mean_abs" if cost is None else cost_name(cost),
        None if cost is None else mean_cost,
        tuple(left_out),
        unproven,
    )


def _checked_counts(counts: Iterable[int]) -> tuple[int, ...]:
    if not isinstance(counts, Iterable):
        raise TypeError(f"counts must be an iterable of integers, got {counts!r}")
    checked = tuple(_validate.count("counts", count) for count in counts)
    if not checked:
        raise DomainError("counts must name at least one number of compositions, got none")
    return checked


class _NoScaleError(DomainError):
    """A law has no scale of an expected cost."""


def _at_cost(law: Callable[..., Noise], cost: Callable[[Any], Any], mean_cost: float) -> Noise:
    """The law with the mean cost: the optimal one if it is that of the cost, else by its scale.

    Where tails are too heavy for the cost its expectation is infinite, and no scale has it.
    """
    if is_schrodinger(law, cost):
        return Schrodinger(cost=cost, mean_cost=mean_cost)

    def excess(log_scale: float) -> float:
        expected = float(law(scale=math.exp(log_scale)).expected_cost(cost))
        if expected == math.inf:
            # Costs grow like powers at most, so that no scale has a finite one.
            raise _NoScaleError(f"{law(scale=1.0)!r} has no finite expectation of the cost")
        return math.log(max(expected, 1e-300)) - math.log(mean_cost)

    low = high = 0.0
    while excess(low) > 0.0 and low > -_FARTHEST:
        low -= 2.0
    while excess(high) < 0.0 and high < _FARTHEST:
        high += 2.0
    if excess(low) > 0.0 or excess(high) < 0.0:
        raise _NoScaleError(
            f"mean_cost must be one that a scale of {law(scale=1.0)!r} has, got {mean_cost!r}"
        )
    from scipy import optimize  # slow to import

    return law(scale=math.exp(float(optimize.brentq(excess, low, high, xtol=1e-14))))


def _nanoseconds_per_sample(noise: Noise, seconds: float) -> float:
    out = np.empty(_SPEED_SIZE)
    noise.sample(out=out, rng=0, threads=1)  # compiles the tables and touches the memory
    end = time.perf_counter() + seconds
    best, passes = math.inf, 0
    while passes < _FEWEST_PASSES or time.perf_counter() < end:
        start = time.perf_counter_ns()
        noise.sample(out=out, rng=0, threads=1)
        best = min(best, time.perf_counter_ns() - start)
        passes += 1
    return best / _SPEED_SIZE


def _speed_terms() -> str:
    config = core.build_config()
    return (
        "speed: float64, one thread, 2^20 samples into a warm array, "
        f"{config['backend']} code ({config['isa']})"
    )
