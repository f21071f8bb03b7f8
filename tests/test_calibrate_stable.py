"""The stable law of least E|Y| at a pure epsilon: that it is the least, and what it is worth."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

import psinoise as pn
from psinoise.noise import Family


def mean_abs(alpha: float, epsilon: float) -> float:
    family = Family(pn.SymmetricStable, alpha=alpha)
    return pn.calibrate(family, epsilon=epsilon, delta=0.0).mean_abs


IN_TABLE = (0.1, 1, 2, 5, 8, 20)


@pytest.fixture(scope="module")
def best() -> dict[float, pn.SymmetricStable]:
    return {e: pn.calibrate_stable(epsilon=e) for e in sorted({*IN_TABLE, 5.46, 5.47, 40})}


@pytest.mark.parametrize("alpha", [0.6, 1.0, 1.5, 1.99])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_pure_targets_are_met_by_any_index(alpha: float, epsilon: float) -> None:
    """Not exceeded, and not by a scale that is larger than needed."""
    family = Family(pn.SymmetricStable, alpha=alpha)
    noise = pn.calibrate(family, epsilon=epsilon, delta=0.0, sensitivity=3.0, count=2)
    achieved = 2.0 * pn.Mechanism(noise, 3.0).pure_epsilon()
    assert epsilon * (1.0 - 1e-11) <= achieved <= epsilon
    if alpha == 1.0:  # theorem 25 of the paper: the loss of one use is 2 asinh(s / (2 scale))
        assert noise.scale == pytest.approx(1.5 / math.sinh(0.25 * epsilon), rel=1e-11)


def test_the_gaussian_has_no_pure_epsilon() -> None:
    family = Family(pn.SymmetricStable, alpha=2.0)
    with pytest.raises(pn.CalibrationError, match="largest privacy loss"):
        pn.calibrate(family, epsilon=1.0, delta=0.0)


@pytest.mark.deep
def test_it_is_stationary_and_beats_its_neighbors(best: dict[float, pn.SymmetricStable]) -> None:
    for epsilon in (0.1, 1.0):
        alpha, least = best[epsilon].alpha, best[epsilon].mean_abs
        assert best[epsilon].mean_abs == pytest.approx(mean_abs(alpha, epsilon), rel=1e-12)
        for step in (1e-3, 0.02, 0.1):
            below, above = mean_abs(alpha - step, epsilon), mean_abs(alpha + step, epsilon)
            assert least < min(below, above)
            if step == 1e-3:
                # The vertex of the parabola through three points.
                vertex = 0.5 * step * (below - above) / (below - 2.0 * least + above)
                assert abs(vertex) < 1e-4


@pytest.mark.deep
def test_no_index_on_a_grid_is_better(best: dict[float, pn.SymmetricStable]) -> None:
    """One minimum only, as the search supposes."""
    for epsilon in (1.0, 5.47):
        grid = np.array([mean_abs(a, epsilon) for a in (1.05, 1.1, 1.2, 1.3, 1.5, 1.8, 1.9, 1.99)])
        assert grid.min() > best[epsilon].mean_abs
        turns = np.diff(np.sign(np.diff(grid)))
        assert np.count_nonzero(turns) == 1


@pytest.mark.deep
def test_limit_for_small_epsilon() -> None:
    """``E|Y| max(score)``, from the formulas instead of the tables of losses."""

    def limit(alpha: float) -> float:
        law = pn.SymmetricStable(alpha=alpha, scale=1.0)
        found = optimize.minimize_scalar(
            lambda t: -float(law.score(np.array([t]))[0]), bounds=(0.1, 8.0), method="bounded"
        )
        return law.mean_abs * -found.fun

    found = optimize.minimize_scalar(limit, bounds=(1.5, 1.9), method="bounded")
    for epsilon in (1e-9, 0.01):
        noise = pn.calibrate_stable(epsilon=epsilon)
        assert noise.alpha == pytest.approx(found.x, abs=1e-4)
        assert noise.mean_abs * epsilon == pytest.approx(found.fun, rel=1e-5)


@pytest.mark.deep
def test_large_epsilon_takes_heavier_tails(best: dict[float, pn.SymmetricStable]) -> None:
    indices = [noise.alpha for noise in best.values()]
    assert indices == sorted(indices, reverse=True)
    # alpha - 1 ~ 4 / epsilon, from above.
    assert 4.0 / 40.0 < best[40.0].alpha - 1.0 < 1.2 * 4.0 / 40.0
    # To the last scale that `calibrate` allows, 2**-40: a search must not step over it.
    family = Family(pn.SymmetricStable, alpha=1.1)
    assert 2.0**-40 < pn.calibrate(family, epsilon=57.0, delta=0.0).scale < 2.0**-39
    with pytest.raises(pn.CalibrationError, match="below"):
        pn.calibrate_stable(epsilon=60.0, alpha=1.1)


@pytest.mark.deep
def test_honestly_beside_laplace(best: dict[float, pn.SymmetricStable]) -> None:
    """Half as much again as Laplace where epsilon is small, ahead of it beyond 5.46, and never
    ahead of the staircase law, the best of all (Geng and Viswanath 2016)."""
    cost = {epsilon: noise.mean_abs * epsilon for epsilon, noise in best.items()}
    assert cost[0.1] == pytest.approx(1.569, abs=1e-3)
    assert cost[1.0] == pytest.approx(1.553, abs=1e-3)
    assert cost[5.46] > 1.0 > cost[5.47]
    for epsilon, noise in best.items():
        assert noise.mean_abs > math.exp(-0.5 * epsilon) / -math.expm1(-epsilon)


@pytest.mark.deep
def test_sensitivity_and_count_only_scale(best: dict[float, pn.SymmetricStable]) -> None:
    noise = pn.calibrate_stable(epsilon=3.0, sensitivity=7.0, count=3)
    assert noise.alpha == best[1.0].alpha
    assert noise.scale == pytest.approx(7.0 * best[1.0].scale, rel=1e-11)
    assert 3.0 * pn.Mechanism(noise, 7.0).pure_epsilon() <= 3.0


GAUSSIAN = 3.3709624  # E|Z| of one message at (1, 1e-6)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("clients", "alpha", "most"),
    [(10, 1.83, 5.71), (1000, 1.92, 66.0), (10**6, 1.96, 2303.0), (10**12, 1.98, 2.527e6)],
)
def test_the_index_grows_with_the_crowd(clients: int, alpha: float, most: float) -> None:
    """The error of the sum, which is never behind that of the Gaussian with a delta."""
    noise = pn.calibrate_stable(epsilon=1.0, clients=clients)
    error = noise.aggregate(clients).mean_abs
    assert pn.Mechanism(noise).pure_epsilon() <= 1.0
    assert noise.alpha == pytest.approx(alpha, abs=0.006)
    assert error <= most < GAUSSIAN * math.sqrt(clients)
    for other in (alpha - 0.03, alpha + 0.015):
        given = pn.calibrate_stable(epsilon=1.0, clients=clients, alpha=other)
        assert given.alpha == other
        assert error < given.aggregate(clients).mean_abs


@pytest.mark.deep
@pytest.mark.parametrize("clients", [10, 1000, 10**12])
def test_whole_numbers_cost_hardly_more(clients: int) -> None:
    """A message as it is released has the epsilon, and the error of the sum is that of the
    continuous law, but for a sensitivity that is a whole number of cells."""
    ideal = pn.calibrate_stable(epsilon=1.0, clients=clients)
    grid = ideal.scale / 64.0
    cells = math.ceil(1.0 / grid)
    noise = pn.calibrate_stable(epsilon=1.0, clients=clients, grid=grid)
    assert isinstance(noise, pn.DiscreteStable)
    assert 1.0 - 2e-6 < pn.Mechanism(noise, cells).on_lattice().pure_epsilon() <= 1.0
    error, least = (law.aggregate(clients).mean_abs for law in (noise, ideal))
    assert grid * error == pytest.approx(least * cells * grid, rel=1e-3)
    if clients == 1000:
        assert grid * error < 66.0 * 1.01


@pytest.mark.deep
def test_a_sum_on_a_grid_meets_the_target() -> None:
    """Of table draws with a delta, of draws of the law without; nine of ten clients are there."""
    for delta in (0.0, 1e-6):
        noise = pn.calibrate_stable(
            epsilon=1.0, delta=delta, clients=50, setting="distributed", dropout=0.1, alpha=1.7,
            grid=0.25,
        )  # fmt: skip
        if delta:
            reached = pn.Mechanism(noise, 4).for_sum(45).epsilon(delta)
        else:
            reached = pn.Mechanism(noise.aggregate(45), 4).pure_epsilon()
        assert 1.0 - 2e-6 < reached <= 1.0


def test_other_ways_to_calibrate() -> None:
    """Without an index they name this one; with it the answer is the same, but for the table."""
    with pytest.raises(TypeError, match="calibrate_stable"):
        pn.calibrate(pn.SymmetricStable, epsilon=1.0, delta=0.0)
    with pytest.raises(TypeError, match="DiscreteStable needs alpha"):
        pn.calibrate(pn.DiscreteStable, epsilon=1.0, delta=0.0)
    family, words = Family(pn.DiscreteStable, alpha=1.7), {"epsilon": 1.0, "sensitivity": 16.0}
    noise = pn.calibrate(family, delta=0.0, **words)
    table = pn.calibrate_stable(alpha=1.7, grid=1.0, **words)
    # Its table is wider than the law by 2**-18.
    assert noise.scale == pytest.approx(table.scale, rel=2.0**-17)
    assert 1.0 - 1e-9 < pn.Mechanism(noise, 16.0).pure_epsilon() <= 1.0
    released = pn.calibrate(family, delta=0.0, on_lattice=True, **words)
    assert 0.9999 < released.pure_epsilon() <= 1.0
    with pytest.raises(pn.DomainError, match="whole number"):
        pn.calibrate(family, epsilon=1.0, delta=0.0, sensitivity=0.5)


@pytest.mark.parametrize(
    ("clients", "dropout", "present"), [(10, 0.3, 7), (10, 0.29, 8), (3, 0.99, 1), (1, 0.5, 1)]
)
def test_a_sum_meets_the_target_without_those_that_dropped_out(
    clients: int, dropout: float, present: int
) -> None:
    noise = pn.calibrate_stable(
        epsilon=1.0, clients=clients, setting="distributed", dropout=dropout, alpha=1.75
    )
    left = pn.Mechanism(noise.aggregate(present)).pure_epsilon()
    assert 1.0 - 1e-11 < left <= 1.0 + 1e-13
    if present > 1:
        assert pn.Mechanism(noise.aggregate(present - 1)).pure_epsilon() > 1.0


@pytest.mark.deep
def test_a_delta_and_a_cost() -> None:
    target = {"epsilon": 1.0, "delta": 1e-3}
    noise = pn.calibrate_stable(**target, clients=10**6)
    normal = pn.calibrate(pn.Gaussian, **target)
    assert noise.mean_abs * 1e6 ** (1.0 / noise.alpha) <= normal.mean_abs * 1e3 * (1.0 + 1e-9)
    assert pn.Mechanism(noise).epsilon(1e-3) <= 1.0
    root = pn.calibrate_stable(epsilon=1.0, cost=np.sqrt)
    assert root.alpha < 1.69
    for step in (-0.02, 0.02):
        other = pn.calibrate_stable(epsilon=1.0, alpha=root.alpha + step)
        assert root.moment(0.5) < other.moment(0.5)
    with pytest.raises(pn.CalibrationError, match="finite expectation"):
        pn.calibrate_stable(epsilon=1.0, cost=np.square)


@pytest.mark.parametrize("ratio", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 1.9])
def test_limit_for_small_scales(alpha: float, ratio: float) -> None:
    """Corollary 27, for any index: ``log p(0) / p(s)`` with the leading term of the tail,
    ``(1 + alpha) log(s / scale) + log(p(0) / (alpha K))``; at 1 it is ``2 log(s / scale)``."""
    loss = pn.Mechanism(pn.SymmetricStable(alpha=alpha, scale=ratio)).pure_epsilon()
    tail = math.gamma(1.0 + alpha) * math.sin(0.5 * math.pi * alpha) / math.pi
    peak = math.gamma(1.0 + 1.0 / alpha) / math.pi
    limit = -(1.0 + alpha) * math.log(ratio) + math.log(peak / tail)
    # The next term of the tail is of the order of ratio**alpha.
    assert loss == pytest.approx(limit, abs=20.0 * ratio ** min(alpha, 1.0))
    if alpha == 1.0:
        # Equation (95) of the paper has another constant: sqrt(2).
        assert abs(loss - 2.0 * math.log(math.sqrt(2.0) / ratio)) > 0.69


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 1.9])
def test_limit_for_large_scales(alpha: float) -> None:
    """Corollary 26, for any index: ``max(score) s / scale``, where the paper has 1 at index 1."""
    law = pn.SymmetricStable(alpha=alpha, scale=1.0)
    t = np.geomspace(1e-3, 10.0, 20001)
    slope = float(law.score(t).max())
    if alpha == 1.0:
        assert slope == pytest.approx(1.0, abs=1e-7)
    for ratio in (1e2, 1e4):
        loss = pn.Mechanism(pn.SymmetricStable(alpha=alpha, scale=ratio)).pure_epsilon()
        assert loss * ratio == pytest.approx(slope, rel=max(2.0 / ratio**2, 1e-6) * 2.0)


@pytest.mark.deep
def test_the_tables_of_the_documentation(best: dict[float, pn.SymmetricStable]) -> None:
    def stable(alpha: float) -> Family:
        return Family(pn.SymmetricStable, alpha=alpha)

    text = (Path(__file__).parents[1] / "docs" / "stable.md").read_text(encoding="utf-8")
    for law in (pn.Laplace, *map(stable, (1.7, 1.9, 1.999)), pn.Gaussian, pn.Airy):
        mechanism = pn.Mechanism(law(mean_abs=2.0))
        uses = [mechanism.composed(n).estimate.epsilon(1e-6) for n in (1, 10, 100, 1000)]
        pure = mechanism.pure_epsilon()
        first = "inf" if math.isinf(pure) else f"{pure:.4f}"
        assert f"| {first} | {' | '.join(f'{value:.4f}' for value in uses)} |" in text
    for epsilon in IN_TABLE:
        noise = best[epsilon]
        row = f"| {epsilon} | {noise.alpha:.4f} | {noise.mean_abs * epsilon:.4f} |"
        assert row in text


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0.0}, pn.DomainError, "epsilon must be positive"),
        ({"epsilon": math.nan}, pn.DomainError, "epsilon must"),
        ({"epsilon": "1"}, TypeError, "epsilon must"),
        ({"epsilon": 1.0, "count": 0}, pn.DomainError, "count must be at least 1"),
        ({"epsilon": 1.0, "sensitivity": -1.0}, pn.DomainError, "sensitivity must be positive"),
        ({"epsilon": 1.0, "clients": 0}, pn.DomainError, "clients must be at least 1"),
        ({"epsilon": 1.0, "clients": 1.5}, TypeError, "clients must be an integer"),
        ({"epsilon": 1.0, "setting": "shuffled"}, pn.DomainError, "setting must be"),
        ({"epsilon": 1.0, "dropout": 0.1}, pn.DomainError, "dropout must be 0"),
        ({"epsilon": 1.0, "dropout": math.nan}, pn.DomainError, "dropout must"),
        ({"epsilon": 1.0, "delta": 1.0}, pn.DomainError, "delta must be in"),
        ({"epsilon": 1.0, "cost": 2.0}, TypeError, "cost must be callable"),
        ({"epsilon": 1.0, "alpha": 1.5, "grid": 0.0}, pn.DomainError, "grid must be positive"),
        ({"epsilon": 1.0, "alpha": 1.5, "grid": 1e-7}, pn.DomainError, "must be narrower"),
        ({"epsilon": 1.0, "alpha": 3.0}, pn.DomainError, "alpha must be in"),
    ],
)
def test_bad_targets(arguments: dict[str, float], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pn.calibrate_stable(**arguments)  # type: ignore[arg-type]
