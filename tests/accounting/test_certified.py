"""Certified bounds: never on the wrong side of an exact value, as narrow as asked.

Exact values: the analytic Gaussian profile at 60 digits, the Laplace profile of one use, randomized
response as a binomial sum of rationals; elsewhere the contour estimate, which has ten digits. The
mutants at the end show that the side is really tested.
"""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from profile_oracles import gaussian_epsilon

import psinoise as pn
from psinoise.accounting.certified import certify_delta, certify_epsilon
from psinoise.accounting.contour.estimate import epsilon_in_direction
from psinoise.accounting.lattice import bounds
from psinoise.accounting.lattice.bins import Bins, dense, loss_bins
from psinoise.accounting.lattice.bounds import node_measure
from psinoise.accounting.lattice.convolution import Profile, compose, window_size
from psinoise.accounting.lattice.grading import even_edges
from psinoise.accounting.lattice.target import Target, _bins, bound_of_step
from psinoise.accounting.loss.pairs import Pair
from psinoise.errors import CertificationError

DELTAS = (1e-2, 1e-5, 1e-8, 1e-12, 1e-30, 1e-100)


@pytest.mark.parametrize("count", [1, 10, 100, 2000, 10**4, 10**6, 10**9])
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_bounds_hold_around_the_analytic_value(count, delta):
    exact = gaussian_epsilon(mpmath.sqrt(count), delta)
    bracket = certify_epsilon.certify_epsilon(
        ((Pair(pn.Gaussian(std=1.0), 1.0, 1.0), count),), delta, None
    )
    assert bracket.lower <= exact <= bracket.upper
    assert bracket.width <= 1e-4 * max(1.0, float(exact))
    assert float(bracket) == bracket.upper


@pytest.mark.parametrize("std", [0.3, 30.0])
@pytest.mark.parametrize("count", [1, 7, 500])
def test_other_scales(std, count):
    exact = gaussian_epsilon(mpmath.sqrt(count) / mpmath.mpf(std), 1e-7)
    bracket = certify_epsilon.certify_epsilon(
        ((Pair(pn.Gaussian(std=std), 1.0, 1.0), count),), 1e-7, None
    )
    assert bracket.lower <= exact <= bracket.upper


def test_a_narrower_width_on_request():
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 1.0)
    exact = gaussian_epsilon(mpmath.sqrt(100), 1e-8)
    bracket = certify_epsilon.certify_epsilon(((pair, 100),), 1e-8, 1e-6 * float(exact))
    assert bracket.lower <= exact <= bracket.upper
    assert bracket.width <= 1e-6 * float(exact)


@pytest.mark.parametrize(
    "law", [pn.Gaussian(std=1.0), pn.Airy(mean_abs=2.0), pn.Laplace(scale=2.0)]
)
@pytest.mark.parametrize("rate", [0.1, 0.01])
@pytest.mark.parametrize(("count", "delta"), [(1, 1e-3), (10, 1e-8), (2000, 1e-8), (10**6, 1e-12)])
def test_subsampled_bounds_hold_around_the_estimate(law, rate, count, delta):
    bracket = certify_epsilon.certify_epsilon(((Pair(law, 1.0, rate), count),), delta, None)
    assert bracket.lower < bracket.estimate or bracket.estimate == 0.0
    assert bracket.lower <= bracket.estimate <= bracket.upper
    assert bracket.width <= 1e-4 * max(1.0, bracket.estimate)


def test_published_bounds_and_values_agree():
    """Exact values of others lie inside our bounds; their own bounds overlap with ours."""
    path = Path(__file__).parents[1] / "data" / "epsilon_oracles.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert rows
    for row in rows:
        pair = Pair(pn.Gaussian(std=float(row["std"])), 1.0, float(row["rate"]))
        steps = ((pair, int(row["count"])),)
        log_delta = math.log(float(row["delta"]))
        estimate = epsilon_in_direction(steps, "remove", log_delta)
        target = Target(steps, "remove", log_delta, estimate, 1e-4 * max(1.0, estimate))
        lower, upper = certify_epsilon._epsilon_bounds(target)
        tolerance = 1e-8
        if row["kind"] in ("exact", "upper"):
            assert lower <= float(row["epsilon"]) + tolerance
        if row["kind"] in ("exact", "lower"):
            assert upper >= float(row["epsilon"]) - tolerance


