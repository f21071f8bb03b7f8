"""``psinoise release``: columns of a table with noise, drawn exactly as it is accounted.

The columns that are named are released; the others are copied as they are. Their guarantee is that
of ``--count`` times the number of columns uses of one mechanism: it holds if one record can move at
most ``--count`` values of each column, and each by at most ``--sensitivity``. Left out, it is all
values, as in a ledger; how many there are is public.

The table takes its name in one step, when it is complete and on the disk, after its record: a crash
leaves either the whole or nothing under that name. The record holds what is needed to compute
epsilon again, and the SHA-256 of the table.

With ``--ledger`` the release is charged to a file before anything is drawn, and refused if the
budget there does not cover it. The charge stays, whatever happens after that.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from pathlib import Path
from typing import Any

from psinoise._atomic import check_target, temporary_beside, write_text
from psinoise.accounting import Accountant
from psinoise.accounting.accountant import is_within
from psinoise.calibration import calibrate
from psinoise.commands._columns import FORMATS, map_columns, rows_of
from psinoise.commands._mechanism import (
    add_noise,
    add_number,
    add_size,
    family,
    made,
    names_target,
    rounded,
    size,
)
from psinoise.commands._output import report
from psinoise.errors import CertificationError, DomainError
from psinoise.ledger import Ledger, head_of
from psinoise.mechanisms import LatticeMechanism, Mechanism


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "table", type=Path, help=f"what to release from: {' or '.join(FORMATS)}; a header is needed"
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME",
        help="column to release; may be given more than once. Others are copied as they are",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the released table"
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="what was done, as JSON (default: the name of the released table and .json)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite these two files")
    add_noise(parser)
    add_size(parser)
    add_number(
        parser,
        "--epsilon",
        "of everything released; the least noise that meets it is taken. With a size: the most "
        "that it may have",
    )
    add_number(parser, "--delta", "of everything released; in [0, 1)", required=True)
    add_number(parser, "--sensitivity", "how far one record can move a value", required=True)
    add_number(
        parser,
        "--count",
        "how many values of a column one record can move (default all of them, as in a ledger; 1 "
        "in a histogram to which records are added, 2 where they are replaced)",
        kind=int,
    )
    parser.add_argument(
        "--adjacency",
        help='neighboring relation (default that of the ledger, or add-remove; or "replace")',
    )
    parser.add_argument(
        "--bounds",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="clip the values, chosen without looking at them; NaN and empty fields become LOW",
    )
    parser.add_argument(
        "--delimiter",
        type=_delimiter,
        default=",",
        metavar="CHAR",
        help='between the fields of a CSV line, such as ";"; "tab" is a tabulator (default ",")',
    )
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="WORD",
        help="what stands for an empty field, such as NA; may be given more than once",
    )
    parser.add_argument(
        "--ledger",
        type=Path,
        metavar="FILE",
        help='charge the budget in this file first, which "psinoise ledger create" makes; the '
        "release is refused if it does not fit",
    )
    parser.add_argument(
        "--label",
        default="",
        metavar="TEXT",
        help="what the ledger calls it (default: the table and its columns)",
    )
    add_number(
        parser,
        "--grid",
        "what is released are multiples of it (default: a fraction of the sensitivity that is "
        "fine for the noise)",
    )


def _delimiter(text: str) -> str:
    character = "\t" if text in {"tab", "\\t"} else text
    if len(character) != 1 or character in '"\r\n':
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return character


def run(arguments: argparse.Namespace) -> int:
    """Write the released table and its record."""
    target, record = _targets(arguments)
    if arguments.count is not None and arguments.count < 1:
        raise DomainError(f"--count must be at least 1, got {arguments.count}")
    if len(set(arguments.column)) != len(arguments.column):
        raise DomainError("--column must name each column once")
    ledger = _ledger(arguments)
    values = None if arguments.count is not None else rows_of(arguments.table, arguments.delimiter)
    count = arguments.count if values is None else max(values, 1)
    uses = count * max(len(arguments.column), 1)
    mechanism, epsilon = _mechanism(arguments, uses)
    label = arguments.label or f"{target.name}: {', '.join(arguments.column)}".rstrip(": ")
    bounds = None if arguments.bounds is None else (arguments.bounds[0], arguments.bounds[1])
    released = 0

    def charge() -> None:
        # Whether values can be read is an answer.
        if ledger is not None:
            ledger.charge(mechanism, uses, label=label)

    def release(x: Any) -> Any:
        nonlocal released
        released += len(x)
        return mechanism.release(x, bounds=bounds)

    with temporary_beside(target) as temporary:
        copied = map_columns(
            arguments.table,
            temporary,
            arguments.column,
            release,
            grid=mechanism.grid,
            bounds=bounds,
            delimiter=arguments.delimiter,
            missing=arguments.missing,
            ready=charge,
        )
        if values is not None and released > uses:
            raise DomainError(f"{arguments.table} must not change while it is released")
        written = {
            "epsilon": epsilon,
            "delta": arguments.delta,
            "count": uses,
            "adjacency": arguments.adjacency,
            "bounds": bounds,
            "released": arguments.column,
            "copied": copied,
            "table_sha256": _digest(temporary),
            "mechanism": json.loads(mechanism.to_json()),
        }
        # Before the table: there is none without a record of it.
        write_text(record, json.dumps(written, indent=1, allow_nan=False) + "\n")
    bound = rounded(epsilon, 1)
    said = [
        f"{target}: epsilon <= {bound} at delta {arguments.delta:g}, {arguments.adjacency}",
        f"{mechanism.law} on multiples of {mechanism.grid!r}, count {uses}; see {record}",
    ]
    if ledger is not None:
        said.append(f"charged to {arguments.ledger}")
    if copied:
        said.append(f"copied as they are, without protection: {', '.join(copied)}")
    report(said)
    return 0


def _targets(arguments: argparse.Namespace) -> tuple[Path, Path]:
    source, target = arguments.table, arguments.out
    record = arguments.record or target.with_name(target.name + ".json")
    for path in (source, target):
        if path.suffix.lower() not in FORMATS:
            raise DomainError(f"{path} must end with {' or '.join(FORMATS)}")
    if source.suffix.lower() != target.suffix.lower():
        raise DomainError(f"{target} must end with {source.suffix}, as {source} does")
    if not source.is_file():
        raise FileNotFoundError(f"{source} does not exist")
    names = {path.resolve() for path in (source, target, record)}
    if len(names) != 3:
        raise DomainError("the table, --out and --record must be three different files")
    if arguments.ledger is not None:
        ledger = arguments.ledger.resolve()
        if {ledger, head_of(ledger)} & names:
            raise DomainError("--ledger must be another file than the table, --out and --record")
    for path in (target, record):
        check_target(path, force=arguments.force)
    return target, record


def _ledger(arguments: argparse.Namespace) -> Ledger | None:
    """The ledger that was named; settles the neighboring relation."""
    ledger = None if arguments.ledger is None else Ledger.open(arguments.ledger)
    own = "add-remove" if ledger is None else ledger.adjacency
    arguments.adjacency = arguments.adjacency or own
    if ledger is not None and arguments.adjacency != own:
        raise DomainError(
            f"--adjacency must be {own}, as in {arguments.ledger}, got {arguments.adjacency!r}"
        )
    if ledger is None and arguments.label:
        raise TypeError("--label is for --ledger")
    return ledger


def _mechanism(arguments: argparse.Namespace, uses: int) -> tuple[LatticeMechanism, float]:
    """What to release with, and a certified bound on its epsilon."""
    epsilon = arguments.epsilon
    if epsilon is None or size(arguments) or names_target(arguments):
        # A law says itself what it misses, and the accountant refuses what it cannot account.
        noise: Any = made(arguments)
        mechanism = Mechanism(noise, arguments.sensitivity).on_lattice(arguments.grid)
    else:
        mechanism = calibrate(
            family(arguments),
            epsilon=epsilon,
            delta=arguments.delta,
            sensitivity=arguments.sensitivity,
            count=uses,
            adjacency=arguments.adjacency,
            on_lattice=True,
            grid=arguments.grid,
        )
    accountant = Accountant(arguments.adjacency).compose(mechanism, uses)
    if epsilon is not None and not is_within(accountant, epsilon, arguments.delta):
        raise DomainError(
            f"the size of the noise must be larger for epsilon {epsilon!r} at delta "
            f"{arguments.delta!r}, got {mechanism.law}"
        )
    try:
        found = accountant.epsilon(arguments.delta).upper
    except CertificationError:
        if epsilon is None:
            raise
        found = epsilon  # proven by delta
    if not math.isfinite(found):
        raise DomainError(
            f"the size of the noise must be larger at delta {arguments.delta!r}: no finite epsilon "
            f"was found for {mechanism.law}"
        )
    return mechanism, found if epsilon is None else min(found, epsilon)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
