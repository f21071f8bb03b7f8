"""The ziggurat: twin of ``csrc/kernels/sample.cpp``, the same bits from the same key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.reference.law import LawTable
from psinoise.reference.stream import (
    BLOCK,
    FurtherWords,
    NarrowWords,
    WideWords,
    Words64,
    exponential_variates,
    first_words,
    positions,
)

_ROUNDS = 8


class _Float64(WideWords):
    layer_mask = 2047
    sign_bit = 11
    position_bit = 12
    threshold_shift = 32


class _Float32(NarrowWords):
    layer_mask = 1023
    sign_bit = 10
    position_bit = 11
    threshold_shift = 20


_Format = type[_Float64] | type[_Float32]


def _with_sign(form: _Format, magnitude: NDArray[Any], words: NDArray[Any]) -> NDArray[Any]:
    return np.where(words & form.word(1 << form.sign_bit) == 0, magnitude, -magnitude)


def _tail_points(
    law: LawTable,
    edge_depth: float,
    words: Words64,
    further: FurtherWords,
    which: NDArray[np.intp],
) -> NDArray[np.float64]:
    depth = edge_depth + exponential_variates(words, further, which)
    limit = law.tail_quantile.limit
    return law.upper_quantile(np.where(depth < limit, depth, limit * (1.0 - 2.0**-53)))


def _draw(form: _Format, law: LawTable, key: bytes, first: int, count: int) -> NDArray[Any]:
    strips = law.wide if form is _Float64 else law.narrow
    words: NDArray[Any] = first_words(key, _ROUNDS, first, count, form.bits)
    further = FurtherWords.of_range(key, _ROUNDS, first, count)
    result = np.zeros(count, dtype=form.real)
    which = np.arange(count)
    while which.size:
        layers = (words & form.word(form.layer_mask)).astype(np.intp)
        entries = strips.entries[layers]
        place, width = positions(words, form.position_bit), entries.view(form.real)
        value = _with_sign(form, place * width, words)
        accepted = np.asarray(words < entries << form.word(form.threshold_shift))

        # The others are in the tail, or are accepted where they are below the curve.
        others = np.flatnonzero(~accepted)
        test = further.next(which[others])
        x = place[others].astype(np.float64) * width[others].astype(np.float64)
        layer = layers[others]
        tail = np.flatnonzero((layer == 0) & (x >= strips.base_edge))
        at = others[tail]
        points = _tail_points(law, strips.tail_depth, test[tail], further, which[at])
        value[at] = _with_sign(form, points.astype(form.real), words[at])
        low, high = strips.heights[layer], strips.heights[layer + 1]
        height = low + positions(test, 12) * (high - low)
        accepted[others[layer == 0]] = True
        wedge = np.flatnonzero(layer)
        accepted[others[wedge]] = height[wedge] < law.density(x[wedge])

        result[which[accepted]] = value[accepted]
        which = which[~accepted]
        words = (further.next(which) >> np.uint64(64 - form.bits)).astype(form.word)
    return result


def sample(
    law: LawTable, key: bytes, first: int, scale: float, out: NDArray[Any], threads: int
) -> None:
    """Write elements ``first, first + 1, ...`` of the stream of ``key``, times ``scale``."""
    del threads
    form: _Format = _Float32 if out.dtype == np.float32 else _Float64
    flat = out.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, BLOCK):
            part = flat[start : start + BLOCK]
            part[:] = _draw(form, law, key, first + start, part.size) * form.real(scale)
