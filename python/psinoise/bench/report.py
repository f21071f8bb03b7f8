"""The table and the JSON of ``python -m psinoise bench``."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import sys
import time
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

__all__ = ["SCHEMA", "Row", "fingerprint", "report", "table"]

#: Version of the layout of the JSON.
SCHEMA = 1

_SECONDS = 2.0
# --quick promises 20 seconds. Most of them go to rows whose fewest rounds take longer than their
# share; whatever the laws and the machine, no case starts after the limit.
_QUICK_SHARED_SECONDS = 4.0
_QUICK_LIMIT_SECONDS = 15.0
_CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Row:
    """A case against one of its reference rows.

    ``ratio`` is reference / case: above 1 the case is faster.
    """

    case: Case
    reference: str
    ns_per_element: float
    reference_ns_per_element: float
    ratio: Band
    rounds: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which has no infinity."""
        values = asdict(self)
        band = values["ratio"]
        return {
            **values.pop("case"),
            **values,
            "case": self.case.name,
            "group": self.case.group,
            "elements": self.case.elements,
            "ratio": {key: band[key] if math.isfinite(band[key]) else None for key in band},
            "shows_difference": self.ratio.shows_difference,
        }


def report(*, quick: bool, json_target: str | None, select: str) -> int:
    """Time the selected cases, print the table and write the JSON; the exit status.

    Raises
    ------
    ValueError
        If no case is selected or the JSON file cannot be written.
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
    late: list[str] = []
    start = time.monotonic()
    seconds = _QUICK_SHARED_SECONDS / len(matrix(quick=True)) if quick else _SECONDS
    for case in track(cases, "bench"):
        if quick and time.monotonic() - start > _QUICK_LIMIT_SECONDS:
            late.append(case.name)
            continue
        try:
            rows += _time_case(case, seconds)
        except AssertionError as error:
            wrong.append(f"wrong answer: {case.name}: {error}")
    if json_target != "-":
        print(_heading())
        print(table(rows))
    if json_target is not None:
        _write(json_target, quick, late, rows)
    if late:
        print(f"left out, no time: {', '.join(late)}", file=sys.stderr)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def table(rows: Iterable[Row]) -> str:
    """Aligned columns; a case is named on its first row."""
    lines = [("case", "ns", "reference", "ns", "ratio")]
    previous = ""
    for row in rows:
        name, ns = row.case.name, _figure(row.ns_per_element)
        first = ("", "") if name == previous else (name, ns)
        other = _figure(row.reference_ns_per_element)
        lines.append((*first, row.reference, other, str(row.ratio)))
        previous = name
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        f"{case:<{widths[0]}}  {ns:>{widths[1]}}  {other:<{widths[2]}}  {its:>{widths[3]}}  {ratio}"
        for case, ns, other, its, ratio in lines
    )


def fingerprint() -> dict[str, Any]:
    """Machine, compiler and instruction set, without the name of the host.

    Returns
    -------
    dict
        ``cpu``, ``cores`` (those this process may use), ``machine``, ``platform``, ``python``,
        ``numpy``, ``scipy`` and ``psinoise`` (`psinoise.build_config`).
    """
    text = _CPU_INFO.read_text("utf-8") if _CPU_INFO.is_file() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    allowed = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return {
        # Linux on ARM states no model, and other systems have no such file.
        "cpu": model[1].strip() if model else platform.processor() or platform.machine(),
        "cores": len(allowed(0)),
        "machine": platform.machine(),
        "platform": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "psinoise": psinoise.build_config(),
    }


def _time_case(case: Case, seconds: float) -> list[Row]:
    rivals = references(case)
    workloads = [case.make(), *(rival.make() for rival in rivals)]
    times = interleave(workloads, seconds)
    ns = np.median(times, axis=1) / [workload.elements for workload in workloads]
    return [
        Row(case, rival.name, ns[0], of_rival, Band.of(its / times[0]), its.size)
        for rival, of_rival, its in zip(rivals, ns[1:], times[1:], strict=True)
    ]


def _heading() -> str:
    machine = fingerprint()
    build = machine["psinoise"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores; psinoise {build['version']} "
        f"({build['backend']}, {build['isa']}, {build['compiler']})\n"
        f"{machine['python']}, NumPy {machine['numpy']}, SciPy {machine['scipy']}\n"
        "medians in ns per element, or per call; ratio = reference / case with its 95 % band"
    )


def _figure(nanoseconds: float) -> str:
    return f"{nanoseconds:,.0f}" if nanoseconds >= 100.0 else f"{nanoseconds:.3g}"


def _write(target: str, quick: bool, left_out: list[str], rows: list[Row]) -> None:
    content = {
        "schema": SCHEMA,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "left_out": left_out,
        "fingerprint": fingerprint(),
        "rows": [row.as_dict() for row in rows],
    }
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"json must be a writable file: {error}") from None
