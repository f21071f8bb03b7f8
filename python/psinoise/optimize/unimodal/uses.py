"""Epsilon of many uses of a law in cells, and what a change of one use does to their delta.

With ``K(z) = log E_P[exp(z L)]`` of one use and ``c > 0``,

    delta(eps) = 1 / (2 pi i) int over c + iR of exp(n K(z) - z eps) / (z (z + 1)) dz.

Let one of the ``n`` uses have the ratio ``m`` and keep the others. Then delta is the f-divergence
of that use with ``f(m) = m delta_(n-1)(eps - log m)``, which is convex, and

    f''(m) = 1 / (2 pi i) int exp((n - 1) K(z) - z eps) m**(z - 1) dz

is a density of the loss of the others: for a fixed pair of all others delta is a convex function of
the pair of one use, and its gradient, times ``n``, is that of the delta of all uses.

Here epsilon only says where to look: what is found is accounted elsewhere, with bounds. Where the
integrand does not die, because losses take few values, it is damped by ``exp(-sigma**2 t**2 / 2)``.
That is the mean of delta over a normal error of epsilon, and leaves ``f`` convex.
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

Complex = NDArray[np.complex128]

__all__ = ["Point", "Uses"]

# Steps of the integral, the largest exponent of its damping, and what counts as dead.
_FIRST_STEPS, _MOST_STEPS = 128, 1024
_DAMPED, _DEAD = 6.0, 1e-11
# Losses closer than this share of their deviation are gathered.
_BIN = 1e-3
# Orders times epsilon; larger ones mean a bounded loss, which is never exceeded.
_SMALLEST_ORDER, _LARGEST_ORDER = 1e-4, 1e5
_NODES = 1201
# Of a power of the ratio.
_LARGEST_EXPONENT = 300.0
# Of a density, below which rounding is all there is.
_SEEN = 1e-9


class Point(NamedTuple):
    """Epsilon at a delta, and the order of its saddle point."""

    epsilon: float
    order: float


@dataclass(frozen=True, eq=False)
class Uses:
    """``count`` uses in one direction.

    Parameters
    ----------
    base : ndarray
        Probabilities under the law.
    ratio : ndarray
        Of the other law of the pair to it.
    add : bool
        Whether the law is the first of the pair, and not the second.
    """

    base: Float
    ratio: Float
    count: int
    add: bool

    @cached_property
    def _atoms(self) -> tuple[Float, Float]:
        """Logarithms of masses and of ratios; ratios that are nearly equal are one."""
        loss = np.log(self.ratio)
        mean = dot(self.base, loss)
        spread = float(np.sqrt(dot(self.base, (loss - mean) ** 2)))
        place = np.floor(loss / (_BIN * spread + 1e-300))
        _, number = np.unique(place, return_inverse=True)
        mass = np.bincount(number, self.base)
        center = np.bincount(number, self.base * loss)
        return np.log(mass), center / mass

    def _cumulants(self, order: float) -> tuple[float, float, float]:
        """``K`` and two derivatives at a real order."""
        log_mass, loss = self._atoms
        exponent = log_mass + (-order if self.add else 1.0 + order) * loss
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        total = float(weight.sum())
        signed = -loss if self.add else loss
        mean = dot(weight, signed) / total
        return top + np.log(total), mean, dot(weight, (signed - mean) ** 2) / total

    def order_at(self, delta: float) -> float:
        """The order of the saddle point at about a delta."""
        log_delta = float(np.log(delta))
        low, high = np.log(_SMALLEST_ORDER), np.log(_LARGEST_ORDER)
        for _ in range(50):
            middle = 0.5 * (low + high)
            c = float(np.exp(middle))
            value, mean, variance = self._cumulants(c)
            n = self.count
            epsilon = n * mean - 1.0 / c - 1.0 / (1.0 + c)
            spread = n * variance + 1.0 / c**2 + 1.0 / (1.0 + c) ** 2
            found = (
                n * value - c * epsilon - np.log(c * (1.0 + c)) - 0.5 * np.log(2 * np.pi * spread)
            )
            if found > log_delta:
                low = middle
            else:
                high = middle
        return float(np.exp(0.5 * (low + high)))

    def order_of_normal(self, delta: float) -> float:
        """The order of the saddle point if losses were normal; of bounded losses it is larger."""
        spread = float(np.sqrt(self.count * self._cumulants(0.0)[2]))
        return float(np.sqrt(-2.0 * np.log(delta))) / spread

    @cached_property
    def _rows(self) -> dict[float, Complex]:
        """What `_characteristic` has found, by order."""
        return {}

    def _characteristic(self, order: float, step: float, steps: int) -> Complex:
        """``exp(K - K(order))`` of losses less their mean, at multiples of a step that the order
        determines."""
        known = self._rows.get(order, np.zeros(0, dtype=np.complex128))
        if known.size < steps:
            log_mass, loss = self._atoms
            exponent = log_mass + (-order if self.add else 1.0 + order) * loss
            weight = np.exp(exponent - exponent.max())
            weight /= weight.sum()
            centered = (-loss if self.add else loss) - self._cumulants(order)[1]
            t = step * np.arange(known.size, steps)
            more = np.array([weight @ np.exp(1j * x * centered) for x in t])
            known = self._rows[order] = np.append(known, more)
        return known[:steps]

    def _line(self, order: float, count: int) -> tuple[Float, Complex]:
        """Frequencies, and ``exp(count (K - K(order)))`` there, times the step over pi, damped."""
        _, mean, variance = self._cumulants(order)
        reach = 40.0 / order + 16.0 * np.sqrt(self.count * variance)
        step = 2.0 * np.pi / reach
        steps = _FIRST_STEPS
        while True:
            values = self._characteristic(order, step, steps) ** count
            if steps >= _MOST_STEPS or np.abs(values[-16:]).max() < _DEAD:
                break
            steps *= 2
        t = step * np.arange(steps)
        if np.abs(values[-16:]).max() >= _DEAD:
            values = values * np.exp(-0.5 * (_DAMPED * t / t[-1]) ** 2)
        values = values * (step / np.pi)
        values[0] *= 0.5
        return t, values * np.exp(1j * count * mean * t)

    def at_delta(self, delta: float) -> Point:
        """Epsilon at a delta; about, where the law has few losses."""
        log_delta = float(np.log(delta))
        order = self.order_at(delta)
        value, mean, _ = self._cumulants(order)
        t, line = self._line(order, self.count)
        z = order + 1j * t
        epsilon = self.count * mean - 1.0 / order - 1.0 / (1.0 + order)
        wave = line / (z * (z + 1.0))
        for _ in range(30):
            terms = wave * np.exp(-1j * t * epsilon)
            total = float(terms.real.sum())
            slope = float((-z * terms).real.sum())
            if not (total > 0.0 and slope < 0.0):
                break
            miss = self.count * value - order * epsilon + np.log(total) - log_delta
            change = miss * total / -slope
            epsilon += float(np.clip(change, -2.0 / order, 2.0 / order))
            if abs(change) < 1e-11 * max(1.0, abs(epsilon)):
                break
        return Point(epsilon, order)

    def moment(self, order: float) -> float:
        """``log E_P[exp(order L)]`` of one use."""
        return self._cumulants(order)[0]

    def power_generator(self, point: Point) -> Generator:
        """Of the moment of an order, in units of epsilon; a straight line where it is large."""
        c = point.order
        level = np.log(self.count * (1.0 + c)) - self.moment(c)
        power = -c - 2.0 if self.add else c - 1.0
        end = _LARGEST_EXPONENT / (c + 2.0)
        nodes = np.array([0.0, end])
        return Generator(nodes, level + power * nodes, np.array([power, power]), end)

    def divergence(self, point: Point) -> float:
        """What the generator must give for the law itself: delta less that of the other uses, over
        the slope, times the number of uses."""
        c = point.order
        t, line = self._line(c, self.count)
        z = c + 1j * t
        wave = line * np.exp(-1j * t * point.epsilon)
        _, others = self._line(c, self.count - 1)
        rest = np.zeros(t.size, dtype=np.complex128)
        size = min(rest.size, others.size)
        rest[:size] = others[:size] * np.exp(-1j * t[:size] * point.epsilon)
        fewer = np.exp(-self.moment(c)) * float((rest / (z * (z + 1.0))).real.sum())
        slope = float((wave / (z + 1.0)).real.sum())
        return float(self.count * (float((wave / (z * (z + 1.0))).real.sum()) - fewer) / slope)

    def value(self, point: Point, generator: Generator) -> float:
        """The divergence of the law itself."""
        return dot(self.base, generator(self.ratio)[0])

    def may_fall(self, point: Point, base: Float, ratio: Float) -> bool:
        """Whether delta may be less with another pair."""
        return True

    def tangent(self, point: Point, generator: Generator) -> Tangent:
        """Lines below what a generator stands for."""
        return generator.tangent

    def generator(self, point: Point, low: float, end: float, smoothed: int = 0) -> Generator:
        """Of delta as a function of one use, over the slope of delta in epsilon.

        Parameters
        ----------
        low, end : float
            Logarithms of the least and the largest ratio that count.
        smoothed : int
            How much, of a function that is not smooth.
        """
        c, epsilon, n = point.order, point.epsilon, self.count
        value, _, _ = self._cumulants(c)
        t, line = self._line(c, n)
        wave = line * np.exp(-1j * t * epsilon)
        slope = float((wave / (1.0 + c + 1j * t)).real.sum())
        t, line = self._line(c, n - 1)
        wave = line * np.exp(-1j * t * epsilon)
        nodes = np.union1d(np.linspace(low, end, _NODES), 0.0)
        signed = -nodes if self.add else nodes
        density = np.empty(nodes.size)
        for part in range(0, nodes.size, 256):
            rows = np.exp(1j * np.outer(signed[part : part + 256], t))
            density[part : part + 256] = (rows @ wave).real
        logs = _continued(nodes, density, float(np.abs(wave).sum()))
        power = -c - 2.0 if self.add else c - 1.0
        levels = logs + power * nodes + np.log(n / slope) - value
        return Generator(nodes, levels, np.zeros(0), end)


def _continued(nodes: Float, density: Float, largest: float) -> Float:
    """The logarithm of a density; where rounding hides it, as it was before."""
    seen = np.flatnonzero(density > _SEEN * largest)
    logs = np.log(np.maximum(density, 1e-300))
    if not seen.size:
        return np.zeros(nodes.size)
    # The longest run around the maximum.
    top = int(np.argmax(density))
    good = density > _SEEN * largest
    left = top - int(np.argmin(good[top::-1])) + 1 if not good[: top + 1].all() else 0
    right = top + int(np.argmin(good[top:])) - 1 if not good[top:].all() else nodes.size - 1
    for edge, step, part in ((left, 4, slice(0, left)), (right, -4, slice(right + 1, None))):
        inner = edge + step
        rate = 0.0
        if left <= inner <= right:
            rate = (logs[edge] - logs[inner]) / (nodes[edge] - nodes[inner])
        logs[part] = logs[edge] + rate * (nodes[part] - nodes[edge])
    return logs
