"""Where the bits of a release come from: the operating system, and nothing else."""

from __future__ import annotations

import os

__all__ = ["fresh_key"]


def fresh_key() -> bytes:
    """32 bytes for one release; never stored and never used again.

    ``getrandom`` waits until the kernel's generator has been seeded. There is no fallback: what
    fails raises, and no environment variable has a say.

    Raises
    ------
    OSError, NotImplementedError
        If the operating system has no entropy to give.
    """
    key = os.getrandom(32) if hasattr(os, "getrandom") else os.urandom(32)
    if len(key) != 32:
        raise OSError("the operating system gave less entropy than was asked for")
    return key
