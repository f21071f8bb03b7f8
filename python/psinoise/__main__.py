"""The command line: ``python -m psinoise``.

Exit status: 0 success, 2 bad input or something optional that is missing (one line on standard
error), 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from psinoise import __version__
from psinoise.commands._output import drop_output
from psinoise.errors import BudgetError, CalibrationError, CertificationError

__all__ = ["main"]

# Summary and module of each command; a module has add_arguments(parser) and run(arguments). Only
# the module of the command that is asked for is imported.
_COMMANDS = {
    "compare": (
        "all noise laws side by side at one expected cost or one privacy target",
        "psinoise.commands.compare",
    ),
    "calibrate": ("the least noise that meets a privacy target", "psinoise.commands.calibrate"),
    "calibrate-stable": (
        "the stable noise of one of many clients, of which the sum costs least",
        "psinoise.commands.calibrate_stable",
    ),
    "epsilon": ("epsilon of a mechanism at a given delta", "psinoise.commands.epsilon"),
    "delta": ("delta of a mechanism at a given epsilon", "psinoise.commands.delta"),
    "release": (
        "columns of a table with noise, drawn exactly as it is accounted",
        "psinoise.commands.release",
    ),
    "ledger": (
        "make a file that keeps a privacy budget, or show what was charged to it",
        "psinoise.commands.ledger",
    ),
    "figures": ("draw figures of the papers, with their data", "psinoise.commands.figures"),
    "info": ("what this installation is made of", "psinoise.commands.info"),
    "bench": ("measure the speed of this installation", "psinoise.bench"),
}
_USER_ERRORS = (
    BudgetError,
    CalibrationError,
    CertificationError,
    MemoryError,
    OSError,
    OverflowError,
    TypeError,
    ValueError,
)


class _UsageError(Exception):
    """Arguments that the parser cannot read."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # The inherited method prints the usage too: more than the one line that is promised.
        raise _UsageError(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; None takes those of the process.

    Returns
    -------
    int
        0, 2, 130 or 141; see the module's description.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # it was closed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names that the terminal cannot show are no reason to fail after the work is done.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        arguments = _parser(words).parse_args(words)
        if arguments.command is None:
            raise _UsageError(f"a command must be given: {', '.join(_COMMANDS)}; see --help")
        status = int(arguments.run(arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        drop_output()
        return 141
    except ModuleNotFoundError as error:
        return _fail(_missing(error))
    except (_UsageError, *_USER_ERRORS) as error:
        return _fail(str(error) or type(error).__name__)
    return status


def _parser(words: Sequence[str]) -> _Parser:
    parser = _Parser(
        prog="psinoise",
        description="Optimal differential-privacy noise: sampled, evaluated and accounted.",
        epilog='"psinoise COMMAND --help" describes the options of a command.',
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"psinoise {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, (summary, module) in _COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"{summary.capitalize()}.", allow_abbrev=False
        )
        if name == asked:
            implementation = import_module(module)
            implementation.add_arguments(command)
            command.set_defaults(run=implementation.run)
    return parser


def _missing(error: ModuleNotFoundError) -> str:
    if error.name == "matplotlib":
        return str(error)
    # Anything else is a broken installation, which a traceback helps to repair.
    raise error


def _fail(message: str) -> int:
    print(f"psinoise: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
