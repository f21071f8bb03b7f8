"""Pieces of laws in cells, cut by their densities alone, and their losses."""

from __future__ import annotations

import math

import numpy as np

import psinoise as pn


def staircase_atoms(law: pn.Staircase, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of pieces under the shifted law and the law, from the density, far out."""
    reach = 40 * (1.0 + 1.0 / law.epsilon)
    steps = np.arange(-math.ceil(reach), math.ceil(reach) + 1.0)
    edges = np.concatenate([steps, steps + law.gamma, steps - law.gamma])
    edges = np.unique(np.concatenate([edges, edges + shift]).round(13))
    middle, widths = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    return widths * law.pdf(middle - shift), widths * law.pdf(middle)


def integer_atoms(law: pn.DiscreteLaplace, shift: int) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(-75.0, 76.0)
    return law.pmf(k - shift), law.pmf(k)


def merged(shifted: np.ndarray, base: np.ndarray, rate: float, direction: str):
    """Distinct losses under ``P`` with their probabilities, infinite ones apart."""
    mixed = (1.0 - rate) * base + rate * shifted
    p, q = (mixed, base) if direction == "remove" else (base, mixed)
    infinite = p[q == 0.0].sum()
    p, q = p[(q > 0.0) & (p > 0.0)], q[(q > 0.0) & (p > 0.0)]
    loss = np.log(p / q).round(9)
    where = np.unique(loss, return_inverse=True)[1]
    mass = np.bincount(where, weights=p)
    return np.log(mass / np.bincount(where, weights=q)), mass, infinite


def cactus_pieces(law: pn.Cactus, shift: float) -> tuple[np.ndarray, np.ndarray]:
    width = law.sensitivity / law.cells_per_sensitivity
    reach = law.cells + round(900 / -math.log(law.tail_ratio)) // 10
    edges = (np.arange(-reach, reach + 2) - 0.5) * width
    edges = np.unique(np.concatenate([edges, edges + shift]).round(12))
    middle, widths = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    return widths * law.pdf(middle - shift), widths * law.pdf(middle)