def test_different_steps_compose():
    """Two Gaussians are one: 1/3^2 + 1/4^2 = 1/2.4^2."""
    steps = tuple((Pair(pn.Gaussian(std=std), 1.0, 1.0), 5) for std in (3.0, 4.0))
    exact = gaussian_epsilon(mpmath.sqrt(5) / mpmath.mpf("2.4"), 1e-6)
    bracket = certify_epsilon.certify_epsilon(steps, 1e-6, None)
    assert bracket.lower <= exact <= bracket.upper


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.499])
def test_delta_of_one_laplace_use(epsilon):
    """``1 - exp((eps - 1/b) / 2)`` for sensitivity 1 and scale b (Laplace, one use)."""
    exact = -math.expm1((epsilon - 0.5) / 2.0)
    bracket = certify_delta.certify_delta(
        ((Pair(pn.Laplace(scale=2.0), 1.0, 1.0), 1),), epsilon, None
    )
    assert bracket.lower <= exact * (1.0 + 1e-14)
    assert bracket.upper >= exact * (1.0 - 1e-14)
    assert bracket.upper - bracket.lower <= 1e-4 * exact + 1e-4


def test_edges():
    steps = ((Pair(pn.Laplace(scale=2.0), 1.0, 1.0), 3),)
    assert certify_epsilon.certify_epsilon(steps, 1.0, None) == (0.0, 0.0, 0.0)
    assert certify_epsilon.certify_epsilon(steps, 0.0, None) == (1.5, 1.5, 1.5)
    assert certify_epsilon.certify_epsilon((), 1e-6, None) == (0.0, 0.0, 0.0)
    assert certify_delta.certify_delta(steps, math.inf, None) == (0.0, 0.0, 0.0)


def test_what_cannot_be_reached_is_refused():
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 0.01)
    with pytest.raises(CertificationError):
        certify_epsilon.certify_epsilon(((pair, 2000),), 1e-8, 1e-13)


# -- the composition alone, against rational arithmetic -------------------------------------------


def randomized_response(step, loss, tilt):
    """Bins of randomized response: two atoms at ``+-loss`` with odds ``e^loss``."""
    keep = math.exp(loss) / (1.0 + math.exp(loss))
    first = math.floor(-loss / step)
    count = math.floor(loss / step) + 1 - first
    mass, excess = np.zeros(count), np.zeros(count)
    for value, p in ((loss, keep), (-loss, 1.0 - keep)):
        j = math.floor(value / step) - first
        level = (first + j) * step
        mass[j] += p * math.exp(tilt * level)
        excess[j] += p * math.exp(tilt * level) * -math.expm1(level - value)
    edges = first + np.arange(count + 1)
    return Bins(step, 0.0, edges, mass, excess, tilt, 0.0, 0.0, 0.0, 0.0)


def binomial_delta(count, loss, epsilon):
    """Exact delta of composed randomized response, in rationals with ``e^loss`` at 60 digits."""
    with mpmath.workdps(60):
        gamma = mpmath.exp(mpmath.mpf(loss))
        total = mpmath.mpf(0)
        for k in range(count + 1):
            value = (2 * k - count) * mpmath.mpf(loss)
            if value > epsilon:
                ways = mpmath.mpf(Fraction(math.comb(count, k)).numerator)
                p = ways * gamma**k / (1 + gamma) ** count
                total += p * (1 - mpmath.exp(epsilon - value))
        return total


@pytest.mark.parametrize("count", [1, 2, 15, 200])
@pytest.mark.parametrize("step", [0.03, 0.0071])
def test_randomized_response_is_bracketed(count, step):
    loss, tilt = 0.25, 3.0
    bins = randomized_response(step, loss, tilt)
    for epsilon in (0.1, 0.9, 0.5 * loss * count):
        exact = binomial_delta(count, loss, epsilon)
        for side, sign in (("lower", -1.0), ("upper", 1.0)):
            parts = [(node_measure(bins, side), count)]
            profile = Profile(compose(parts, *window_size(parts, 1e-18)), sign)
            value = profile.log_delta(epsilon)
            bound = mpmath.exp(mpmath.mpf(value)) if value > -math.inf else mpmath.mpf(0)
            assert (bound - exact) * sign >= 0


# -- the halves of the bounds ---------------------------------------------------------------------


def single_bins(law, rate, step, tilt=2.0):
    source = dense(Pair(law, 1.0, rate), "remove", 80.0)
    chosen = np.ones(source.log_mass.size, bool)
    edges = even_edges(source, chosen, (step, 0.0))
    return loss_bins(source, chosen, ~chosen, (step, 0.0), edges, tilt, 0.0)


@pytest.mark.parametrize(
    "law", [pn.Gaussian(std=1.0), pn.Airy(mean_abs=1.0), pn.Laplace(scale=1.0)]
)
def test_bins_hold_all_of_the_mass(law):
    bins = single_bins(law, 0.3, 0.01, tilt=0.0)
    on_edges = np.zeros(bins.edges.size) if bins.at_edges is None else bins.at_edges
    inside = bins.mass.sum() + on_edges.sum()
    assert inside + bins.below + bins.above == pytest.approx(1.0, abs=1e-13)
    assert (bins.excess >= 0.0).all()
    assert (bins.excess <= bins.mass * -math.expm1(-bins.step) * (1.0 + 1e-9)).all()
    # The Q-mass of all bins is 1 too: A - u is e^level B.
    levels = bins.offset + bins.edges * bins.step
    other = np.append(bins.mass - bins.excess, 0.0) + on_edges
    assert (other * np.exp(-levels)).sum() == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("tilt", [0.0, 2.0])
