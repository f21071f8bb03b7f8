"""Epsilon of a few uses without sampling: losses convolved, where contour integrals do not settle.

Losses of few uses of a law with steps take few values, and the largest ones decide. They are put
on a lattice, each on its two neighbors with their mean, which changes delta by the square of the
spacing; weights ``exp(c L)`` keep rare losses above the rounding of the transform.
"""

from __future__ import annotations

import numpy as np

from psinoise.optimize.unimodal.uses import Uses

__all__ = ["epsilon_of_few"]

# Nodes of all uses, and a loss that is infinite.
_NODES = 1 << 19
_INFINITE = 60.0
# Losses whose mass is less than this share of delta, for each use, are infinite too.
_RARE = 1e-6
_HALVINGS = 60


def epsilon_of_few(uses: Uses, delta: float) -> float:
    """The epsilon of uses at a delta; about, to the square of a lattice's spacing."""
    count = uses.count
    with np.errstate(divide="ignore"):
        loss = -np.log(uses.ratio)
    order = np.argsort(-loss)
    loss, mass = loss[order], uses.base[order]
    # The largest loss that is not rare, and what is beyond.
    rare = int(np.searchsorted(np.cumsum(mass), _RARE * delta / count))
    top = min(float(loss[min(rare, loss.size - 1)]), _INFINITE)
    finite = loss <= top
    beyond = float(mass[~finite].sum())
    loss, mass = np.maximum(loss[finite], -top), mass[finite]
    if top <= 0.0:
        return 0.0
    nodes = _NODES // count
    step = 2.0 * top / (nodes - 1)
    place = (loss + top) / step
    low = np.minimum(place.astype(np.intp), nodes - 2)
    share = place - low
    mass_of = np.bincount(low, mass * (1.0 - share), nodes)
    mass_of += np.bincount(low + 1, mass * share, nodes)
    tilt = -np.log(delta) / (count * top)
    weighted = mass_of * np.exp(tilt * (np.arange(nodes) * step - 2.0 * top))
    size = 1 << (count * nodes - 1).bit_length()
    whole = np.fft.irfft(np.fft.rfft(weighted, size) ** count, size)
    whole = np.maximum(whole[: count * (nodes - 1) + 1], 0.0)
    losses = np.arange(whole.size) * step - count * top
    masses = whole * np.exp(-tilt * (losses - count * top))
    infinite = float(-np.expm1(count * np.log1p(-beyond)))
    above = np.cumsum(masses[::-1])[::-1]
    other = np.cumsum((masses * np.exp(-losses))[::-1])[::-1]
    if infinite >= delta:
        return float(losses[-1])

    def delta_of(epsilon: float) -> float:
        first = int(np.searchsorted(losses, epsilon))
        if first == losses.size:
            return infinite
        return infinite + float(above[first] - np.exp(epsilon) * other[first])

    low_end, high_end = 0.0, float(losses[-1])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low_end + high_end)
        more = delta_of(middle) > delta
        low_end, high_end = (middle, high_end) if more else (low_end, middle)
    return high_end
