"""Few uses, sampled or not: losses convolved, where contour integrals do not settle.

Losses of few uses of a law with steps take few values, and the largest ones decide; a part of delta
goes to places whose losses are larger by far. Of many uses at most one has such a loss, or else
all is lost. The others are put on a lattice, each on its two neighbors with their mean, which
changes delta by the square of the spacing, and convolved in a window that has all but a rounding of
their sum. Sums of rare losses come from weights ``exp(c L)``, those of frequent ones from none;
what is below the rounding of all of them is left out.

Let ``P_j`` and ``Q_j`` be the probabilities of the loss ``l_j`` of all uses but one. As a function
of the ratio ``m`` of the one that is left delta is

    f(m) = sum over j of (m P_j - exp(eps) Q_j)^+

if the law that was moved is the first of the pair, and with ``(P_j - m exp(eps) Q_j)^+`` in the
other direction. Both are convex and piecewise linear, and every set of losses gives a line below
them, of the sums of ``P_j`` and ``exp(eps) Q_j`` over it; those of the largest losses, and mixtures
of these, are the highest ones of their slopes. So slopes may come from a smooth function, and lines
are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise._kept import cached_property
from psinoise.optimize.cells import dot
from psinoise.optimize.unimodal.generator import Generator, Tangent
from psinoise.optimize.unimodal.program import Float
from psinoise.optimize.unimodal.uses import Point, Uses

__all__ = ["KERNELS", "FewUses"]

# Nodes of all uses up to so many uses, and at most: what the lattice adds to the variance of the
# loss is that of one use times the uses.
_NODES, _MANY, _MOST_NODES = 1 << 16, 1024, 1 << 18
# A loss that is infinite, and the least range of losses.
_INFINITE, _SMALLEST = 60.0, 1e-9
# The share of delta that two losses beyond the lattice may have, and bins of those.
_TWICE, _BINS = 1e-4, 32
# Minus the logarithm of the probability of sums beyond the window; orders of Chernoff's bound over
# the range of losses, and bins of losses for it.
_LEFT_OUT, _ORDERS, _COARSE = 32.0, np.geomspace(0.1, 1e3, 64), 1024
# Deviations between two weights, the largest exponent, and what of a transform is rounding.
_DEVIATIONS, _LARGEST, _ROUNDING = 10.0, 600.0, 1e-13
_HALVINGS = 60
# Nodes of the smooth function, and its least share of the largest value; thresholds of the sums
# that lines are made of.
_SMOOTH, _LEAST, _THRESHOLDS = 4800, 1e-12, 20_000
#: Nodes of the kernels that it is smoothed with.
KERNELS = (3, 33, 333)
# Losses that are looked up at a time.
_BLOCK = 1 << 12


class _OneUse(NamedTuple):
    """Losses of one use that are on the lattice, from one to another, with their masses."""

    loss: Float
    mass: Float
    bottom: float
    top: float

    def near(self, step: float) -> tuple[int, Float]:
        """The number of the first node, and masses of nodes at multiples of a step."""
        place = self.loss / step
        low = np.floor(place).astype(np.intp)
        share = place - low
        first = int(low.min())
        low -= first
        nodes = int(low.max()) + 2
        masses = np.bincount(low, self.mass * (1.0 - share), nodes)
        masses += np.bincount(low + 1, self.mass * share, nodes)
        return first, np.asarray(masses, dtype=np.float64)

    def window(self, count: int, tilt: float) -> tuple[float, float]:
        """Between what the sum of so many losses is, with weights ``exp(tilt L)`` or none."""
        spread = self.top - self.bottom
        bins = np.minimum(_COARSE * (self.loss - self.bottom) / spread, _COARSE - 1)
        masses = np.bincount(bins.astype(np.intp), self.mass, _COARSE)
        known = masses > 0.0
        log_masses, bins = np.log(masses[known]), np.flatnonzero(known)

        def cumulants(orders: Float, end: int) -> Float:
            exponents = log_masses + np.multiply.outer(orders, bins + end) * (spread / _COARSE)
            top = exponents.max(axis=1)
            return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))

        # Losses rounded up bound a sum from above, and rounded down from below.
        orders = _ORDERS / spread
        before = cumulants(np.array([tilt]), 0)
        above = (_LEFT_OUT + count * (cumulants(tilt + orders, 1) - before)) / orders
        below = (_LEFT_OUT + count * cumulants(-orders, 0)) / -orders
        return (
            count * self.bottom + max(float(below.max()), 0.0),
            count * self.bottom + min(float(above.min()), count * spread),
        )


class _Far(NamedTuple):
    """Losses beyond the lattice, in bins, with their masses, and the mass of an infinite one."""

    loss: Float
    mass: Float
    infinite: float


class _Sums(NamedTuple):
    """Probabilities of losses that are at least a node, under both laws; after the last node 0."""

    first: float
    step: float
    mass: Float
    other: Float

    def above(self, loss: Float) -> tuple[Float, Float]:
        """Sums over losses above some."""
        node = np.floor((loss - self.first) / self.step + 1e-9) + 1.0
        place = np.clip(node, 0.0, self.mass.size - 1.0).astype(np.intp)
        return self.mass[place], self.other[place]


def _quantile(loss: Float, mass: Float, rare: float) -> float:
    """The first of some losses, in their order, up to which the mass is more than rare."""
    return float(loss[min(int(np.searchsorted(np.cumsum(mass), rare)), loss.size - 1)])


@dataclass(frozen=True, eq=False)
class FewUses(Uses):
    """A few uses in one direction.

    Parameters
    ----------
    delta : float
        What losses are looked at for.
    """

    delta: float

    @cached_property
    def _losses(self) -> tuple[_OneUse, _Far]:
        """Of one use: those that are frequent, and the larger ones."""
        with np.errstate(divide="ignore"):
            loss = np.log(self.ratio)
        mass = self.base if self.add else self.base * self.ratio
        loss = -loss if self.add else loss
        order = np.argsort(loss)
        loss, mass = loss[order], mass[order]
        rare = math.sqrt(2.0 * _TWICE * self.delta) / self.count
        top = min(_quantile(loss[::-1], mass[::-1], rare), _INFINITE)
        bottom = min(max(_quantile(loss, mass, rare), -_INFINITE), top - _SMALLEST)
        near, infinite = loss <= top, loss > _INFINITE
        far = ~near & ~infinite
        return (
            _OneUse(np.maximum(loss[near], bottom), mass[near], bottom, top),
            _Far(*_gathered(loss[far], mass[far], top), float(mass[infinite].sum())),
        )

    @cached_property
    def _tilts(self) -> Float:
        """Weights whose sums join: of a normal loss each is seen within eight deviations."""
        use = self._losses[0]
        # The order of losses that are never exceeded has no bound.
        order = min(self.order_at(self.delta), _LARGEST / (use.top - use.bottom))
        return np.linspace(
            0.0, order, 2 + int(math.sqrt(-2.0 * math.log(self.delta)) / _DEVIATIONS)
        )

    @cached_property
    def _window(self) -> tuple[float, float]:
        """Between what the losses of all uses are, and of all but one."""
        use, tilt = self._losses[0], float(self._tilts[-1])
        ends = [use.window(count, tilt) for count in (self.count - 1, self.count)]
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        return low, max(high, low + use.top - use.bottom)

    @cached_property
    def _nodes(self) -> int:
        more = max(1, self.count // _MANY)
        return min(_NODES << (more.bit_length() - 1), _MOST_NODES)

    @cached_property
    def _step(self) -> float:
        # Sums of the largest loss are exact where it is a node.
        low, high = self._window
        least = (high - low) / (self._nodes - 2 - 2 * self._spare)
        largest = self._losses[0].top
        return largest / math.floor(largest / least) if largest > least else least

    @property
    def _spare(self) -> int:
        """Nodes beyond the window on either side: of a loss between two nodes the sum of all uses
        is up to a node for each of them beyond it, and would come in on the other side."""
        return min(self.count, _MANY)

    @cached_property
    def _about(self) -> float:
        """Around epsilon: probabilities under the second law are in units of ``exp`` of minus it,
        so that they are numbers at every epsilon that matters."""
        return min(max(self.count * self._cumulants(float(self._tilts[-1]))[1], 0.0), self._highest)

    @property
    def _highest(self) -> float:
        """What no loss that is finite exceeds."""
        return max(self._window[1] + float(self._losses[1].loss.max(initial=0.0)), 0.0)

    def _grown(self, epsilon: float) -> float:
        """``exp(epsilon)`` for probabilities under the second law."""
        return math.exp(min(epsilon - self._about, _LARGEST))

    @cached_property
    def _transforms(self) -> tuple[int, list[tuple[float, float, NDArray[np.complex128]]]]:
        """The number of the first node of one use, and of its masses with weights, whose sum is 1:
        the exponent of the weights, the logarithm of the sum before, and the transform."""
        first, masses = self._losses[0].near(self._step)
        places = self._step * (np.arange(masses.size) + 1.0 - masses.size)
        last = self._step * (first + masses.size - 1.0)
        found = []
        for tilt in self._tilts.tolist():
            weighted = masses * np.exp(tilt * places)
            total = float(weighted.sum())
            transform = np.fft.rfft(weighted / total, self._nodes)
            found.append((tilt, math.log(total) + tilt * last, transform))
        return first, found

    @cached_property
    def _sums(self) -> tuple[_Sums, _Sums]:
        """Of all uses but one, and of all, whose losses are on the lattice."""
        begin = math.floor(self._window[0] / self._step) - self._spare
        losses = self._step * (begin + np.arange(self._nodes))
        first, transforms = self._transforms
        masses = np.zeros((2, self._nodes))
        for tilt, log_total, transform in transforms:
            power = _power(transform, self.count - 1)
            for count, mass in zip((self.count - 1, self.count), masses, strict=True):
                whole = np.roll(np.fft.irfft(power), count * first - begin)
                seen = whole > _ROUNDING * whole.max()
                exponents = count * log_total - tilt * losses[seen]
                mass[seen] = whole[seen] * np.exp(np.minimum(exponents, _LARGEST))
                power = power * transform
        falls = np.exp(np.minimum(self._about - losses, _LARGEST))
        but_one, every = (
            _Sums(float(losses[0]), self._step, _from_above(mass), _from_above(mass * falls))
            for mass in masses
        )
        return but_one, every

    def _near(self, count: int) -> _Sums:
        """Of so many uses whose losses are on the lattice."""
        return self._sums[count + 1 - self.count]

    def _above(self, count: int, loss: Float) -> tuple[Float, Float]:
        """Probabilities of losses of so many uses above some, under both laws."""
        far = self._losses[1]
        mass, other = self._near(count).above(loss)
        beyond = float(far.mass.sum()) + far.infinite
        mass = mass + (count * far.infinite + 0.5 * count * (count - 1) * beyond**2)
        if far.loss.size:
            rest = self._near(count - 1)
            weights = count * far.mass
            falls = weights * np.exp(-far.loss)
            for begin in range(0, loss.size, _BLOCK):
                part = slice(begin, begin + _BLOCK)
                more, less = rest.above(loss[None, part] - far.loss[:, None])
                mass[part] += weights @ more
                other[part] = other[part] + falls @ less
        return mass, other

    def _sets(self, point: Point, log_ratios: Float) -> tuple[Float, Float]:
        """Probabilities under the first law, and under the second times ``exp(epsilon)``, of the
        losses of all uses but one that count where the ratio of that one is given."""
        signed = log_ratios if self.add else -log_ratios
        mass, other = self._above(self.count - 1, point.epsilon + signed)
        return mass, self._grown(point.epsilon) * other

    def _line_below(self, mass: Float, other: Float) -> tuple[Float, Float]:
        """The line of a set of losses: its value at 0 and its slope."""
        return (mass, -other) if self.add else (-other, mass)

    def at_delta(self, delta: float) -> Point:
        """Epsilon at a delta; about, to the square of the lattice's spacing."""
        low, high = 0.0, self._highest
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            mass, other = self._above(self.count, np.array([middle]))
            more = float(mass[0] - self._grown(middle) * other[0]) > delta
            low, high = (middle, high) if more else (low, middle)
        return Point(high, self.order_at(delta))

    def _unit(self, point: Point) -> float:
        """The number of uses over the slope of delta in epsilon."""
        _, other = self._above(self.count, np.array([point.epsilon]))
        return self.count / max(self._grown(point.epsilon) * float(other[0]), 1e-300)

    def value(self, point: Point, generator: Generator) -> float:
        """Delta, by the function as it is, in units of epsilon."""
        return self._value_of(point, self.base, self.ratio)

    def _value_of(self, point: Point, base: Float, ratio: Float) -> float:
        """What it is if one of the uses is another pair."""
        at_zero, slope = self._line_below(*self._sets(point, np.log(ratio)))
        return self._unit(point) * dot(base, at_zero + slope * ratio)

    def may_fall(self, point: Point, base: Float, ratio: Float) -> bool:
        """Whether delta is less if one of the uses is another pair."""
        return self._value_of(point, base, ratio) < self._value_of(point, self.base, self.ratio)

    def divergence(self, point: Point) -> float:
        """Delta, by the losses of all uses, in units of epsilon."""
        mass, other = self._above(self.count, np.array([point.epsilon]))
        return self._unit(point) * float(mass[0] - self._grown(point.epsilon) * other[0])

    def generator(self, point: Point, low: float, end: float, smoothed: int = 0) -> Generator:
        """A smooth function near the one of delta: probabilities of losses around nodes."""
        step = (end - low) / _SMOOTH
        nodes = step * np.arange(np.floor(low / step), np.ceil(end / step) + 1.0)
        borders = np.append(nodes - 0.5 * step, nodes[-1] + 0.5 * step)
        mass, _ = self._sets(point, borders)
        kernel = np.hanning(KERNELS[smoothed] + 2)[1:-1]
        jumps = np.convolve(np.abs(np.diff(mass)), kernel / kernel.sum(), "same")
        density = np.maximum(jumps, _LEAST * float(jumps.max())) / step
        levels = np.log(self._unit(point) * np.maximum(density, 1e-300))
        return Generator(nodes, levels - (2.0 if self.add else 1.0) * nodes, np.zeros(0), end)

    def tangent(self, point: Point, generator: Generator) -> Tangent:
        """Lines below ``f`` with the slopes of a smooth function near it."""
        places = np.linspace(float(generator.nodes[0]), float(generator.nodes[-1]), _THRESHOLDS)
        at_zero, slopes = self._line_below(*self._sets(point, places))
        unit = self._unit(point)
        at_zero, slopes = unit * at_zero, unit * slopes
        offset = slopes[0] - float(generator(np.exp(places[:1]))[1][0])

        def lines(ratio: Float) -> tuple[Float, Float]:
            slope = np.clip(generator(ratio)[1] + offset, slopes[0], slopes[-1])
            return np.interp(slope, slopes, at_zero), slope

        return lines


def _power(transform: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """By squares, which take less time than logarithms."""
    found = transform
    for digit in f"{count:b}"[1:]:
        found = found * found
        if digit == "1":
            found = found * transform
    return found


def _from_above(mass: Float) -> Float:
    """Sums from each node on, and 0 after the last one."""
    return np.append(np.cumsum(mass[::-1])[::-1], 0.0)


def _gathered(loss: Float, mass: Float, top: float) -> tuple[Float, Float]:
    """Losses above some in bins that grow with the distance."""
    if not loss.size:
        return loss, mass
    place = np.log(np.maximum(loss - top, 1e-6 * abs(top)))
    spread = max(float(np.ptp(place)), 1e-9)
    bins = np.minimum(_BINS * (place - place.min()) / spread, _BINS - 1).astype(np.intp)
    masses = np.asarray(np.bincount(bins, mass), dtype=np.float64)
    known = masses > 0.0
    return np.bincount(bins, mass * loss)[known] / masses[known], masses[known]
