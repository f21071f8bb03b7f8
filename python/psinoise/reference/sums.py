"""Sums over the nodes of losses: twins of ``characteristic.cpp``, ``cumulants.cpp``, ``peaks.cpp``,
``products.cpp`` and of ``binned_products.cpp`` and ``suffix_sums.cpp`` in ``csrc``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Complex = NDArray[np.complex128]
Index = NDArray[np.int64]

_ROWS = 64
# exp(x) - 1 - x by its series below, by subtraction above: 40 ulp at worst.
_SERIES_RADIUS = 0.05
_SERIES = [1.0 / (k + 3.0) for k in range(8)]


def binned_products(
    loss_a: Float,
    point_a: Float,
    mass_a: Float,
    loss_b: Float,
    point_b: Float,
    mass_b: Float,
    edges: Float,
    threads: int,
) -> tuple[Float, Float, Float, Float]:
    """Masses of the bins, their first two moments above the lower edges, and 0: bins of losses."""
    del point_a, point_b, threads
    if not all((np.abs(loss) < 2.0**1023).all() for loss in (loss_a, loss_b)):
        raise ValueError("sums of losses must be finite")
    bins = edges.size - 1
    sums = np.zeros((4, bins))
    for start in range(0, loss_a.size, _ROWS):
        rows = slice(start, start + _ROWS)
        losses = np.add.outer(loss_a[rows], loss_b).ravel()
        masses = np.multiply.outer(mass_a[rows], mass_b).ravel()
        where = np.clip(np.searchsorted(edges, losses, side="right") - 1, 0, bins - 1)
        for k in range(3):
            sums[k] += np.bincount(where, masses * (losses - edges[where]) ** k, bins)
    return sums[0], sums[1], sums[2], sums[3]


def placed_sums(values: Float, places: Index, weights: Float, count: int) -> Float:
    """Sums of values from some places on, with weights."""
    if places.size and not 0 <= places.min() <= places.max() <= values.size - count:
        raise ValueError("there must be so many values from each place on")
    out = np.zeros(count)
    for place, weight in zip(places.tolist(), weights.tolist(), strict=True):
        out += weight * values[place : place + count]
    return out


def peaks_above(values: Float, other: Float, added: Float, held: Index, sign: float) -> Float:
    """How far rows may be above another function on a period, at points and between them."""
    if values.shape[-1] != other.size or added.size == 0:
        raise ValueError("rows must have as many values as the other function")
    parts = values.size // added.size
    if parts * added.size != values.size or other.size % parts or parts & (parts - 1):
        raise ValueError("what is added must be of so many intervals, a power of two")
    over = sign * (values - other)
    before, after = np.roll(over, 1, axis=-1), np.roll(over, -1, axis=-1)
    bends = np.maximum(2.0 * over - before - after, 0.0)
    both = [np.maximum(part, np.roll(part, -1, axis=-1)) for part in (over, bends)]
    found = np.asarray(both[0] + 0.125 * both[1] + np.repeat(added, parts, axis=-1))
    if held.size:
        found = np.where(held == np.arange(values.shape[0])[:, None], found, -np.inf)
    return np.asarray(found.max(axis=-1))


def largest_rows(start: Float, end: Float) -> Index:
    """For each interval of a period the first row with the largest sum of both, at both ends."""
    if start.shape != end.shape or start.ndim != 2 or start.size == 0:
        raise ValueError("there must be rows")
    both = start + end
    return np.asarray(np.argmax(both + np.roll(both, -1, axis=-1), axis=0))


def missing_near(values: Float, other: Float, margin: float, reach: int) -> Float:
    """How far one function is above another near each point of a period."""
    if values.shape != other.shape or not 2 * reach < values.size:
        raise ValueError("points must be more than that")
    bent = margin * np.abs(2.0 * other - (np.roll(other, 1) + np.roll(other, -1)))
    missing = np.maximum(values + _largest_near(bent, 1) - other, 0.0)
    return _largest_near(missing, reach)


def _largest_near(values: Float, reach: int) -> Float:
    around = np.pad(values, reach, mode="wrap")
    windows = np.lib.stride_tricks.sliding_window_view(around, 2 * reach + 1)
    return np.asarray(windows.max(axis=-1))


def suffix_sums(loss: Float, mass: Float) -> tuple[Float, Float]:
    """Sums of the masses from each node on, and of their excess over the loss of the first."""
    total, excess = np.empty(loss.size), np.empty(loss.size)
    gaps = -np.diff(loss, append=loss[-1:])
    fall, rise = np.exp(gaps), -np.expm1(gaps)
    whole = over = 0.0
    for k in range(loss.size - 1, -1, -1):
        # 1 - e^-(x + g) = e^-g (1 - e^-x) + (1 - e^-g): positive terms.
        over = fall[k] * over + rise[k] * whole
        whole += mass[k]
        total[k], excess[k] = whole, over
    return total, excess


def excess_above(
    loss: Float, total: Float, excess: Float, offset: Float, weight: Float, points: Float
) -> Float:
    """Sums over all offsets of the excess of masses over what is left of each point."""
    if offset.size == 0 or (np.diff(loss) < 0.0).any() or (np.diff(offset) < 0.0).any():
        raise ValueError("losses and offsets must rise, and there must be an offset")
    if np.isnan(points).any():
        raise ValueError("points must not be NaN")
    ends = np.append(loss, np.inf)
    held, over = np.append(total, 0.0), np.append(excess, 0.0)
    found = np.empty(points.size)
    for k, point in enumerate(points.tolist()):
        place = np.searchsorted(loss, point - offset, side="right")
        above = np.full(offset.size, -np.inf)
        np.subtract(point - offset, ends[place], out=above, where=place < loss.size)
        above = np.minimum(above, 0.0)
        # 1 - e^-(x + d) = (1 - e^-x) + e^-x (1 - e^-d), and the masses are more than the excess.
        found[k] = weight @ (over[place] + (over[place] - held[place]) * np.expm1(above))
    return found


def _second_order(x: Float) -> Float:
    """``exp(x) - 1 - x`` for ``|x| <= _SERIES_RADIUS``."""
    total = np.ones_like(x)
    for factor in reversed(_SERIES):
        total = 1.0 + total * x * factor
    return 0.5 * x * x * total


def tilted_moments(
    log_mass: Float, mass: Float, loss: Float, c: float, drift: float, lost: float
) -> tuple[float, float, float, float]:
    """Largest exponent, ``E e^{cL} - 1``, mean, and ``sum P e^{cL} (L - mean)^2``."""
    x = c * loss
    with np.errstate(over="ignore", invalid="ignore"):
        tilted = np.exp(log_mass + x)
        near = np.clip(x, -_SERIES_RADIUS, _SERIES_RADIUS)
        small = near == x
        order = _second_order(near)
        second = np.where(small, mass * order, tilted - mass * (1.0 + x))
        first = loss * np.where(small, mass * (near + order), tilted - mass)
        excess = float(second.sum()) + c * drift - lost
        mean = (float(first.sum()) + drift) / (1.0 + excess)
        square = float((tilted * (loss - mean) ** 2).sum())
    return float((log_mass + x).max(initial=-np.inf)), excess, mean, square


def log_mgf(mass: Float, places: NDArray[np.int64], s: float) -> float:
    """``log sum mass exp(s places)``."""
    held = mass > 0.0
    if not held.any():
        return -np.inf
    exponent = s * places[held]
    top = float(exponent.max())
    return top + float(np.log(np.sum(mass[held] * np.exp(exponent - top))))


def characteristic(weights: Float, losses: Float, step: float, count: int) -> Complex:
    """``out[m] = sum_j weights[j] (exp(i m step losses[j]) - 1)`` for ``m = 0, ..., count - 1``."""
    out = np.empty(count, dtype=np.complex128)
    for m in range(count):
        out[m] = weights @ np.expm1(1j * (m * (step * losses)))
    return out


def wave_sums(terms: Complex, turn: float, places: Float) -> Float:
    """The real part of ``sum_m terms[r, m] exp(i m turn places[k])`` for each ``r`` and ``k``."""
    out = np.empty((terms.shape[0], places.size))
    for k, angle in enumerate((turn * places).tolist()):
        waves = angle * np.arange(terms.shape[1])
        out[:, k] = terms.real @ np.cos(waves) - terms.imag @ np.sin(waves)
    return out
