"""Several worst shifts, which neighbors choose as they go: against enumeration of all choices."""

from __future__ import annotations

import itertools
import math

import numpy as np
from cell_oracles import cactus_pieces, integer_atoms, merged

import psinoise as pn
from psinoise.accounting.estimate.renyi import moments_line
from refusals import for_each, for_rows

SMALL = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=48, tail_ratio=0.5)


def adaptive_delta(pieces, epsilon: float, count: int, before=None) -> float:
    """Delta for neighbors who choose each shift by the losses so far, by trying them all.

    They may have seen the loss of another step ``before``.
    """

    def best(losses: np.ndarray, left: int) -> np.ndarray:
        if left == 0:
            return np.maximum(-np.expm1(epsilon - losses), 0.0)
        following = [
            best((losses[:, None] + loss).ravel(), left - 1).reshape(losses.size, -1) @ mass
            for loss, mass in pieces
        ]
        return np.max(following, axis=0)

    loss, mass = (np.zeros(1), np.ones(1)) if before is None else before
    return float(mass @ best(loss, count))


@for_each([(1.0, "remove"), (0.1, "remove"), (0.1, "add")])
def test_moments_hold_for_shifts_that_are_chosen_as_neighbors_go(case):
    """Mutant: moments of one fixed shift, the one with the largest loss."""
    rate, way = case
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=3, cells=12, tail_ratio=0.02)
    mechanism = pn.Mechanism(law)
    pair, _ = mechanism.dominating(rate, "add-remove")
    shifts = [cactus_pieces(law, shift) for shift in np.arange(1, 4) / 3.0]
    losses = [merged(shifted, base, rate, way)[:2] for shifted, base in shifts]
    fixed = []
    for count in (2, 3):
        for epsilon in np.linspace(0.0, 0.9, 4) * count * pair.largest_loss(way):
            exact = adaptive_delta(losses, epsilon, count)
            for log_delta in (-2.0, -8.0, -20.0):
                log_norm, tilt = moments_line(((pair, count),), way, log_delta)
                assert log_norm - tilt * epsilon >= math.log(exact)
                loss, mass = losses[-1]
                moment = count * math.log(float(mass @ np.exp(tilt * loss)))
                mutant = moment - tilt * (epsilon + math.log1p(1.0 / tilt)) - math.log1p(tilt)
                fixed.append(log_norm - tilt * epsilon - mutant)
    assert max(fixed) > 0.01, "a law for which the largest shift would do proves nothing"


@for_rows(
    (rate, way, others)
    for rate, way in [(1.0, "remove"), (0.1, "remove"), (0.1, "add")]
    for others in [0, 1]
)
def test_shifts_that_are_chosen_as_neighbors_go(rate, way, others):
    """Mutants: one fixed shift from below; the envelope, or the other step last, from above."""
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=3, cells=12, tail_ratio=0.02)
    mechanism, other = pn.Mechanism(law), pn.Mechanism(pn.DiscreteLaplace(epsilon=0.7))
    shifts = [cactus_pieces(law, shift) for shift in np.arange(1, 4) / 3.0]
    losses = [merged(shifted, base, rate, way)[:2] for shifted, base in shifts]
    before = merged(*integer_atoms(other.noise, 1), 1.0, way)[:2] if others else None
    top = mechanism.dominating(rate, "add-remove")[0].largest_loss(way)
    for count in (2, 3):
        accountant = pn.Accountant(way).compose(mechanism, count, rate).compose(other, others)
        for share in (0.0, 0.2, 0.5, 0.9):
            epsilon = share * (count * top + 0.7 * others)
            exact = adaptive_delta(losses, epsilon, count, before)
            found = accountant.delta(epsilon)
            assert found.lower * (1.0 - 1e-9) <= exact <= found.upper * (1.0 + 1e-9)
            assert found.upper <= found.lower * (1.0 + 2e-3)


