"""Questions that an earlier accountant refused, crashed on or answered much too widely, by class.

None is refused; the truth, where it is known in closed form, is inside, and brackets are narrow.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_delta, gaussian_epsilon

import psinoise as pn
from psinoise.accounting.question import Question
from refusals import for_each, for_rows

GAUSSIAN = pn.Gaussian


def composed(*steps):
    accountant = pn.Accountant()
    for law, *uses in steps:
        accountant.compose(pn.Mechanism(law), *uses)
    return accountant


def narrow(bracket, share=1e-3):
    assert 0.0 <= bracket.lower <= bracket.estimate <= bracket.upper < math.inf
    assert bracket.width <= share * bracket.upper, bracket


@pytest.mark.deep
@for_each([3, 5, 10])
def test_many_kinds_of_sampled_steps(kinds):
    """A3: crashed for more than half of all epsilons."""
    steps = [(GAUSSIAN(std=2 + i / 3), 100, 0.01) for i in range(kinds)]
    accountant = composed(*steps)
    last = 1.0
    for epsilon in (0.1, 0.25, 0.5, 1.0):
        found = accountant.delta(epsilon)
        assert found.lower <= found.estimate <= found.upper < last
        assert found.width <= 1e-2 * found.upper
        last = found.lower
    # All steps alike bound it from both sides.
    low, high = (
        pn.Mechanism(GAUSSIAN(std=std)).epsilon(1e-6, 100 * kinds, 0.01)
        for std in (2 + (kinds - 1) / 3, 2.0)
    )
    found = accountant.epsilon(1e-6)
    narrow(found)
    assert low.lower <= found.upper
    assert found.lower <= high.upper


def cactus(cost):
    return pn.Cactus(mean_cost=cost, cells_per_sensitivity=20, cells=160, tail_ratio=0.35)


def test_cactus_noise():
    """A4 and A5: crashed, was refused, or had brackets from 0."""
    law = pn.Cactus(cells_per_sensitivity=20, cells=160, tail_ratio=0.35)
    pieces = law_pieces(law)
    for count in (1, 2):
        found = pn.Mechanism(law).epsilon(1e-6, count)
        assert 0.0 < found.lower <= found.estimate <= found.upper <= 1.3 * found.lower
        # The shift by the whole sensitivity alone: a lower bound, by enumeration.
        assert fixed_shift_delta(pieces, count, found.upper) <= 1e-6 * (1.0 + 1e-9)


def law_pieces(law):
    """Masses of the cells under the shifted law and the law, for the whole sensitivity."""
    step = 1.0 / law.cells_per_sensitivity
    cells = np.arange(-law.cells - 400, law.cells + 420)
    return tuple(step * law.pdf(cells * step - shift) for shift in (1.0, 0.0))


def fixed_shift_delta(pieces, count, epsilon):
    p, q = (np.asarray(side) for side in pieces)
    kept = q > 0.0
    p, q = p[kept], q[kept]
    if count == 2:
        p, q = np.multiply.outer(p, p), np.multiply.outer(q, q)
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def test_cactus_noise_whose_worst_shift_is_no_end():
    """The shift that is the worst by a moment is far from the worst at this delta."""
    law = pn.Cactus(cost=1.0, mean_cost=0.5, cells_per_sensitivity=20, cells=160, tail_ratio=0.35)
    found = pn.Mechanism(law).epsilon(1e-3, 10, 0.01)
    narrow(found, 0.05)
    # The best of all fixed shifts, each alone.
    assert found.lower >= 0.1654


@for_rows(
    [
        (0.25, 10, 1.0, 1e-3),
        (1.0, 10, 0.01, 1e-6),
        (1.0, 20, 0.01, 1e-6),
        (1.0, 50, 0.01, 1e-6),
        (1.0, 100, 0.01, 1e-6),
    ]
)
def test_cactus_noise_of_ordinary_questions(cost, count, rate, delta):
    found = pn.Mechanism(cactus(cost)).epsilon(delta, count, rate)
    # Only the shift that is the worst at one tilt is known from below.
    assert 0.0 < found.lower <= found.estimate <= found.upper <= 1.4 * found.lower


def test_a_step_that_hardly_counts():
    """A6: refused for a lattice with too many nodes. Kills: one lattice for all scales."""
    accountant = composed((GAUSSIAN(std=3.0), 60), (GAUSSIAN(std=1.0), 1000, 1e-5))
    found = accountant.epsilon(1e-5)
    narrow(found)
    assert found.lower <= 13.757824 + 5e-7
    assert found.upper >= 13.757824 - 5e-7
    for std, count in ((2e4, 1), (2e4, 100), (1e6, 1), (300.0, 3)):
        accountant = composed((GAUSSIAN(std=2.0), 60), (GAUSSIAN(std=std), count))
        exact = gaussian_epsilon(mp.sqrt(mp.mpf(15) + count / mp.mpf(std) ** 2), 1e-6)
        found = accountant.epsilon(1e-6)
        narrow(found)
        assert found.lower <= exact <= found.upper


@pytest.mark.deep
def test_plans_of_a_ledger():
    """A6: of random plans with rare and tiny steps none is refused, and more steps cost more."""
    random = np.random.default_rng(6)
    laws = (
        lambda size: pn.Gaussian(std=size),
        lambda size: pn.Laplace(scale=size),
        lambda size: pn.Airy(mean_abs=size),
    )
    for _ in range(8):
        accountant, last = pn.Accountant(), 0.0
        for _ in range(3):
            law = laws[int(random.integers(3))](float(10.0 ** random.uniform(0.3, 4.0)))
            rate = float(random.choice([1.0, 0.1, 1e-3, 1e-5]))
            accountant.compose(pn.Mechanism(law), int(10.0 ** random.uniform(0.0, 3.0)), rate)
            found = accountant.epsilon(1e-6)
            assert found.lower <= found.upper
            assert found.width <= max(3e-3 * found.upper, 1e-9), (accountant, found)
            assert last <= found.upper
            last = found.lower


@for_rows(
    [
        (pn.Laplace(scale=100.0), 100_000, 0.1, 1e-8),
        (pn.Cauchy(scale=1.0), 100_000, 1e-3, 1e-6),
        (pn.Laplace(scale=15.87), 188, 0.344, 1e-6),
    ]
)
def test_atoms_and_heavy_tails_of_many_uses(law, count, rate, delta):
    """A8: refused after seconds, where the upper bound took no time."""
    mechanism = pn.Mechanism(law)
    found = mechanism.epsilon(delta, count, rate)
    narrow(found)
    estimate = mechanism.composed(count, rate).estimate.epsilon(delta)
    assert found.lower <= estimate * (1.0 + 1e-9)
    assert found.upper >= estimate * (1.0 - 1e-9)
    assert mechanism.composed(count, rate).epsilon(delta) == found


@for_each([1e-9, 1e-6, 1e-3], [1, 10, 1000])
def test_delta_at_epsilon_0_of_tiny_sensitivities(sensitivity, count):
    """A15: a bracket over two orders of magnitude."""
    found = pn.Mechanism(GAUSSIAN(std=1.0), sensitivity).delta(0.0, count)
    exact = gaussian_delta(0, mp.sqrt(count) * mp.mpf(sensitivity))
    assert found.lower <= exact <= found.upper, (found, float(exact))
    assert found.width <= 1e-2 * exact, (found, float(exact))


@pytest.mark.deep
@for_each([pn.Gaussian, pn.Laplace, pn.Airy], [1e3, 1e6], [1, 30])
def test_brackets_of_small_epsilons_are_narrow(law, size, count):
    """Their width is a share of epsilon, however small that is."""
    mechanism = pn.Mechanism(law(mean_abs=size))
    delta = 0.3 * mechanism.composed(count).estimate.delta(0.0)
    found = mechanism.epsilon(delta, count)
    assert 0.0 < found.upper < 1e-2
    narrow(found)
    if law is pn.Gaussian:
        exact = gaussian_epsilon(mp.sqrt(count) / mp.mpf(mechanism.noise.std), delta)
        assert found.lower <= exact <= found.upper


@for_rows(
    [
        (pn.Laplace(scale=5.0), 20, 1.0, 3.999),
        (pn.Laplace(scale=1.0), 5, 0.1, 0.9),
        (pn.Airy(mean_abs=2.0), 10, 1.0, 12.0),
        (pn.Gaussian(std=1.0), 10, 1.0, 60.0),
        (pn.DiscreteLaplace(epsilon=0.1), 100, 1.0, 9.99),
    ]
)
def test_delta_is_known_to_three_digits(law, count, rate, epsilon):
    """A width in epsilon was up to a tenth of delta where delta falls steeply."""
    accountant = pn.Mechanism(law).composed(count, rate)
    found = accountant.delta(epsilon)
    assert found.width <= 1e-3 * found.upper
    profile = accountant.profile(np.linspace(0.0, epsilon, 300))
    assert (profile.width <= 2.01e-3 * profile.upper)[profile.upper > 1e-290].all()
    assert found.lower <= profile.upper[-1]
    assert profile.lower[-1] <= found.upper


def test_chernoffs_line_is_above_the_profile():
    """And near it where it was made, which is where float64 has no room for masses.

    Kills: a line under larger tilts than its quadrature resolves (`test_where_a_loss_turns`).
    """
    question = Question(pn.Mechanism(pn.Gaussian(std=1.0)).sampled(1.0, None, "add-remove"))
    assert question.bounds_at("remove", 5.0, 0.0)[1] is None
    epsilon = 38.0
    _, line = question.bounds_at("remove", epsilon, 0.0)
    epsilons = np.linspace(0.1, 40.0, 60)
    exact = [float(mp.log(gaussian_delta(at, 1.0))) for at in epsilons.tolist()]
    assert (line.log_deltas(epsilons) > exact).all()
    assert line.log_delta(epsilon) - float(mp.log(gaussian_delta(epsilon, 1.0))) < 10.0


@for_rows(
    [
        (pn.Mechanism(pn.Laplace(scale=1.0)), 1.0, math.exp(-1.0)),
        (pn.Mechanism(pn.Laplace(scale=1.0)), 0.1, 0.0),
        (pn.Mechanism(pn.Cactus(mean_cost=25.0)), 1.0, 0.0),
        (pn.Mechanism(pn.Cauchy(scale=1.0)), 0.1, 0.0),
        (pn.promises.BoundedRange(0.1), 1.0, 0.0),
    ]
)
def test_as_many_uses_as_can_be_counted(use, rate, least):
    """Of more than 2^50 only the largest loss is known; they crashed. Mutant: no such limit."""
    for count in (2**51, 10**17, 2**63 - 1):
        found = use.epsilon(1e-6, count, rate)
        assert found.lower <= found.upper < math.inf
        assert found.upper >= least * count


def test_large_shifts_of_gaussian_noise():
    """The loss is normal, with a mean of 5e17 and a deviation of 1e9: crashed in an exponential."""
    found = pn.Mechanism(GAUSSIAN(std=1.0)).epsilon(1e-5, 10**18)
    assert found.lower <= gaussian_epsilon(1e9, 1e-5) <= found.upper
    narrow(found)


@pytest.mark.parametrize("law", [pn.Gaussian, pn.Laplace, pn.Airy, pn.Cauchy])
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_deltas_of_noise_that_hides_all(law, rate):
    """Losses are below the roundings of their logs, and delta was [0, 1]. Mutant: no sum of the
    deltas of all uses, of which each is the shift times a density below 1 over the scale."""
    for scale in (1e14, 1e18, 1e100):
        for epsilon in (0.0, 1e-20, 1.0):
            found = pn.Mechanism(law(scale=scale)).delta(epsilon, 100, rate)
            assert 0.0 <= found.lower <= found.upper <= 100.0 * rate / scale
