"""Panels on the half line that a cost is smooth on: graded at 0, geometric in the tail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.ground_state._collocation import NODES, SIZE, matrices
from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]
PairFunction = Callable[[Float], dd.Pair]

# Below this exponent whole octaves do; above, panels of half an octave, whose Bernstein ellipses
# for a singularity at 0 have a parameter of at least 9.9: 20 nodes leave 1e-20.
_OCTAVES_BELOW = -6
_FINEST = -30
# Where x r exceeds this, the layer before a breakpoint is narrower than a panel: it is cut at these
# multiples of 1 / r, up to where it is exp(-36).
_LAYER_DEPTH = 6.0
_LAYER_STEPS = (0.2, 0.45, 0.75, 1.1, 1.5, 2.0, 2.6, 3.3, 4.2, 5.3, 6.8, 9.0, 12.0, 18.0)
# A cost below this exponent counts as smooth if its deviation from a polynomial changes log p by
# less than this.
_NEGLIGIBLE = 1e-19
# The share that a cost's last coefficients may make on a panel that is cut for it, what is rounding
# of its values, and how often such a panel is halved.
_SHARE, _ROUNDING, _MOST_HALVINGS = 1e-17, 2.0**-46, 48
_MOST_PANELS, _DEEPEST = 8192, 1e9
# Panels narrower than this share of where they begin are cut for the sake of a cost.
_NARROW = 1.0 / 48.0
# How far the polynomial of a panel is followed beyond its end, in half panels, and by which
# share of the cost it then misses if there is a kink.
_BEYOND, _KINK = 0.05, 1e-8


class Unresolved(Exception):
    """A cost is smooth nowhere near a place, which it carries, in natural units."""

    def __init__(self, place: float) -> None:
        super().__init__(place)
        self.place = place


@dataclass(frozen=True, eq=False)
class Mesh:
    """Panels and the cost at their nodes, in natural units."""

    edges: Float
    cost_hi: Float
    cost_lo: Float

    @property
    def half(self) -> Float:
        """Half widths."""
        return 0.5 * np.diff(self.edges)

    @property
    def center(self) -> Float:
        """Centers."""
        return self.edges[:-1] + self.half

    @property
    def narrow(self) -> Float:
        """Ends of panels that are narrow for the place where they are."""
        at = np.flatnonzero(np.diff(self.edges) < _NARROW * self.edges[:-1])
        return np.asarray(self.edges[np.union1d(at, at + 1)])

    @property
    def kinks(self) -> Float:
        """Edges at which the polynomials of the cost on either side do not go on in each other.

        The first panel, which may hold a cusp, is not asked.
        """
        half, powers = self.half, np.arange(SIZE)
        inner, outer = slice(1, -1), slice(2, None)
        step = _BEYOND * np.minimum(half[inner], half[outer])
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients = self.cost_hi @ matrices().values[0].T
            u = (1.0 + step / half[inner])[:, None] ** powers
            w = (-1.0 + step / half[outer])[:, None] ** powers
            followed = (coefficients[inner] * u).sum(axis=1)
            found = (coefficients[outer] * w).sum(axis=1)
            size = np.abs(self.cost_hi[outer]).max(axis=1)
            bent = np.abs(followed - found) > _KINK * size
        return np.asarray(self.edges[2:-1][bent])

    def until(self, count: int) -> Mesh:
        """The first panels alone."""
        return Mesh(self.edges[: count + 1], self.cost_hi[:count], self.cost_lo[:count])


def evaluate(cost: PairFunction, edges: Float) -> Mesh:
    """The cost at the nodes of panels between the edges."""
    half = 0.5 * np.diff(edges)
    nodes = (edges[:-1] + half)[:, None] + half[:, None] * NODES
    with np.errstate(over="ignore"):
        hi, lo = cost(nodes.reshape(-1))
    return Mesh(edges, hi.reshape(nodes.shape), lo.reshape(nodes.shape))


def smooth_exponent(
    cost: PairFunction, theta: float, degree: int, candidates: Float, order: int
) -> int:
    """The largest of some exponents ``e`` such that the cost is a polynomial of the degree on
    ``[0, 2**e]``: to what its integral (order 1) or second integral (order 2) does not show."""
    points = -np.cos(np.pi * (2.0 * np.arange(degree + 1) + 1.0) / (2.0 * degree + 2.0))
    checks = np.array([-0.99, -0.9, 0.1, 0.95])
    # Barycentric weights of the Chebyshev points; a check needs few digits.
    weights = (-1.0) ** np.arange(degree + 1) * np.sin(np.arccos(points))
    ratio = weights / (checks[:, None] - points)
    ratio /= ratio.sum(axis=1, keepdims=True)
    half = 0.5 * 2.0**candidates
    t = half[:, None] * (1.0 + np.concatenate([points, checks]))
    values = cost(t.reshape(-1))[0].reshape(t.shape)
    error = np.abs(values[:, : degree + 1] @ ratio.T - values[:, degree + 1 :]).max(axis=1)
    rounding = 8.0 * 2.0**-53 * np.abs(values).max(axis=1)
    fits = (theta * error * (half / degree**2) ** order <= _NEGLIGIBLE) | (error <= rounding)
    return int(candidates[np.flatnonzero(fits)[-1]]) if fits.any() else int(candidates[0])


def first_edges(first: int, last: int, breakpoints: tuple[float, ...]) -> Float:
    """Edges 0, 2**first, octaves, half octaves up to 2**last, and the breakpoints."""
    octaves = 2.0 ** np.arange(first, min(_OCTAVES_BELOW, last))
    exponents = np.arange(max(first, _OCTAVES_BELOW), last)
    upper = (2.0 ** exponents[:, None] * np.array([1.0, 1.5])).reshape(-1)
    edges = np.concatenate([[0.0], octaves, upper, [2.0**last]])
    inner = [point for point in breakpoints if 0.0 < point < edges[-1]]
    if not inner:
        return edges
    # An edge close to a break would only add a sliver.
    gap = np.abs(edges[:, None] - np.array(inner)).min(axis=1)
    keep = (gap > 0.05 * edges) | (edges == 0.0)
    keep[-1] = True
    return np.unique(np.concatenate([edges[keep], inner]))


def layer_edges(breakpoints: Iterable[float], decay: Iterable[float]) -> list[float]:
    """Points that grade the layers before breakpoints.

    Below a breakpoint ``b`` far out, what a solution inherits from beyond it dies like
    ``exp(-2 r (b - t))``, faster than half octaves and panels of tables can follow.
    """
    return [
        b - step / r
        for b, r in zip(breakpoints, decay, strict=True)
        if r * b > _LAYER_DEPTH
        for step in _LAYER_STEPS
        if step < 0.9 * r * b
    ]


def with_edges(cost: PairFunction, mesh: Mesh, points: list[float]) -> Mesh:
    """The mesh with more edges."""
    return evaluate(cost, np.union1d(mesh.edges, np.array(points))) if points else mesh


def refined(cost: PairFunction, mesh: Mesh, panels: NDArray[np.intp], theta: float) -> Mesh:
    """The mesh with some panels cut in two, and their parts halved where the cost is not smooth."""
    left = np.concatenate([mesh.edges[panels], mesh.center[panels]])
    right = np.concatenate([mesh.center[panels], mesh.edges[panels + 1]])
    cuts = _halved(cost, left, right, theta)
    return evaluate(cost, np.unique(np.concatenate([mesh.edges, mesh.center[panels], cuts])))


def towards_kinks(cost: PairFunction, mesh: Mesh, theta: float) -> Mesh:
    """The mesh with panels halved where the cost is not smooth: towards kinks and steps.

    Not the first one, which is as small as a cusp at 0 needs.
    """
    cuts = _halved(cost, mesh.edges[1:-1], mesh.edges[2:], theta)
    return evaluate(cost, np.union1d(mesh.edges, cuts)) if cuts.size else mesh


def _halved(cost: PairFunction, left: Float, right: Float, theta: float) -> Float:
    """Where to halve intervals, again and again, until the energy does not see that the cost is no
    polynomial on them: that changes it by about ``theta half last p``, ``last`` being the last
    coefficients of the cost."""
    cuts = [np.zeros(0)]
    for _ in range(_MOST_HALVINGS):
        half = 0.5 * (right - left)
        nodes = (left + half)[:, None] + half[:, None] * NODES
        with np.errstate(over="ignore", invalid="ignore"):
            values = cost(nodes.reshape(-1))[0].reshape(nodes.shape)
            last = np.abs(values @ matrices().values[0][-2:].T) @ np.array([2.0, 1.0])
            last *= 2.0 ** (2 - SIZE)
            size = np.abs(values).max(axis=1)
            depth = np.maximum(1.0, right * np.sqrt(theta * size))
            rough = theta * half * last > _SHARE * SIZE * depth
            rough &= (last > _ROUNDING * size) & (half > 2.0**-50 * right)
            rough &= (left > 0.0) & (depth < _DEEPEST)
        if not rough.any():
            break
        if left.size + sum(cut.size for cut in cuts) > _MOST_PANELS:
            raise Unresolved(float(left[rough][0]))
        middle = left[rough] + half[rough]
        cuts.append(middle)
        left = np.concatenate([left[rough], middle])
        right = np.concatenate([middle, right[rough]])
    return np.concatenate(cuts)
