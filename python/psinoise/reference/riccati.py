"""Ground states of Schrodinger operators: twins of ``csrc/kernels/riccati.cpp`` and
``csrc/kernels/ground_state.cpp``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]

_NODES = 20
_PAIR_TERMS = 5
_MOST_STEPS = 40
_LAST_STEP = 1e-9


class _Factors:
    """LU factors with partial pivoting; row operations in the order of the kernel."""

    def __init__(self, matrix: Float) -> None:
        self.lu = lu = matrix
        self.pivots: list[int] = []
        for k in range(_NODES):
            best = k + int(np.argmax(np.abs(lu[k:, k])))
            self.pivots.append(best)
            lu[[k, best]] = lu[[best, k]]
            lu[k + 1 :, k] /= lu[k, k]
            lu[k + 1 :, k + 1 :] -= lu[k + 1 :, k, None] * lu[k, k + 1 :]

    def solve(self, right: Float) -> Float:
        x = right.copy()
        for k, best in enumerate(self.pivots):
            x[k], x[best] = x[best], x[k]
        for k in range(_NODES):
            x[k + 1 :] -= self.lu[k + 1 :, k] * x[k]
        for k in range(_NODES - 1, -1, -1):
            x[k] /= self.lu[k, k]
            x[:k] -= self.lu[:k, k] * x[k]
        return x


def _pair(hi: Float) -> dd.Pair:
    return hi, np.zeros_like(hi)


@dataclass(frozen=True)
class _Panel:
    """One panel: half its width, and the integration matrix, whose columns are rows here."""

    half: float
    matrix: dd.Pair

    def newton(self, potential: Float, end: Float, r: Float) -> tuple[Float, _Factors | None]:
        """``r = end - h B (r^2 - Q)`` to double precision, and what solves its linearization."""
        for _ in range(_MOST_STEPS):
            rest = (r - end) + self.half * self._integral(r * r - potential)
            linear = np.ascontiguousarray((self.matrix[0] * (2.0 * self.half * r)[:, None]).T)
            linear[np.diag_indices(_NODES)] += 1.0
            factors = _Factors(linear)
            step = factors.solve(rest)
            r = r - step
            change = np.abs(step).max()
            if not (change < 1e300):
                break
            if change <= _LAST_STEP * np.abs(r).max():
                return r, factors
        return r, None

    def refined(self, factors: _Factors, slope: dd.Pair, end: dd.Pair, x: dd.Pair) -> dd.Pair:
        """One refinement of ``x = end - h B slope``."""
        change = dd.add(x, (-end[0], -end[1]))
        integral = dd.multiply(self._integral_pair(slope), _pair(np.array([self.half])))
        return dd.add(x, _pair(-factors.solve(dd.add(change, integral)[0])))

    def _integral(self, x: Float) -> Float:
        total = np.zeros(_NODES)
        for column, value in zip(self.matrix[0], x, strict=True):
            total = total + column * value
        return total

    def _integral_pair(self, x: dd.Pair) -> dd.Pair:
        total = _pair(np.zeros(_NODES))
        for hi, lo, *value in zip(*self.matrix, *x, strict=True):
            total = dd.add(total, dd.multiply((hi, lo), (value[0], value[1])))
        return total


def riccati(
    half: Float,
    potential_hi: Float,
    potential_lo: Float,
    cost: Float,
    guess: Float,
    start: Float,
    matrix_hi: Float,
    matrix_lo: Float,
    refinements: int,
) -> tuple[Float, ...]:
    """Solve ``r' = r^2 - Q``, ``m' = 2 r m - 1``, ``s' = 2 r s - c`` inward, as pairs."""
    shape, square = (half.size, _NODES), (_NODES, _NODES)
    potential, rest = potential_hi.reshape(shape), potential_lo.reshape(shape)
    sources = (np.ones(shape), cost.reshape(shape))
    out = np.full((6, *shape), np.nan)
    ends = [_pair(value) for value in start[:, None]]
    zero = _pair(np.zeros(_NODES))
    with np.errstate(all="ignore"):
        for p in range(half.size - 1, -1, -1):
            panel = _Panel(half[p], (matrix_hi.reshape(square), matrix_lo.reshape(square)))
            first = guess.reshape(shape)[p]
            first = np.where(np.isnan(first), ends[0][0], first)
            found, factors = panel.newton(potential[p], ends[0][0], first)
            if factors is None:
                break
            r = _pair(found)
            for _ in range(refinements):
                slope = dd.add(dd.multiply(r, r), (-potential[p], -rest[p]))
                r = panel.refined(factors, slope, ends[0], r)
            solution = [r]
            for source, end in zip(sources, ends[1:], strict=True):
                x = zero
                for _ in range(refinements + 1):
                    slope = dd.add(dd.multiply((2.0 * r[0], 2.0 * r[1]), x), _pair(-source[p]))
                    x = panel.refined(factors, slope, end, x)
                solution.append(x)
            out[:, p] = np.concatenate(solution)
            ends = [(hi[:1], lo[:1]) for hi, lo in solution]
    return tuple(out)


def _polynomial(terms: Float, v: Float) -> Float:
    """``sum terms[k] v**k`` by Horner's rule."""
    return np.asarray(polyval(v, terms, tensor=False), np.float64)


def ground_state(
    edges: Float,
    center: Float,
    inverse_unit: Float,
    integral_hi: Float,
    integral_lo: Float,
    mills: Float,
    t: Float,
) -> tuple[Float, ...]:
    """The integral of ``r`` as hi and lo, ``r`` and the Mills ratio at ``t``; NaN outside."""
    inside = (t >= edges[0]) & (t <= edges[-1])
    x = np.where(inside, t, edges[0])
    panel = np.minimum(np.searchsorted(edges, x, side="right") - 1, center.size - 1)
    inverse = inverse_unit[panel]
    v = (x - center[panel]) * inverse
    c = integral_hi.reshape(-1, _NODES + 1)[panel].T
    c_lo = integral_lo.reshape(-1, _PAIR_TERMS)[panel].T
    total = _pair(_polynomial(c[_PAIR_TERMS:], v))
    for k in range(_PAIR_TERMS - 1, -1, -1):
        total = dd.add(dd.multiply(total, _pair(v)), (c[k], c_lo[k]))
    slope = _polynomial(np.arange(1.0, _NODES + 1)[:, None] * c[1:], v)
    ratio = _polynomial(mills.reshape(-1, _NODES)[panel].T, v)
    return tuple(np.where(inside, f, np.nan) for f in (*total, slope * inverse, ratio))
