"""The Schrodinger law: special cases, scaling, identities, shape, identity, bad inputs.

That its numbers are right is in test_ground_state.py; that it is a law, in test_laws.py; costs with
kinks, in test_schrodinger_kinks.py.
"""

from __future__ import annotations

import itertools
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psinoise as pn
from case_names import case_name
from psinoise import DomainError, costs
from psinoise.ground_state import natural_state, power_state

EPS = 2.0**-53
QUANTITIES = ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf")


def near(value, relative):
    return pytest.approx(value, rel=relative, abs=0.0)


def smooth_absolute(x):
    return np.sqrt(1.0 + x * x) - 1.0


# -- special cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "law"), [(2, pn.Gaussian(std=1.0)), (1, pn.Airy(mean_abs=1.0))], ids=["Gaussian", "Airy"]
)
def test_known_laws_to_the_last_digits(p, law):
    """The same numbers by two ways that share nothing but the tables."""
    noise = pn.Schrodinger(cost=costs.Power(p), mean_cost=1.0)
    x = np.concatenate([-np.geomspace(1e-9, 200.0, 500), [0.0], np.geomspace(1e-9, 200.0, 500)])
    for quantity in QUANTITIES:
        ours, theirs = getattr(noise, quantity)(x), getattr(law, quantity)(x)
        normal = np.abs(theirs) >= 2.0**-1022
        np.testing.assert_allclose(ours[normal], theirs[normal], rtol=2e-14, err_msg=quantity)
    probability = 10.0 ** -np.linspace(0.1, 300.0, 500)
    np.testing.assert_allclose(noise.iccdf(probability), law.iccdf(probability), rtol=2e-15)
    for far in (1e5, 1e12, 1e100):
        assert noise.logpdf(far) == near(law.logpdf(far), 1e-15)
        assert noise.logccdf(far) == near(law.logccdf(far), 1e-15)
    t = np.geomspace(1e-6, 1e6, 200)
    np.testing.assert_allclose(noise.score(t), law.score(t), rtol=1e-14, atol=3e-17)
    assert noise.fisher_information() == near(law.fisher_information(), 1e-15)
    assert noise.std == near(law.std, 1e-14)
    assert noise.kl(0.3) == near(law.kl(0.3), 1e-12)
    # The test of the test: a cost bound off by 1e-13 would show.
    other = pn.Schrodinger(cost=costs.Power(p), mean_cost=1.0 + 1e-13)
    x = np.linspace(1.0, 20.0, 50)
    assert np.abs(other.pdf(x) / noise.pdf(x) - 1.0).max() > 2e-14


@pytest.mark.parametrize("p", [0.5, 1.5, 4.0])
def test_powers_scale(p):
    """Weight and cost bound only change the scale: one table for each power."""
    unit = pn.Schrodinger(cost=costs.Power(p), mean_cost=1.0)
    other = pn.Schrodinger(cost=costs.Power(p, weight=3.0), mean_cost=7.0)
    assert other._table is unit._table
    sigma = (7.0 / 3.0) ** (1.0 / p)
    assert other.scale == near(sigma, 2 * EPS)
    assert other.mean_cost == near(7.0, 1e-15)
    assert other.theta == near(unit.theta * sigma ** (-2 - p) / 3.0, 1e-14)
    assert other.ground_energy == near(unit.ground_energy / sigma**2, 1e-15)
    assert other.fisher_information() == near(unit.fisher_information() / sigma**2, 1e-15)
    again = pn.Schrodinger(cost=other.cost, theta=other.theta)
    assert again.scale == near(other.scale, 1e-15)
    # Virial theorem: C = 2 E / ((2 + p) theta), I = 4 p E / (2 + p).
    assert other.mean_cost == near(2 * other.ground_energy / ((2 + p) * other.theta), 1e-14)
    assert other.fisher_information() == near(4 * p * other.ground_energy / (2 + p), 1e-14)


