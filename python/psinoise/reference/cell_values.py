"""Twin of csrc/kernels/cell_values.cpp: values of a law that is uniform in cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.elementary import exponential, log_one_plus, logarithm
from psinoise.reference.law import QUANTITIES

Float = NDArray[np.float64]

_LOG_2 = 0.6931471805599453


@dataclass(frozen=True)
class CellLaw:
    """The cells of ``|X|``, with sums of their masses from both ends."""

    edges: Float
    masses: Float
    above: Float
    below: Float
    log_densities: Float
    atom: float
    repeated: int
    rate: float
    period: float
    right_closed: bool

    def __post_init__(self) -> None:
        cells, arrays = self.masses.size, (self.edges, self.above, self.below, self.log_densities)
        if cells == 0 or any(array.size != cells + 1 for array in arrays):
            raise ValueError("there must be one mass for each cell, and one edge more")
        for keys in (self.edges, self.above[::-1], self.below):
            if not (keys[0] >= 0.0 and np.isfinite(keys[-1]) and (np.diff(keys) >= 0.0).all()):
                raise ValueError("keys must be finite, not negative and in order")
        if self.repeated > cells or (self.repeated and not (self.rate > 0.0 and self.period > 0.0)):
            raise ValueError("rate and period must be positive where cells repeat")

    def locate(self, t: Float) -> tuple[NDArray[np.intp], Float, Float]:
        """The cell of each ``t >= 0``, its place in the listed cells, and the logarithm of how much
        less likely its copy is; a cell number of ``masses.size`` is beyond the support."""
        end = self.edges[-1]
        inside, falls = np.where(np.isnan(t), 0.0, t), np.zeros_like(t)
        if self.repeated:
            beyond = np.flatnonzero(t > end if self.right_closed else t >= end)
            far = t[beyond]
            over = (far - end) / self.period
            whole = np.ceil(over) if self.right_closed else np.floor(over) + 1.0
            # Rounding must not move a point out of the cells that repeat.
            moved = np.clip(far - whole * self.period, self.edges[-1 - self.repeated], end)
            inside[beyond] = np.where(np.isinf(far), end, moved)
            falls[beyond] = -whole * self.rate
        cell = np.searchsorted(self.edges, inside, "left" if self.right_closed else "right") - 1
        most = self.masses.size - 1 if self.repeated else self.masses.size
        return np.clip(cell, 0, most), inside, falls

    def survival_factor(self, cell: NDArray[np.intp], inside: Float) -> Float:
        """``P(|X| > t)`` where no period was taken off."""
        known = np.minimum(cell, self.masses.size - 1)
        right = self.edges[known + 1]
        share = np.clip((right - inside) / (right - self.edges[known]), 0.0, 1.0)
        factor = self.above[known + 1] + self.masses[known] * share
        return np.where(cell < self.masses.size, factor, 0.0)

    def from_center(self, mass: Float) -> Float:
        """The ``t`` with ``P(0 < |X| <= t) = mass``."""
        cell = np.searchsorted(self.below, mass, side="left") - 1
        cell = np.clip(cell, 0, self.masses.size - 1)
        share = np.clip((mass - self.below[cell]) / self.masses[cell], 0.0, 1.0)
        return np.asarray(self.edges[cell] + share * (self.edges[cell + 1] - self.edges[cell]))

    def from_tail(self, p: Float) -> Float:
        """The ``t`` with ``P(|X| > t) = 2 p``."""
        mass, copies = 2.0 * p, np.zeros_like(p)
        if self.repeated:
            deep = np.flatnonzero((mass < self.above[-1]) & (p > 0.0))
            log_last = logarithm(self.above[-1:])
            depth = log_last - (logarithm(p[deep]) + _LOG_2)
            whole = np.maximum(np.ceil(depth / self.rate), 0.0)
            there = exponential(log_last - depth + whole * self.rate, np.zeros_like(depth))
            mass[deep], copies[deep] = np.where(whole > 0.0, there, mass[deep]), whole
        cell = self.masses.size - np.searchsorted(self.above[::-1], mass, side="right")
        cell = np.clip(cell, 0, self.masses.size - 1)
        right = self.edges[cell + 1]
        share = np.clip((mass - self.above[cell + 1]) / self.masses[cell], 0.0, 1.0)
        t = right - share * (right - self.edges[cell]) + copies * self.period
        return np.where(p > 0.0, t, np.inf if self.repeated else self.edges[-1])


def evaluate_cells(
    law: CellLaw, quantity: str, scale: float, x: NDArray[Any], out: NDArray[Any], threads: int
) -> None:
    """Write a quantity at ``x`` to ``out``."""
    del threads
    if quantity not in QUANTITIES:
        raise ValueError("unknown quantity")
    points = x.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        cell, inside, falls = law.locate(np.abs(points) / scale)
        if quantity in ("pdf", "logpdf"):
            found = (law.log_densities[cell] + falls) - logarithm(np.array([scale]))
            if quantity == "pdf":
                found = exponential(found, np.zeros_like(found))
        else:
            factor = 0.5 * law.survival_factor(cell, inside)
            survival = factor * exponential(falls, np.zeros_like(falls))
            upper = points >= 0.0 if "ccdf" in quantity else points < 0.0
            if quantity.startswith("log"):
                found = np.where(upper, logarithm(factor) + falls, log_one_plus(-survival))
            else:
                found = np.where(upper, survival, 1.0 - survival)
        out.reshape(-1)[...] = np.where(np.isnan(points), np.nan, found)


def inverse_survival_cells(
    law: CellLaw, scale: float, probability: NDArray[Any], out: NDArray[Any], threads: int
) -> None:
    """Write the points with ``P(scale * X > point) = probability`` to ``out``."""
    del threads
    q = probability.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        valid = (q >= 0.0) & (q <= 1.0)
        tail = np.where(valid, np.where(q <= 0.5, q, 1.0 - q), 0.5)
        within = 2.0 * (0.5 - tail) - law.atom
        near = (within < 0.5 * (1.0 - law.atom)) & (within <= law.below[-1])
        t = np.empty_like(q)
        t[near], t[~near] = law.from_center(within[near]), law.from_tail(tail[~near])
        t = np.where(within > 0.0, t, 0.0) * scale
        out.reshape(-1)[...] = np.where(valid, np.where(q > 0.5, -t, t), np.nan)
