"""The balanced contraction of bins on a lattice: what it loses, and what its rounding may cost."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from targets import coarse_bins, target_of

import psinoise as pn
from psinoise.accounting.compose.frequencies import lattice
from psinoise.accounting.compose.frequencies.lattice import node_measure
from psinoise.accounting.compose.measures.dense import dense
from psinoise.accounting.loss.pairs import Pair
from refusals import for_each


@for_each([(0.868, 1.1e-3), (0.759, 0.0229), (1.09, 1.7e-3)], [0.2, 0.36])
def test_a_loss_that_rises_within_few_nodes_costs_its_bias(case, spread):
    """That of both, as the formula says. Kills: no share of the bin above where both recursions of
    the contraction meet (from below 10 to 150 times as much)."""
    std, rate = case
    pair, uses, tilt = Pair(pn.Gaussian(std=std), 1.0, rate), 3000, 2.0
    question = target_of(((pair, uses),), 1e-6, 1.0, 1e-3)
    value = question.composition.saddle(tilt).values[0]
    step = spread * question.composition.measures[0].spread(tilt, value)
    source, (low, log_norm) = dense(pair, "remove", 200.0), (math.log1p(-rate), value)
    chosen = (source.highest < 30.0) & (source.log_mass > -200.0)
    none = np.zeros_like(chosen)
    bins = lattice.graded_bins(source, chosen, none, (step, low), tilt, log_norm)
    bias = step**2 * tilt * (tilt + 1.0) / 12.0
    assert node_measure(bins, "upper").log_norm - log_norm == pytest.approx(bias, rel=0.1)
    assert log_norm - node_measure(bins, "lower").log_norm == pytest.approx(2.0 * bias, rel=0.4)


# -- the last node -------------------------------------------------------------------------------


def one_use_bins(step, rate=0.3, scale=0.7, tilt=3.0):
    """Bins of a loss with an atom at its largest, which is on no node; and that loss."""
    pair = Pair(pn.Laplace(scale=scale), 1.0, rate)
    source = dense(pair, "remove", 80.0)
    chosen = np.ones(source.log_mass.size, bool)
    low = -pair.largest_loss("add")
    none = np.zeros(chosen.size, bool)
    bins = lattice.graded_bins(source, chosen, none, (step, low), tilt, 0.0)
    return bins, pair.largest_loss("remove")


@for_each([0.05, 0.011, 0.0023], [1.0, 0.3], [0.3, 0.7, 2.0])
def test_the_last_node_of_a_lower_bound(step, rate, scale):
    """One use beside its exact delta. Kills: bins that come up without the room they need; an atom
    that is moved down by what is left of a step, which costs up to 12 times as much."""
    bins, largest = one_use_bins(step, rate, scale)
    lower = node_measure(bins, "lower")
    mass = lower.mass * np.exp(lower.log_norm - lower.tilt * lower.losses)
    epsilons = largest * np.linspace(0.0, 1.0, 80, endpoint=False)
    losses = np.minimum(epsilons[:, None] - lower.losses, 0.0)
    found = (mass * -np.expm1(losses)).sum(axis=1)
    mechanism = pn.Mechanism(pn.Laplace(scale=scale), sensitivity=1.0)
    accountant = pn.Accountant(adjacency="remove").compose(mechanism, 1, rate)
    exact = np.array([accountant.delta(epsilon).upper for epsilon in epsilons])
    assert (found <= exact + 1e-13).all()
    # What comes up is about the root of step and range wide.
    assert node_measure(bins, "upper").log_norm - lower.log_norm <= 6.0 * step**1.5


def test_what_comes_up_to_the_last_node_keeps_its_rounding():
    """Kills: the rounding of the node alone, and losses that are not off by more."""
    bins, _ = one_use_bins(0.011)
    rounding = np.full(bins.edges.size, 1e-12)
    last = int(np.flatnonzero(bins.mass)[-1])
    rounding[last - 3] = 1e-6
    bins = dataclasses.replace(bins, rounding=rounding, whole=False)
    made, distance = lattice._last_balanced(bins)
    assert distance > 4.0 * bins.step
    assert made.rounding[last] == 1e-6
    assert node_measure(bins, "lower").slack >= 12e-6 * distance
    # What it holds has exactly its ratio: in P, and in Q by what each bin is short of.
    assert made.mass[last] == made.excess[last] == 0.0
    level = bins.step * (bins.edges[last] - bins.edges[:-1])
    taken = (bins.mass - made.mass) * np.exp(bins.tilt * level)
    under_q = (taken - (bins.excess - made.excess) * np.exp(bins.tilt * level)) * np.exp(level)
    held = made.at_edges[last] - bins.at_edges[last]
    assert held == pytest.approx(taken.sum(), rel=1e-13)
    assert under_q.sum() == pytest.approx(held, rel=1e-12)


def test_plans_of_laplace_steps_of_several_scales():
    """Each has its atom on no node of the others, and all have the default width."""
    accountant = pn.Accountant()
    for k in range(12):
        mechanism = pn.Mechanism(pn.Laplace(scale=0.6 + 0.4 * k))
        accountant.compose(mechanism, 20 * (k + 1), 1.0 if k % 3 == 0 else 0.05 + 0.02 * k)
    found = accountant.epsilon(1e-8)
    assert found.composer == "frequencies"
    assert found.upper - found.lower <= 1e-4 * found.upper
    assert found.lower <= accountant.estimate.epsilon(1e-8) <= found.upper


# -- where both recursions meet --------------------------------------------------------------------


def merged(bins, nodes, rounding):
    """The logs of what balances at each node, excess by deficit and the rest, if both are off; and
    at which node a share of the bin after that above it comes down, and how much."""
    growth, mass = np.expm1(bins.widths), bins.mass
    excess = bins.excess / mass
    deficit = growth - (1.0 + growth) * excess
    # Of a share of each bin over the node before.
    falling = np.append(0.0, (excess[1:] + growth[:-1]) / (1.0 + growth[:-1]))
    logs, lifted, up, taken = [], [], 0.0, 0.0
    for j in range(mass.size - 1):
        # What stays, and of the next bin.
        stays, far = min(max(nodes[j] - up, 0.0), mass[j] - taken), 0.0
        if min(nodes[j], mass[j]) > 1e-4:
            need = deficit[j - 1] * up
            if excess[j] * stays < need * (1.0 - 1e-6):
                far = (need - excess[j] * stays) / (falling[j + 1] - excess[j])
                lifted.append((j, far))
            paid = excess[j] * (stays - far) + falling[j + 1] * far
            off = (1.0 - rounding) * paid - (1.0 + rounding) * need
            logs.append(math.log1p(off / nodes[j]))
        up, taken = mass[j] - taken - (stays - far), far
    assert len(lifted) == 1  # where both recursions meet
    return logs, lifted[0]


@pytest.mark.parametrize("rounding", [1e-11, 1e-9, 1e-6])
def test_nodes_of_excesses_that_are_off_keep_their_losses(rounding):
    """All mass of a node together has the loss that is said. Kills: a lower bound without it."""
    bins = coarse_bins()
    bins = dataclasses.replace(
        bins, rounding=np.full(bins.edges.size, rounding), whole=False, slack=0.0
    )
    lower = node_measure(bins, "lower")
    # Masses bear their own rounding.
    nodes = lower.mass * math.exp(lower.log_norm) / (1.0 - rounding)
    logs, _ = merged(bins, nodes, rounding)
    assert -lower.slack <= min(logs) < -1e-3 * rounding


def test_a_share_from_above_bears_its_rounding():
    """Kills: that of the bins next to a node alone."""
    bins = dataclasses.replace(coarse_bins(), whole=False)
    exact = np.zeros(bins.edges.size)
    lower = node_measure(dataclasses.replace(bins, rounding=exact), "lower")
    nodes = lower.mass * math.exp(lower.log_norm)
    node, share = merged(bins, nodes, 0.0)[1]
    exact[node + 1] = 1e-3
    made = node_measure(dataclasses.replace(bins, rounding=exact), "lower")
    assert share > 1e-3 * nodes[node]
    assert made.mass[node] * math.exp(made.log_norm) <= nodes[node] - 0.999e-3 * share
