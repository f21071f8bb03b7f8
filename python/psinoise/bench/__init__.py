"""How fast are noise and densities on this machine: ``python -m psinoise bench``.

One matrix of cases (:mod:`~psinoise.bench.cases`), reference rows for each of them
(:mod:`~psinoise.bench.references`), an assertion on each answer (:mod:`~psinoise.bench.checks`) and
interleaved timing that abstains when it shows nothing (:mod:`~psinoise.bench.timing`). The suite in
``benchmarks/`` runs the same matrix, and programs there time accounting.
"""

from __future__ import annotations

import argparse

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``bench`` on a parser."""
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer cases and fewer rounds: some 20 seconds, with wider bands",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write all rows and the fingerprint of the machine to FILE"
    )
    parser.add_argument(
        "--select",
        metavar="SUBSTRING",
        default="",
        help="only the cases whose name contains SUBSTRING, as in sample-Airy",
    )


def run(arguments: argparse.Namespace) -> int:
    """Time the selected cases and report them; the exit status, 1 if an answer was wrong."""
    # The other commands need the options only, and the cases pull in scipy.stats.
    from psinoise.bench.report import report

    return report(quick=arguments.quick, json_target=arguments.json, select=arguments.select)
