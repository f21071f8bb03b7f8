"""The acceptance grid of the accountant: ``python benchmarks/acceptance.py --out FILE``.

Asks for certified epsilons and nothing else: 13 families and their lattices over counts, rates,
deltas and neighbors (a seeded sample that has each value with each family, or ``--full``), random
plans, questions that were once answered badly, cells, imported losses and vectors; see
``acceptance_questions.py``. Each question is put to a worker process with a time limit, on a new
mechanism. Where ``acceptance_truth.py`` knows the value, the bracket must hold it.

    python benchmarks/acceptance.py --out a.json                 # about 20 minutes
    python benchmarks/acceptance.py --only special/ --out s.json
    python benchmarks/acceptance.py --summary a.json
    python benchmarks/acceptance.py --compare a.json b.json

The file has one JSON object a line, the first of them says what was run.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import multiprocessing
import platform
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from acceptance_questions import IMPORTED, Question, Step, all_questions
from acceptance_truth import elsewhere, miss, truth

import psinoise as pn

PROMISE = 1e-4
_REFUSALS = ("CertificationError", "DomainError", "NotConvergedError")
_WORST = 20
_START_SECONDS = 120.0
_QUANTILES = (0.5, 0.9, 0.99, 1.0)
Answer = dict[str, Any]

# -- the worker ------------------------------------------------------------------------------------


def serve(pipe: Any, gigabytes: float) -> None:
    """Answer questions until the pipe closes."""
    most = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    # Pays for imports on demand.
    answer(Question("", (Step("Gaussian", 3.3, 7, 0.1),), 1e-5))
    answer(Question("", (Step("Staircase", 0.7, 7),), 1e-5))
    pipe.send({})
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(answer(pipe.recv()))


def answer(question: Question) -> Answer:
    """Ask a question and measure it."""
    found: Answer = {}
    # Peak memory of this question alone, where Linux can set it back.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before = megabytes("VmRSS")
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mechanisms = [step.mechanism() for step in question.steps]
            found["build"] = time.perf_counter() - start
            start = time.perf_counter()
            result = question.ask(mechanisms)
            for name in ("lower", "estimate", "upper"):
                found[name] = float(getattr(result, name))
            found["composer"] = str(getattr(result, "composer", ""))
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"[:300]
    found["seconds"] = time.perf_counter() - start
    found["growth"] = megabytes("VmHWM") - before
    found["peak"] = megabytes("VmHWM")
    if caught:
        found["warning"] = f"{caught[0].category.__name__}: {caught[0].message}"[:200]
    return found


def megabytes(field: str) -> float:
    """Resident memory of this process, now (``VmRSS``) or at its peak (``VmHWM``); Linux alone."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(float(line.split()[1]) / 2**10 for line in lines if line.startswith(field))


class Worker:
    """A process that answers, started again after a question that took too long."""

    def __init__(self, limit: float, gigabytes: float) -> None:
        self._limit, self._gigabytes = limit, gigabytes
        self._process: Any = None
        self._pipe: Any = None

    def ask(self, question: Question) -> Answer:
        """The answer, or what kept it from being given."""
        if self._process is None:
            self._start()
        self._pipe.send(question)
        return self._receive(self._limit)

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._gigabytes), daemon=True)
        self._process.start()
        theirs.close()
        if "error" in (found := self._receive(_START_SECONDS)):
            raise RuntimeError(f"a worker does not start: {found['error']}")

    def _receive(self, limit: float) -> Answer:
        start = time.perf_counter()
        error = f"Timeout: more than {limit:g} s"
        try:
            if self._pipe.poll(limit):
                return dict(self._pipe.recv())
        except (EOFError, ConnectionError):
            error = "Died: the worker ended"
        self.stop()
        return {"error": error, "seconds": time.perf_counter() - start}


# -- running ---------------------------------------------------------------------------------------


def run(
    questions: list[Question], out: Path | None, worker: Worker, header: Answer
) -> list[Answer]:
    """Ask everything, write it down line by line."""
    answers = []
    with out.open("w") if out else contextlib.nullcontext() as file:
        write(file, header)
        for question in watched(questions):
            found = {"id": question.name, "digest": question.digest, **worker.ask(question)}
            if any(step.law in IMPORTED for step in question.steps) and "error" in found:
                found["upper only"] = found["error"].startswith("DomainError")
            if question.epsilon is not None:
                found["asked"] = "delta"
            if answered(found):
                known = truth(question) or elsewhere(question, found["upper"])
                if known is not None:
                    found["truth"] = [float(end) for end in known]
                    found["miss"] = miss(found["lower"], found["upper"], known)
            write(file, found)
            answers.append(found)
    worker.stop()
    return answers


def write(file: Any, found: Answer) -> None:
    """One line."""
    if file is not None:
        print(json.dumps(found), file=file, flush=True)


def watched(questions: list[Question]) -> Iterator[Question]:
    """With a progress bar, where somebody looks and tqdm is installed."""
    if sys.stderr is not None and sys.stderr.isatty():
        with contextlib.suppress(ModuleNotFoundError):
            from tqdm import tqdm

            yield from tqdm(questions, "asking", smoothing=0.05, dynamic_ncols=True)
            return
    yield from questions


