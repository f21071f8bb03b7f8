"""``psinoise calibrate``: the least noise that meets a privacy target."""

from __future__ import annotations

import argparse

from psinoise.calibration import calibration
from psinoise.commands._json import HELP, print_json
from psinoise.commands._mechanism import (
    COMPOSITION,
    add_composition,
    add_noise,
    add_number,
    bounds_of,
    composition_of,
    family,
    size_of,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_noise(parser)
    add_number(parser, "--epsilon", "the target: 0 or more", required=True)
    pure = "the target: in [0, 1); 0 is met only by laws with a largest privacy loss"
    add_number(parser, "--delta", pure, required=True)
    add_composition(parser)
    parser.add_argument(
        "--method",
        default="certified",
        help="certified (default): a proven upper bound on delta meets the target; estimate: the "
        "estimate does, without a proof",
    )
    parser.add_argument("--json", action="store_true", help=HELP)


def run(arguments: argparse.Namespace) -> int:
    """Print the law."""
    question = {name: getattr(arguments, name) for name in ("epsilon", "delta", *COMPOSITION)}
    found = calibration(family(arguments), **question, method=arguments.method)
    size = size_of(found.noise)
    if arguments.json:
        print_json(
            {
                **size,
                **question,
                "delta_bounds": bounds_of(found.delta),
                "excess": found.excess,
                "method": found.method,
            }
        )
        return 0
    print(repr(found.noise))
    print(f"scale {size['scale']:.10g}, std {size['std']:.10g}, E|Z| {size['mean_abs']:.10g}")
    print(
        f"epsilon {arguments.epsilon:g}, delta {arguments.delta:g}, "
        f"{composition_of(arguments)}, method {found.method}"
    )
    return 0
