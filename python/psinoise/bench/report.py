"""The table and the JSON of ``python -m psinoise bench``."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import psinoise
from psinoise._progress import track
from psinoise.bench.cases import Case, matrix
from psinoise.bench.references import references
from psinoise.bench.timing import Band, interleave

__all__ = ["Row", "fingerprint", "report", "table"]

_SECONDS = 2.0
_QUICK_SECONDS = 0.02  # most of --quick goes to rows whose fewest rounds take longer
_CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Row:
    """A case against a reference row, in nanoseconds per element; the ratio is reference / case."""

    case: Case
    reference: str
    ns: float
    reference_ns: float
    ratio: Band
    rounds: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which has no infinity."""
        values = asdict(self)
        band = values["ratio"]
        values["ratio"] = {key: band[key] if math.isfinite(band[key]) else None for key in band}
        shown = self.ratio.shows_difference
        return {**values.pop("case"), **values, "case": self.case.name, "shows_difference": shown}


def report(*, quick: bool, json_target: str | None, select: str) -> int:
    """Time the selected cases, print the table and write the JSON; the exit status.

    ValueError if no case is selected or the file cannot be written.
    """
    cases = [case for case in matrix(quick=quick) if select in case.name]
    if not cases:
        operations = ", ".join(dict.fromkeys(case.operation for case in matrix()))
        raise ValueError(
            f"select must be part of the name of a case (<operation>-<law>-<size>, with the "
            f"operations {operations}), got {select!r}"
        )
    # Looked at before the timing: a misspelled folder shows at once.
    if json_target == "" or not Path(json_target or ".").parent.is_dir():
        raise ValueError(f"json must be a file in an existing directory, got {json_target!r}")
    rows: list[Row] = []
    wrong: list[str] = []
    for case in track(cases, "bench"):
        try:
            rows += _time_case(case, _QUICK_SECONDS if quick else _SECONDS)
        except AssertionError as error:
            wrong.append(f"wrong answer: {case.name}: {error}")
    print(_heading(), table(rows), sep="\n")
    if json_target is not None:
        _write(json_target, quick, rows)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def table(rows: Iterable[Row]) -> str:
    """Aligned columns; a case is named on its first row."""
    lines = [("case", "ns", "reference", "ns", "ratio")]
    previous = ""
    for row in rows:
        name = row.case.name
        first = ("", "") if name == previous else (name, _figure(row.ns))
        lines.append((*first, row.reference, _figure(row.reference_ns), str(row.ratio)))
        previous = name
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        f"{case:<{widths[0]}}  {ns:>{widths[1]}}  {other:<{widths[2]}}  {its:>{widths[3]}}  {ratio}"
        for case, ns, other, its, ratio in lines
    )


def fingerprint() -> dict[str, Any]:
    """Machine, versions and `psinoise.build_config`, without the name of the host."""
    text = _CPU_INFO.read_text("utf-8") if _CPU_INFO.is_file() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    allowed = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return {
        # Linux on ARM states no model, and other systems have no such file.
        "cpu": model[1].strip() if model else platform.processor() or platform.machine(),
        "cores": len(allowed(0)),
        "platform": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "psinoise": psinoise.build_config(),
    }


def _time_case(case: Case, seconds: float) -> list[Row]:
    rivals = references(case)
    ns, *others = interleave([case.make(), *(make() for make in rivals.values())], seconds)
    return [
        Row(case, name, float(np.median(ns)), float(np.median(its)), Band.of(its / ns), its.size)
        for name, its in zip(rivals, others, strict=True)
    ]


def _heading() -> str:
    machine = fingerprint()
    build = machine["psinoise"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores; psinoise {build['version']} "
        f"({build['backend']}, {build['isa']}, {build['compiler']})\n"
        f"{machine['python']}, NumPy {machine['numpy']}, SciPy {machine['scipy']}\n"
        "medians in ns per element; ratio = reference / case with its 95 % band"
    )


def _figure(nanoseconds: float) -> str:
    return f"{nanoseconds:,.0f}" if nanoseconds >= 100.0 else f"{nanoseconds:.3g}"


def _write(target: str, quick: bool, rows: list[Row]) -> None:
    content = {
        "schema": 2,  # 1 had other operations, and names of groups
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "fingerprint": fingerprint(),
        "rows": [row.as_dict() for row in rows],
    }
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"json must be a writable file: {error}") from None
