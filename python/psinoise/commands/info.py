"""``psinoise info``: what this installation is made of."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata
from typing import Any

import psinoise
from psinoise.commands._json import HELP, print_json
from psinoise.commands._mechanism import law_names

_PACKAGES = ("numpy", "scipy", "matplotlib", "tqdm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help=HELP)


def run(arguments: argparse.Namespace) -> int:
    """Print versions, the build and the machine."""
    found: dict[str, Any] = {
        **psinoise.build_config(),
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        "machine": platform.machine(),
        "system": platform.platform(),
        "laws": tuple(law_names()),
    }
    if arguments.json:
        print_json(found)
        return 0
    width = max(map(len, found))
    for name, value in found.items():
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        print(f"{name:{width}}  {'not installed' if shown is None else shown}")
    return 0


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
