"""The atoms of a composed privacy loss, exactly.

Where single losses have atoms (Laplace noise: the loss is constant beyond the two modes), so has
their sum, and the characteristic function does not decay. That part of it is a finite sum which
needs no integral.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.contour.composition import Composition, Saddle
from psinoise.accounting.contour.integrand import Complex, damping

Float = NDArray[np.float64]

# Atoms lighter than this share of the heaviest are dropped, on every level of the composition.
_LEAST_LOG_WEIGHT = -52.0
_MOST_PAIRS = 2**22
# Positions closer than this share of their range are rounding images of one atom.
_SAME = 1e-13


@dataclass(frozen=True, eq=False)
class Atoms:
    """Positions and weights; weights need not add up to 1."""

    positions: Float
    weights: Float

    @classmethod
    def none(cls) -> Atoms:
        return cls(np.empty(0), np.empty(0))

    def power(self, count: int) -> Atoms | None:
        """The sum of ``count`` independent copies; None if it has too many atoms."""
        if self.positions.size == 0:
            return self
        if self.positions.size == 1:
            log_weight = count * math.log(self.weights[0])
            return Atoms(count * self.positions, np.exp(np.array([log_weight])))
        if self.positions.size == 2:
            return self._binomial(count)
        result: Atoms | None = None
        square: Atoms | None = self
        while count and square is not None:
            if count & 1:
                result = square if result is None else result.plus(square)
                if result is None:
                    return None
            count >>= 1
            square = square.plus(square) if count else square
        return result if square is not None else None

    def plus(self, other: Atoms) -> Atoms | None:
        """The sum of two independent losses; None if it has too many atoms."""
        if self.positions.size * other.positions.size > _MOST_PAIRS:
            return None
        positions = np.add.outer(self.positions, other.positions).ravel()
        weights = np.multiply.outer(self.weights, other.weights).ravel()
        order = np.argsort(positions, kind="stable")
        positions, weights = positions[order], weights[order]
        if positions.size == 0:
            return Atoms.none()
        new = np.diff(positions, prepend=-np.inf) > _SAME * max(np.abs(positions).max(), 1e-300)
        label = np.cumsum(new) - 1
        return Atoms(positions[new], np.bincount(label, weights).astype(np.float64))._pruned()

    def _pruned(self) -> Atoms:
        keep = self.weights >= math.exp(_LEAST_LOG_WEIGHT) * self.weights.max()
        return Atoms(self.positions[keep], self.weights[keep])

    def _binomial(self, count: int) -> Atoms | None:
        """Ratios of neighboring binomial weights, summed outwards from the mode.

        Normalized by their sum, so that no factorial of a large number is ever subtracted.
        """
        total = float(self.weights.sum())
        share = float(self.weights[1]) / total
        mode = min(int((count + 1) * share), count)
        spread = math.sqrt(count * share * (1.0 - share))
        # Chernoff: beyond this distance a binomial weight is below exp(-52) of the largest.
        width = int(11.0 * spread + 60.0)
        if width > _MOST_PAIRS:
            return None
        low, high = max(mode - width, 0), min(mode + width, count)
        k = np.arange(low, high, dtype=np.float64)
        odds = math.log(self.weights[1]) - math.log(self.weights[0])
        steps = np.log((count - k) / (k + 1.0)) + odds
        log_weights = np.concatenate([[0.0], np.cumsum(steps)])
        log_weights -= log_weights.max()
        weights = np.exp(log_weights)
        weights *= math.exp(count * math.log(total)) / weights.sum()
        k = np.arange(low, high + 1, dtype=np.float64)
        positions = count * self.positions[0] + k * (self.positions[1] - self.positions[0])
        return Atoms(positions, weights)._pruned() if weights.max() > 0.0 else Atoms.none()


def composed_atoms(composition: Composition, saddle: Saddle) -> Atoms:
    """Atoms of the composed tilted loss, measured from ``K'(c)``; none if they are too many."""
    total = Atoms(np.zeros(1), np.ones(1))
    for single, count in zip(_tilted_atoms(composition, saddle), composition.counts, strict=True):
        power = single.power(int(count))
        together = None if power is None else total.plus(power)
        if together is None:
            return Atoms.none()
        total = together
    return total


def atoms_integrand(composition: Composition, saddle: Saddle, step: float, steps: int) -> Complex:
    """The integrand with every loss replaced by its atoms alone."""
    frequencies = step * np.arange(steps, dtype=np.float64)
    log_modulus, phase = np.zeros(steps), np.zeros(steps)
    for single, count in zip(_tilted_atoms(composition, saddle), composition.counts, strict=True):
        total = np.zeros(steps, dtype=np.complex128)
        for position, weight in zip(single.positions, single.weights, strict=True):
            total += weight * np.exp((1j * position) * frequencies)
        log_modulus += count * np.log(np.maximum(np.abs(total), 1e-300))
        phase += count * np.angle(total)
    return np.asarray(np.exp(log_modulus + 1j * phase) * damping(saddle, frequencies))


def _tilted_atoms(composition: Composition, saddle: Saddle) -> list[Atoms]:
    result = []
    for measure, part in zip(composition.measures, saddle.parts, strict=True):
        where = slice(measure.loss.size - measure.atoms, None)
        weights = np.exp(measure.log_tilted(saddle.c, part.value)[where])
        seen = weights > 1e-200
        result.append(Atoms(measure.loss[where][seen] - part.mean, weights[seen]))
    return result
