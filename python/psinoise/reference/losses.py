"""Panels and bins of a privacy loss: twins of ``csrc/losses``."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.elementary import logarithm
from psinoise.numerics.panels import Panels, refined_panels
from psinoise.reference.lattice import level_points, log_ratios, mix, piece_masses, table_log
from psinoise.reference.law import LawTable

Float = NDArray[np.float64]

# Nodes that carry less than this of the tilted mass, as a logarithm, do not count.
_NEGLIGIBLE = -40.0
# Range of the complex exponent over half a panel that 16 nodes integrate to 1e-15.
_LARGEST_TILT = 14.0
_LARGEST_PHASE = 12.0
#: Pieces of a panel on which log p varies by at most 3/4 (panels allow 8, and half as much again).
PIECES_PER_PANEL = 16


def loss_panels(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    points: Float,
    last: Float,
    edges: Float,
    floor: float,
) -> Panels | None:
    """Panels that resolve both densities and the loss; None if some lie beyond the table."""
    log_scale = float(logarithm(np.array([scale]))[0])

    def sample(x: Float) -> tuple[Float, Float, Float]:
        flat = x.ravel()
        with np.errstate(all="ignore"):
            base = table_log(law, flat, scale)
            ratios = [log_ratios(law, scale, shift, flat, base) for shift in (shift_p, shift_q)]
            log_p, log_q = (
                mix(ratio, rate, shift)
                for ratio, shift in zip(ratios, (shift_p, shift_q), strict=True)
            )
            log_density = ((base[0] - log_scale) + base[1]) + log_q
        if np.isnan(log_density + log_p).any():
            raise _BeyondTableError
        values = log_density, ratios[0] - ratios[1], log_p - log_q
        return tuple(value.reshape(x.shape) for value in values)  # type: ignore[return-value]

    try:
        return refined_panels(sample, points, last, edges, floor)
    except _BeyondTableError:
        return None


class _BeyondTableError(Exception):
    """Some outputs have no density in the table."""


def panel_pieces(
    log_mass: Float,
    loss: Float,
    panels: int,
    order: int,
    c: float,
    value: float,
    frequency: float,
) -> NDArray[np.int64]:
    """Into how many pieces panels must be cut to resolve ``exp((c + i t) L)`` of a loss."""
    nodes = panels * order
    if min(log_mass.size, loss.size) < nodes:
        raise ValueError("there must be a node for each point of each panel")
    loss = loss[:nodes].reshape(panels, order)
    tilted = log_mass[:nodes].reshape(panels, order) + (c * loss - value)
    swing = np.ptp(np.maximum(tilted, _NEGLIGIBLE - 10.0), axis=1) / _LARGEST_TILT
    heavy = tilted > _NEGLIGIBLE
    highest = np.where(heavy, loss, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(heavy, loss, np.inf).min(axis=1, initial=np.inf)
    relevant = heavy.any(axis=1)
    turns = np.where(relevant, highest - lowest, 0.0) * frequency / _LARGEST_PHASE
    need = np.maximum(np.where(relevant, swing, 0.0), turns)
    pieces: NDArray[np.int64] = np.ceil(np.clip(need, 1.0, 2.0**40)).astype(np.int64)
    return pieces


def loss_bins(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    x: Float,
    loss: Float,
    slope: Float,
    levels: Float,
    tilt: float,
    log_norm: float,
    tolerance: float,
) -> tuple[Float, Float, float]:
    """Tilted masses and excesses of the bins between levels, and the largest error of an edge."""
    if x.ndim != 2 or x.shape[1] < 2:
        raise ValueError("panels must have two samples each")
    if levels.size < 2:
        raise ValueError("there must be at least two levels")
    count = levels.size - 1
    mass, excess = np.zeros(count), np.zeros(count)
    error = 0.0
    pair = (law, scale, shift_p, shift_q, rate)
    for run in _runs(x, loss, slope):
        edges, bins, miss = _cut_run(pair, run, levels, tolerance)
        error = max(error, miss)
        bins = np.clip(bins, 0, count - 1)
        part, over = piece_masses(*pair, edges, levels[bins], tilt, log_norm)
        for total, parts in ((mass, part), (excess, over)):
            _add_runs(total, bins, parts)
    return mass, excess, error


def _add_runs(total: Float, bins: NDArray[np.int64], parts: Float) -> None:
    """Add parts to their bins; those that follow each other in one bin are rounded once."""
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    for start, stop in itertools.pairwise([*starts.tolist(), bins.size]):
        total[bins[start]] += math.fsum(parts[start:stop].tolist())


_Run = tuple[Float, Float, Float, Float]


def _runs(x: Float, loss: Float, slope: Float) -> list[_Run]:
    """Adjoining panels with a rising (or falling) loss: ends of pieces, and samples.

    On a piece ``log p`` varies little; samples keep one copy of the ends that panels share.
    """
    if not x.size:
        return []
    rising = loss[:, -1] >= loss[:, 0]
    breaks = (x[1:, 0] != x[:-1, -1]) | (rising[1:] != rising[:-1])
    starts = np.concatenate([[0], np.flatnonzero(breaks) + 1, [x.shape[0]]])
    fractions = np.arange(PIECES_PER_PANEL) / PIECES_PER_PANEL
    runs = []
    for start, stop in itertools.pairwise(starts.tolist()):
        part = slice(start, stop)
        cuts = x[part, :1] + (x[part, -1:] - x[part, :1]) * fractions
        edges = np.append(cuts.ravel(), x[stop - 1, -1])
        inner, values, slopes = (
            np.append(samples[part, :-1].ravel(), samples[stop - 1, -1])
            for samples in (x, loss, slope)
        )
        runs.append((edges, inner, values, slopes))
    return runs


def _cut_run(
    pair: tuple[LawTable, float, float, float, float], run: _Run, levels: Float, tolerance: float
) -> tuple[Float, NDArray[np.int64], float]:
    """Edges of the pieces of a run, the bin of each piece, and the error of the level points."""
    edges, *samples = run
    loss = samples[1]
    low, high = sorted((float(loss[0]), float(loss[-1])))
    lowest = int(np.searchsorted(levels, low, side="right"))
    levels = levels[lowest : int(np.searchsorted(levels, high, side="left"))]
    if levels.size == 0:
        return edges, np.full(edges.size - 1, lowest - 1, dtype=np.int64), 0.0
    rising = bool(loss[-1] >= loss[0])
    x, values, slope = (
        np.ascontiguousarray(sample if rising else sample[::-1]) for sample in samples
    )
    points, error = level_points(*pair, x, values, slope, levels, tolerance)
    merged = np.concatenate([edges, points])
    is_level = np.zeros(merged.size, dtype=np.int64)
    is_level[edges.size :] = 1
    order = np.argsort(merged, kind="stable")
    passed = np.cumsum(is_level[order])[:-1]
    bins = lowest - 1 + passed if rising else lowest - 1 + levels.size - passed
    return merged[order], bins, error
