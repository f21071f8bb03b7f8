"""Processes that release from one ledger and are killed at random, and what must be true after it.

``python tests/release/ledger_crashes.py DIRECTORY --processes 8 --charges 1000 --kills 50`` makes a
ledger whose budget is worth so many charges. Each process releases from it again and again, and
notes each release in a file of its own when it has the values; a process that is killed is replaced
by a new one. In the end

* every release that somebody noted is a charge in the file, and no charge is there twice;
* the charges are within the budget, and one more would not be;
* the file can be opened, and no process failed otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import psinoise as pn

EPSILON, DELTA = 1.0, 1e-6
# The parameter of Gaussian differential privacy of that budget.
MU = 0.2367043804


def work(path: Path, log: Path, mechanism: pn.LatticeMechanism) -> None:
    """Release until the budget is spent."""
    ledger = pn.Ledger.open(path)
    noted = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    number = 0
    while True:
        label = f"{os.getpid()}-{number}"
        try:
            ledger.release(mechanism, 0.0, label=label)
        except pn.BudgetError:
            return
        os.write(noted, f"{label}\n".encode())
        number += 1


def start(path: Path, log: Path, mechanism: pn.LatticeMechanism) -> int:
    """A new process; 0 is its status if all went well."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(path, log, mechanism)
            status = 0
        finally:
            os._exit(status)
    return child


def run(directory: Path, processes: int, charges: int, kills: int, seed: int) -> dict[str, object]:
    """Start, kill, wait, and look."""
    generator = random.Random(seed)
    path = directory / "crashes.ledger"
    # A little more than needed: more than brackets are wide, and less than one charge.
    mechanism = pn.Mechanism(pn.Gaussian(std=charges**0.5 / MU * (1.0 + 2e-4))).on_lattice()
    pn.Ledger.create(path, EPSILON, DELTA)
    began = time.perf_counter()
    running, failed, killed, made = set(), 0, 0, 0
    for _ in range(processes):
        running.add(start(path, directory / f"{made}.log", mechanism))
        made += 1
    while running:
        # Kills are spread over the lines that are written, whatever the speed of the disk.
        lines = path.read_bytes().count(b"\n") - 1
        if killed < kills and lines >= 0.8 * charges * (killed + 1) / kills:
            time.sleep(generator.expovariate(500.0))
            victim = generator.choice(sorted(running))
            os.kill(victim, signal.SIGKILL)
            done, status = os.waitpid(victim, 0)
        else:
            done, status = os.waitpid(-1, os.WNOHANG)
        if done == 0:
            time.sleep(0.0005)
            continue
        running.discard(done)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            killed += 1
            running.add(start(path, directory / f"{made}.log", mechanism))
            made += 1
        elif status != 0:
            failed += 1
    seconds = time.perf_counter() - began
    ledger = pn.Ledger.open(path)
    labels = [charge.label for charge in ledger.charges]
    noted = [
        label for log in sorted(directory.glob("*.log")) for label in log.read_text().splitlines()
    ]
    plan = pn.Accountant().compose(mechanism, len(labels))
    return {
        "seconds": round(seconds, 2),
        "kills": killed,
        "failed": failed,
        "charges": len(labels),
        "released": len(noted),
        "twice": len(labels) - len(set(labels)) + len(noted) - len(set(noted)),
        "unknown": len(set(noted) - set(labels)),
        "upper": plan.epsilon(DELTA).upper,
        "lower_of_one_more": plan.compose(mechanism).epsilon(DELTA).lower,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    for option, default in (("processes", 8), ("charges", 1000), ("kills", 50), ("seed", 1)):
        parser.add_argument(f"--{option}", type=int, default=default)
    json.dump(run(**vars(parser.parse_args())), sys.stdout)
    print()
