"""Few uses without sampling: losses convolved, where contour integrals do not settle.

Losses of few uses of a law with steps take few values, and the largest ones decide; a part of delta
goes to places whose losses are larger by far. Of many uses at most one has such a loss, or else
all is lost. The others are put on a lattice, each on its two neighbors with their mean, which
changes delta by the square of the spacing. Sums of rare losses come from weights ``exp(c L)``,
those of frequent ones from none; what is below the rounding of both is left out.

Let ``P_j`` and ``Q_j`` be the probabilities of the loss ``l_j`` of all uses but one. As a function
of the ratio ``m`` of the one that is left delta is

    f(m) = sum over j of (m P_j - exp(eps) Q_j)^+,

convex and piecewise linear. Every line below it has a slope ``g`` between 0 and 1 and is at most
``g m - f*(g)``, where the conjugate ``f*(g)`` is ``exp(eps)`` times the least probability under
``Q`` of a set that ``P`` gives ``g``: it joins the sums of ``(P_j, exp(eps) Q_j)`` over the largest
losses. So slopes may come from a smooth function, and lines are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise._kept import cached_property
from psinoise.optimize.cells import dot
from psinoise.optimize.unimodal.generator import Generator, Tangent
from psinoise.optimize.unimodal.program import Float
from psinoise.optimize.unimodal.uses import Point, Uses

__all__ = ["FewUses"]

# Nodes of all uses, and a loss that is infinite.
_NODES = 1 << 16
_INFINITE = 60.0
# The share of delta that two losses beyond the lattice may have, and bins of those.
_TWICE, _BINS = 1e-4, 32
# The least largest loss, the largest exponent, and what of a transform is rounding.
_SMALLEST, _LARGEST, _ROUNDING = 1e-9, 600.0, 1e-13
_HALVINGS = 60
# Nodes of the smooth function, what it is smoothed with, and its least share of the largest value;
# thresholds of the sums that lines are made of.
_SMOOTH, _LEAST, _THRESHOLDS = 1200, 1e-12, 20_000
_KERNEL = np.array([0.25, 0.5, 0.25])
# Losses that are looked up at a time.
_BLOCK = 1 << 12


class _Lattice(NamedTuple):
    """Masses of one use at multiples of a step from ``-top`` to ``top``, losses beyond with their
    probabilities, and the probability of an infinite one."""

    masses: Float
    step: float
    top: float
    far: Float
    far_masses: Float
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


@dataclass(frozen=True, eq=False)
class FewUses(Uses):
    """A few uses, whose two directions are the same.

    Parameters
    ----------
    delta : float
        What losses are looked at for.
    """

    delta: float

    @cached_property
    def _lattice(self) -> _Lattice:
        with np.errstate(divide="ignore"):
            loss = -np.log(self.ratio)
        order = np.argsort(-loss)
        loss, mass = loss[order], self.base[order]
        above = np.cumsum(mass)
        rare = int(np.searchsorted(above, np.sqrt(2.0 * _TWICE * self.delta) / self.count))
        top = max(min(float(loss[min(rare, loss.size - 1)]), _INFINITE), _SMALLEST)
        near, far = loss <= top, (loss > top) & (loss <= _INFINITE)
        # Losses beyond in bins that grow with the distance.
        place = np.log(np.maximum(loss[far] - top, 1e-6 * top)) if far.any() else loss[far]
        bins = np.zeros(place.size, dtype=np.intp)
        if far.any():
            spread = max(float(np.ptp(place)), 1e-9)
            bins = np.minimum(_BINS * (place - place.min()) / spread, _BINS - 1).astype(np.intp)
        far_masses = np.asarray(np.bincount(bins, mass[far]), dtype=np.float64)
        sums = np.bincount(bins, mass[far] * loss[far])
        known = far_masses > 0.0
        loss, mass = np.maximum(loss[near], -top), mass[near]
        nodes = _NODES // self.count
        step = 2.0 * top / (nodes - 1)
        low = np.minimum(((loss + top) / step).astype(np.intp), nodes - 2)
        share = np.clip((loss + top) / step - low, 0.0, 1.0)
        masses = np.zeros(nodes)
        masses += np.bincount(low, mass * (1.0 - share), nodes)
        masses += np.bincount(low + 1, mass * share, nodes)
        infinite = float(self.base.sum()) - float(mass.sum()) - float(far_masses.sum())
        return _Lattice(
            masses,
            step,
            top,
            sums[known] / far_masses[known],
            far_masses[known],
            max(infinite, 0.0) if (self.ratio < np.exp(-_INFINITE)).any() else 0.0,
        )

    @cached_property
    def _transforms(self) -> list[tuple[float, NDArray[np.complex128]]]:
        """Of masses with and without weights, after the exponent of the weights."""
        lattice = self._lattice
        masses = lattice.masses
        size = 1 << (self.count * masses.size - 1).bit_length()
        tilts = (0.0, min(self.order_at(self.delta), _LARGEST / (2.0 * self.count * lattice.top)))
        place = (np.arange(masses.size) + 1.0 - masses.size) * lattice.step
        return [(tilt, np.fft.rfft(masses * np.exp(tilt * place), size)) for tilt in tilts]

    @cached_property
    def _known_sums(self) -> dict[int, _Sums]:
        return {}

    def _near(self, count: int) -> _Sums:
        """Of so many uses whose losses are on the lattice."""
        if count in self._known_sums:
            return self._known_sums[count]
        lattice = self._lattice
        size = count * (lattice.masses.size - 1) + 1
        losses = np.arange(size) * lattice.step - count * lattice.top
        mass = np.zeros(size)
        for tilt, transform in self._transforms:
            whole = np.fft.irfft(transform**count)[:size]
            seen = whole > _ROUNDING * whole.max()
            with np.errstate(over="ignore"):
                found = whole * np.exp(-tilt * (losses - count * lattice.top))
            mass[seen] = found[seen]
        with np.errstate(over="ignore"):
            other = mass * np.exp(np.minimum(-losses, _LARGEST))
        found_sums = _Sums(
            float(losses[0]),
            lattice.step,
            np.append(np.cumsum(mass[::-1])[::-1], 0.0),
            np.append(np.cumsum(other[::-1])[::-1], 0.0),
        )
        self._known_sums[count] = found_sums
        return found_sums

    def _above(self, count: int, loss: Float) -> tuple[Float, Float]:
        """Probabilities of losses of so many uses above some, under both laws."""
        lattice, near = self._lattice, self._near(count)
        mass, other = near.above(loss)
        far = float(lattice.far_masses.sum()) + lattice.infinite
        mass = mass + (count * lattice.infinite + 0.5 * count * (count - 1) * far**2)
        if lattice.far.size:
            rest = self._near(count - 1)
            weights = count * lattice.far_masses
            falls = weights * np.exp(-lattice.far)
            for begin in range(0, loss.size, _BLOCK):
                part = slice(begin, begin + _BLOCK)
                more, less = rest.above(loss[None, part] - lattice.far[:, None])
                mass[part] += weights @ more
                other[part] = other[part] + falls @ less
        return mass, other

    def at_delta(self, delta: float) -> Point:
        """Epsilon at a delta; about, to the square of the lattice's spacing."""
        lattice = self._lattice
        low, high = 0.0, self.count * lattice.top + float(lattice.far.max(initial=0.0))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            mass, other = self._above(self.count, np.array([middle]))
            more = float(mass[0] - np.exp(middle) * other[0]) > delta
            low, high = (middle, high) if more else (low, middle)
        return Point(high, self.order_at(delta))

    def _unit(self, point: Point) -> float:
        """The number of uses over the slope of delta in epsilon."""
        _, other = self._above(self.count, np.array([point.epsilon]))
        return float(self.count / (np.exp(point.epsilon) * max(float(other[0]), 1e-300)))

    def value(self, point: Point, generator: Generator) -> float:
        """Delta, by the function as it is, in units of epsilon."""
        mass, other = self._above(self.count - 1, point.epsilon - np.log(self.ratio))
        terms = self.ratio * mass - np.exp(point.epsilon) * other
        return self._unit(point) * dot(self.base, terms)

    def divergence(self, point: Point) -> float:
        """Delta, by the losses of all uses, in units of epsilon."""
        mass, other = self._above(self.count, np.array([point.epsilon]))
        return self._unit(point) * float(mass[0] - np.exp(point.epsilon) * other[0])

    def generator(self, point: Point, low: float, end: float) -> Generator:
        """A smooth function near the one of delta: probabilities of losses around nodes."""
        step = (end - low) / _SMOOTH
        nodes = step * np.arange(np.floor(low / step), np.ceil(end / step) + 1.0)
        borders = np.append(nodes - 0.5 * step, nodes[-1] + 0.5 * step)
        mass, _ = self._above(self.count - 1, point.epsilon - borders)
        jumps = np.convolve(np.maximum(np.diff(mass), 0.0), _KERNEL, "same")
        density = np.maximum(jumps, _LEAST * float(jumps.max())) / step
        levels = np.log(self._unit(point) * np.maximum(density, 1e-300)) - nodes
        return Generator(nodes, levels, np.zeros(0), end)

    def tangent(self, point: Point, generator: Generator) -> Tangent:
        """Lines below ``f`` with the slopes of a smooth function near it."""
        unit, begin = self._unit(point), float(generator.nodes[0])
        places = np.linspace(begin, float(generator.nodes[-1]), _THRESHOLDS)
        mass, other = self._above(self.count - 1, point.epsilon - places)
        offset = unit * float(mass[0]) - float(generator(np.exp(np.array([begin])))[1][0])
        slopes = unit * np.append(mass, 1.0)
        conjugate = unit * np.exp(point.epsilon) * np.append(other, 1.0)

        def lines(ratio: Float) -> tuple[Float, Float]:
            slope = np.clip(generator(ratio)[1] + offset, 0.0, slopes[-1])
            return -np.interp(slope, slopes, conjugate), slope

        return lines
