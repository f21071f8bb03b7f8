"""The convex program of the cactus mechanism: references, certificates, and what it must refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

from psinoise.errors import CalibrationError
from psinoise.optimize import Grid, solve
from psinoise.optimize.certificate import lower_bound
from psinoise.optimize.program import Program

DATA = json.loads((Path(__file__).parent / "data" / "cactus.json").read_text(encoding="utf-8"))


def power_costs(power):
    """Exact costs of cells, by the antiderivative of ``x**power``."""

    def of(grid):
        def cells(i):
            edges = (i - 0.5) / grid.width, (i + 0.5) / grid.width
            signed = [np.sign(x) * np.abs(x) ** (power + 1.0) for x in edges]
            return (signed[1] - signed[0]) * grid.width / (power + 1.0)

        costs = 2.0 * cells(np.arange(grid.last + 1.0))
        costs[0] *= 0.5
        beyond = np.arange(60.0 / -np.log(grid.tail_ratio) + 10.0)
        costs[-1] = 2.0 * cells(grid.last + beyond) @ grid.tail_ratio**beyond
        return costs

    return of


def divergence(p, ratio, k):
    """Straight from the definition: all cells of a law that is cut where nothing is left."""
    tail = np.arange(1.0, 60.0 / -np.log(ratio) + k)
    half = np.concatenate([p, p[-1] * ratio**tail])
    law = np.concatenate([half[:0:-1], half])
    return float(np.sum((law[k:] - law[:-k]) * np.log(law[k:] / law[:-k]))) / 2.0


@pytest.fixture(scope="module")
def optimum():
    """The instance of figure 1 with a tenth of the cells."""
    return solve(Grid(20, 160, 0.9**10), power_costs(2.0), 0.25)


# -- the optimum -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    DATA["optima"]["rows"],
    ids=lambda row: f"{row['width']}-{row['power']}-{row['mean_cost']}",
)
def test_references(row):
    grid = Grid(row["width"], row["last"], row["tail_ratio"])
    costs = power_costs(row["power"])
    solution = solve(grid, costs, row["mean_cost"])
    certificate = solution.certificate
    assert certificate.largest_kl == pytest.approx(row["largest_kl"], abs=1e-8)
    assert -1e-12 <= certificate.gap <= 1e-8
    program = Program(grid.width, grid.tail_ratio, costs(grid), row["mean_cost"])
    assert (solution.masses > 0.0).all()
    assert abs(program.multiplicities @ solution.masses - 1.0) <= 1e-15
    used = program.costs @ solution.masses
    assert used <= row["mean_cost"] * (1.0 + 1e-12)
    assert used == pytest.approx(row["mean_cost"], rel=1e-9)
    # All shifts, from the definition, on a grid where that is quick.
    if grid.width <= 40:
        found = [divergence(solution.masses, grid.tail_ratio, k) for k in program.all_shifts]
        assert max(found) == pytest.approx(certificate.largest_kl, abs=1e-11)


@pytest.mark.deep
def test_never_worse_than_published():
    """The authors' five digits, rounded up; wide laws need a wide grid."""
    for row in DATA["published"]["rows"]:
        mean_cost = row["size"] ** row["power"]
        wide = row["power"] == 1 and row["size"] > 0.9
        grid = Grid(100, 3000, 0.98) if wide else Grid(200, 1600, 0.9)
        found = solve(grid, power_costs(row["power"]), mean_cost).certificate.largest_kl
        assert found <= row["largest_kl"], row


def test_an_independent_solver_finds_the_same():
    """SLSQP on the variables of theorem 2, from the definition of the divergence."""
    grid, mean_cost = Grid(3, 12, 0.5), 0.3
    costs = power_costs(2.0)(grid)
    totals = np.full(13, 2.0)
    totals[0], totals[-1] = 1.0, 4.0
    start = np.append(np.log(np.exp(-0.5 * np.linspace(0.0, 4.0, 13))), 3.0)
    start[:-1] -= np.log(totals @ np.exp(start[:-1]))
    found = optimize.minimize(
        lambda x: x[-1],
        start,
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda x: totals @ np.exp(x[:-1]) - 1.0},
            {"type": "ineq", "fun": lambda x: mean_cost - costs @ np.exp(x[:-1])},
            {
                "type": "ineq",
                "fun": lambda x: np.array(
                    [x[-1] - divergence(np.exp(x[:-1]), 0.5, k) for k in (1, 2, 3)]
                ),
            },
        ],
        options={"maxiter": 500, "ftol": 1e-13},
    )
    certificate = solve(grid, power_costs(2.0), mean_cost).certificate
    assert found.fun == pytest.approx(certificate.largest_kl, abs=1e-6)
    assert certificate.lower_bound <= found.fun + 1e-9