def described(options: argparse.Namespace) -> Answer:
    """The header of a file."""
    return {
        "version": pn.__version__,
        "build": {key: str(value) for key, value in pn.build_config().items()},
        "machine": platform.platform(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "options": {"sample": options.sample, "full": options.full, "plans": options.plans,
                    "seed": options.seed, "limit": options.limit, "only": options.only},
    }  # fmt: skip


def read(path: Path) -> tuple[Answer, list[Answer]]:
    """The header and the answers of a file."""
    header, *answers = map(json.loads, path.read_text().splitlines())
    return header, answers


# -- what came of it -------------------------------------------------------------------------------


def answered(found: Answer) -> bool:
    """Whether there is a bracket."""
    return "upper" in found and "error" not in found


def width(found: Answer) -> float:
    """``upper - lower``; 0 where both are infinite."""
    return 0.0 if found["lower"] == found["upper"] else float(found["upper"] - found["lower"])


def relative(found: Answer) -> float:
    """The width in units of the upper bound."""
    across = width(found)
    return across if across in (0.0, math.inf) else across / found["upper"]


def kind(found: Answer) -> str:
    """The class of an error: a refusal is one that the library has a name for."""
    name = str(found["error"]).split(":", 1)[0]
    if found.get("upper only"):
        return "upper only"
    if name == "Timeout":
        return "too slow"
    return f"refused, {name}" if name in _REFUSALS else f"EXCEPTION, {name}"


def quantiles(values: Iterable[float]) -> str:
    """Median, 90 %, 99 % and the largest."""
    ordered = sorted(values)
    if not ordered:
        return "none"
    picked = [ordered[min(int(q * len(ordered)), len(ordered) - 1)] for q in _QUANTILES]
    return "50 % {:.3g}, 90 % {:.3g}, 99 % {:.3g}, max {:.3g}".format(*picked)


def share(part: int, whole: int) -> str:
    """``part`` of ``whole`` in percent."""
    return f"{part} of {whole} ({100.0 * part / max(whole, 1):.1f} %)"


def bounds(found: Answer) -> str:
    """The bracket, or why there is none."""
    if not answered(found):
        return str(found["error"])[:110]
    known = found["truth"] if found.get("miss") else ""
    return f"[{found['lower']!r}, {found['upper']!r}] {known} {found['composer']}".rstrip()


def worst(title: str, found: list[Answer], key: Callable[[Answer], float]) -> Iterator[str]:
    """The questions with the largest values of ``key``."""
    ranked = sorted((one for one in found if key(one) > 0.0), key=key, reverse=True)[:_WORST]
    if ranked:
        yield f"\n{title}"
    for one in ranked:
        yield f"  {key(one):9.3g}  {one['id']}  {bounds(one)}"


def summary(answers: list[Answer]) -> Iterator[str]:
    """Lines of text, for everything and for each kind of question."""
    for part in ("", *sorted({one["id"].split("/", 1)[0] for one in answers})):
        chosen = [one for one in answers if one["id"].startswith(part)]
        yield from counted(part or "all questions", chosen)
    yield from families([one for one in answers if one["id"].startswith("grid/")])
    good = [one for one in answers if answered(one)]
    epsilons = [one for one in good if one.get("asked") != "delta"]
    failed = [one for one in answers if not answered(one)]
    checked = [one for one in good if "miss" in one]
    yield f"\ncomposers: {dict(Counter(one['composer'] or 'not told' for one in good))}"
    for name, times in Counter(one["warning"] for one in answers if "warning" in one).most_common():
        yield f"warning, {times} times: {name}"
    for name, times in Counter(map(kind, failed)).most_common():
        yield f"\n{name}: {times}, among them"
        named = [one for one in failed if kind(one) == name]
        yield from (f"  {one['id']}  {bounds(one)}" for one in named[: 2 * _WORST])
    yield f"\nbrackets with a known value: {len(checked)}"
    yield from worst("known value outside, by (relative)", checked, lambda one: one["miss"])
    yield from worst("widest, relative", epsilons, relative)
    yield from worst("slowest, seconds", answers, lambda one: one["seconds"])
    yield from worst("most memory, MB", answers, lambda one: one.get("growth", 0.0))


def families(answers: list[Answer]) -> Iterator[str]:
    """A line for each family of the grid, off and on the lattice."""
    yield f"\n{'family':28}{'asked':>6}{'answered':>9}{'kept':>6}  relative width; seconds"
    groups: dict[str, list[Answer]] = {}
    for one in answers:
        law = one["id"].split("/")[1].split("(")[0] + ("/lattice" * ("/lattice/" in one["id"]))
        groups.setdefault(law, []).append(one)
    for law, chosen in sorted(groups.items()):
        good = [one for one in chosen if answered(one)]
        kept = sum(relative(one) <= PROMISE for one in good)
        times = quantiles(one["seconds"] for one in chosen)
        widths = quantiles(map(relative, good))
        yield f"{law:28}{len(chosen):6}{len(good):9}{kept:6}  {widths}; {times}"


def counted(title: str, answers: list[Answer]) -> Iterator[str]:
    """The numbers of some questions."""
    good = [one for one in answers if answered(one)]
    epsilons = [one for one in good if one.get("asked") != "delta"]
    asked = sum(one.get("asked") != "delta" for one in answers)
    kept = [sum(relative(one) <= times * PROMISE for one in epsilons) for times in (1.0, 10.0)]
    floor = sum(width(one) <= PROMISE * max(1.0, one["upper"]) for one in epsilons)
    outside = [one for one in good if one.get("miss")]
    kinds = Counter(kind(one) for one in answers if not answered(one))
    yield f"\n== {title}: {share(len(good), len(answers))} answered; {dict(kinds)}"
    yield f"  width <= {PROMISE:g} epsilon         {share(kept[0], asked)}"
    yield f"  width <= {10 * PROMISE:g} epsilon          {share(kept[1], asked)}"
    yield f"  width <= {PROMISE:g} max(1, epsilon) {share(floor, asked)}"
    yield f"  relative width: {quantiles(map(relative, epsilons))}"
    yield f"  seconds: {quantiles(one['seconds'] for one in answers)}"
    yield f"  MB of a question: {quantiles(one['growth'] for one in answers if 'growth' in one)}"
    known = sum("miss" in one for one in good)
    gross = sum(one["miss"] > 1e-12 for one in outside)
    above = sum(one["upper"] < one["truth"][0] for one in outside)
    yield f"  known value outside: {share(len(outside), known)}, {above} above; {gross} by > 1e-12"


# -- two files -------------------------------------------------------------------------------------


def comparison(first: list[Answer], second: list[Answer]) -> Iterator[str]:
    """Contradictions, refusals of one alone, and ratios second / first."""
    others = {one["digest"]: one for one in second}
    pairs = [(one, others[one["digest"]]) for one in first if one["digest"] in others]
    yield f"{len(pairs)} questions in both, {len(first)} in the first, {len(second)} in the second"
    both = [(a, b) for a, b in pairs if answered(a) and answered(b)]
    apart = [(a, b) for a, b in both if a["upper"] < b["lower"] or b["upper"] < a["lower"]]
    yield f"\nCONTRADICTIONS (disjoint brackets): {len(apart)}"
    yield from side_by_side(apart)
    for title, chosen in (
        ("answered by the first alone", [(a, b) for a, b in pairs if answered(a) > answered(b)]),
        ("answered by the second alone", [(a, b) for a, b in pairs if answered(a) < answered(b)]),
    ):
        yield f"\n{title}: {len(chosen)}"
        yield from side_by_side(chosen)
    for title, measured in (("relative width", relative), ("seconds", lambda one: one["seconds"])):
        usable = [(a, b) for a, b in both if measured(a) > 0.0 and measured(b) > 0.0]
        usable = [(a, b) for a, b in usable if measured(a) < math.inf and measured(b) < math.inf]
        ratios = [measured(b) / measured(a) for a, b in usable]
        yield f"\n{title}, second / first over {len(ratios)}: {quantiles(ratios)}"
        ranked = sorted(usable, key=lambda pair: -measured(pair[1]) / measured(pair[0]))[:_WORST]
        for a, b in ranked:
            yield f"  {measured(a):9.3g} -> {measured(b):9.3g}  {a['id']}  {b['composer']}"
        grown = [pair for pair in both if (measured(pair[0]) == 0.0) < (measured(pair[1]) == 0.0)]
        lost = [pair for pair in both if (measured(pair[0]) == 0.0) > (measured(pair[1]) == 0.0)]
        if grown or lost:
            yield f"  became 0: {len(grown)}; were 0: {len(lost)}"
            yield from side_by_side(lost[:_WORST])


def side_by_side(pairs: list[tuple[Answer, Answer]]) -> Iterator[str]:
    """Both answers to each question."""
    yield from (f"  {a['id']}\n    {bounds(a)}\n    {bounds(b)}" for a, b in pairs)


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=1200, help="questions of the grid")
    parser.add_argument("--full", action="store_true", help="the whole grid")
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for a question")
    parser.add_argument("--gigabytes", type=float, default=8.0, help="address space of the worker")
    parser.add_argument("--only", default="", metavar="SUBSTRING")
    parser.add_argument("--out", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="print the questions and stop")
    parser.add_argument("--summary", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FILE")
    options = parser.parse_args()
    if options.compare:
        print("\n".join(comparison(*(read(path)[1] for path in options.compare))))
        return 0
    if options.summary:
        print("\n".join(summary(read(options.summary)[1])))
        return 0
    grid = None if options.full else options.sample
    chosen = all_questions(grid, options.plans, options.seed)
    chosen = [question for question in chosen if options.only in question.name]
    if options.list:
        print("\n".join(question.name for question in chosen))
        return 0
    worker = Worker(options.limit, options.gigabytes)
    answers = run(chosen, options.out, worker, described(options))
    print("\n".join(summary(answers)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
