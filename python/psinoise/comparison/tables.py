"""Tables of numbers with the least of each column marked: text, in notebooks, data frames."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from psinoise._optional import required

if TYPE_CHECKING:
    from pandas import DataFrame


class Sheet(NamedTuple):
    """What is printed: lines above a table, its columns with their titles, and lines below."""

    head: list[str]
    columns: list[list[str]]
    notes: list[str]

    @property
    def legend(self) -> list[str]:
        """The lines below, after what a star says if there is one."""
        marked = any(cell.endswith("*") for cells in self.columns for cell in cells)
        return ["* the least of its column", *self.notes] if marked else self.notes


class Tabulated(ABC):
    """A result that shows itself as a table."""

    @abstractmethod
    def _sheet(self) -> Sheet:
        """What is printed."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Conditions and rows as numbers, strings, lists and dictionaries; may hold ``inf``."""

    def _records(self) -> list[dict[str, Any]]:
        """The rows as numbers and strings, by the names of columns."""
        records: list[dict[str, Any]] = self.to_dict()["rows"]
        return records

    def to_pandas(self) -> DataFrame:
        """The rows as a data frame, in their order.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        pandas = required("pandas", "data frames need pandas: pip install pandas")
        frame: DataFrame = pandas.DataFrame(self._records())
        return frame

    def __str__(self) -> str:
        sheet = self._sheet()
        return "\n".join([*sheet.head, "", *_aligned(sheet.columns), "", *sheet.legend])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        sheet = self._sheet()
        titles, *rows = zip(*sheet.columns, strict=True)
        body = "".join(_row("td", row) for row in rows)
        return (
            f"<p>{_lines(sheet.head)}</p><table><thead>{_row('th', titles)}</thead>"
            f"<tbody>{body}</tbody></table><p>{_lines(sheet.legend)}</p>"
        )


def _lines(lines: list[str]) -> str:
    return "<br>".join(map(escape, lines))


def _row(tag: str, cells: tuple[str, ...]) -> str:
    sides = ["left", *["right"] * (len(cells) - 1)]
    shown = (
        f'<{tag} style="text-align: {side}">{escape(cell.strip())}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"


def cost_name(cost: str | Callable[[Any], Any]) -> str:
    """What a cost is called."""
    return cost if isinstance(cost, str) else str(getattr(cost, "__name__", "cost")).strip("<>")


def sampling_terms(rate: float) -> str:
    """What is said of sampling."""
    return "no subsampling" if rate == 1.0 else f"Poisson sampling at rate {rate:g}"


def column(title: str, values: list[float], *, digits: int = 5, mark: bool = True) -> list[str]:
    """A title and its numbers with one number of decimals; the least are marked with a star."""
    texts = [_number(value, values, digits) for value in values]
    # What cannot be told apart in print is not told apart by a star either.
    if mark and len(set(texts)) > 1:
        least = texts[values.index(min(values))]
        return [title + " ", *(text + " *"[text == least] for text in texts)]
    return [title + " ", *(text + " " for text in texts)]


def _number(value: float, others: list[float], digits: int) -> str:
    """A number with as many decimals as its column needs."""
    finite = [abs(other) for other in others if 0.0 < abs(other) < math.inf]
    if not finite or min(finite) < 1e-4 or max(finite) >= 1e7:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(max(finite))))
    return f"{value:.{decimals}f}"


def _aligned(columns: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in columns]
    for line in zip(*columns, strict=True):
        # Names to the left, numbers to the right.
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        yield " ".join(cells).rstrip()
