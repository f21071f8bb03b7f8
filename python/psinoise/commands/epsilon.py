"""``psinoise epsilon``: epsilon of a mechanism at a given delta."""

from __future__ import annotations

import argparse

from psinoise.commands._mechanism import add_mechanism, add_number, report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_mechanism(parser)
    add_number(parser, "--delta", "in [0, 1]", required=True)


def run(arguments: argparse.Namespace) -> int:
    """Print epsilon."""
    return report(arguments, wanted="epsilon", given="delta")
