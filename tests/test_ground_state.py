"""Ground states against 30-digit references, an independent solver, and themselves."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import psinoise as pn
from ground_state_truth import log_truth, power_truth
from psinoise import costs
from psinoise.ground_state import _collocation, _mesh, _solve, natural_state, power_state
from psinoise.numerics import double_double as dd

DATA = json.loads((Path(__file__).parent / "data" / "ground_states.json").read_text("utf-8"))
POWERS = DATA["power_costs_theta1"] + DATA["further_energies_theta1"]
ULP = 2.0**-52
ACCURACY = 5e-14


@pytest.fixture(autouse=True)
def forty_digits():
    with mpmath.workdps(40):
        yield


def relative(value, truth):
    return abs(float(mpf(float(value)) / mpf(truth) - 1))


def pair(values, *index):
    return mpf(float(values[0][index])) + mpf(float(values[1][index]))


# -- against references ----------------------------------------------------------------------------


@pytest.mark.parametrize("row", POWERS, ids=lambda row: row["a"])
def test_energy_and_peak_within_four_ulp(row):
    noise = pn.Schrodinger(cost=costs.Power(float(row["a"])), theta=1.0)
    assert relative(noise.ground_energy, row["E0"]) <= 4 * ULP
    assert relative(noise.pdf(0.0), row["p0_at_theta1"]) <= 4 * ULP
    # The test of the test.
    assert relative(noise.ground_energy * (1 + 6 * ULP), row["E0"]) > 4 * ULP


@pytest.mark.parametrize("row", DATA["power_costs_theta1"], ids=lambda row: row["a"])
def test_solver_is_right_to_many_more_digits(row):
    """The pairs of the solver itself, which the tables need: errors grow with |log p| = 700."""
    state = power_state(costs.Power(float(row["a"])), float(row["a"]))
    exponent = mpf(row["a"])
    mean = 2 * mpf(row["E0"]) / (2 + exponent)
    theta = mpf(state.theta[0]) + mpf(state.theta[1])
    energy = mpf(state.energy[0]) + mpf(state.energy[1])
    # 1e-18, below what log p(0) at double the digits of float64 would show.
    assert abs(theta / mean ** ((2 + exponent) / exponent) - 1) < 1e-18
    assert abs(energy / (mpf(row["E0"]) * mean ** (2 / exponent)) - 1) < 1e-18


@pytest.mark.parametrize("row", DATA["power_costs_theta1"], ids=lambda row: row["a"])
def test_densities_and_tails(row):
    noise = pn.Schrodinger(cost=costs.Power(float(row["a"])), theta=1.0)
    assert relative(noise.mean_cost, row["C_at_theta1"]) < 1e-14
    assert relative(noise.fisher_information(), row["Fisher_at_theta1"]) < 1e-14
    for point in row["density_theta1"]:
        x = float(point["x"])
        step = mpf(x) - mpf(point["x"])
        score, pdf, tail = (mpf(point[name]) for name in ("score_-dlogp", "pdf", "sf"))
        assert relative(noise.pdf(x), pdf * (1 - score * step)) < ACCURACY
        assert relative(noise.ccdf(x), tail - pdf * step) < ACCURACY
        assert relative(noise.score(np.array([x / noise.scale]))[0] / noise.scale, score) < 1e-14


@pytest.mark.parametrize("row", DATA["log_costs"], ids=lambda row: row["cost"])
def test_log_costs(row):
    cost = costs.Log(2.0 if row["cost"].endswith("^2") else 1.0)
    noise = pn.Schrodinger(cost=cost, theta=float(row["theta"]))
    assert relative(noise.ground_energy, row["E0"]) <= 4 * ULP
    assert relative(noise.mean_cost, row["C=dE/dtheta"]) < 1e-14
    assert relative(noise.fisher_information(), row["Fisher=4(E-theta*C)"]) < 1e-14
    for point in row["density"]:
        x = float(point["x"])
        step = mpf(x) - mpf(point["x"])
        score, pdf = mpf(point["score_-dlogp"]), mpf(point["pdf"])
        assert relative(noise.pdf(x), pdf * (1 - score * step)) < ACCURACY


@pytest.mark.parametrize("row", DATA["further_log_costs"], ids=lambda row: row["theta"])
def test_further_log_costs(row):
    noise = pn.Schrodinger(cost=costs.Log(), theta=float(row["theta"]))
    assert relative(noise.ground_energy, row["E0"]) <= 4 * ULP
    assert relative(noise.mean_cost, row["C"]) < 1e-13


@pytest.mark.deep
@pytest.mark.parametrize("theta", [1e-10, 1e4])
def test_log_costs_at_every_strength(theta):
    """Against the independent solver."""
    noise = pn.Schrodinger(cost=costs.Log(), theta=theta)
    unit = noise.scale
    guess = noise.ground_energy * unit**2 * (1 + 1e-9)
    truth = log_truth(unit, theta * unit**2, guess, 150.0)
    assert relative(noise.ground_energy * unit**2, truth.energy) < 1e-14
    for t in (0.0, 0.3, 1.0, 2.0, 5.0, 20.0, 50.0):
        density = mpmath.exp(truth.log_density(mpf(t)))
        assert relative(noise.pdf(t * unit) * unit, density) < ACCURACY
        assert relative(noise.ccdf(t * unit), truth.survival(mpf(t))) < ACCURACY
    assert (
        relative(pn.Schrodinger(cost=costs.Log(), mean_cost=noise.mean_cost).theta, theta) < 1e-12
    )


@pytest.mark.deep
@pytest.mark.parametrize("p", [0.5, 6.0])
def test_powers_against_the_independent_solver(p):
    """Singular at 0 and steep far out, where the tabulated references end early."""
    noise = pn.Schrodinger(cost=costs.Power(p), theta=1.0)
    truth = power_truth(p, 1.0, noise.ground_energy * (1 + 1e-9), 60.0)
    assert relative(noise.ground_energy, truth.energy) <= 4 * ULP
    for x in (1e-6, 0.2, 1.0, 2.0, 4.0, 5.0, 50.0):
        exact = truth.log_density(mpf(x))
        # An ulp of the scale moves log p by its slope.
        conditioning = ULP * x * float(truth.score(mpf(x)))
        assert abs(float(mpf(float(noise.logpdf(x))) - exact)) <= (
            2 * ULP * max(1.0, abs(float(exact))) + conditioning
        )


# -- against itself --------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [costs.Power(0.5), costs.Power(4.0), costs.Log(2.0)], ids=repr)
def test_halved_panels_give_the_same(cost):
    """The error estimate: solve again with every panel cut in two."""
    theta = (0.7, 0.0)
    mesh = _mesh.evaluate(cost.pair, _mesh.first_edges(-40, 8, ()))
    fine = _mesh.evaluate(cost.pair, np.union1d(mesh.edges, mesh.center))
    coarse, finer = (_solve.ground_energy(m, theta) for m in (mesh, fine))
    energies = [mpf(s.energy[0]) + mpf(s.energy[1]) for s in (coarse, finer)]
    assert abs(energies[0] / energies[1] - 1) < 1e-17
    assert abs(pair(coarse.mills, 0, 0) / pair(finer.mills, 0, 0) - 1) < 1e-16
    # A mesh without grading is seen to be too coarse where the cost has a cusp.
    crude = _mesh.evaluate(cost.pair, _mesh.first_edges(-2, 8, ()))
    if cost == costs.Power(0.5):
        missing = _solve.ground_energy(crude, theta).energy[0] / float(energies[1]) - 1
        assert abs(missing) > 1e-12


def test_refinement_solves_the_discrete_equations():
    """To 1e-28 after three passes, to 1e-13 after none."""
    cost = costs.Power(1.0)
    mesh = _mesh.evaluate(cost.pair, _mesh.first_edges(-2, 4, ()))
    solutions = [_solve.riccati(mesh, (1.0, 0.0), (1.0, 0.0), None, n) for n in (0, 1, 3, 5)]
    for name, first, one in (("decay", 1e-14, 1e-25), ("mills", 1e-7, 1e-15)):
        exact = getattr(solutions[-1], name)
        changes = []
        for solution in solutions[:-1]:
            found = getattr(solution, name)
            changes.append(
                max(abs(pair(found, p, 3) / pair(exact, p, 3) - 1) for p in range(mesh.half.size))
            )
        assert changes[0] < first
        assert changes[1] < one
        assert changes[2] < 1e-28


def test_collocation_matrices_are_exact():
    """Integrals of powers, in rational arithmetic on the shortened nodes."""
    found = _collocation.matrices()
    nodes = [Fraction(float(node)) for node in _collocation.NODES]
    assert nodes[0] == -1
    assert max(nodes) < 1

    def exact(values, j):
        hi, lo = values
        return sum(
            (Fraction(float(hi[k, j])) + Fraction(float(lo[k, j]))) * node**power
            for k, node in enumerate(nodes)
        )

    for power in (0, 1, 7, 19):
        for j in (0, 3, 19):
            truth = (1 - nodes[j] ** (power + 1)) / (power + 1)
            assert abs(exact(found.inward, j) - truth) < Fraction(1, 10**30)
    values = (found.values[0].T.copy(), found.values[1].T.copy())
    assert abs(exact(values, 7) - 0) < Fraction(1, 10**24)  # of u^19, the coefficient of u^7


def test_equations_hold_between_nodes():
    """r' = r^2 - Q and m' = 2 r m - 1, by differences of the evaluated law."""
    state = natural_state(costs.Log(), 1.0).state
    unit = natural_state(costs.Log(), 1.0).unit
    t = np.linspace(0.2, 40.0, 401)
    step = 1e-4
    r = 0.5 * state.score(t)
    slope = (state.score(t + step) - state.score(t - step)) / (4.0 * step)
    q = state.theta[0] * np.log1p(t * unit) - state.energy[0]
    np.testing.assert_allclose(slope, r**2 - q, rtol=1e-5, atol=1e-7)
    m = np.exp(state.log_mills(t))
    change = (np.exp(state.log_mills(t + step)) - np.exp(state.log_mills(t - step))) / (2 * step)
    np.testing.assert_allclose(change, 2.0 * r * m - 1.0, rtol=1e-5, atol=1e-7)


def test_mesh_follows_the_cost():
    assert (
        _mesh.smooth_exponent(costs.Power(2.0).pair, 1.0, 10, np.arange(-40.0, -3.0, 2.0), 2) == -4
    )
    small = _mesh.smooth_exponent(costs.Power(0.5).pair, 1.0, 10, np.arange(-40.0, -3.0, 2.0), 2)
    assert -30 < small < -12
    edges = _mesh.first_edges(-4, 6, (0.3, 1.0, 5.1, 1e9))
    assert {0.0, 0.3, 1.0, 5.1, 64.0} <= set(edges.tolist())
    assert (np.diff(edges) > 0.0).all()


def test_a_pole_halves_the_energy():
    """A start above the first odd state, |a1| = 2.338 for |x|, still finds the ground state."""
    cost = costs.Power(1.0)
    mesh = _mesh.evaluate(cost.pair, _mesh.first_edges(-2, 8, ()))
    truth = float(DATA["power_costs_theta1"][1]["E0"])
    for start in (1e-3, 0.5, 2.0, 2.5, 30.0):
        assert _solve.ground_energy(mesh, (1.0, 0.0), start).energy[0] == pytest.approx(
            truth, rel=1e-15
        )
    assert _solve.riccati(mesh, (1.0, 0.0), (2.5, 0.0), None, 1) is None


def test_energy_is_concave_and_its_slope_is_the_mean_cost():
    """dE/dtheta = C, which decreases: E is a minimum of functions linear in theta."""
    cost = costs.Log()
    thetas = np.geomspace(1e-3, 1e3, 13)
    laws = [pn.Schrodinger(cost=cost, theta=theta) for theta in thetas]
    mean = np.array([law.mean_cost for law in laws])
    assert (np.diff(mean) < 0.0).all()
    for theta, law in zip(thetas, laws, strict=True):
        step = 1e-4 * theta
        above, below = (
            pn.Schrodinger(cost=cost, theta=t).ground_energy for t in (theta + step, theta - step)
        )
        assert (above - below) / (2.0 * step) == pytest.approx(law.mean_cost, rel=1e-7)
    assert math.isclose(laws[0].mean_cost, mean[0])


def test_pairs_of_costs_are_exact():
    """t**p to 30 digits on nodes of the collocation, by whichever of the three ways."""
    t = np.concatenate([(1.0 + _collocation.NODES) * 2.0**e for e in (-30, -3, 0, 10)])[1:]
    for p in (0.5, 1.125, 3.0, 0.3):
        hi, lo = costs.Power(p).pair(t)
        for x, a, b in zip(t.tolist(), hi.tolist(), lo.tolist(), strict=True):
            if x:
                assert abs((mpf(a) + mpf(b)) / mpf(x) ** mpf(p) - 1) < 1e-29
    many = np.random.default_rng(5).uniform(0.0, 100.0, 1000)
    hi, lo = costs.Power(0.3).pair(many)
    np.testing.assert_allclose(hi + lo, many**0.3, rtol=4e-16)
    assert dd.add((hi, lo), (hi, lo))[0].shape == (1000,)