def test_a_general_conic_solver_finds_the_same():
    cvxpy = pytest.importorskip("cvxpy")
    width, last, ratio, mean_cost = 4, 16, 0.5, 0.25
    grid = Grid(width, last, ratio)
    p, tau = cvxpy.Variable(last + 1), cvxpy.Variable()
    totals = np.full(last + 1, 2.0)
    totals[0], totals[-1] = 1.0, 2.0 / (1.0 - ratio)

    def both(u, v):
        return cvxpy.rel_entr(u, v) + cvxpy.rel_entr(v, u)

    constraints = [totals @ p == 1, power_costs(2.0)(grid) @ p <= mean_cost]
    for k in range(1, width + 1):
        near = sum(both(p[abs(i)], p[abs(i + k)]) for i in range(1 - last, last - k)) / 2
        far = sum(both(p[i], p[last] * ratio ** (i + k - last)) for i in range(last - k, last))
        rest = p[last] * ((1.0 - ratio**k) / (1.0 - ratio) * k * -np.log(ratio))
        constraints.append(near + far + rest <= tau)
    value = cvxpy.Problem(cvxpy.Minimize(tau), constraints).solve(solver="CLARABEL")
    found = solve(grid, power_costs(2.0), mean_cost).certificate.largest_kl
    # It stops 2e-6 below the lower bound that the certificate proves.
    assert value == pytest.approx(found, abs=1e-5)


def test_refinement_lowers_the_divergence():
    values = [
        solve(Grid(n, 8 * n, 0.9 ** (200 / n)), power_costs(2.0), 0.25).certificate.largest_kl
        for n in (5, 10, 20, 40, 80)
    ]
    assert (np.diff(values) < 0.0).all()


@pytest.mark.parametrize("variance", [0.04, 0.25, 1.0, 2.0])
def test_gaussian_noise_is_beaten(variance):
    grid = Grid(40, 480, 0.9)
    certificate = solve(grid, power_costs(2.0), variance).certificate
    assert certificate.largest_kl < 0.5 / variance


def test_spare_cost_is_left_over():
    """With room to spare the bound does not bind, and the law is that of the grid alone."""
    grid = Grid(20, 160, 0.9**10)
    first, second = (solve(grid, power_costs(2.0), bound) for bound in (50.0, 1000.0))
    assert first.certificate.largest_kl == pytest.approx(second.certificate.largest_kl, abs=1e-9)
    assert power_costs(2.0)(grid) @ first.masses < 10.0


@pytest.mark.parametrize(
    ("grid", "power", "mean_cost"),
    [
        (Grid(1, 2, 0.5), 2.0, 0.3),
        (Grid(3, 40, 0.01), 2.0, 0.3),
        (Grid(10, 11, 0.99), 2.0, 2.0),
        (Grid(10, 100, 0.999), 2.0, 1.0),
        (Grid(10, 100, 1e-6), 2.0, 0.25),
        (Grid(20, 225, 0.5), 4.0, 1.51e-6),  # 0.8 % above the least cost that exists
        (Grid(100, 800, 0.8), 2.0, 1.4),  # no shift but the largest binds
    ],
    ids=str,
)
def test_degenerate_instances(grid, power, mean_cost):
    solution = solve(grid, power_costs(power), mean_cost)
    assert -1e-12 <= solution.certificate.gap <= 1e-8
    assert (solution.masses > 0.0).all()
    assert power_costs(power)(grid) @ solution.masses <= mean_cost * (1.0 + 1e-12)


def test_infeasible_costs_are_refused():
    with pytest.raises(CalibrationError, match=r"mean_cost must be above 0\.0125"):
        solve(Grid(20, 160, 0.9), power_costs(1.0), 0.0125)
    assert solve(Grid(20, 160, 0.9), power_costs(1.0), 0.0126).certificate.largest_kl > 8.0


def test_progress_is_reported():
    seen = []
    solve(Grid(60, 240, 0.8), power_costs(2.0), 0.25, progress=lambda n, gap: seen.append((n, gap)))
    assert {n for n, _ in seen} == {12, 60}
    assert seen[-1][1] < 1e-10


