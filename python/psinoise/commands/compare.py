"""``psinoise compare``: all noise laws side by side, at one expected cost or one target."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from psinoise import costs
from psinoise.commands._json import HELP, print_json
from psinoise.commands._mechanism import add_number
from psinoise.comparison import compare
from psinoise.errors import DomainError

_COSTS = {"mean-abs": "mean_abs", "variance": "variance"}
_TARGET = ("epsilon", "count")
_EQUAL_COST = ("mean_abs", "mean_cost", "counts", "no_speed")


def _cost(text: str) -> str | costs.Cost:
    if text in _COSTS:
        return _COSTS[text]
    try:
        return costs.parse(text)
    except DomainError as error:
        raise argparse.ArgumentTypeError(
            f"must be {', '.join(_COSTS)} or a cost: {error}"
        ) from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_number(parser, "--sensitivity", "of the query (default 1)", default=1.0)
    add_number(parser, "--delta", "in [0, 1] (default 1e-6; to be given with --epsilon)")
    add_number(
        parser,
        "--sampling-rate",
        "rate of Poisson sampling, in [0, 1] (default 1, no sampling)",
        default=1.0,
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the epsilons, or the costs, too; .png, .svg, .pdf, ...",
    )
    parser.add_argument("--json", action="store_true", help=HELP)
    equal = parser.add_argument_group(
        "equal cost", "without --epsilon: epsilon of laws of the same expected cost"
    )
    add_number(equal, "--mean-abs", "expected cost E|Z| of every law (default 1)")
    equal.add_argument(
        "--counts",
        type=int,
        nargs="+",
        metavar="N",
        help="numbers of compositions (default 1 10 100 1000)",
    )
    equal.add_argument(
        "--no-speed", action="store_true", default=None, help="do not measure sampling speed"
    )
    target = parser.add_argument_group(
        "target", "with --epsilon: what the least noise costs that meets (epsilon, delta)"
    )
    add_number(target, "--epsilon", "0 or more")
    add_number(target, "--count", "number of compositions (default 1)", kind=int)
    parser.add_argument(
        "--cost",
        type=_cost,
        help="mean-abs (default), variance or a cost such as huber:2: with --epsilon to sort by; "
        "without, what all laws share",
    )
    add_number(equal, "--mean-cost", "expected --cost of every law (default 1)")


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    words = _words(arguments)
    figure = None
    if arguments.plot is not None:
        # First, so that a missing matplotlib is known before the work is done.
        from psinoise import plotting  # optional dependency

        figure = plotting.new_figure()
    comparison = compare(
        sensitivity=arguments.sensitivity, sampling_rate=arguments.sampling_rate, **words
    )
    if figure is not None:
        comparison.plot(figure.subplots())
        figure.savefig(arguments.plot, dpi=200)
    if arguments.json:
        print_json(comparison.to_dict())
    else:
        print(comparison)
    return 0


def _words(arguments: argparse.Namespace) -> dict[str, Any]:
    """The keywords of the one mode that was asked for."""
    names = (*_TARGET, *_EQUAL_COST, "cost", "delta")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    target = [_option(name) for name in _TARGET if name in given]
    equal = [_option(name) for name in _EQUAL_COST if name in given]
    if target and equal:
        raise TypeError(f"{target[0]} and {equal[0]} do not go together: see compare --help")
    if target and "epsilon" not in given:
        raise TypeError(f"{target[0]} needs --epsilon")
    if "epsilon" in given and "delta" not in given:
        raise TypeError("--epsilon needs --delta")
    if given.pop("no_speed", False):
        given["speed"] = False
    return given


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
