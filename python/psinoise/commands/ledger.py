"""``psinoise ledger``: files that keep a privacy budget.

``create`` makes one and ``show`` says what was charged to it; ``psinoise release --ledger FILE``
charges it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from psinoise.commands._json import HELP, print_json
from psinoise.commands._mechanism import add_number, rounded
from psinoise.errors import CertificationError
from psinoise.ledger import Ledger


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser(
        "create",
        help="make a ledger in a new file",
        description="Make a ledger in a new file, and FILE.head beside it.",
        allow_abbrev=False,
    )
    add_number(create, "--epsilon", "of everything", required=True)
    add_number(create, "--delta", "of everything; in [0, 1)", required=True)
    create.add_argument(
        "--adjacency",
        default="add-remove",
        help='neighboring relation (default add-remove; or "replace")',
    )
    create.add_argument(
        "--adaptive",
        action="store_true",
        help="mechanisms may be chosen by what was released before, at some price",
    )
    show = actions.add_parser(
        "show",
        help="the budget and everything charged to it",
        description="The budget in a file and everything charged to it.",
        allow_abbrev=False,
    )
    for action in (create, show):
        action.add_argument("file", type=Path, metavar="FILE")
        action.add_argument("--json", action="store_true", help=HELP)


def run(arguments: argparse.Namespace) -> int:
    """Make or open a ledger, and print it."""
    if arguments.action == "create":
        ledger = Ledger.create(
            arguments.file,
            arguments.epsilon,
            arguments.delta,
            arguments.adjacency,
            adaptive=arguments.adaptive,
        )
    else:
        ledger = Ledger.open(arguments.file)
    found = _described(ledger)
    if arguments.json:
        print_json(found)
        return 0
    kind = ", adaptive" if ledger.adaptive else ""
    print(
        f"{arguments.file}: epsilon {ledger.epsilon:g} at delta {ledger.delta:g}, "
        f"{ledger.adjacency}{kind}"
    )
    for number, charge in enumerate(found["charges"], 1):
        rate = f", sampling rate {charge['sampling_rate']:g}" * (charge["sampling_rate"] != 1.0)
        label = _printable(charge["label"])
        print(f"{number:>5}  {charge['time']}  count {charge['count']}{rate}  {label}")
        print(f"       {charge['mechanism']}, sensitivity {charge['sensitivity']:g}")
    if found["spent"] is None:
        print("spent: within the budget (no epsilon could be certified at this delta)")
    else:
        print(f"spent: epsilon <= {rounded(found['spent'], 1)}")
    return 0


def _printable(label: str) -> str:
    """A label on one line: what cannot be printed by its code."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in label)


def _described(ledger: Ledger) -> dict[str, Any]:
    spent: float | None
    try:
        spent, remaining = ledger.spent, ledger.remaining
    except CertificationError:
        spent, remaining = None, 0.0
    return {
        "file": str(ledger.path),
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "adjacency": ledger.adjacency,
        "adaptive": ledger.adaptive,
        "spent": spent,
        "remaining": remaining,
        "charges": [
            {
                "mechanism": getattr(charge.mechanism, "law", "") or repr(charge.mechanism),
                "sensitivity": charge.mechanism.sensitivity,
                "count": charge.count,
                "sampling_rate": charge.sampling_rate,
                "label": charge.label,
                "time": charge.time,
            }
            for charge in ledger.charges
        ],
    }
