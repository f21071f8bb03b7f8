"""``psinoise calibrate``: the least noise that meets a privacy target."""

from __future__ import annotations

import argparse
from typing import Any

from psinoise.calibration import calibrate, calibration
from psinoise.calibration.target import NOTHING
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
    parser.add_argument(
        "--on-lattice",
        action="store_true",
        help="the integers meet the target that are drawn when values are released",
    )
    grid = "with --on-lattice: what is released are multiples of it (default: as fine as it takes)"
    add_number(parser, "--grid", grid)
    parser.add_argument("--json", action="store_true", help=HELP)


def run(arguments: argparse.Namespace) -> int:
    """Print the law."""
    question = {name: getattr(arguments, name) for name in ("epsilon", "delta", *COMPOSITION)}
    if arguments.on_lattice:
        size, evidence = _on_lattice(arguments, question)
    else:
        size, evidence = _ideal(arguments, question)
    if arguments.json:
        print_json({**size, **question, **evidence})
        return 0
    print(size["noise"])
    grid = f", on multiples of {evidence['grid']!r}" if arguments.on_lattice else ""
    print(f"scale {size['scale']:.10g}, std {size['std']:.10g}, E|Z| {size['mean_abs']:.10g}{grid}")
    print(
        f"epsilon {arguments.epsilon:g}, delta {arguments.delta:g}, "
        f"{composition_of(arguments)}, method {evidence['method']}"
    )
    return 0


def _ideal(
    arguments: argparse.Namespace, question: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The law and its size, and what shows that it meets the target."""
    if arguments.grid is not None:
        raise TypeError("--grid is for --on-lattice")
    found = calibration(family(arguments), **question, method=arguments.method)
    return size_of(found.noise), {
        "delta_bounds": bounds_of(found.delta),
        "excess": found.excess,
        "method": found.method,
    }


def _on_lattice(
    arguments: argparse.Namespace, question: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The law that is put on a lattice, the size of the integer noise in units of the query, and
    what shows that it meets the target."""
    words = {**question, "method": arguments.method, "on_lattice": True, "grid": arguments.grid}
    mechanism: Any = calibrate(family(arguments), **words)
    delta = NOTHING  # where only the largest loss is a proof
    if arguments.delta > 0.0:
        use = arguments.count, arguments.sampling_rate, arguments.adjacency
        delta = mechanism.delta(arguments.epsilon, *use)
    return {**size_of(mechanism.noise), "noise": mechanism.law}, {
        "grid": mechanism.grid,
        "cells": mechanism.cells,
        "delta_bounds": bounds_of(delta),
        "method": arguments.method,
    }
