"""Promises, against closed forms, enumeration and quadrature in arbitrary precision."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_delta, gaussian_epsilon, subsampled_delta

import psinoise as pn
from psinoise.accounting import Accountant
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.loss.responses import RandomizedResponse
from psinoise.mechanisms.promises import GDP, ZCDP, ApproximateDP, BoundedRange, PureDP
from refusals import for_each, for_rows, refused


def kairouz_oh_viswanath(count, epsilon, delta, level):
    """Delta of composed (epsilon, delta) promises at ``(count - 2 level) epsilon``."""
    with mp.workdps(60):
        e, d = mp.mpf(epsilon), mp.mpf(delta)
        total = mp.fsum(
            mp.binomial(count, k) * (mp.exp((count - k) * e) - mp.exp((count - 2 * level + k) * e))
            for k in range(level)
        )
        return 1 - (1 - d) ** count * (1 - total / (1 + mp.exp(e)) ** count)


@for_each([1, 2, 7, 60], [0.01, 0.5, 2.0], [0.0, 1e-9, 0.3])
def test_approximate_dp_composes_as_kairouz_oh_and_viswanath_say(count, epsilon, delta):
    promise = ApproximateDP(epsilon, delta)
    for level in {1, max(count // 3, 1), count // 2} - {0}:
        at = (count - 2 * level) * epsilon
        exact = kairouz_oh_viswanath(count, epsilon, delta, level)
        found = promise.delta(at, count)
        assert found.lower <= exact * (1 + 1e-15)
        assert exact <= found.upper * (1 + 1e-15)
        assert found.upper - found.lower <= 1e-3 * found.upper
    assert promise.epsilon(0.0, count).upper == (
        math.inf if delta else pytest.approx(count * epsilon)
    )


def test_pure_and_approximate_promises_are_one_step():
    accountant = pn.Accountant().compose(PureDP(0.5), 3).compose(ApproximateDP(0.5, 0.0), 2)
    assert "1 distinct" in repr(accountant)
    assert accountant.epsilon(1e-3) == PureDP(0.5).epsilon(1e-3, 5)
    assert PureDP(0.0).epsilon(0.0, 10).upper == 0.0
    exact = 1 - 0.9**3
    found = ApproximateDP(0.0, 0.1).delta(0.3, 3)
    assert found.lower <= exact <= found.upper <= exact * (1 + 1e-10)
    # Laplace noise keeps the promise, and an estimate by contour lies in the bracket.
    assert (
        pn.Mechanism(pn.Laplace(scale=2.0)).epsilon(1e-6, 9).lower
        <= PureDP(0.5).epsilon(1e-6, 9).upper
    )
    found = PureDP(0.1).epsilon(1e-6, 1000)
    assert found.lower <= PureDP(0.1).composed(1000).estimate.epsilon(1e-6) <= found.upper


@for_each([0.2, 0.9], [0.0, 0.01], [-0.4, 0.0, 0.35])
def test_sampled_promises_are_sampled_pairs(rate, delta, at):
    """One use by the formulas of sampling; two by all pairs of outcomes."""
    epsilon = 0.8

    def once(e):
        with mp.workdps(40):
            e = mp.mpf(e)
            up = mp.exp(epsilon) / (1 + mp.exp(epsilon))
            parts = [(delta, 0), ((1 - delta) * up, (1 - delta) * (1 - up))]
            parts += [((1 - delta) * (1 - up), (1 - delta) * up), (0, delta)]
            return mp.fsum(max(p - mp.exp(e) * q, 0) for p, q in parts)

    for direction in ("remove", "add"):
        exact = subsampled_delta(once, at, rate, direction)
        found = ApproximateDP(epsilon, delta).delta(at, 1, rate, direction)
        assert found.lower * (1 - 1e-12) <= exact <= found.upper * (1 + 1e-12)
        up = math.exp(epsilon) / (1 + math.exp(epsilon))
        base = [(delta, 0.0), ((1 - delta) * up, (1 - delta) * (1 - up))]
        base += [(b, a) for a, b in base]
        drawn = [((1 - rate) * q + rate * p, q) for p, q in base]
        drawn = drawn if direction == "remove" else [(q, p) for p, q in drawn]
        pairs = itertools.product(drawn, repeat=2)
        twice = math.fsum(max(a * c - math.exp(at) * b * d, 0.0) for (a, b), (c, d) in pairs)
        found = ApproximateDP(epsilon, delta).delta(at, 2, rate, direction)
        assert found.lower * (1 - 1e-12) <= twice <= found.upper * (1 + 1e-12)


@for_each([1e-3, 0.1, 1.0, 9.0], [1e-2, 1e-9, 1e-100])
def test_gdp_is_gaussian_noise(mu, delta):
    exact = gaussian_epsilon(mu, delta)
    found = GDP(mu).epsilon(delta)
    assert found.lower - 1e-12 <= exact <= found.upper + 1e-12
    found = GDP(mu / 2).epsilon(delta, 4)
    assert found.lower - 1e-12 <= exact <= found.upper + 1e-12


# -- zCDP ------------------------------------------------------------------------------------------


def converted(rho, delta):
    """The direct conversion: Canonne, Kamath and Steinke 2020, over a fine grid of orders."""
    c = np.exp(np.linspace(-12.0, 14.0, 200_001))
    epsilon = (c + 1.0) * rho - (math.log(delta) + np.log1p(c)) / c - np.log1p(1.0 / c)
    return max(float(epsilon.min()), 0.0)


@for_each([1e-5, 0.5, 3.0], [1e-2, 1e-60])
def test_zcdp_is_converted_as_well_as_by_the_formula(rho, delta):
    found = ZCDP(rho).epsilon(delta)
    direct, gaussian = converted(rho, delta), gaussian_epsilon(math.sqrt(2.0 * rho), delta)
    assert found.upper <= direct + 1e-6
    # Where Pinsker's inequality does not help the measure is no better than the formula.
    assert found.upper >= gaussian
    if delta < 1e-3:
        assert found.upper >= direct - 1e-6
    assert found.lower <= gaussian <= found.lower + 1e-6 * max(found.lower, 1.0)


def test_zcdp_bounds_the_profile_of_gaussian_noise_everywhere():
    rho = 0.3
    epsilons = np.concatenate([np.linspace(-6.0, 8.0, 57), [-40.0, 40.0]])
    found = ZCDP(rho).profile(epsilons)
    exact = [gaussian_delta(epsilon, math.sqrt(2.0 * rho)) for epsilon in epsilons.tolist()]
    assert all(
        low * (1 - 1e-12) <= x <= high
        for low, x, high in zip(found.lower, exact, found.upper, strict=True)
    )
    # The total variation is that of Pinsker's inequality, and the mirror image is the same pair.
    assert found.upper[24] <= math.sqrt(rho / 2.0) * (1.0 + 1e-6)
    mirrored = 1 - np.exp(1.0) * (1 - ZCDP(rho).delta(-1.0).upper)
    assert mirrored == pytest.approx(ZCDP(rho).delta(1.0).upper, rel=1e-6)


def test_rhos_are_added_before_they_are_converted():
    accountant = pn.Accountant().compose(ZCDP(0.01), 30).compose(ZCDP(0.05), 4)
    together = ZCDP(0.5).epsilon(1e-6)
    assert accountant.epsilon(1e-6).upper == pytest.approx(together.upper, rel=1e-9)
    # Converted one by one they would be far worse.
    assert 2.0 * ZCDP(0.25).epsilon(5e-7).upper > together.upper
    # A bound for all that keep the promises, composed with something else.
    mixed = pn.Accountant().compose(ZCDP(0.25), 2).compose(pn.Mechanism(pn.Laplace(scale=3.0)), 4)
    kept = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=1.0)))
    kept.compose(pn.Mechanism(pn.Laplace(scale=3.0)), 4)
    found, true = mixed.epsilon(1e-6), kept.epsilon(1e-6)
    assert true.lower * (1.0 - 1e-4) <= found.lower <= true.upper
    assert true.upper < found.upper < 1.1 * true.upper
    assert ZCDP(0.5).delta(math.inf).upper == 0.0
    assert ZCDP(0.5).epsilon(0.0).lower == math.inf


@for_each([2.0**-1022, 1e-40, 1e-33, 0.5], [1, 1000])
def test_zcdp_of_any_rho_is_no_pure_privacy(rho, count):
    """Gaussian noise has every loss; points of the conversion below float64 left none."""
    assert ZCDP(rho).epsilon(0.0, count) == ZCDP(rho).pure_epsilon() == math.inf
    mixed = pn.Accountant().compose(ZCDP(rho), count).compose(PureDP(0.5))
    assert mixed.epsilon(0.0).upper == math.inf
    assert mixed.delta(0.5001).upper > 0.0
    assert mixed.epsilon(1e-300).lower <= 0.5 * (1 + 1e-12) or rho == 0.5


# -- bounded range ---------------------------------------------------------------------------------


def range_delta(epsilon, eta):
    """The envelope of one use."""
    epsilon, eta = mp.mpf(epsilon), mp.mpf(eta)
    if epsilon >= eta:
        return mp.mpf(0)
    if epsilon <= -eta:
        return 1 - mp.exp(epsilon)
    return (1 - mp.exp((epsilon - eta) / 2)) ** 2 / (1 - mp.exp(-eta))


@for_each([0.01, 1.0, 12.0], [-0.6, 0.0, 0.3, 0.95])
def test_bounded_range_once(eta, share):
    epsilon = share * eta
    exact = range_delta(epsilon, eta)
    found = BoundedRange(eta).delta(epsilon)
    assert found.lower * (1 - 1e-11) <= exact <= found.upper * (1 + 1e-11)
    assert found.upper - found.lower <= 1e-5 * exact + 1e-7 * eta**2


@for_each([1e-9, 800.0, 1e5], [0.9, 1e-6])
def test_promises_of_any_size(size, delta):
    """Losses from far below to far above what exponentials of float64 hold."""
    with mp.workdps(40):
        room = mp.sqrt(delta * (1 - mp.exp(-mp.mpf(size))))
        exact = {BoundedRange: mp.mpf(size) + 2 * mp.log(1 - room)}
        up = 1 / (1 + mp.exp(-mp.mpf(size)))
        exact[PureDP] = mp.mpf(size) + mp.log(max(1 - delta / up, mp.mpf(10) ** -30))
    for promise, crossing in exact.items():
        found, value = promise(size).epsilon(delta), max(crossing, 0)
        assert found.lower <= value * (1 + 1e-10) + 1e-20
        assert value <= found.upper * (1 + 1e-10) + 1e-20
        assert found.upper - found.lower <= 1e-5 * size
    found = ZCDP(size).epsilon(delta)
    assert found.lower <= gaussian_epsilon(mp.sqrt(2 * mp.mpf(size)), delta) <= found.upper + 1e-20
    assert found.upper <= converted(size, delta) + 1e-6 * max(size, 1.0)
    # What cannot be told apart is infinite, not 0.
    assert ZCDP(1e300).epsilon(delta).upper == math.inf
    assert ZCDP(1e300).delta(1.0).upper == 1.0


def best_answers(eta, epsilon, count):
    """Delta of two answers with the worst of many fixed t, by the binomial sum."""
    best = 0.0
    for t in np.linspace(0.0, eta, 4001)[1:-1].tolist():
        up = math.expm1(t - eta) / math.expm1(-eta)
        total = 0.0
        for k in range(count + 1):
            loss = k * t + (count - k) * (t - eta)
            if loss > epsilon:
                weight = math.comb(count, k) * up**k * (1.0 - up) ** (count - k)
                total -= weight * math.expm1(epsilon - loss)
        best = max(best, total)
    return best


def best_choices(eta, epsilon, count):
    """Delta if t may depend on the answers before: dynamic programming on a grid.

    Between points functions are linear in ``e^epsilon``, in which they are convex.
    """
    at = np.linspace(-count * eta, count * eta, 4001)
    value, exponential = -np.expm1(np.minimum(at, 0.0)), np.exp(at)
    for _ in range(count):
        best = np.zeros(at.size)
        for t in np.linspace(0.0, eta, 101)[1:-1].tolist():
            up = math.expm1(t - eta) / math.expm1(-eta)
            after = [np.interp(np.exp(at - loss), exponential, value) for loss in (t, t - eta)]
            # Below the grid delta is 1 - e^epsilon, and above it 0.
            after = [
                np.maximum(part, -np.expm1(np.minimum(at - loss, 0.0)))
                for part, loss in zip(after, (t, t - eta), strict=True)
            ]
            best = np.maximum(best, up * after[0] + (1.0 - up) * after[1])
        value = best
    return float(np.interp(math.exp(epsilon), exponential, value))


@for_rows([(0.5, 0.4, 2), (4.0, 3.2, 2), (0.3, 0.5, 5), (0.1, 1.2, 40)])
def test_bounded_range_many_times(eta, epsilon, count):
    """Neighbors choose each t by the answers before, and half the range of pure privacy helps.

    Kills: one fixed t from below, and the envelope from above, for all uses: 10 to 50 % apart.
    """
    found = BoundedRange(eta).delta(epsilon, count)
    best, fixed = best_choices(eta, epsilon, count), best_answers(eta, epsilon, count)
    assert fixed * (1.0 - 3e-3) <= found.lower <= best * (1.0 + 1e-3)
    # Chords of the grid are above.
    assert best * (1.0 - 2.5e-3) <= found.upper < PureDP(eta).delta(epsilon, count).lower
    assert found.width <= 3e-3 * found
    renyi = BoundedRange(eta).composed(count).renyi.delta(epsilon)
    # Bounded range implies rho = eta^2 / 8.
    assert fixed < renyi <= 1.001 * ZCDP(eta**2 / 8 * count).delta(epsilon).upper


@for_rows([(1.0, 10, 1.0), (0.1, 50, 1.0), (0.3, 60, 0.1)])
def test_epsilon_of_bounded_range_is_close(eta, count, rate):
    """Kills: answers that are stretched by the distance of their neighbors and not its square."""
    found = Accountant().compose(BoundedRange(eta), count, sampling_rate=rate).epsilon(1e-6)
    assert found.width <= 3e-4 * found


@for_each([1e-6, 0.3, 6.0, 200.0], [1.0, 0.05], ["remove", "add"], [2, 9, 96])
def test_a_list_of_answers_dominates_all(eta, rate, direction, most):
    """A mean of the profiles of two neighbors on the list is above that of each t between them.

    Kills: answers that are not stretched, or only under one of both distributions.
    """
    pair, _ = BoundedRange(eta).dominating(rate, "add-remove")
    largest = pair.largest_loss("remove")
    epsilons = np.linspace(-1.1, 1.1, 501) * largest

    def profile(of):
        log_mass, loss = of.under_p(direction)
        gain = -np.expm1(np.minimum(epsilons[:, None] - loss, 0.0))
        return gain @ np.exp(log_mass)

    def not_below(above, exact):
        return np.all(above >= (1.0 - 1e-13) * exact - 1e-15 * eta)

    low, high, *inner = pair.groups(direction, 3.0 / eta, most)
    for t in np.linspace(0.0, low[1].among[1] * eta, 5)[1:-1]:
        assert not_below(profile(low[1]), profile(two_answers(eta, t, rate)))
    for t in np.linspace(high[1].among[0] * eta, eta, 5)[1:-1]:
        assert not_below(profile(high[1]), profile(two_answers(eta, t, rate)))
    for (one, above), (other, beyond) in itertools.pairwise(inner):
        ends = profile(above), profile(beyond)
        # Beside answers that are too rare to be stretched there is an envelope.
        alone = list(zip(ends, (above, beyond), strict=True))
        for share in (0.25, 0.5, 0.75):
            between = two_answers(eta, (1.0 - share) * one.up + share * other.up, rate)
            mean = (1.0 - share) * ends[0] + share * ends[1]
            means = [mean, *(end for end, pair in alone if pair.several)]
            assert any(not_below(each, profile(between)) for each in means)


def two_answers(eta, t, rate):
    return RandomizedResponse(t, eta - t, 0.0, rate)


def test_the_exponential_mechanism_keeps_its_promise():
    """Scores of sensitivity 1 at epsilon 1 on all neighbors of a small table."""
    scores = np.array([0.0, 0.4, 0.7, 2.0])
    moved = scores + np.array([1.0, -1.0, 0.3, 1.0])

    def chosen(values):
        weights = np.exp(0.5 * values)
        return weights / weights.sum()

    p, q = chosen(scores), chosen(moved)
    losses = np.log(p / q)
    assert np.ptp(losses) <= 1.0
    promise = BoundedRange(1.0)
    for epsilon in (-0.3, 0.0, 0.2):
        delta = np.maximum(p - np.exp(epsilon) * q, 0.0).sum()
        assert delta <= promise.delta(epsilon).upper


# -- groups, and what is refused -------------------------------------------------------------------


@for_each([1, 2, 5, 30])
def test_groups(size):
    for promise in (PureDP(0.25), BoundedRange(0.25), GDP(0.25), ZCDP(0.25)):
        group, grown = promise.for_group(size), size ** (2 if type(promise) is ZCDP else 1)
        assert list(group.parameters.values()) == [0.25 * grown]
        assert (group == type(promise)(0.25 * grown)) == (size == 1)
        assert group.for_group(3) == promise.for_group(3 * size) != group
        assert repr(group).endswith(")" if size == 1 else f" for groups of {size}")
    assert list(ApproximateDP(0.25, 0.0).for_group(size).parameters.values()) == [0.25 * size, 0.0]
    assert ApproximateDP(0.0, 1e-9).for_group(size).parameters["delta"] == pytest.approx(
        size * 1e-9
    )
    found = ApproximateDP(0.25, 1e-9).for_group(size).parameters
    exact = mp.mpf(1e-9) * (mp.exp(0.25 * size) - 1) / (mp.exp(mp.mpf(0.25)) - 1)
    assert found["epsilon"] == 0.25 * size
    assert exact <= found["delta"] <= exact * (1 + 1e-12)


@for_rows(
    [
        (pn.DomainError, "epsilon must be", ApproximateDP, -1.0, 0.0),
        (pn.DomainError, "epsilon must not be NaN", PureDP, math.nan),
        (pn.DomainError, "epsilon must be", PureDP, math.inf),
        (pn.DomainError, "delta must be", ApproximateDP, 1.0, 1.0),
        (pn.DomainError, "delta must", ApproximateDP, 1.0, math.nan),
        (TypeError, "delta must be", ApproximateDP, 1.0, "0"),
        (pn.DomainError, "eta must be", BoundedRange, 0.0),
        (pn.DomainError, "mu must be", GDP, 0.0),
        (pn.DomainError, "rho must be", ZCDP, math.inf),
        (TypeError, "rho must be", ZCDP, True),
        (pn.DomainError, "size must be", PureDP(1.0).for_group, 0),
        (TypeError, "size must be", GDP(1.0).for_group, 2.0),
        (pn.DomainError, "size must leave", ApproximateDP(1.0, 0.1).for_group, 5),
        (pn.DomainError, "sampling_rate must be 1", ZCDP(1.0).epsilon, 0.1, 1, 0.5),
        (pn.DomainError, "sampling_rate must be 1", PureDP(1.0).epsilon, 0.1, 1, 0.5, "replace"),
        *(
            (pn.DomainError, "to groups", promise.for_group(2).delta, 0.0, 1, 0.1)
            for promise in (PureDP(9.0), ApproximateDP(9.0, 1e-9), BoundedRange(9.0), GDP(9.0))
        ),
        (pn.DomainError, "mechanisms alone", pn.Accountant().compose(PureDP(1.0)).to_json),
    ]
)
def test_what_is_refused(error, match, call, *arguments):
    refused(error, match, call, *arguments)


def test_methods_that_need_moments_refuse_what_has_none():
    accountant = pn.Accountant().compose(ZCDP(0.1))
    for method in ("estimate", "clt"):
        refused(pn.DomainError, "no number", getattr, accountant, method)


def test_renyi_bounds_of_what_is_known_by_its_rho():
    """Normal noise of that rho has the same divergences, beside other steps too."""
    for more in ((), (pn.Mechanism(pn.Laplace(scale=3.0)),)):
        found, normal = (
            pn.Accountant().compose(step, 2) for step in (ZCDP(0.1), pn.Mechanism(STD_OF_RHO))
        )
        for step in more:
            found, normal = found.compose(step), normal.compose(step)
        assert found.renyi.epsilon(1e-5) == pytest.approx(normal.renyi.epsilon(1e-5), rel=1e-9)
        assert found.renyi.delta(1.0) == pytest.approx(normal.renyi.delta(1.0), rel=1e-9)
        np.testing.assert_allclose(
            found.renyi_divergence([1.5, 9.0]), normal.renyi_divergence([1.5, 9.0]), rtol=1e-13
        )
        assert found.renyi.epsilon(1e-5) >= normal.epsilon(1e-5).lower


def test_a_promise_is_for_the_relation_of_the_accountant():
    for promise in (PureDP(0.5), ApproximateDP(0.5, 1e-3), BoundedRange(0.5), GDP(0.5), ZCDP(0.5)):
        assert pn.Accountant("replace").compose(promise, 2).epsilon(0.01) == promise.epsilon(
            0.01, 2
        )
        assert repr(promise).startswith(type(promise).__name__)
        assert promise == type(promise)(**promise.parameters) != "x"
        assert promise.pure_epsilon() == promise.epsilon(0.0).upper


@for_each([1e-4, 0.1, 5.0, 50.0])
def test_the_measure_of_a_conversion_is_that_of_a_pair(rho):
    """Both distributions add up to 1, but for what the last node leaves."""
    (step, _) = ZCDP(rho).dominating(1.0, "add-remove")
    for source in step.sources("remove"):
        mass = np.exp(source.log_mass)
        assert mass.sum() + source.beyond == pytest.approx(1.0, abs=1e-9)
        assert (mass * np.exp(-source.highest)).sum() == pytest.approx(1.0, abs=1e-9)


@for_each([(6.544e-3, 1.84e-262, 12), (0.1, 1e-7, 3), (2.0, 1e-9, 5), (0.0, 1e-300, 9)])
def test_groups_do_not_round_delta_down(case):
    """Kills: a margin below the roundings of logarithms of some hundred."""
    epsilon, delta, size = case
    exact = mp.mpf(delta) * mp.fsum(mp.exp(k * mp.mpf(epsilon)) for k in range(size))
    found = ApproximateDP(epsilon, delta).for_group(size)
    assert exact <= found.parameters["delta"] <= exact * (1 + mp.mpf(1e-11))


#: Normal noise that is 0.1-zCDP.
STD_OF_RHO = pn.Gaussian(std=math.sqrt(5.0))
GAUSSIAN = pn.Mechanism(pn.Gaussian(std=1.0)), 400
LAPLACE = pn.Mechanism(pn.Laplace(scale=1.0)), 2


@for_rows(
    [
        *((promise, GAUSSIAN) for promise in (ZCDP(0.01), PureDP(0.3), BoundedRange(0.2))),
        *((promise, LAPLACE) for promise in (ZCDP(0.01), ApproximateDP(0.1, 1e-3), GDP(0.5))),
    ]
)
def test_brackets_hold_their_estimates(promise, uses):
    """Bounds may come from another composition than the estimate, which was below the lower one."""
    accountant = Accountant().compose(promise).compose(*uses)
    found = [accountant.delta(epsilon) for epsilon in (-1.0, 0.0, 0.1)]
    found += [accountant.epsilon(delta) for delta in (0.0, 1e-5, 1.0 - 1e-12)]
    found += list(accountant.profile([0.0, 0.1, 3.0]))
    for lower, estimate, upper in found:
        assert lower <= estimate <= upper


def test_a_bracket_of_bounds_from_different_places():
    assert tuple(Bracket.holding(1.0, 0.5, 2.0)) == (1.0, 1.0, 2.0)
    assert tuple(Bracket.holding(1.0, 2.5, 2.0, "direct")) == (1.0, 2.0, 2.0)
    assert (
        tuple(Bracket.holding(2.0, 1.0, math.nextafter(2.0, 0.0)))
        == (math.nextafter(2.0, 0.0),) * 3
    )
    assert tuple(Bracket.holding(1.0, math.inf, math.inf)) == (1.0, math.inf, math.inf)
