"""Standard output that cannot be written to."""

from __future__ import annotations

import os
import sys

__all__ = ["drop_output", "report"]


def drop_output() -> None:
    """Let what is still to be written go nowhere: Python flushes once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(lines: list[str]) -> None:
    """Say what has been done, which stays done where nobody can read it."""
    try:
        print("\n".join(lines), flush=True)
    except OSError as error:
        drop_output()
        print(f"psinoise: all is done, but cannot be said: {error}", file=sys.stderr)
