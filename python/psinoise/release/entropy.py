"""Where the bits of a release come from: the operating system, and nothing else."""

from __future__ import annotations

from psinoise._backend import core

__all__ = ["fresh_key"]


def fresh_key() -> core.SecretKey:
    """32 bytes for one release; never stored, never used again, and overwritten when they go.

    ``getentropy`` waits until the kernel's generator has been seeded; on Windows it is
    ``BCryptGenRandom``. There is no fallback: what fails raises, and no environment variable has a
    say. The bytes never become a Python object.

    Raises
    ------
    OSError
        If the operating system has no entropy to give.
    """
    return core.SecretKey(None)
