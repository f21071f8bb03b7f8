"""How close bounds on cactus noise are, of few uses and of many."""

from __future__ import annotations

import pytest

import psinoise as pn
from refusals import for_rows


@pytest.mark.deep
@for_rows([(200, 0.1, 2400, 1 / 240, 1e-6), (100, 0.25, 5000, 1e-3, 1e-6)])
def test_much_work_is_for_a_wider_bracket_first(cells, mean_cost, count, rate, delta):
    """Of noise so small in cells so fine. The mutant: no wider bracket (1 to 12 % wide)."""
    mechanism = pn.Mechanism(pn.Cactus(mean_cost=mean_cost, cells_per_sensitivity=cells))
    found = mechanism.epsilon(delta, count, rate)
    assert found.width <= 5e-3 * found


@pytest.mark.deep
@for_rows([(1.0, 20, 160, 0.35, 3e-3), (1.0, 200, None, None, 0.04), (None, 200, None, None, 0.03)])
def test_many_uses_whose_rare_large_losses_decide(cost, fineness, cells, ratio, width):
    """Too many for a fine grid, and too small for blocks: 11, 15 and 7 % wide before."""
    sizes = {"cost": cost, "cells": cells, "tail_ratio": ratio}
    given = {name: size for name, size in sizes.items() if size is not None}
    law = pn.Cactus(mean_cost=0.5, cells_per_sensitivity=fineness, **given)
    found = pn.Mechanism(law).epsilon(1e-8, 1000, 0.01)
    assert found.composer == "choices"
    assert found.width <= width * found


@pytest.mark.deep
@for_rows([(1.0, 1000, 0.01, 1e-6), (2.0, 2000, 0.01, 1e-30), (1.0, 200, 0.1, 1e-60)])
def test_many_uses_of_a_fine_cactus(mean_cost, count, rate, delta):
    """Rare large losses, which blocks are no good for: 1 % wide before.

    Of the last row epsilon is above the largest loss that is followed: 5e-4 wide before.
    """
    found = pn.Mechanism(pn.Cactus(mean_cost=mean_cost)).epsilon(delta, count, rate)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found


@pytest.mark.deep
@for_rows(
    [(1.0, 10, 0.1, 1e-3), (0.25, 2, 0.01, 1e-3), (1.0, 60, 1e-3, 1e-6), (0.25, 20, 1.0, 1e-9)]
)
def test_few_uses_of_a_fine_cactus(mean_cost, count, rate, delta):
    """Two hundred cells a sensitivity, of which 60 to 90 shifts matter: up to 22 % wide before."""
    found = pn.Mechanism(pn.Cactus(mean_cost=mean_cost)).epsilon(delta, count, rate)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found


def test_a_width_that_is_many_times_a_slope():
    """Mutant: an error from above is at most a tenth of delta, which takes all the work: 6 %."""
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=8, cells=80, tail_ratio=0.7)
    accountant = pn.Accountant(adjacency="replace").compose(pn.Mechanism(law), 10**9)
    found = accountant.epsilon(1e-30)
    assert found.width <= 1e-4 * found


@pytest.mark.deep
@for_rows([(500,), (1000,)])
def test_hundreds_of_uses_of_a_fine_cactus(count):
    """In blocks before uses are followed one by one: 1.2e-4 wide after twice the time before."""
    found = pn.Mechanism(pn.Cactus(cost=1.0, mean_cost=0.5)).epsilon(1e-6, count)
    assert found.width <= 1e-4 * found


def test_a_use_of_other_noise_beside_few():
    """Where they are asked about came from a function that was too smooth for so few: 8e-4 wide,
    with a lower end below that without the other use, before."""
    mechanism = pn.Mechanism(pn.Cactus(mean_cost=1.0))
    alone = pn.Accountant().compose(mechanism, 2)
    both = pn.Accountant().compose(mechanism, 2)
    both.compose(pn.Mechanism(pn.Laplace(scale=22.25)), 1, 0.0018)
    before, found = alone.epsilon(3e-10), both.epsilon(3e-10)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found
    assert before.lower <= found.upper <= before.upper + 1e-3