# -- the certificate -------------------------------------------------------------------------------


def test_the_lower_bound_holds_for_any_multipliers_and_masses(optimum):
    """Not only near the optimum: it is weak duality. The optimum is 1.7283085."""
    generator = np.random.default_rng(7)
    program = Program(20, 0.9**10, power_costs(2.0)(Grid(20, 160, 0.9**10)), 0.25)
    shifts = program.all_shifts
    for spread in (1.0, 0.1, 1e-3):
        masses = optimum.masses * np.exp(spread * generator.normal(size=161))
        bound = lower_bound(program, masses, shifts, generator.uniform(size=20))
        assert bound <= optimum.certificate.lower_bound + 1e-10
    # The test of the test: with the optimal multipliers it is sharp, with others it is not.
    weights = np.array(optimum.certificate.weights)
    sharp = lower_bound(program, optimum.masses, shifts, weights)
    assert sharp == optimum.certificate.lower_bound
    weights[:10] += 0.01
    assert lower_bound(program, optimum.masses, shifts, weights) < sharp - 1e-3


# -- the pieces ------------------------------------------------------------------------------------


def random_masses(size):
    generator = np.random.default_rng(size)
    return np.exp(-np.linspace(0.0, 20.0, size) + generator.normal(size=size))


def test_divergences_and_derivatives():
    program = Program(7, 0.8, np.ones(31), 1.0)
    p, shifts = random_masses(31), program.all_shifts
    expected = np.array([divergence(p, 0.8, k) for k in shifts])
    np.testing.assert_allclose(program.divergences(p, shifts), expected, rtol=1e-12)
    values, gradients = program.derivatives(p, shifts)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    for i in (0, 3, 25, 30):
        step = np.zeros(31)
        step[i] = 1e-5
        up, down = (program.divergences(p * np.exp(s), shifts) for s in (step, -step))
        np.testing.assert_allclose(gradients[:, i], (up - down) / 2e-5, rtol=1e-6, atol=1e-9)


def test_the_band_is_the_hessian():
    program = Program(5, 0.7, np.ones(14), 1.0)
    p, shifts, weights = random_masses(14), np.array([1, 2, 4, 5]), np.array([0.1, 0.2, 0.3, 0.4])
    band = program.hessian_band(p, shifts, weights)
    dense = np.zeros((14, 14))
    for d in range(6):
        for j in range(14 - d):
            dense[j + d, j] = dense[j, j + d] = band[j, d]
    dense = dense[::-1, ::-1]

    def slope(q):
        return weights @ program.derivatives(q, shifts)[1] / q

    for i in range(14):
        step = np.zeros(14)
        step[i] = 1e-5 * p[i]
        column = (slope(p + step) - slope(p - step)) / 2e-5 * p
        np.testing.assert_allclose(dense[:, i], column, rtol=1e-5, atol=1e-8)
    # Homogeneity: the masses are a null vector.
    np.testing.assert_allclose(dense.sum(axis=0), 0.0, atol=1e-15)


@pytest.mark.parametrize("variance", [40.0, 100.0])
def test_continued_masses_are_those_of_the_program(variance, monkeypatch):
    """Kills: interpolation by straight lines, the cost of wide cells for narrow ones, no tilt."""
    size = variance**0.5
    grid = Grid(20, int(160 * size), float(np.exp(-0.4 / size)))
    seen = []
    continued = solve(grid, power_costs(2.0), variance, progress=lambda n, gap: seen.append(n))
    assert set(seen) == {1}
    monkeypatch.setattr("psinoise.optimize.solver._LARGE", 10**6)
    solved = solve(grid, power_costs(2.0), variance, progress=lambda n, gap: seen.append(n))
    assert set(seen) == {1, 20}
    assert continued.certificate.largest_kl == pytest.approx(
        solved.certificate.largest_kl, rel=1e-10
    )
    assert continued.certificate.gap < 1e-10 * continued.certificate.largest_kl


def test_masses_are_not_continued_where_that_is_not_optimal():
    """Of a cost with a kink the points between whole sensitivities have other optima."""
    seen = []
    solution = solve(
        Grid(6, 400, 0.97), power_costs(1.0), 8.0, progress=lambda n, gap: seen.append(n)
    )
    assert set(seen) == {1, 6}
    assert solution.certificate.gap < 1e-9
