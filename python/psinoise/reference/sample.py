"""The ziggurat: twin of ``csrc/kernels/sample.cpp``, the same bits from the same key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.bits import double_from
from psinoise.reference.law import LawTable, Ziggurat
from psinoise.reference.stream import (
    FurtherWords,
    NarrowWords,
    WideWords,
    Words64,
    first_words,
)
from psinoise.reference.variates import exponential_variates

Float = NDArray[np.float64]

_ROUNDS = 8
_BLOCK = 1 << 16


def unit_interval(words: Words64) -> Float:
    """``(2 k + 1) 2**-53`` for the high 52 bits ``k`` of each word."""
    return double_from((words >> np.uint64(12)) | np.uint64(WideWords.one)) - (1.0 - 2.0**-53)


class _Float64(WideWords):
    layer_mask = 2047
    sign_bit = 11
    threshold_shift = 32

    @staticmethod
    def ziggurat(law: LawTable) -> Ziggurat:
        return law.wide

    @staticmethod
    def position(words: NDArray[Any]) -> NDArray[Any]:
        return unit_interval(words)

    @staticmethod
    def from_stream(words: Words64) -> NDArray[Any]:
        return words


class _Float32(NarrowWords):
    layer_mask = 1023
    sign_bit = 10
    threshold_shift = 20

    @staticmethod
    def ziggurat(law: LawTable) -> Ziggurat:
        return law.narrow

    @staticmethod
    def position(words: NDArray[Any]) -> NDArray[Any]:
        bits = (words >> np.uint32(9) & np.uint32(0xFFFFFFFC)) | np.uint32(0x3F800002)
        return bits.view(np.float32) - np.float32(1.0)

    @staticmethod
    def from_stream(words: Words64) -> NDArray[Any]:
        return (words >> np.uint64(32)).astype(np.uint32)


_Format = type[_Float64] | type[_Float32]


def _layer(form: _Format, words: NDArray[Any]) -> NDArray[np.intp]:
    return np.asarray(words & form.word(form.layer_mask), dtype=np.intp)


def _inside(form: _Format, words: NDArray[Any], entries: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(words < entries << form.word(form.threshold_shift))


def _with_sign(form: _Format, magnitude: NDArray[Any], words: NDArray[Any]) -> NDArray[Any]:
    sign = (words & form.word(1 << form.sign_bit)) << form.word(form.bits - 1 - form.sign_bit)
    return np.asarray(np.ascontiguousarray(magnitude).view(form.word) | sign).view(form.real)


def _candidate(form: _Format, words: NDArray[Any], entries: NDArray[Any]) -> NDArray[Any]:
    return _with_sign(form, form.position(words) * entries.view(form.real), words)


def _tail_points(
    law: LawTable,
    edge_depth: float,
    words: Words64,
    further: FurtherWords,
    which: NDArray[np.intp],
) -> Float:
    depth = edge_depth + exponential_variates(words, further, which)
    limit = law.tail_quantile.limit
    return law.upper_quantile(np.where(depth < limit, depth, limit * (1.0 - 2.0**-53)))


def _resolve(
    form: _Format, law: LawTable, words: NDArray[Any], further: FurtherWords
) -> NDArray[Any]:
    ziggurat = form.ziggurat(law)
    result = np.zeros(words.shape, dtype=form.real)
    which = np.arange(words.size)
    while which.size:
        layer = _layer(form, words)
        entries = ziggurat.entries[layer]
        test = further.next(which)
        x = form.position(words).astype(np.float64) * entries.view(form.real).astype(np.float64)
        value = _candidate(form, words, entries)

        base = layer == 0
        tail = np.flatnonzero(base & (x >= ziggurat.base_edge))
        if tail.size:
            points = _tail_points(law, ziggurat.tail_depth, test[tail], further, which[tail])
            value[tail] = _with_sign(form, points.astype(form.real), words[tail])

        low = ziggurat.heights[layer]
        height = low + unit_interval(test) * (ziggurat.heights[layer + 1] - low)
        accepted = base.copy()
        wedge = np.flatnonzero(~base)
        accepted[wedge] = height[wedge] < law.density(x[wedge])
        result[which[accepted]] = value[accepted]

        which = which[~accepted]
        words = form.from_stream(further.next(which))
        entries = ziggurat.entries[_layer(form, words)]
        accepted = _inside(form, words, entries)
        result[which[accepted]] = _candidate(form, words, entries)[accepted]
        which, words = which[~accepted], words[~accepted]
    return result


def sample(
    law: LawTable, key: bytes, first: int, scale: float, out: NDArray[Any], threads: int
) -> None:
    """Write elements ``first, first + 1, ...`` of the stream of ``key``, times ``scale``."""
    del threads
    form: _Format = _Float32 if out.dtype == np.float32 else _Float64
    entries = form.ziggurat(law).entries
    flat = out.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            size = min(_BLOCK, flat.size - start)
            words = first_words(key, _ROUNDS, first + start, size, form.bits)
            chosen = entries[_layer(form, words)]
            value = _candidate(form, words, chosen)
            pending = np.flatnonzero(~_inside(form, words, chosen))
            elements = pending.astype(np.uint64) + np.uint64(first + start)
            further = FurtherWords(key, _ROUNDS, elements)
            value[pending] = _resolve(form, law, words[pending], further)
            flat[start : start + size] = value * form.real(scale)
