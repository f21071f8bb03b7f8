"""``psinoise delta``: delta of a mechanism at a given epsilon."""

from __future__ import annotations

import argparse

from psinoise.commands._mechanism import add_mechanism, add_number, report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_mechanism(parser)
    add_number(parser, "--epsilon", "any real number or inf", required=True)


def run(arguments: argparse.Namespace) -> int:
    """Print delta."""
    return report(arguments, wanted="delta", given="epsilon")
