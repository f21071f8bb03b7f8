"""Tables of docs/choosing.md: what the least noise of every law costs at typical targets.

    python tools/choosing.py            # writes the tables into the document
    python tools/choosing.py --check    # says whether they are what this version finds, to 1 %

Takes about twenty minutes. The costs are those of `psinoise.compare`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

import psinoise as pn
from psinoise.noise import DESIGNED, FAMILIES

DOCUMENT = Path(__file__).parents[1] / "docs" / "choosing.md"
BEGIN, END = "<!-- {} by tools/choosing.py -->\n", "<!-- end -->"


class Target(NamedTuple):
    """What a row asks for, at sensitivity 1."""

    epsilon: float
    delta: float
    count: int = 1
    sampling_rate: float = 1.0

    def __str__(self) -> str:
        uses = f"{self.count} use" + "s" * (self.count > 1)
        sampled = f", *q* = 1/{1 / self.sampling_rate:.0f}" if self.sampling_rate < 1.0 else ""
        return f"{uses}{sampled}: ({self.epsilon:g}, {self.delta:g})"


TARGETS = (
    Target(0.0, 0.1),
    Target(0.1, 0.0),
    Target(1.0, 0.0),
    Target(4.0, 0.0),
    Target(1.0, 1e-6),
    Target(4.0, 1e-6),
    Target(4.0, 1e-6, 10),
    Target(2.0, 1e-5, 100),
    Target(2.0, 1e-5, 10_000),
    Target(2.0, 1e-5, 2400, 1 / 240),
    Target(8.0, 1e-5, 24_000, 1 / 240),
    Target(4.0, 1e-5, 2400, 1 / 2400),
    Target(4.0, 1e-5, 24_000, 1 / 2400),
)
COSTS = {"mean_abs": r"E\|Z\|", "variance": "standard deviation"}
MADE = tuple(law for law in DESIGNED if not law.for_whole_numbers)
LAWS = (*FAMILIES, *MADE)
HEADS = {law.__name__: re.sub(r"costs\.|\.0\b", "", law.__name__) for law in LAWS}


@functools.cache
def costs(target: Target) -> dict[str, dict[str, float]]:
    """By cost and law; laws that do not meet the target are left out."""
    words = {**target._asdict(), "progress": False}
    rows = [*pn.compare(**words, cost="mean_abs", laws=LAWS).rows]
    made = {law.__name__ for law in MADE}
    # Only laws that are made for a cost depend on it.
    others = [row for row in rows if row.law not in made]
    with contextlib.suppress(pn.CalibrationError):
        others += pn.compare(**words, cost="variance", laws=MADE).rows
    return {
        "mean_abs": {row.law: row.mean_abs for row in rows if row.calibration},
        "variance": {row.law: math.sqrt(row.mean_square) for row in others if row.calibration},
    }


def cells(values: dict[str, float]) -> list[str]:
    """Numbers to three digits, the least in bold; a dash for laws that do not apply."""
    least = f"{min(values.values()):.3g}"
    texts = []
    for law in LAWS:
        text = f"{values[law.__name__]:.3g}" if law.__name__ in values else "-"
        text = "∞" if text == "inf" else text
        texts.append(f"**{text}**" if text == least else text)
    return texts


def table(cost: str) -> str:
    """A table in Markdown."""
    lines = [
        f"| {COSTS[cost]} | " + " | ".join(HEADS.values()) + " |",
        "| --- |" + " ---: |" * len(LAWS),
    ]
    for target in TARGETS:
        lines.append(f"| {target} | " + " | ".join(cells(costs(target)[cost])) + " |")
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines) + "\n"


def numbers(text: str) -> list[float]:
    """All cells of a table."""
    return [
        math.inf if cell == "∞" else float(cell)
        for line in text.splitlines()[2:]
        for cell in re.findall(r"(?<=[ *])(\d[\d.e+-]*|∞)(?=\**(?: \||$))", line.split("|", 2)[2])
    ]


def main() -> int:
    """Write the tables, or compare them."""
    parser = argparse.ArgumentParser(description="Tables of docs/choosing.md.")
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    text = DOCUMENT.read_text(encoding="utf-8")
    status = 0
    for cost in COSTS:
        head, old, tail = split(text, cost)
        new = table(cost)
        if check:
            pairs = list(zip(numbers(old), numbers(new), strict=True))
            status |= any(not math.isclose(a, b, rel_tol=0.01) for a, b in pairs)
        else:
            text = head + new + tail
    if not check:
        DOCUMENT.write_text(text, encoding="utf-8")
    return status


def split(text: str, cost: str) -> tuple[str, str, str]:
    """What stands before, in and after the table of a cost."""
    head, rest = text.split(BEGIN.format(cost))
    old, tail = rest.split(END, 1)
    return head + BEGIN.format(cost), old, END + tail


if __name__ == "__main__":
    sys.exit(main())
