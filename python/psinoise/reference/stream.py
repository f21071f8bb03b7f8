"""The element stream: twin of ``csrc/random/*.hpp`` and ``csrc/kernels/variates.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.elementary import LOG2_HI, LOG2_LO, logarithm

Float = NDArray[np.float64]
Words32 = NDArray[np.uint32]
Words64 = NDArray[np.uint64]

#: Elements that are made at a time, for the sake of memory.
BLOCK = 1 << 16
_LANES = 16
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_DEEPEST = 2880
# Four rows, turned by 1, 2 and 3.
_TURNED = ([1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2])


class WideWords:
    """Words of 64 bits, and the numbers that are made of them."""

    bits = 64
    word: Any = np.uint64
    real: Any = np.float64


class NarrowWords:
    """The same of 32 bits."""

    bits = 32
    word: Any = np.uint32
    real: Any = np.float32


Format = type[WideWords] | type[NarrowWords]


def positions(words: NDArray[Any], skip: int) -> NDArray[Any]:
    """``(k + 1/2) 2**-n`` for the high ``n`` bits ``k`` of words, without ``skip`` low ones."""
    form = WideWords if words.dtype == np.uint64 else NarrowWords
    odd = (words >> form.word(skip)) * form.word(2) + form.word(1)
    return np.asarray(odd.astype(form.real) * form.real(2.0 ** (skip - 1 - form.bits)))


def chacha_blocks(key: bytes, rounds: int, counters: Words64, nonces: Words64) -> Words32:
    """Keystream blocks with 64-bit counters and nonces, shape ``(16, len(counters))``."""
    if len(key) != 32:
        raise ValueError("key must be 32 bytes")
    if rounds not in (8, 20):
        raise ValueError("rounds must be 8 or 20")
    start = np.empty((16, counters.size), np.uint32)
    start[:12] = np.array([*_CONSTANTS, *np.frombuffer(key, "<u4")], np.uint32)[:, None]
    for row, words in ((12, counters), (14, nonces)):
        start[row], start[row + 1] = words & np.uint64(2**32 - 1), words >> np.uint64(32)
    a, b, c, d = start.reshape(4, 4, -1)
    # Columns and diagonals in turn: rows are turned until the diagonals are columns, and back.
    for turned in (_TURNED, _TURNED[::-1]) * (rounds // 2):
        for n, m in ((16, 12), (8, 7)):
            a = a + b
            d = _rotate_left(d ^ a, n)
            c = c + d
            b = _rotate_left(b ^ c, m)
        b, c, d = (row[order] for row, order in zip((b, c, d), turned, strict=True))
    return np.concatenate([a, b, c, d]) + start


def _rotate_left(x: Words32, n: int) -> Words32:
    return (x << np.uint32(n)) | (x >> np.uint32(32 - n))


def chacha_block(key: bytes, rounds: int, counter: int, nonce: int) -> Words32:
    """One block as the sixteen words of RFC 8439."""
    return chacha_blocks(key, rounds, *np.array([[counter], [nonce]], dtype=np.uint64))[:, 0]


def first_words(
    key: bytes, rounds: int, first: int, count: int, bits: int
) -> NDArray[np.unsignedinteger]:
    """First words, of 32 or 64 bits, of elements ``first, ..., first + count - 1``."""
    elements = _LANES * 16 * 32 // bits
    start = first // elements
    stop = (first + count + elements - 1) // elements
    counters = np.arange(start * _LANES, stop * _LANES, dtype=np.uint64)
    blocks = chacha_blocks(key, rounds, counters, np.zeros_like(counters))
    rows = blocks.reshape(16, stop - start, _LANES).transpose(1, 0, 2)
    words = np.ascontiguousarray(rows).reshape(-1).view(f"<u{bits // 8}")
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
        self._used = np.zeros(elements.shape, dtype=np.int64)
        self._words = np.zeros((elements.size, 8), dtype=np.uint64)

    @classmethod
    def of_range(cls, key: bytes, rounds: int, first: int, count: int) -> FurtherWords:
        """Those of elements ``first, ..., first + count - 1``."""
        return cls(key, rounds, np.arange(count, dtype=np.uint64) + np.uint64(first))

    def next(self, which: NDArray[np.intp]) -> Words64:
        """One more word for each of the elements at the positions ``which``."""
        place = self._used[which] % 8
        empty = which[place == 0]
        nonces = (self._used[empty] // 8 + 1).astype(np.uint64)
        if empty.size:
            blocks = chacha_blocks(self._key, self._rounds, self._elements[empty], nonces)
            self._words[empty] = np.ascontiguousarray(blocks.T).view("<u8")
        self._used[which] += 1
        return np.asarray(self._words[which, place])


def exponential_variates(words: Words64, further: FurtherWords, which: NDArray[np.intp]) -> Float:
    """``-log(u)`` for the elements ``which``, whose next words are given."""
    words, zeros = words.copy(), np.zeros(which.shape)
    empty = np.flatnonzero(words == 0)
    while empty.size:
        zeros[empty] += 64
        words[empty] = further.next(which[empty])
        empty = empty[(words[empty] == 0) & (zeros[empty] < _DEEPEST)]
    halvings = zeros + [65 - word.bit_length() if word else 1 for word in words.tolist()]
    mantissa = 1.0 + (further.next(which) >> np.uint64(12)).astype(np.float64) * 2.0**-52
    return np.asarray(halvings * LOG2_HI + (halvings * LOG2_LO - logarithm(mantissa)))