def test_choices_matter():
    """Of ten sampled uses the best fixed shift is 2 % below, and the envelope as much above."""
    found = pn.Mechanism(pn.Cactus(mean_cost=0.25, cells_per_sensitivity=8, cells=80)).epsilon(
        1e-9, 10, 0.1
    )
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found


@for_each(
    [pn.promises.BoundedRange(1.0), pn.Mechanism(pn.DiscreteStable(alpha=1.5, scale=4.0), 1.0)]
)
def test_where_the_largest_moment_is_not_known_moments_prove_nothing(mechanism):
    """Of bounded range it is searched for; of blocks of whole numbers it is one from below."""
    pair, _ = mechanism.dominating(1.0, "add-remove")
    assert pair.several
    assert moments_line(((pair, 50),), "remove", -12.0) is None


def test_many_uses_of_cactus_noise():
    """The envelope of the shifts alone is 6 % above for any number of uses."""
    mechanism = pn.Mechanism(SMALL)
    widths = [
        found.width / found
        for n in (10**4, 10**6, 10**9)
        for found in [mechanism.epsilon(1e-12, n)]
    ]
    assert widths[0] < 2e-2
    assert widths[1] < 2e-3
    assert widths[2] < 1e-4


class TwoShifts:
    """One shift leaves more to infinite losses, the other one has the larger finite loss."""

    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]:
        return (0.5 * sensitivity, sensitivity)

    def pieces(self, shift: float) -> tuple[np.ndarray, np.ndarray]:
        if shift == 0.5:
            return np.array([0.1, 0.6, 0.3, 0.0]), np.array([0.0, 0.5, 0.4, 0.1])
        return np.array([0.05, 0.4, 0.55, 0.0]), np.array([0.0, 0.1, 0.85, 0.05])


def test_the_largest_loss_of_an_envelope_is_attained_once():
    """Kills: a lower bound from the envelope, which lets each use choose its shift by outcome."""
    mechanism = pn.Mechanism(TwoShifts())
    for count in (1, 2, 3):
        found = mechanism.epsilon(1.0 - 0.9**count, count)
        assert found.lower <= found.upper
        assert found.upper >= count * math.log(1.2)
        if count == 1:
            assert found.lower == found.upper
            continue
        # Largest over all choices of a shift for each use, by enumeration of outcomes.
        best = 0.0
        for shifts in itertools.combinations_with_replacement((0.5, 1.0), count):
            shifted, base = np.ones(1), np.ones(1)
            for shift in shifts:
                p, q = mechanism.noise.pieces(shift)
                shifted, base = np.outer(shifted, p).ravel(), np.outer(base, q).ravel()
            epsilons = np.linspace(0.0, 5.0, 5001)
            deltas = np.maximum(shifted - np.exp(epsilons)[:, None] * base, 0.0).sum(axis=1)
            best = max(best, float(epsilons[deltas > 1.0 - 0.9**count + 1e-12].max(initial=0.0)))
        assert found.lower <= best + 1e-3 <= found.upper + 2e-3


def test_shifts_with_infinite_losses_of_their_own():
    """Mutant: finite losses of one shift beside the infinite ones of another, which contradict."""
    mechanism = pn.Mechanism(TwoShifts())

    def largest(epsilon: float, count: int, ratio: float = 1.0) -> float:
        if count == 0:
            return max(1.0 - math.exp(epsilon) * ratio, 0.0)
        pairs = [zip(*mechanism.noise.pieces(shift), strict=True) for shift in (0.5, 1.0)]
        return max(
            sum(p * largest(epsilon, count - 1, ratio * q / p) for p, q in pair if p > 0.0)
            for pair in pairs
        )

    for count in (1, 2, 3):
        for epsilon in (0.0, 0.1, 0.5, 0.8, 1.2, 1.38, 2.0, 2.7, 3.5):
            found = mechanism.delta(epsilon, count)
            exact = largest(epsilon, count)
            assert found.lower * (1.0 - 1e-12) <= exact <= found.upper * (1.0 + 1e-12)
