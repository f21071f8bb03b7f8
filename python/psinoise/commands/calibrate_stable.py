"""``psinoise calibrate-stable``: the stable noise of one of many clients that costs least."""

from __future__ import annotations

import argparse

from psinoise.calibration.stable import calibrate_stable
from psinoise.commands._json import HELP, print_json
from psinoise.commands._mechanism import add_number, add_query, size_of
from psinoise.mechanisms import Mechanism
from psinoise.release import cells_of

_QUESTION = (
    *("epsilon", "delta", "sensitivity", "count"),
    *("clients", "setting", "dropout", "grid"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_number(parser, "--epsilon", "the target: positive", required=True)
    add_number(parser, "--delta", "the target: in [0, 1) (default 0)", default=0.0)
    add_query(parser)
    add_number(parser, "--clients", "how many add noise (default 1)", kind=int, default=1)
    parser.add_argument(
        "--setting",
        default="local",
        help="what meets the target: local (default), each message; distributed, the sum",
    )
    missing = "share of the clients that a distributed sum may miss (default 0)"
    add_number(parser, "--dropout", missing, default=0.0)
    add_number(parser, "--alpha", "the index, where it is not to be searched for")
    add_number(
        parser,
        "--grid",
        "clients send whole multiples of it: noise in whole numbers, as it is released",
    )
    parser.add_argument("--json", action="store_true", help=HELP)


def run(arguments: argparse.Namespace) -> int:
    """Print the law of one client's noise, and what is known of the sum."""
    question = {name: getattr(arguments, name) for name in _QUESTION}
    noise = calibrate_stable(**question, alpha=arguments.alpha)
    total = noise.aggregate(arguments.clients)
    unit, moved = 1.0, arguments.sensitivity
    if arguments.grid is not None:
        unit, moved = arguments.grid, cells_of(arguments.sensitivity, arguments.grid)
    pure = {
        "message_pure_epsilon": Mechanism(noise, moved).pure_epsilon(),
        "sum_pure_epsilon": Mechanism(total, moved).pure_epsilon(),
    }
    if arguments.json:
        print_json({**size_of(noise), "sum": size_of(total), **pure, **question})
        return 0
    print(repr(noise))
    print(
        f"sum of {arguments.clients}: scale {total.scale * unit:.10g}, "
        f"E|error| {total.mean_abs * unit:.10g}"
    )
    print(
        f"pure epsilon of one use: message {pure['message_pure_epsilon']:.10g}, "
        f"sum {pure['sum_pure_epsilon']:.10g}"
    )
    print(
        f"epsilon {arguments.epsilon:g}, delta {arguments.delta:g}, "
        f"sensitivity {arguments.sensitivity:g}, count {arguments.count}, "
        f"setting {arguments.setting}, dropout {arguments.dropout:g}"
        + ("" if arguments.grid is None else f", in units of the grid {arguments.grid:g}")
    )
    return 0