def test_log_costs_at_their_limits():
    """Small bounds: log(1+|x|) is |x|, Airy; large ones: theta = exp(-2 C - 2.05968...)."""
    small = pn.Schrodinger(cost=costs.Log(), mean_cost=1e-7)
    airy = pn.Airy(mean_abs=1e-7)
    assert small.pdf(0.0) == near(airy.pdf(0.0), 1e-6)
    assert small.fisher_information() == near(airy.fisher_information(), 1e-6)
    large = pn.Schrodinger(cost=costs.Log(), mean_cost=25.0)
    assert math.log(large.theta) == near(-50.0 - 2.05968, 1e-7)
    assert large.fisher_information() == near(2.0 * large.theta, 1e-6)


# -- identities ------------------------------------------------------------------------------------

SMOOTH = [
    costs.Power(0.5),
    costs.Power(3.0),
    costs.Log(),
    costs.Log(1.5),
    costs.Power(1.0) + costs.Power(4.0, weight=0.1),
    costs.Custom(smooth_absolute),
]


@pytest.mark.parametrize("cost", SMOOTH, ids=case_name)
@pytest.mark.parametrize("bound", [0.02, 3.0])
def test_bound_is_met_and_identities_hold(cost, bound):
    noise = pn.Schrodinger(cost=cost, mean_cost=bound)
    assert noise.mean_cost == near(bound, 1e-13)
    assert noise.expected_cost(noise.cost) == near(bound, 1e-13)
    assert noise.cost == cost
    assert noise.moment(0) == near(1.0, 1e-14)
    fisher = 4.0 * (noise.ground_energy - noise.theta * noise.mean_cost)
    assert noise.fisher_information() == near(fisher, 1e-13)
    assert noise.fisher_information() == near(
        pn.Noise._standard_fisher_information(noise) / noise.scale**2, 1e-12
    )
    assert noise.fisher_information() * noise.std**2 >= 1.0
    assert noise.log_concave
    assert noise.unimodal
    assert noise.score_limit == math.inf


def test_optimality_against_every_law_of_the_package():
    """Theorem 2: least Fisher information at equal cost, and the gain that it states honestly."""
    for cost in (costs.Power(1.0), costs.Power(2.0), costs.Power(4.0), costs.Log()):
        best = pn.Schrodinger(cost=cost, mean_cost=1.0)
        for law in (pn.Gaussian, pn.Laplace, pn.Airy):
            low, high = 1e-3, 1e3
            for _ in range(60):
                middle = math.sqrt(low * high)
                small = law(scale=middle).expected_cost(cost) < 1.0
                low, high = (middle, high) if small else (low, middle)
            other = law(scale=low).fisher_information()
            assert other > best.fisher_information() * (1.0 - 1e-10)
    airy = pn.Schrodinger(cost=costs.Power(1.0), mean_cost=1.0).fisher_information()
    gaussian = pn.Gaussian(mean_abs=1.0).fisher_information()
    laplace = pn.Laplace(mean_abs=1.0).fisher_information()
    assert 1.0 - airy / gaussian == near(0.0157, 0.01)
    assert 1.0 - airy / laplace == near(0.3734, 0.001)


def test_information_is_convex_in_the_bound_with_slope_minus_four_theta():
    bounds = np.linspace(0.4, 2.0, 9)
    laws = [pn.Schrodinger(cost=costs.Log(), mean_cost=bound) for bound in bounds]
    information = np.array([law.fisher_information() for law in laws])
    assert (np.diff(information) < 0.0).all()
    assert (np.diff(information, 2) > 0.0).all()
    for law, bound in zip(laws, bounds, strict=True):
        step = 1e-4
        above, below = (
            pn.Schrodinger(cost=costs.Log(), mean_cost=bound + h).fisher_information()
            for h in (step, -step)
        )
        assert (above - below) / (2 * step) == near(-4.0 * law.theta, 1e-6)


@pytest.mark.deep
@settings(max_examples=15, deadline=None)
@given(
    p=st.floats(0.25, 6.0),
    q=st.floats(0.25, 6.0),
    weight=st.floats(0.01, 100.0),
    bound=st.floats(0.05, 20.0),
)
def test_random_costs(p, q, weight, bound):
    cost = costs.Power(p) + costs.Power(q, weight=weight) + costs.Log()
    noise = pn.Schrodinger(cost=cost, mean_cost=bound)
    assert noise.moment(0) == near(1.0, 1e-13)
    assert noise.expected_cost(cost) == near(bound, 1e-12)
    fisher = 4.0 * (noise.ground_energy - noise.theta * bound)
    assert noise.fisher_information() == near(fisher, 1e-10)
    assert noise.fisher_information() * noise.moment(2) >= 1.0
    assert noise.log_concave
    dearer = pn.Schrodinger(cost=cost, mean_cost=1.1 * bound)
    assert dearer.fisher_information() < noise.fisher_information()
    assert dearer.theta < noise.theta
    x = noise.scale * np.linspace(0.0, 5.0, 50)
    assert (np.diff(noise.logpdf(x)) < 0.0).all()


