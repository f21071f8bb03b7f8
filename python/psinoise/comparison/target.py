"""All noise laws side by side at one privacy target: what each of them costs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psinoise import _validate
from psinoise._progress import track
from psinoise.calibration import Calibration, calibration
from psinoise.calibration.mean_cost import is_schrodinger
from psinoise.calibration.target import checked
from psinoise.comparison.tables import Sheet, Tabulated, column, cost_name, sampling_terms
from psinoise.errors import CalibrationError, CertificationError, DomainError
from psinoise.noise import Family, Gaussian, NoiseLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TargetComparison", "TargetRow", "compare_at_target"]

Cost = str | Callable[[Any], Any]

_SYMBOLS = {"mean_abs": "E|Z|", "variance": "E Z^2"}
# Height of a bar, and room to the right of the longest one for its number, as a share of it.
_HEIGHT, _MARGIN = 0.62, 1.18


@dataclass(frozen=True)
class TargetRow:
    """One law of a :class:`TargetComparison`."""

    law: str
    """Name of the law."""
    calibration: Calibration | None
    """The law with its least noise and the evidence; None if it cannot meet the target."""
    cost: float
    """The expected cost; inf if the law cannot meet the target, or it does not exist."""
    reason: str = ""
    """Why the law cannot meet the target."""

    @property
    def noise(self) -> NoiseLaw | None:
        """The law with its least noise."""
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


@dataclass(frozen=True, repr=False)
class TargetComparison(Tabulated):
    """What :func:`psinoise.compare` found at a target: one row for each law, cheapest first.

    It is shown as a table; :meth:`to_dict` gives plain numbers, ``to_pandas()`` a data frame,
    :meth:`plot` draws the costs.
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
        from psinoise import plotting  # matplotlib is optional

        plotting.require_matplotlib()
        if ax is None:
            from matplotlib import pyplot  # a figure that notebooks and show() know of

            size = (6.4, 1.4 + 0.5 * len(self.rows))
            ax = pyplot.subplots(figsize=size, layout="constrained")[1]
        laws = [row.law for row in self.rows]
        # A cost that is not finite has its word and no bar.
        lengths = [row.cost if math.isfinite(row.cost) else 0.0 for row in self.rows]
        colors = [plotting.color_of(law, i) for i, law in enumerate(laws)]
        ax.barh(range(len(laws)), lengths, height=_HEIGHT, color=colors)
        for place, (row, length) in enumerate(zip(self.rows, lengths, strict=True)):
            ax.annotate(
                "not applicable" if row.calibration is None else f"{row.cost:.4g}",
                (length, place),
                xytext=(5, 0),
                textcoords="offset points",
                color=plotting.FAINT,
                va="center",
            )
        ax.set_yticks(range(len(laws)), laws)
        ax.invert_yaxis()
        plotting.dress(ax)
        ax.grid(False, axis="y")
        ax.set_xlim(0.0, _MARGIN * max(lengths) or 1.0)
        ax.set_xlabel(f"Expected cost {self._symbol}")
        plotting.set_title(ax, f"Least noise for {self._target()}", self._conditions())
        return ax

    def _sheet(self) -> Sheet:
        rows = self.rows
        costs = {
            "E|Z|": [row.mean_abs for row in rows],
            "E Z^2": [row.mean_square for row in rows],
        }
        costs.setdefault(self._symbol, [row.cost for row in rows])
        least = rows[0].cost
        shares = [row.cost / least if math.isfinite(row.cost) else math.inf for row in rows]
        columns = [
            ["law", *(row.law for row in rows)],
            *(self._column(title, values) for title, values in costs.items()),
            self._column("cost / best", shares, mark=False),
            self._column("scale", [_scale(row) for row in rows], mark=False),
        ]
        notes = [f"sorted by {self._symbol}; best: {self.best.law}"]
        notes += [f"{row.law}: not applicable: {row.reason}" for row in rows if row.reason]
        proof = {
            "certified": "every law is verified by a certified upper bound on delta, or a theorem",
            "estimate": "scales are estimated to working precision, without a certified bound",
        }
        notes.append(proof[self.method])
        head = [f"Least noise that meets {self._target()}", self._conditions()]
        return Sheet(head, columns, notes)

    def _column(
        self, title: str, values: Sequence[float | None], *, mark: bool = True
    ) -> list[str]:
        """Numbers of laws that meet the target, with a dash for None."""
        known = [
            None if row.calibration is None else value
            for row, value in zip(self.rows, values, strict=True)
        ]
        head, *texts = column(title, [value for value in known if value is not None], mark=mark)
        shown = iter(texts)
        return [head, *("- " if value is None else next(shown) for value in known)]

    @property
    def _symbol(self) -> str:
        return _SYMBOLS.get(self.cost, f"E {self.cost}(Z)")

    def _target(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"

    def _conditions(self) -> str:
        uses = "1 use" if self.count == 1 else f"{self.count} uses"
        return (
            f"{uses}, {sampling_terms(self.sampling_rate)}, sensitivity {self.sensitivity:g}, "
            f"{self.adjacency}"
        )


def compare_at_target(
    laws: tuple[Family | type[NoiseLaw], ...],
    *,
    whole_numbers: bool,
    epsilon: float,
    delta: float,
    sensitivity: float,
    sampling_rate: float,
    adjacency: str,
    contribution: float | None,
    progress: bool,
    count: int = 1,
    cost: Cost = "mean_abs",
    method: str = "certified",
) -> TargetComparison:
    """Calibrate each law to the target and sort by the cost; see :func:`psinoise.compare`.

    Laws for whole numbers are left out, with the reason, unless the values of the query are such.
    If no law meets the target the error is that of the first one.
    """
    if not callable(cost):
        cost = _validate.choice("cost", cost, _SYMBOLS)
    # What is wrong for any law is an error; what one law does not have is said in its row.
    checked(Gaussian, epsilon, delta, sensitivity, count, sampling_rate, adjacency, contribution)
    rows, errors = [], []
    for law in track(laws, "calibrating", enabled=progress):
        own = callable(cost) and is_schrodinger(law, cost)
        try:
            if not (whole_numbers or isinstance(law, Family)) and law.for_whole_numbers:
                raise CalibrationError("for queries whose values are whole numbers")
            found = calibration(
                law if own else _for_cost(law, cost),
                epsilon=epsilon,
                delta=delta,
                sensitivity=sensitivity,
                count=count,
                sampling_rate=sampling_rate,
                adjacency=adjacency,
                contribution=contribution,
                method=method,
                cost=cost if own else None,  # type: ignore[arg-type]
            )
        except (CalibrationError, CertificationError, DomainError, OverflowError) as error:
            errors.append(error)
            rows.append(TargetRow(law.__name__, None, math.inf, str(error)))
        else:
            rows.append(TargetRow(law.__name__, found, _expected(found.noise, cost)))
    if len(errors) == len(rows):
        raise errors[0]
    rows.sort(key=lambda row: (row.cost, row.calibration is None))
    return TargetComparison(
        tuple(rows),
        float(epsilon),
        float(delta),
        count,
        float(sampling_rate),
        float(sensitivity),
        adjacency,
        method,
        cost_name(cost),
        contribution,
    )


def _for_cost(law: Family | type[NoiseLaw], cost: Cost) -> Callable[..., NoiseLaw]:
    """A law that is made for a target, told what to make small; any other as it is."""
    if isinstance(law, Family) or law.ordered_by_scale:
        return law
    power = {"mean_abs": 1, "variance": 2}.get(cost) if isinstance(cost, str) else None
    words: dict[str, Any] = {}
    if "power" in law.shape_parameters and power is not None:
        words["power"] = power
    if "cost" in law.shape_parameters:
        words["cost"] = cost if power is None else power
    return functools.partial(law, **words)


def _expected(noise: NoiseLaw, cost: Cost) -> float:
    if cost == "mean_abs":
        return float(noise.mean_abs)
    if cost == "variance":
        return _mean_square(noise)
    return float(noise.expected_cost(cost))  # type: ignore[arg-type]


def _mean_square(noise: NoiseLaw) -> float:
    return float(noise.std) * float(noise.std)


def _scale(row: TargetRow) -> float | None:
    """None for laws whose scale says nothing about their size."""
    return float(row.noise.scale) if row.noise and row.noise.ordered_by_scale else None
