"""Ground states of Schrodinger operators: twins of ``csrc/kernels/riccati.cpp`` and
``csrc/kernels/ground_state.cpp``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]
Six = tuple[Float, Float, Float, Float, Float, Float]

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
            lu[k + 1 :, k] = lu[k + 1 :, k] / lu[k, k]
            lu[k + 1 :, k + 1 :] -= lu[k + 1 :, k, None] * lu[k, k + 1 :]

    def solve(self, right: Float) -> Float:
        x = right.copy()
        for k, best in enumerate(self.pivots):
            x[k], x[best] = x[best], x[k]
        for k in range(_NODES):
            x[k + 1 :] -= self.lu[k + 1 :, k] * x[k]
        for k in range(_NODES - 1, -1, -1):
            x[k] = x[k] / self.lu[k, k]
            x[:k] -= self.lu[:k, k] * x[k]
        return x


def _pair(value: float) -> dd.Pair:
    return np.array([value]), np.zeros(1)


class _Integration:
    """The integration matrix; its columns are contiguous, as in the kernel."""

    def __init__(self, hi: Float, lo: Float) -> None:
        self.hi = hi.reshape(_NODES, _NODES)
        self.lo = lo.reshape(_NODES, _NODES)

    def factors(self, half: float, r: Float) -> _Factors:
        matrix = np.ascontiguousarray((self.hi * (2.0 * half * r)[:, None]).T)
        matrix[np.diag_indices(_NODES)] += 1.0
        return _Factors(matrix)

    def times(self, x: Float) -> Float:
        total = np.zeros(_NODES)
        for k in range(_NODES):
            total = total + self.hi[k] * x[k]
        return total

    def times_pair(self, x: dd.Pair) -> dd.Pair:
        total = (np.zeros(_NODES), np.zeros(_NODES))
        for k in range(_NODES):
            entry = (x[0][k : k + 1], x[1][k : k + 1])
            total = dd.add(total, dd.multiply((self.hi[k], self.lo[k]), entry))
        return total


def _newton(
    b: _Integration, half: float, potential: Float, end: float, r: Float
) -> tuple[Float, _Factors | None]:
    for _ in range(_MOST_STEPS):
        rest = (r - end) + half * b.times(r * r - potential)
        factors = b.factors(half, r)
        step = factors.solve(rest)
        r = r - step
        change = np.abs(step).max()
        if not (change < 1e300):
            return r, None
        if change <= _LAST_STEP * np.abs(r).max():
            return r, factors
    return r, None


def _refined(
    b: _Integration, half: float, factors: _Factors, slope: dd.Pair, end: dd.Pair, x: dd.Pair
) -> dd.Pair:
    """One refinement of ``x = end - h B slope``."""
    change = dd.add(x, (-end[0], -end[1]))
    residual = dd.add(change, dd.multiply(b.times_pair(slope), _pair(half)))
    return dd.add(x, (-factors.solve(residual[0]), np.zeros(_NODES)))


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
) -> Six:
    """Solve ``r' = r^2 - Q``, ``m' = 2 r m - 1``, ``s' = 2 r s - c`` inward, as pairs."""
    b = _Integration(matrix_hi, matrix_lo)
    shape = (half.size, _NODES)
    out: Six = tuple(np.full(shape, np.nan) for _ in range(6))  # type: ignore[assignment]
    ends = [_pair(value) for value in start]
    zero = np.zeros(_NODES)
    potential = (-potential_hi.reshape(shape), -potential_lo.reshape(shape))
    sources = (-np.ones(shape), -cost.reshape(shape))
    with np.errstate(all="ignore"):
        for p in range(half.size - 1, -1, -1):
            h = float(half[p])
            first = guess.reshape(shape)[p]
            first = np.where(np.isnan(first), ends[0][0], first)
            found, factors = _newton(b, h, -potential[0][p], float(ends[0][0][0]), first)
            if factors is None:
                break
            r = (found, zero)
            for _ in range(refinements):
                slope = dd.add(dd.multiply(r, r), (potential[0][p], potential[1][p]))
                r = _refined(b, h, factors, slope, ends[0], r)
            solution = [r]
            doubled = (2.0 * r[0], 2.0 * r[1])
            for source, end in zip(sources, ends[1:], strict=True):
                x = (zero, zero)
                for _ in range(refinements + 1):
                    slope = dd.add(dd.multiply(doubled, x), (source[p], zero))
                    x = _refined(b, h, factors, slope, end, x)
                solution.append(x)
            for i, (hi, lo) in enumerate(solution):
                out[2 * i][p], out[2 * i + 1][p] = hi, lo
            ends = [(hi[:1], lo[:1]) for hi, lo in solution]
    return out


def ground_state(
    edges: Float,
    center: Float,
    inverse_unit: Float,
    integral_hi: Float,
    integral_lo: Float,
    mills: Float,
    t: Float,
) -> tuple[Float, Float, Float, Float]:
    """The integral of ``r`` as hi and lo, ``r`` and the Mills ratio at ``t``; NaN outside."""
    inside = (t >= edges[0]) & (t <= edges[-1])
    x = np.where(inside, t, edges[0])
    panel = np.minimum(np.searchsorted(edges, x, side="right") - 1, center.size - 1)
    inverse = inverse_unit[panel]
    v = (x - center[panel]) * inverse
    c = integral_hi.reshape(-1, _NODES + 1)[panel].T
    c_lo = integral_lo.reshape(-1, _PAIR_TERMS)[panel].T
    ratio = mills.reshape(-1, _NODES)[panel].T
    zero = np.zeros_like(x)
    slope, tail, value = zero, zero, zero
    for k in range(_NODES, 0, -1):
        slope = slope * v + float(k) * c[k]
    for k in range(_NODES, _PAIR_TERMS - 1, -1):
        tail = tail * v + c[k]
    total = (tail, zero)
    for k in range(_PAIR_TERMS - 1, -1, -1):
        total = dd.add(dd.multiply(total, (v, zero)), (c[k], c_lo[k]))
    for k in range(_NODES - 1, -1, -1):
        value = value * v + ratio[k]
    found = (total[0], total[1], slope * inverse, value)
    return tuple(np.where(inside, f, np.nan) for f in found)  # type: ignore[return-value]