# -- the certificate of log-concavity --------------------------------------------------------------


@pytest.mark.parametrize("cost", [*SMOOTH, costs.Power(0.125), costs.Power(12.0)], ids=case_name)
def test_laws_are_certified_log_concave(cost):
    assert pn.Schrodinger(cost=cost, mean_cost=1.0).log_concave


def test_certificate_refuses_a_score_that_decreases():
    """A mutant: the certificate looks at the solution, not at the cost."""
    state = natural_state(costs.Log(), 0.37).state
    assert state.log_concave
    mutant = type(state)(state.solution, state.cost)
    r_hi = state.solution.decay[0]
    row = int(np.argmax(r_hi[:, 0] > 1.0))
    before = r_hi[row].copy()
    try:
        r_hi[row] = r_hi[row, ::-1]
        assert not mutant.log_concave
        # A dip of a thousandth of the rise between two nodes is seen too.
        r_hi[row] = before
        r_hi[row, 10] = before[10] - 1.5 * (before[10] - before[9])
        assert not type(state)(state.solution, state.cost).log_concave
    finally:
        r_hi[row] = before


# -- arguments -------------------------------------------------------------------------------------


def test_sizes_stretch_the_law():
    for size in ("scale", "std", "mean_abs"):
        for cost in (costs.Power(1.5), costs.Log()):
            noise = pn.Schrodinger(cost=cost, **{size: 0.7})
            assert getattr(noise, size) == near(0.7, 1e-13)
            assert noise.expected_cost(noise.cost) == near(noise.mean_cost, 1e-13)
            # The stretched law is the optimal one of the stretched cost.
            again = pn.Schrodinger(cost=noise.cost, mean_cost=noise.mean_cost)
            x = np.linspace(0.0, 5.0, 40)
            np.testing.assert_allclose(again.pdf(x), noise.pdf(x), rtol=1e-12)
            assert again.theta == near(noise.theta, 1e-12)
    both = pn.Schrodinger(cost=costs.Log(), theta=2.0, std=3.0)
    assert both.std == near(3.0, 1e-13)
    assert both._table is pn.Schrodinger(cost=costs.Log(), theta=2.0)._table
    # Where the square of a size is no float64.
    for cost, (size, square) in itertools.product(
        (costs.Power(1.5), costs.Log()), ((1e-200, 0.0), (1e200, math.inf))
    ):
        noise = pn.Schrodinger(cost=cost, std=size)
        assert noise.std == pytest.approx(size, rel=1e-13, abs=0.0)
        assert noise.var == square
        assert noise.ground_energy == noise.theta == (0.0 if square else math.inf)


@pytest.mark.parametrize(
    "noise",
    [
        pn.Schrodinger(cost=costs.Power(1.5), mean_cost=2.0),
        pn.Schrodinger(cost=costs.Power(1.5, weight=2.0), std=2.0),
        pn.Schrodinger(cost=costs.Log(), theta=2.0),
        pn.Schrodinger(cost=costs.Log(), mean_cost=2.0, scale=3.0),
        pn.Schrodinger(cost=costs.Power(1) + costs.Power(2), mean_cost=0.3),
    ],
    ids=case_name,
)
def test_identity(noise):
    again = eval(repr(noise), {"Schrodinger": pn.Schrodinger, "costs": costs})
    assert again == noise
    assert hash(again) == hash(noise)
    assert pickle.loads(pickle.dumps(noise)) == noise
    x = np.linspace(-4.0, 4.0, 33)
    np.testing.assert_array_equal(again.pdf(x), noise.pdf(x))
    np.testing.assert_array_equal(again.sample(9, rng=4), noise.sample(9, rng=4))
    assert noise != pn.Gaussian(std=1.0)
    assert noise != pn.Schrodinger(cost=costs.Power(2.0), mean_cost=2.0)
    with pytest.raises(AttributeError, match="is immutable"):
        noise.theta = 3.0


