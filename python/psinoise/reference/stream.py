"""The element stream: twin of ``csrc/random/chacha.hpp`` and ``csrc/random/stream.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words32 = NDArray[np.uint32]
Words64 = NDArray[np.uint64]

LANES = 16
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)


class WideWords:
    """Words of 64 bits, numbers of their size, and the bits of 1."""

    bits = 64
    word: Any = np.uint64
    real: Any = np.float64
    one = 0x3FF0000000000000


class NarrowWords:
    """The same of 32 bits."""

    bits = 32
    word: Any = np.uint32
    real: Any = np.float32
    one = 0x3F800000


def _rotate_left(x: Words32, n: int) -> Words32:
    return (x << np.uint32(n)) | (x >> np.uint32(32 - n))


def _quarter_round(x: list[Words32], a: int, b: int, c: int, d: int) -> None:
    x[a] = x[a] + x[b]
    x[d] = _rotate_left(x[d] ^ x[a], 16)
    x[c] = x[c] + x[d]
    x[b] = _rotate_left(x[b] ^ x[c], 12)
    x[a] = x[a] + x[b]
    x[d] = _rotate_left(x[d] ^ x[a], 8)
    x[c] = x[c] + x[d]
    x[b] = _rotate_left(x[b] ^ x[c], 7)


def chacha_blocks(key: bytes, rounds: int, counters: Words64, nonce: int) -> Words32:
    """Keystream blocks with 64-bit counters and nonce, shape ``(16, len(counters))``."""
    if len(key) != 32:
        raise ValueError("key must be 32 bytes")
    if rounds not in (8, 20):
        raise ValueError("rounds must be 8 or 20")
    size = counters.shape[0]
    low = (counters & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (counters >> np.uint64(32)).astype(np.uint32)
    words = [*_CONSTANTS, *np.frombuffer(key, dtype="<u4").tolist()]
    state = [np.full(size, word, dtype=np.uint32) for word in words]
    state += [low, high]
    state += [np.full(size, word, dtype=np.uint32) for word in (nonce & 0xFFFFFFFF, nonce >> 32)]
    x = list(state)
    for _ in range(rounds // 2):
        _quarter_round(x, 0, 4, 8, 12)
        _quarter_round(x, 1, 5, 9, 13)
        _quarter_round(x, 2, 6, 10, 14)
        _quarter_round(x, 3, 7, 11, 15)
        _quarter_round(x, 0, 5, 10, 15)
        _quarter_round(x, 1, 6, 11, 12)
        _quarter_round(x, 2, 7, 8, 13)
        _quarter_round(x, 3, 4, 9, 14)
    return np.stack([a + b for a, b in zip(x, state, strict=True)])


def chacha_block(key: bytes, rounds: int, counter: int, nonce: int) -> Words32:
    """One block as the sixteen words of RFC 8439."""
    return chacha_blocks(key, rounds, np.array([counter], dtype=np.uint64), nonce)[:, 0]


def first_words(
    key: bytes, rounds: int, first: int, count: int, bits: int
) -> NDArray[np.unsignedinteger]:
    """First words, of 32 or 64 bits, of elements ``first, ..., first + count - 1``."""
    elements = LANES * 16 * 32 // bits
    start = first // elements
    stop = (first + count + elements - 1) // elements
    counters = np.arange(start * LANES, stop * LANES, dtype=np.uint64)
    blocks = chacha_blocks(key, rounds, counters, 0)
    rows = blocks.reshape(16, stop - start, LANES).transpose(1, 0, 2)
    words = np.ascontiguousarray(rows).reshape(-1).view(np.dtype(f"<u{bits // 8}"))
    skip = first - start * elements
    return words[skip : skip + count]


def stream_words(key: bytes, rounds: int, first: int, count: int) -> Words64:
    """First words of elements ``first, ..., first + count - 1``, 64 bits each."""
    return np.array(first_words(key, rounds, first, count, 64), dtype=np.uint64)


class FurtherWords:
    """Further words of many elements: blocks with the element as counter and nonce 1, 2, ..."""

    def __init__(self, key: bytes, rounds: int, elements: Words64) -> None:
        self._key = key
        self._rounds = rounds
        self._elements = elements
        self._used = np.full(elements.shape, 8)
        self._nonce = np.ones(elements.shape, dtype=np.int64)
        self._words = np.zeros((8, elements.size), dtype=np.uint64)

    def next(self, which: NDArray[np.intp]) -> Words64:
        """One more word for each of the elements at the positions ``which``."""
        empty = which[self._used[which] == 8]
        nonces = self._nonce[empty]
        for nonce in np.unique(nonces):
            refill = empty[nonces == nonce]
            blocks = chacha_blocks(self._key, self._rounds, self._elements[refill], int(nonce))
            blocks64 = blocks.astype(np.uint64)
            self._words[:, refill] = blocks64[0::2] | (blocks64[1::2] << np.uint64(32))
            self._used[refill] = 0
            self._nonce[refill] += 1
        words: Words64 = self._words[self._used[which], which]
        self._used[which] += 1
        return words
