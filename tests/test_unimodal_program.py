"""The program whose answer is the best unimodal law: derivatives, divergences and bounds."""

from __future__ import annotations

import numpy as np
import pytest

import psinoise as pn
from psinoise.optimize import Grid
from psinoise.optimize import unimodal as optimize
from psinoise.optimize.unimodal.certificate import Intervals, lower_bound
from psinoise.optimize.unimodal.few_bound import _epsilon_of_pair, _least_delta
from psinoise.optimize.unimodal.generator import Generator
from psinoise.optimize.unimodal.interior_point import masses_of, minimize
from psinoise.optimize.unimodal.linear import least_cost, least_delta
from psinoise.optimize.unimodal.program import Program
from psinoise.optimize.unimodal.uses import Uses


def problem(count: int = 50, rate: float = 0.3, delta: float = 1e-4) -> optimize.Problem:
    def of_cells(grid: Grid) -> np.ndarray:
        edges = np.append(0.0, (np.arange(grid.last + 4000) + 0.5) / grid.width)
        found = 2.0 * np.diff(edges**3) / 3.0 * grid.width
        powers = grid.tail_ratio ** np.arange(found.size - grid.last)
        return np.append(found[: grid.last], found[grid.last :] @ powers)

    return optimize.Problem(delta, count, rate, of_cells, optimize.PowerCost(2.0))


def random_program() -> tuple[Program, np.ndarray, Generator]:
    generator = np.random.default_rng(5)
    program = problem().program(Grid(4, 20, 0.6))
    p = masses_of(generator.random(21) + 0.1)
    nodes = np.linspace(-2.0, 2.0, 41)
    levels = 0.1 * nodes**2 + np.sin(nodes)
    return program, p / (program.multiplicities @ p), Generator(nodes, levels)


def test_derivatives_are_those_of_the_divergence() -> None:
    """Against differences; kills a wrong sign or end of the tail."""
    program, p, generator = random_program()
    values = program.values(p, generator)
    hessian = np.zeros((21, 21))
    band = program.hessian_band(values.weights)
    for j in range(21):
        for offset in range(min(5, 21 - j)):
            hessian[20 - j, 20 - j - offset] = hessian[20 - j - offset, 20 - j] = band[j, offset]
    for i in range(21):
        step = np.zeros(21)
        step[i] = 1e-5 * p[i]
        up, down = program.values(p + step, generator), program.values(p - step, generator)
        assert (up.value - down.value) / (2.0 * step[i]) == pytest.approx(
            values.gradient[i], rel=1e-6
        )
        change = (up.gradient - down.gradient) / 2e-5 * p
        np.testing.assert_allclose(change, hessian[i], atol=1e-8 * np.abs(hessian).max())
    assert values.value == pytest.approx(values.gradient @ p, rel=1e-13)  # Euler's identity
    line = program.gradient_on_line(p, generator.tangent)
    np.testing.assert_allclose(2.0 * line[1:20], values.gradient[1:20], rtol=1e-12)


def test_the_divergence_is_the_sum_over_the_line() -> None:
    program, p, generator = random_program()
    x = np.arange(-400, 405)

    def mass(place: np.ndarray) -> np.ndarray:
        far = np.abs(place)
        return p[np.minimum(far, 20)] * 0.6 ** np.maximum(far - 20, 0)

    ratio = 0.7 + 0.3 * mass(x - 4) / mass(x)
    assert program.values(p, generator).value == pytest.approx(
        mass(x) @ generator(ratio)[0], rel=1e-12
    )


def test_generators_are_integrals_of_their_second_derivative() -> None:
    nodes = np.linspace(-1.0, 1.0, 9)
    generator = Generator(nodes, np.cos(nodes), end=1.0)
    ratio = np.exp(np.linspace(-2.0, 3.0, 200_001))
    value, slope, curvature = generator(ratio)
    assert (np.diff(slope) >= 0.0).all()
    middle = 0.5 * (slope[1:] + slope[:-1])
    np.testing.assert_allclose(
        np.cumsum(middle * np.diff(ratio)), value[1:] - value[0], rtol=1e-7, atol=1e-9
    )
    inside = ratio < np.e
    assert (curvature[inside] > 0.0).all()
    assert (curvature[~inside][1:] == 0.0).all()
    assert [float(part[0]) for part in generator(np.ones(1))][:2] == [0.0, 0.0]


@pytest.mark.parametrize(("count", "rate"), [(1, 1.0), (50, 0.3), (400, 0.05)])
def test_epsilon_of_the_rounds_is_that_of_the_accountant(count: int, rate: float) -> None:
    law = pn.OptimalUnimodal(
        mean_cost=1.0, delta=1e-5, count=100, sampling_rate=0.1, cells_per_sensitivity=10
    )
    width = law.cells_per_sensitivity
    program = Program(width, law.tail_ratio, np.ones(law.cells + 1), rate)
    base, ratio = program.ratios(law.masses)
    for add in (False, True):
        if count > 1:
            found = Uses(base, ratio, count, add).at_delta(1e-4).epsilon
            way = "add" if add else "remove"
            known = pn.Mechanism(law).composed(count, rate).estimate.epsilon(1e-4)
            assert found <= known + 1e-5
            if way == "remove":
                assert found == pytest.approx(known, abs=1e-5)
    assert base.sum() == pytest.approx(1.0, rel=1e-13)
    assert (base * ratio).sum() == pytest.approx(1.0, rel=1e-12)