def test_custom_costs_by_name_pickle():
    noise = pn.Schrodinger(cost=smooth_absolute, mean_cost=2.0)
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert noise == pn.Schrodinger(cost=smooth_absolute, mean_cost=2.0)
    assert "smooth_absolute" in repr(noise)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "takes exactly one of mean_cost, theta, scale, std, mean_abs, got 0"),
        ({"mean_cost": 1.0, "theta": 1.0}, TypeError, "takes exactly one of .*, got 2"),
        ({"mean_cost": 1.0, "scale": 1.0}, TypeError, "takes exactly one of .*, got 2"),
        ({"mean_cost": 0.0}, DomainError, "mean_cost must be positive and finite, got 0.0"),
        ({"mean_cost": np.nan}, DomainError, "mean_cost must be positive and finite"),
        ({"theta": -1.0}, DomainError, "theta must be positive and finite"),
        ({"theta": "1"}, TypeError, "theta must be a real number"),
        ({"mean_cots": 1.0}, TypeError, "did you mean 'mean_cost'"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        pn.Schrodinger(cost=costs.Power(2), **arguments)


def test_bad_costs_and_bounds():
    with pytest.raises(TypeError, match="cost must be callable, got 3"):
        pn.Schrodinger(cost=3, mean_cost=1.0)
    with pytest.raises(DomainError, match=re.escape("mean_cost must be above the cost of 0, 2.0")):
        pn.Schrodinger(cost=lambda x: 2.0 + np.abs(x), mean_cost=1.5)
    with pytest.raises(DomainError, match="cost must not decrease"):
        pn.Schrodinger(cost=lambda x: np.abs(np.sin(x)), mean_cost=0.1)
    with pytest.raises(DomainError, match="mean_cost must be reached"):
        pn.Schrodinger(cost=costs.Log(), mean_cost=1e5)
    tiny = costs.Stretched(costs.Power(0.5, weight=1e-300), 1e-300)
    for bound in ("mean_cost", "theta"):
        with pytest.raises(DomainError, match="cost must be finite where the law is, got infinity"):
            pn.Schrodinger(cost=tiny, **{bound: 1.0})
    with pytest.raises(TypeError):
        pn.Schrodinger(costs.Power(2), mean_cost=1.0)


def test_a_cost_may_overflow_where_the_law_has_ended():
    steep = costs.Stretched(costs.Power(12, weight=1e-100), 1e-100)
    assert np.isinf(steep(1e-60))
    noise = pn.Schrodinger(cost=steep, theta=1.0)
    assert noise.std < 1e-75
    stretched = pn.Schrodinger(cost=steep, theta=1.0, std=1.0)
    power = pn.Schrodinger(cost=costs.Power(12), std=1.0)
    assert stretched.fisher_information() == near(power.fisher_information(), 1e-12)
    assert stretched.logpdf(1.5) == near(power.logpdf(1.5), 1e-12)


def test_a_cost_that_is_smooth_nowhere_is_refused_by_place():
    def stairs(x):
        return np.floor(1e6 * np.abs(x)) / 1e6

    with pytest.raises(DomainError, match=r"cost must be smooth but for a few kinks.* near x = "):
        pn.Schrodinger(cost=stairs, mean_cost=1.0)


def test_a_cost_of_zero_that_is_not_zero_only_shifts_the_energy():
    lifted = pn.Schrodinger(cost=lambda x: 5.0 + x * x, mean_cost=6.0)
    gaussian = pn.Schrodinger(cost=costs.Power(2), mean_cost=1.0)
    x = np.linspace(0.0, 8.0, 30)
    np.testing.assert_allclose(lifted.pdf(x), gaussian.pdf(x), rtol=1e-12)
    assert lifted.ground_energy == near(gaussian.ground_energy + 5.0 * gaussian.theta, 1e-13)


def test_a_large_cost_of_zero_takes_no_digits():
    """Kills: energies of the whole cost, whose difference is that of the law without the shift: a
    square root of a negative number, or 9e-11 of its tails."""
    shift = costs.Piecewise([(0.0, 5.0), (1.0, 5.0), (2.0, 6.0)])
    whole = costs.Power(0.5) + shift
    plain = costs.Power(0.5) + costs.Hinge(1.0)
    for bound in (1e-6, 1e-3, 0.5):
        law, same = (
            pn.Schrodinger(cost=cost, mean_cost=mean_cost)
            for cost, mean_cost in ((whole, 5.0 + bound), (plain, 5.0 + bound - 5.0))
        )
        assert law.theta == pytest.approx(same.theta, rel=1e-12)
        assert law.std == pytest.approx(same.std, rel=1e-12)
        assert law.ccdf(5.0 * law.std) == pytest.approx(same.ccdf(5.0 * law.std), rel=1e-11)
        assert law.mean_cost == pytest.approx(5.0 + bound, rel=1e-15)
        energy = law.theta * 5.0 + same.ground_energy
        assert law.ground_energy == pytest.approx(energy, rel=1e-12)
    with pytest.raises(pn.DomainError, match="must be smooth"):
        pn.Schrodinger(cost=lambda x: 1e6 + np.abs(x) ** 0.5, theta=1e4)  # rounding is all of it
    assert pn.Schrodinger(cost=lambda x: 5.0 + np.square(x), std=2.0).std == pytest.approx(2.0)


# -- machinery -------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.3, 1.5, 12.0])
def test_samples_follow_the_law(p):
    noise = pn.Schrodinger(cost=costs.Power(p), mean_cost=1.0)
    sample = noise.sample(200_000, rng=11)
    cells = np.bincount((noise.cdf(sample) * 64).astype(int), minlength=64)
    chi_square = ((cells - 3125.0) ** 2 / 3125.0).sum()
    assert 30.0 < chi_square < 110.0  # 63 degrees: 1e-4 on either side
    assert np.mean(np.abs(sample) ** p) == pytest.approx(
        1.0, abs=5.0 * math.sqrt(noise.moment(2 * p) / 2e5)
    )


def test_caches_are_bounded():
    for k in range(140):
        pn.Schrodinger(cost=costs.Power(2.0), scale=1.0 + k)
    assert power_state.cache_info().maxsize is not None
    assert natural_state.cache_info().maxsize is not None
    assert len(pn.Noise._tables) <= 128


@pytest.mark.deep
def test_the_same_bits_in_every_process_and_at_every_level(run_python):
    code = """
import hashlib
import mpmath
import numpy as np
import psinoise as pn
from psinoise import costs
state = hashlib.sha256()
for noise in (
    pn.Schrodinger(cost=costs.Power(0.5), mean_cost=1.0),
    pn.Schrodinger(cost=costs.Power(3.0), theta=2.0),
    pn.Schrodinger(cost=costs.Log() + costs.Power(0.3), mean_cost=1.7),
):
    state.update(noise.sample(10_000, rng=5).tobytes())
    state.update(noise.logpdf(np.linspace(0.0, 50.0, 5001)).tobytes())
    state.update(np.array([noise.theta, noise.ground_energy, noise.mean_cost]).tobytes())
print(state.hexdigest())
"""
    expected = run_python(code)
    for level in pn.build_config()["isa_available"]:
        assert run_python(code, PSINOISE_ISA=level) == expected


def test_accounting_of_every_shape():
    """Small and large powers and logarithms through the accountant: ordered as their information
    at many compositions of small sensitivity, and within the certified bounds."""
    found = []
    for cost in (costs.Power(0.5), costs.Power(1.5), costs.Power(4.0), costs.Log()):
        noise = pn.Schrodinger(cost=cost, std=1.0)
        mechanism = pn.Mechanism(noise, sensitivity=0.02)
        estimate = mechanism.composed(count=400).estimate.epsilon(delta=1e-6)
        found.append((noise.fisher_information(), estimate))
        bracket = mechanism.epsilon(delta=1e-6, count=400)
        assert bracket.lower <= estimate * (1 + 1e-9)
        assert estimate <= bracket.upper * (1 + 1e-9)
    found.sort()
    assert [epsilon for _, epsilon in found] == sorted(epsilon for _, epsilon in found)
