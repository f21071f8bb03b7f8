"""All noise laws side by side at one privacy target: what each of them costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psinoise._progress import track
from psinoise.calibrate import Calibration, calibration
from psinoise.compare.tables import aligned, column
from psinoise.errors import CalibrationError
from psinoise.noise import Family, Noise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COSTS", "TargetComparison", "TargetRow", "compare_at_target"]

Cost = str | Callable[[Any], Any]

COSTS = ("mean_abs", "variance")
_SYMBOLS = {"mean_abs": "E|Z|", "variance": "E Z^2"}


@dataclass(frozen=True)
class TargetRow:
    """One law of a :class:`TargetComparison`."""

    law: str
    """Name of the law."""
    calibration: Calibration | None
    """The law with its least scale and the evidence; None if no scale meets the target."""
    cost: float
    """The expected cost; inf if no scale meets the target, or the expectation does not exist."""
    reason: str = ""
    """Why no scale meets the target."""

    @property
    def noise(self) -> Noise | None:
        """The law with its least scale."""
        return None if self.calibration is None else self.calibration.noise

    @property
    def mean_abs(self) -> float:
        """``E|Z|``, in units of the query."""
        return math.inf if self.noise is None else float(self.noise.mean_abs)

    @property
    def mean_square(self) -> float:
        """``E Z**2``, in squared units of the query."""
        return math.inf if self.noise is None else _mean_square(self.noise)

    def to_dict(self) -> dict[str, Any]:
        """The row as numbers and strings; may hold ``inf``."""
        found = self.calibration
        return {
            "law": self.law,
            "noise": None if found is None else repr(found.noise),
            "scale": None if found is None else float(found.noise.scale),
            "cost": self.cost,
            "mean_abs": self.mean_abs,
            "mean_square": self.mean_square,
            "delta_upper": None if found is None else found.delta.upper,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class TargetComparison:
    """What :func:`psinoise.compare` found at a target: one row for each law, cheapest first.

    ``str()`` is a table, :meth:`to_dict` gives plain numbers, :meth:`plot` draws the costs.
    """

    rows: tuple[TargetRow, ...]
    """Sorted by the cost, least first."""
    epsilon: float
    delta: float
    count: int
    sampling_rate: float
    sensitivity: float
    adjacency: str
    method: str
    cost: str
    """Name of the cost: "mean_abs", "variance", or that of a callable."""
    contribution: float | None = None
    """In units of the query; None if it was not given."""

    @property
    def best(self) -> TargetRow:
        """The cheapest law."""
        return self.rows[0]

    def to_dict(self) -> dict[str, Any]:
        """Conditions and rows as numbers, strings, lists and dictionaries; may hold ``inf``."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "count": self.count,
            "sampling_rate": self.sampling_rate,
            "sensitivity": self.sensitivity,
            "adjacency": self.adjacency,
            "contribution": self.contribution,
            "method": self.method,
            "cost": self.cost,
            "best": self.best.law,
            "rows": [row.to_dict() for row in self.rows],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the costs as bars, the cheapest law on top.

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
        """
        from psinoise.compare.bars import plot_bars
        from psinoise.plotting import set_title  # matplotlib is optional

        ax = plot_bars({row.law: row.cost for row in self.rows}, ax=ax)
        ax.set_xlabel(f"Expected cost {self._symbol}")
        set_title(ax, f"Least noise for {self._target()}", self._conditions())
        return ax

    def __str__(self) -> str:
        rows = self.rows
        costs = {"E|Z|": [row.mean_abs for row in rows]}
        costs["E Z^2"] = [row.mean_square for row in rows]
        if self._symbol not in costs:
            costs[self._symbol] = [row.cost for row in rows]
        least = min(rows[0].cost, math.inf)
        shares = [row.cost / least if math.isfinite(row.cost) else math.inf for row in rows]
        columns = [["law", *(row.law for row in rows)]]
        columns += [column(title, values) for title, values in costs.items()]
        columns.append(column("cost / best", shares, mark=False))
        columns.append(column("scale", [_scale(row) for row in rows], mark=False))
        legend = [f"sorted by {self._symbol}; best: {self.best.law}"]
        if any(cell.endswith("*") for cells in columns for cell in cells):
            legend.insert(0, "* the least of its column")
        legend += [f"{row.law}: {row.reason}" for row in rows if row.reason]
        proof = {
            "certified": "every scale is verified by a certified upper bound on delta",
            "estimate": "scales are estimated to working precision, without a certified bound",
        }
        legend.append(proof[self.method])
        head = [f"Least noise that meets {self._target()}", self._conditions()]
        return "\n".join([*head, "", *aligned(columns), "", *legend])

    @property
    def _symbol(self) -> str:
        return _SYMBOLS.get(self.cost, f"E {self.cost}(Z)")

    def _target(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"

    def _conditions(self) -> str:
        uses = "1 use" if self.count == 1 else f"{self.count} uses"
        sampling = (
            "no subsampling"
            if self.sampling_rate == 1.0
            else f"Poisson sampling at rate {self.sampling_rate:g}"
        )
        return f"{uses}, {sampling}, sensitivity {self.sensitivity:g}, {self.adjacency}"


def compare_at_target(
    laws: tuple[Family | type[Noise], ...],
    cost: Cost,
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    count: int,
    sampling_rate: float,
    adjacency: str,
    contribution: float | None,
    method: str,
    progress: bool,
) -> TargetComparison:
    """Calibrate each law to the target and sort by the cost; see :func:`psinoise.compare`.

    Raises
    ------
    CalibrationError
        If no law meets the target; the message is that of the first one.
    """
    rows = []
    for law in track(laws, "calibrating", enabled=progress):
        try:
            found = calibration(
                law,
                epsilon=epsilon,
                delta=delta,
                sensitivity=sensitivity,
                count=count,
                sampling_rate=sampling_rate,
                adjacency=adjacency,
                contribution=contribution,
                method=method,
            )
        except CalibrationError as error:
            rows.append(TargetRow(law.__name__, None, math.inf, str(error)))
        else:
            rows.append(TargetRow(law.__name__, found, _expected(found.noise, cost)))
    if all(row.calibration is None for row in rows):
        raise CalibrationError(rows[0].reason)
    rows.sort(key=lambda row: (row.cost, row.calibration is None))
    name = cost if isinstance(cost, str) else getattr(cost, "__name__", "cost").strip("<>")
    return TargetComparison(
        tuple(rows),
        float(epsilon),
        float(delta),
        count,
        float(sampling_rate),
        float(sensitivity),
        adjacency,
        method,
        name,
        contribution,
    )


def _expected(noise: Noise, cost: Cost) -> float:
    if cost == "mean_abs":
        return float(noise.mean_abs)
    if cost == "variance":
        return _mean_square(noise)
    return float(noise.expected_cost(cost))  # type: ignore[arg-type]


def _mean_square(noise: Noise) -> float:
    return float(noise.std) ** 2 if math.isfinite(noise.std) else math.inf


def _scale(row: TargetRow) -> float:
    return math.inf if row.noise is None else float(row.noise.scale)
