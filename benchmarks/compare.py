"""Compare two installed versions: ``python benchmarks/compare.py A B``.

A and B are Python interpreters (of two virtual environments) or directories that hold an installed
psinoise (``pip install --target``). Each gets a worker process, and every case is timed in turn: A,
B, A, B, ... A visit makes several calls and counts as their median. The workers are started anew
several times, because where memory and code happen to lie makes a lasting difference of a few
percent between two processes of one version. A start counts as its median ratio B / A; the figure
is the median over starts with its band, "no difference shown" when the band covers 1. The
instruments are those of the psinoise that runs this script.

Exit status: 0; 1 if a case of B is slower by more than the tolerance (the whole band is above it)
or fails; 2 for bad input.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from psinoise._progress import track
from psinoise.bench.timing import LEAST_ROUNDS, Band

# One visit; long enough that its ends do not count, short enough that both meet the same machine.
_VISIT_NS = 20_000_000
_MOST_CALLS = 1000


class Worker:
    """A process of one installation that times cases on request, one JSON line for each."""

    def __init__(self, label: str, installation: str) -> None:
        self.label = label
        path = Path(installation)
        environment = dict(os.environ)
        python = sys.executable
        if path.is_dir():
            environment["PYTHONPATH"] = str(path.resolve())
        elif path.is_file() and os.access(path, os.X_OK):
            # Not resolved: a virtual environment is known by the link to its interpreter.
            python = str(path.absolute())
            environment.pop("PYTHONPATH", None)
        else:
            raise ValueError(f"{label} must be an interpreter or a directory, got {installation!r}")
        self._process = subprocess.Popen(
            # -P: the folder of this script is nobody's installation.
            [python, "-P", str(Path(__file__).resolve()), "--worker"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self.hello = self.ask("hello")
            found = Path(self.hello["file"]).resolve()
            if path.is_dir() and path.resolve() not in found.parents:
                raise ValueError(
                    f"{label} must hold an installed psinoise: {installation!r} has none, or an "
                    f"editable installation comes before it (found {found})"
                )
        except ValueError:
            self.close()
            raise

    def ask(self, *request: Any) -> Any:
        """Send a request, return its result."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("worker has no pipes")
        # A worker that is gone breaks the pipe or ends it, depending on who is faster.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ValueError(
                f"{self.label} must have a psinoise with psinoise.bench; its worker ended with "
                f"status {self._process.wait()}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise CaseError(f"{self.label}: {answer['error']}")
        return answer["result"]

    def __str__(self) -> str:
        machine = self.hello["fingerprint"]
        build = machine["psinoise"]
        return (
            f"{self.label}: psinoise {build['version']} ({build['backend']}, {build['isa']}, "
            f"{build['compiler']}), {machine['python']}, NumPy {machine['numpy']}: "
            f"{Path(self.hello['file']).parent}"
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        # Leaving the context closes the pipes, which ends the worker's loop, and waits. What a dead
        # worker did not read is of no interest.
        with contextlib.suppress(BrokenPipeError), self._process:
            pass


class CaseError(RuntimeError):
    """A case cannot be made or answers wrongly in one of the installations."""


def serve() -> int:
    """Answer requests on standard input until it ends; what a worker does."""
    # Imported here: a worker needs more of its installation than the parent does of its own.
    import psinoise
    from psinoise.bench import cases
    from psinoise.bench.report import fingerprint
    from psinoise.bench.timing import collector_off, measure

    replies, sys.stdout = sys.stdout, sys.stderr
    current, workload = None, None
    for line in sys.stdin:
        verb, *rest = json.loads(line)
        reply: dict[str, Any]
        try:
            if verb == "hello":
                names = [case.name for case in cases.matrix()]
                reply = {"file": psinoise.__file__, "fingerprint": fingerprint(), "cases": names}
            else:
                name, calls = rest
                if workload is None or name != current:
                    current, workload = name, cases.find(name).make()
                    workload.check(workload.run())
                with collector_off():
                    reply = {"ns": [measure(workload) for _ in range(calls)]}
            text = json.dumps({"result": reply})
        # Whatever goes wrong in one installation is for the other process to report.
        except Exception as error:
            current, workload = None, None
            text = json.dumps({"error": f"{type(error).__name__}: {error}"})
        print(text, file=replies, flush=True)
    return 0


def visit_case(name: str, a: Worker, b: Worker, rounds: int) -> tuple[float, float, float]:
    """Median nanoseconds of A and of B, and the median ratio B / A, for one start."""
    # The first visit makes the case and checks it, the second is warm.
    for worker in (a, b):
        worker.ask("run", name, 1)
    warm = [worker.ask("run", name, 1)["ns"][0] for worker in (a, b)]
    calls = min(_MOST_CALLS, max(1, math.ceil(_VISIT_NS / max(warm))))
    pairs = [
        tuple(statistics.median(worker.ask("run", name, calls)["ns"]) for worker in (a, b))
        for _ in range(rounds)
    ]
    of_a, of_b = map(statistics.median, zip(*pairs, strict=True))
    return of_a, of_b, statistics.median(ns_b / ns_a for ns_a, ns_b in pairs)


def compare(options: argparse.Namespace) -> int:
    """Print a line for each case that both have; the exit status."""
    visits: dict[str, list[tuple[float, float, float]]] = {}
    failures: dict[str, CaseError] = {}
    for start in track(range(options.starts), "starts"):
        with Worker("A", options.a) as a, Worker("B", options.b) as b:
            shared = [name for name in a.hello["cases"] if name in b.hello["cases"]]
            names = [name for name in shared if options.select in name]
            if not names:
                raise ValueError(
                    f"select must be part of the name of a case of A and B, got {options.select!r}"
                )
            if not start:
                print(f"{a}\n{b}", flush=True)
            for name in names:
                if name in failures:
                    continue
                try:
                    visits.setdefault(name, []).append(visit_case(name, a, b, options.rounds))
                except CaseError as error:
                    failures[name] = error
    width = max(map(len, names))
    print(f"{'case':<{width}}  {'A, ns':>15}  {'B, ns':>15}  B / A")
    slower = 0
    for name in names:
        if name in failures:
            print(f"{name:<{width}}  failed in {failures[name]}")
            continue
        of_a, of_b, ratios = zip(*visits[name], strict=True)
        band = Band.of(ratios)
        verdict = "  SLOWER" if band.low > options.tolerance else ""
        slower += bool(verdict)
        medians = f"{statistics.median(of_a):>15,.0f}  {statistics.median(of_b):>15,.0f}"
        print(f"{name:<{width}}  {medians}  {band}{verdict}")
    return 1 if slower or failures else 0


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", metavar="A", help="interpreter or directory of the old version")
    parser.add_argument("b", metavar="B", help="interpreter or directory of the new version")
    parser.add_argument("--select", default="", metavar="SUBSTRING", help="only cases with this")
    parser.add_argument("--starts", type=int, default=7, help="pairs of processes (default 7)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="visits per case and start (default 3)"
    )
    parser.add_argument(
        "--tolerance", type=float, default=1.10, help="ratio that is still accepted (default 1.10)"
    )
    options = parser.parse_args(arguments)
    try:
        if options.starts < LEAST_ROUNDS:
            raise ValueError(f"starts must be at least {LEAST_ROUNDS}, got {options.starts}")
        if options.rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {options.rounds}")
        if not (1.0 <= options.tolerance < math.inf):
            raise ValueError(f"tolerance must be at least 1, got {options.tolerance}")
        return compare(options)
    except ValueError as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:] == ["--worker"] else main())
