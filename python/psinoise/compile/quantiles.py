"""Tables of quantiles: the tail in the depth of a point, the center in ``1/2 - P(X > t)``.

The depth of ``t > 0`` is ``-log(2 P(X > t))``: 0 at the median, where the logarithm of the quantile
is singular and dyadic panels are at their finest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.compile.panels import Layout, PanelArguments
from psinoise.compile.parts import fit_parts
from psinoise.numerics import double_double as dd
from psinoise.numerics.gauss_legendre import NODES, WEIGHTS

Float = NDArray[np.float64]

LOG2_HI = float.fromhex("0x1.62e42fefa39efp-1")
LOG2_LO = float.fromhex("0x1.abc9e3b39803fp-56")

# Depths from 1/2 to 2048: past every probability that a float64 can hold, and past every tail that
# the sampler can reach.
TAIL = Layout(-1, 12)
_POLISHED = 1e-4
# Laws whose first panel is at least 2**-4 are analytic on the center.
_ANALYTIC = -4


def center_layout(layout: Layout) -> Layout:
    """Panels for ``1/2 - P(X > t)`` from 0 to 1/4; the first is where that of the density is, since
    what is not smooth there is not smooth here."""
    first = min(layout.first_exponent, _ANALYTIC) - 2
    return Layout(first, -2 - first)


class HalfDensity(Protocol):
    """A density and its tail, for ``t >= 0``."""

    @property
    def layout(self) -> Layout:
        """The panels of the density and of the Mills ratio."""

    def log_density(self, t: Float) -> dd.Pair:
        """``log p(t)`` as hi + lo."""

    def log_mills(self, t: Float) -> Float:
        """``log(P(X > t) / p(t))``."""


class FarTail(NamedTuple):
    """The quantile of a heavy tail beyond the tables."""

    depth: float
    """``-log(2 P(X > t))`` from which it serves."""
    log_quantile: Callable[[Float], dd.Pair]
    """``log t`` from the depth of ``t``; ``t`` may overflow float64."""


class HalfLaw(HalfDensity, Protocol):
    """What the compiler needs of a standardized law."""

    @property
    def breaks(self) -> tuple[float, ...]:
        """Points ``t > 0`` where ``log p`` has kinks in some derivative, ascending."""

    @property
    def costly(self) -> bool:
        """True if the formulas cost far more than the tables made of them."""

    @property
    def fit_tolerance(self) -> float:
        """Largest error of a fit relative to ``max(1, |value|)``: a little above the rounding of
        the formulas."""

    @property
    def far_tail(self) -> FarTail | None:
        """What serves where the tables do not reach; None where they reach a depth of 2048."""


def _log_survival(law: HalfDensity, t: Float) -> tuple[dd.Pair, Float]:
    """``log(2 P(X > t))``: minus the depth; and the logarithm of the Mills ratio."""
    doubled = dd.add(law.log_density(t), (np.full_like(t, LOG2_HI), np.full_like(t, LOG2_LO)))
    log_mills = law.log_mills(t)
    return dd.add(doubled, (log_mills, np.zeros_like(t))), log_mills


def _exp(pair: dd.Pair) -> Float:
    return core.exponential(np.ascontiguousarray(pair[0]), np.ascontiguousarray(pair[1]))


def _depths(law: HalfLaw) -> tuple[float, ...]:
    """Depths of the breaks."""
    if not law.breaks:
        return ()
    (hi, lo), _ = _log_survival(law, np.array(law.breaks))
    return tuple((-(hi + lo)).tolist())


def _centers(law: HalfLaw) -> tuple[float, ...]:
    """``1/2 - P(X > t)`` of the breaks."""
    if not law.breaks:
        return ()
    return tuple(_CentralMass(law)(np.array(law.breaks)).tolist())


def tail_quantile(law: HalfLaw, nearly: HalfDensity) -> PanelArguments:
    """``log t`` as a function of the depth of ``t``.

    ``nearly`` is the law or an approximation of it, on which Newton's method runs; what that leaves
    is corrected to first order from the formulas of the law.
    """

    # A law that needs finer panels has bends in its quantiles that no polynomial follows: the
    # kernels take this table as the start of Newton's method then (csrc/math/panels.hpp).
    bits = law.layout.bits
    polished = bits > TAIL.bits
    exact = nearly if polished else law

    def near_quantile(target: Float) -> dd.Pair:
        low, high = _bracket(nearly, target, law.layout.limit)
        t = high.copy()
        for _ in range(60):
            (hi, lo), log_mills = _log_survival(nearly, t)
            excess = (hi + target) + lo  # positive where t is too small
            low = np.where(excess >= 0.0, t, low)
            high = np.where(excess <= 0.0, t, high)
            step = excess * _exp((log_mills, np.zeros_like(t)))
            proposal = t + step
            inside = (proposal > low) & (proposal < high)
            settled = np.abs(step) <= 2.0**-50 * t
            moved = np.where(inside, proposal, low + 0.5 * (high - low))
            t = np.where(settled, t, moved)
            if settled.all():
                break
        # What rounding t has left over, as a relative correction in the low part.
        (hi, lo), log_mills = _log_survival(exact, t)
        rest = ((hi + target) + lo) * _exp((log_mills, np.zeros_like(t)))
        return core.logarithm(t), rest / t

    tail = law.far_tail

    def log_quantile(target: Float) -> dd.Pair:
        target = np.maximum(target, 0.5)  # panel 0 is never asked for: a constant will do
        far = np.zeros(target.shape, bool) if tail is None else target > tail.depth
        out = np.empty((2, target.size))
        if not far.all():
            out[:, ~far] = near_quantile(target[~far])
        if tail is not None and far.any():
            out[:, far] = tail.log_quantile(target[far])
        return out[0], out[1]

    tolerance = _POLISHED if polished else law.fit_tolerance
    layout = TAIL._replace(bits=bits)
    return fit_parts((log_quantile,), layout, _depths(law), lambda depth: depth, tolerance)[0]


def _bracket(law: HalfDensity, target: Float, limit: float) -> tuple[Float, Float]:
    grid = np.concatenate([[0.0], 2.0 ** np.arange(-60.0, np.log2(limit))])
    values = -_log_survival(law, grid)[0][0]
    above = np.searchsorted(values, target)
    if above.max() >= grid.size:
        raise ValueError("the tables of a law must reach a depth of 2048")
    return grid[np.maximum(above - 1, 0)], grid[above]


def central_quantile(law: HalfLaw) -> PanelArguments:
    """``t / v`` as a function of ``v = 1/2 - P(X > t)``."""
    peak = float(_exp(law.log_density(np.zeros(1)))[0])
    central_mass = _CentralMass(law)

    def ratio(v: Float) -> dd.Pair:
        t = v / peak
        moving = np.arange(t.size)
        for _ in range(12):
            here = t[moving]
            mass = central_mass(here)
            there = here - (mass - v[moving]) / _exp(law.log_density(here))
            t[moving] = there
            # A fixed point stays one.
            moving = moving[there != here]
        # One more step, kept as a low part.
        rest = (v - central_mass(t)) / _exp(law.log_density(t))
        hi, lo = dd.divide(t, v)
        return hi, lo + rest / v

    layout = center_layout(law.layout)
    return fit_parts((ratio,), layout, _centers(law), np.zeros_like, law.fit_tolerance)[0]


class _CentralMass:
    """``P(0 < X < t)`` for ``t`` up to about the quartile, without a difference of tails."""

    def __init__(self, law: HalfLaw) -> None:
        self.law = law
        first = law.layout.first_exponent
        # One rule from 0 is enough for laws that are analytic up to there. For the others, masses
        # up to octaves and breaks come first, and the rule begins at the last of them.
        graded = 2.0 ** np.arange(first, 5.0) if first < _ANALYTIC else np.zeros(0)
        self.octaves = np.union1d(graded, np.array(law.breaks)) if law.breaks else graded
        edges = np.concatenate([[0.0], self.octaves])
        self.starts = edges
        self.masses = np.concatenate([[0.0], np.cumsum(self._between(edges[:-1], edges[1:]))])

    def __call__(self, t: Float) -> Float:
        octave = np.searchsorted(self.octaves, t, side="right")
        return self.masses[octave] + self._between(self.starts[octave], t)

    def _between(self, start: Float, end: Float) -> Float:
        half = 0.5 * (end - start)
        nodes = (start + half) + half * np.array(NODES)[:, None]
        # One call for all nodes; the sum keeps the order of the rule.
        hi, lo = self.law.log_density(nodes.reshape(-1))
        density = _exp((hi, lo)).reshape(nodes.shape)
        total = np.zeros_like(half)
        for weight, values in zip(WEIGHTS, density, strict=True):
            total = total + weight * values
        return total * half