def test_nodes_keep_the_masses(tilt):
    """Connect the dots keeps P and Q; the balanced contraction never raises either."""
    bins = single_bins(pn.Airy(mean_abs=1.0), 0.3, 0.01, tilt)
    for side in ("lower", "upper"):
        measure = node_measure(bins, side)
        p = measure.mass * np.exp(measure.log_norm - measure.tilt * measure.losses)
        q = p * np.exp(-measure.losses)
        if side == "upper":
            assert p.sum() == pytest.approx(1.0, abs=1e-11)
            assert q.sum() == pytest.approx(1.0, abs=1e-10)
        else:
            assert p.sum() <= 1.0
            assert p.sum() == pytest.approx(1.0, abs=1e-4)


# -- mutants --------------------------------------------------------------------------------------


def violated(monkeypatch, mutate):
    """Whether a mutated bound lies on the wrong side of the analytic Gaussian value."""
    mutate(monkeypatch)

    count = 100
    exact = gaussian_epsilon(mpmath.sqrt(count), 1e-8)
    steps = ((Pair(pn.Gaussian(std=1.0), 1.0, 1.0), count),)
    try:
        bracket = certify_epsilon.certify_epsilon(steps, 1e-8, None)
    except CertificationError:
        return True
    return not bracket.lower <= exact <= bracket.upper


def test_mutant_all_mass_to_the_lower_node(monkeypatch):
    """Its upper bound lies below the truth, by a tenth of epsilon."""

    def mutate(patch):
        patch.setattr(bounds, "_connect_the_dots", lambda bins: np.append(bins.mass, 0.0))

    exact = gaussian_epsilon(mpmath.sqrt(100), 1e-8)
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 1.0)
    target = Target(((pair, 100),), "remove", math.log(1e-8), float(exact), 1e-2)
    step = target.first_step
    honest = certify_epsilon.profile_bound(target, step, "upper").log_delta(float(exact))
    mutate(monkeypatch)
    mutant = certify_epsilon.profile_bound(target, step, "upper").log_delta(float(exact))
    assert honest >= math.log(1e-8) > mutant


def test_mutant_all_mass_to_the_upper_node_is_no_lower_bound(monkeypatch):
    class Core:
        log_mgf = bounds.core.log_mgf

        @staticmethod
        def balanced_nodes(mass, excess, widths, tilt):
            return np.append(0.0, mass * np.exp(tilt * widths))

    exact = gaussian_epsilon(mpmath.sqrt(100), 1e-8)
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 1.0)
    target = Target(((pair, 100),), "remove", math.log(1e-8), float(exact), 1e-2)
    step = target.first_step
    honest = certify_epsilon.profile_bound(target, step, "lower").log_delta(float(exact))
    monkeypatch.setattr(bounds, "core", Core)
    mutant = certify_epsilon.profile_bound(target, step, "lower").log_delta(float(exact))
    assert honest <= math.log(1e-8) < mutant


def test_the_real_thing_is_not_violated(monkeypatch):
    assert not violated(monkeypatch, lambda patch: None)


@pytest.mark.parametrize("step", [4.2e-4, 1.05e-4])
def test_no_offset_of_a_lattice_loses_less(step):
    """All of the bulk in a bin or two: the peak over offsets is steep, and straight nowhere.

    A search that follows straight lines alone misses it by a hundred times of what is enough.
    """
    pair = Pair(pn.Gaussian(std=0.442), 1.0, 1.0 / 2400.0)
    target = Target(((pair, 2400),), "remove", -11.5, 4.0, 4e-4)
    found = bound_of_step(target, pair, step, "lower", True).log_norm
    others = [
        node_measure(_bins(target, pair, step, k / 80.0), "lower").log_norm for k in range(80)
    ]
    assert found >= max(others)
    upper = bound_of_step(target, pair, step, "upper", False).log_norm
    assert found >= upper - 2e-7


def test_uses_whose_bulk_is_a_point():
    """Bounds where the typical loss is a hundredth of a step, and rare ones are ten thousand."""
    bracket = pn.Mechanism(pn.Gaussian(std=0.442)).epsilon(1e-5, 2400, 1.0 / 2400.0)
    assert bracket.lower <= bracket.estimate <= bracket.upper <= bracket.lower + 4.01e-4


def test_the_other_direction_is_far_below():
    """Its epsilon is near its largest loss there, and no lattice finds any mass so far out."""
    bracket = pn.Mechanism(pn.Airy(mean_abs=2.0)).epsilon(1e-5, 2, 0.01)
    assert 0.0 < bracket.lower <= bracket.estimate <= bracket.upper <= bracket.lower + 1.01e-4
