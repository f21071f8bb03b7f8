"""From ``rng=`` (SPEC 7) and a tag to the key of a stream."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["RandomSource", "fresh_key", "stream_key"]

# A string, so that importing psinoise does not import numpy.random.
RandomSource: TypeAlias = (
    "int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator"
)

_PERSON = b"psinoise-key-v1"


def fresh_key() -> bytes:
    """A key that nobody else has: 32 bytes from the operating system."""
    return os.urandom(32)


def stream_key(rng: RandomSource, tag: bytes) -> bytes:
    """Derive the 32-byte key of the stream that ``rng`` and ``tag`` name.

    Parameters
    ----------
    rng : int, sequence of int, SeedSequence, BitGenerator or Generator
        A seed names one stream, again and again. A ``BitGenerator``, or that of a ``Generator``,
        is advanced by eight raw outputs, whatever the size of the request.
    tag : bytes
        Keeps apart the streams of different laws that are drawn from one seed: the key is the
        keyed BLAKE2b hash of the tag under the master key.

    Raises
    ------
    TypeError, ValueError
        As ``numpy.random.default_rng`` does for what is not a seed.
    """
    return hashlib.blake2b(tag, digest_size=32, key=_master_key(rng), person=_PERSON).digest()


def _master_key(rng: RandomSource) -> bytes:
    if isinstance(rng, np.random.Generator):
        rng = rng.bit_generator
    if isinstance(rng, np.random.BitGenerator):
        # Eight raw outputs hold at least 256 bits for every NumPy bit generator, and cost a tenth
        # of Generator.bytes(32).
        raw: NDArray[np.uint64] = rng.random_raw(8)
        return (raw if sys.byteorder == "little" else raw.byteswap()).tobytes()
    if isinstance(rng, bool | str | float):
        raise TypeError(
            "rng must be None, an integer, a sequence of integers, a SeedSequence, a BitGenerator "
            f"or a Generator, got {rng!r}"
        )
    if not isinstance(rng, np.random.SeedSequence):
        try:
            rng = np.random.SeedSequence(rng)
        except (TypeError, ValueError) as error:
            raise type(error)(f"rng must be made of whole numbers from 0 on: {error}") from None
    return rng.generate_state(8, np.uint32).astype("<u4").tobytes()