def test_no_law_is_below_the_bound() -> None:
    """Of the certificate, for laws on finer cells and of other shapes."""
    asked = problem()
    program = asked.program(Grid(5, 60, 0.8))
    x = np.arange(61) / 5.0
    start = np.maximum(-np.diff(np.append(np.exp(-1.4 * x), 0.0)), 1e-14)
    p = masses_of(start)
    p /= program.multiplicities @ p
    point, uses = asked.worst(program, p)
    generator = uses.generator(point, -0.5, 1.5)
    found = minimize(program, generator, 1.0, start, tolerance=1e-8)
    bound, _ = lower_bound(
        program, found.masses, generator.tangent, found.theta, 1.0, optimize.PowerCost(2.0)
    )
    assert found.value - 0.1 < bound < found.value
    fine = asked.program(Grid(35, 420, 0.8 ** (1 / 7)))
    y = np.arange(421) / 35.0
    shapes = [np.exp(-a * y) + 1e-15 for a in (1.2, 1.4142, 1.6)]
    shapes += [np.exp(-0.5 * (y / s) ** 2) + 1e-15 for s in (0.8, 0.99)]
    shapes += [np.where(y < 0.5, 1.0, 0.1 * np.exp(-y)) + 1e-15]
    for shape in shapes:
        q = shape / (fine.multiplicities @ shape)
        if fine.costs @ q <= 1.0:
            assert fine.values(q, generator).value >= bound
    same = minimize(fine, generator, 1.0, -np.diff(np.append(shapes[1], 0.0)), tolerance=1e-8)
    assert bound - 1e-7 <= same.value <= found.value


def test_the_infimum_over_intervals_without_end() -> None:
    """A multiplier of 0 asks for infinite intervals; kills the least over those of a finite length,
    which is above the infimum."""
    line = np.repeat([2.0, 1.0], [50, 150])
    intervals = Intervals(line, 100, optimize.PowerCost(2.0))
    a = np.geomspace(0.495, 1e8, 100_000)
    means = 1.0 + 0.495 / a
    assert 1.0 - 1e-13 < intervals.least(0.0) <= 1.0
    for multiplier in (1e-9, 1e-3, 1.0):
        found = (means + multiplier * a**2 / 3.0).min()
        assert intervals.least(multiplier) <= found < intervals.least(multiplier) + 1e-6


@pytest.mark.parametrize(("places", "off"), [(7, 0.5), (10_000, 1e-3)])
def test_a_pair_below_a_known_delta_has_less_epsilon(places: int, off: float) -> None:
    """Laplace noise; kills a pair above the delta between places, and losses rounded up."""
    known = pn.Mechanism(pn.Laplace(scale=1.0)).epsilon(1e-6, 4, tolerance=1e-8)
    epsilon = np.linspace(0.0, 1.0, places)
    found = _epsilon_of_pair(
        np.exp(epsilon), -np.expm1(0.5 * (epsilon - 1.0)), problem(4, 1.0, 1e-6)
    )
    assert known.upper - off < found <= known.upper


@pytest.mark.parametrize(("epsilon", "guess"), [(0.3, 0.1), (0.3, 1e-4), (1.36, 1e-6)])
def test_the_least_delta_and_the_least_cost_are_inverse(epsilon: float, guess: float) -> None:
    """Near the largest loss too; kills multipliers in other units than those of the cost."""
    program = problem().program(Grid(40, 400, 0.9))
    best, delta = least_delta(program, epsilon, 1.0, guess)
    cheapest = least_cost(program, epsilon, delta)
    assert cheapest.cost == pytest.approx(1.0, rel=1e-7)
    assert best.cost == pytest.approx(1.0, rel=1e-7)
    assert best.multipliers.max() == pytest.approx(cheapest.multipliers.max(), rel=1e-5)


def test_no_law_of_the_cost_has_less_than_the_least_delta() -> None:
    """Of one use: Laplace, Airy and Gaussian noise, the best law at an epsilon, and close to that.
    Kills a bound that leaves the cost out, and one that is found on the grid alone."""
    grid = Grid(40, 400, 0.9)
    one = problem(1, 1.0, 1e-3)
    laws = [pn.Laplace(std=1.0), pn.Airy(std=1.0), pn.Gaussian(std=1.0)]
    laws += [
        pn.OptimalUnimodal(delta=delta, count=1, mean_cost=1.0, cells_per_sensitivity=101)
        for delta in (1e-3, 0.04, 0.2)
    ]
    for epsilon in (0.1, 0.5, 1.0, 1.25, 1.35):
        bound = _least_delta(one, one.program(grid), epsilon, 1.0, 1e-2)
        found = [float(pn.Mechanism(law).delta(epsilon)) for law in laws]
        assert bound <= min(found)
    best = pn.OptimalUnimodal(delta=0.04, count=1, mean_cost=1.0, cells_per_sensitivity=40)
    bound = _least_delta(one, one.program(grid), best.certificate.epsilon, 1.0, 1e-2)
    assert 0.04 * (1.0 - 3e-3) < bound < 0.04
