"""Generators of f-divergences: convex functions of a likelihood ratio.

A generator is known by its second derivative, which is positive: a power of the ratio on each of
some pieces, ``f''(m) = exp(level_i) (m / m_i)**power_i`` from ``m_i`` to ``m_(i + 1)``, and beyond
the first and the last node as next to them. Then ``f`` is convex, whatever was rounded, and ``f'``
and ``f`` are sums of powers. Both vanish at ``m = 1``: what is linear in the ratio is the same for
all laws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

#: Lines below a convex function, by ratios: their value at 0, and their slope.
Tangent = Callable[[Float], tuple[Float, Float]]

__all__ = ["Generator", "Tangent"]

# Logarithm up to which a power grows: far beyond the outer nodes it would be infinite.
_MOST_GROWTH = 300.0


@dataclass(frozen=True, eq=False)
class Generator:
    """A convex function of the ratio, a straight line beyond the last node if that is its end.

    Parameters
    ----------
    nodes : ndarray
        Logarithms of ratios, increasing; 0 is one of them.
    levels : ndarray
        ``log f''`` there.
    powers : ndarray, optional
        Of the ratio on the piece that each node begins; by default those that join the levels.
    end : float
        Logarithm of the ratio from which on the function is a straight line.
    """

    nodes: Float
    levels: Float
    powers: Float = field(default_factory=lambda: np.zeros(0))
    end: float = np.inf
    _slopes: Float = field(init=False)
    _values: Float = field(init=False)

    def __post_init__(self) -> None:
        if not self.powers.size:
            rises = np.diff(self.levels) / np.diff(self.nodes)
            object.__setattr__(self, "powers", np.append(rises, rises[-1]))
        slope, value = self._beyond(np.arange(self.nodes.size - 1), np.diff(self.nodes))
        one = int(np.searchsorted(self.nodes, 0.0))
        slopes = np.append(0.0, np.cumsum(slope))
        slopes -= slopes[one]
        rises = value + slopes[:-1] * np.diff(np.exp(self.nodes))
        values = np.append(0.0, np.cumsum(rises))
        object.__setattr__(self, "_slopes", slopes)
        object.__setattr__(self, "_values", values - values[one])

    def _beyond(self, piece: NDArray[np.intp], y: Float) -> tuple[Float, Float]:
        """The integrals of ``f''`` once and twice, from a node over ``y`` of the logarithm."""
        power, node = self.powers[piece], self.nodes[piece]
        once, twice = _growth(power + 1.0, y), _growth(power + 2.0, y)
        scale = np.exp(self.levels[piece] + node)
        return scale * once, scale * np.exp(node) * (np.exp(y) * once - twice)

    def __call__(self, ratio: Float) -> tuple[Float, Float, Float]:
        """``f``, ``f'`` and ``f''`` at positive ratios."""
        log_ratio = np.log(ratio)
        inside = np.minimum(log_ratio, self.end)
        last = self.nodes.size - 1
        piece = np.clip(np.searchsorted(self.nodes, inside, "right") - 1, 0, last)
        y = inside - self.nodes[piece]
        once, twice = self._beyond(piece, y)
        start = np.exp(self.nodes[piece])
        value = self._values[piece] + self._slopes[piece] * (start * np.expm1(y)) + twice
        slope = self._slopes[piece] + once
        value += slope * (np.exp(inside) * np.expm1(log_ratio - inside))
        growth = np.minimum(self.powers[piece] * y, _MOST_GROWTH)
        curvature = np.exp(self.levels[piece] + growth)
        return value, slope, np.where(log_ratio <= self.end, curvature, 0.0)

    def tangent(self, ratio: Float) -> tuple[Float, Float]:
        """The tangents at ratios."""
        value, slope, _ = self(ratio)
        return value - ratio * slope, slope


def _growth(power: Float, y: Float) -> Float:
    """The integral of ``exp(power t)`` from 0 to ``y``."""
    small = np.abs(power * y) < 1e-9
    safe = np.where(small, 1.0, power)
    return np.where(
        small, y * (1.0 + 0.5 * power * y), np.expm1(np.minimum(safe * y, _MOST_GROWTH)) / safe
    )
