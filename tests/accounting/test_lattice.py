"""Measures on lattices: bins, the halves of the bounds, their rounding and their mutants.

Exact values: randomized response as a binomial sum, the analytic Gaussian profile at 60 digits.
"""

from __future__ import annotations

import dataclasses
import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import even_edges, gaussian_epsilon, response_delta
from targets import coarse_bins, target_of

import psinoise as pn
from psinoise.accounting.compose.frequencies import lattice
from psinoise.accounting.compose.frequencies.frequency_bound import lattice_profile
from psinoise.accounting.compose.frequencies.lattice import node_measure
from psinoise.accounting.compose.frequencies.target import bins_of, profile_bound
from psinoise.accounting.compose.measures.bins import LatticeBins, loss_bins
from psinoise.accounting.compose.measures.dense import dense
from psinoise.accounting.loss.pairs import Pair
from refusals import for_each

SIGNS = {"lower": -1.0, "upper": 1.0}

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
    none = np.zeros(edges.size)
    rounding = np.full(edges.size, 1e-15)
    return LatticeBins(
        mass, excess, none, rounding, 0.0, 0.0, 0.0, 0.0, 0, False, step, 0.0, edges, tilt, 0.0
    )


@for_each([1, 2, 15, 200], [0.03, 0.0071])
def test_randomized_response_is_bracketed(count, step):
    loss, tilt = 0.25, 3.0
    bins = randomized_response(step, loss, tilt)
    for epsilon in (0.1, 0.9, 0.5 * loss * count):
        exact = response_delta(loss, count, epsilon)
        for side, sign in SIGNS.items():
            bound = lattice_profile([(node_measure(bins, side), count)], 1e-18, side)
            assert (mp.exp(bound.log_delta(epsilon)) - exact) * sign >= 0


# -- the halves of the bounds ---------------------------------------------------------------------


def single_bins(law, rate, step, tilt=2.0):
    source = dense(Pair(law, 1.0, rate), "remove", 80.0)
    chosen = np.ones(source.log_mass.size, bool)
    edges = even_edges(source, step)
    return loss_bins(source, chosen, ~chosen, (step, 0.0), edges, tilt, 0.0)


@for_each(
    [pn.Gaussian(std=1.0), pn.Airy(mean_abs=1.0), pn.Laplace(scale=1.0), pn.Gaussian(std=0.1)],
    [0.01, 0.7, 1.7, 60.0],
    [0.0, 2.0],
)
def test_bins_hold_all_of_the_mass(law, step, tilt):
    """Kills: parts of a wide bin that keep the tilt of their own levels."""
    bins = single_bins(law, 0.3, step, tilt)
    levels = bins.offset + bins.edges * bins.step
    mass, excess = (part * np.exp(-tilt * levels[:-1]) for part in (bins.mass, bins.excess))
    on_edges = bins.at_edges * np.exp(-tilt * levels)
    inside = mass.sum() + on_edges.sum()
    assert inside + bins.below + bins.above == pytest.approx(1.0, abs=2e-13)
    assert (excess >= 0.0).all()
    assert (excess <= mass * -math.expm1(-bins.step) * (1.0 + 1e-9)).all()
    # The Q-mass of all bins is 1 too: A - u is e^level B, which wide bins have no digits of.
    other = np.append(mass - excess, 0.0) + on_edges
    assert step > 10.0 or (other * np.exp(-levels)).sum() == pytest.approx(1.0, abs=1e-10)


@for_each([0.0, 2.0])
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


@for_each([pn.Gaussian(std=0.1), pn.Laplace(scale=0.02)], [1.7, 30.0, 60.0, 300.0, 2000.0])
def test_wide_bins_are_bounds(law, step):
    """Kills: an excess without digits of what is missing from it, by which all mass goes up."""
    bins = single_bins(law, 1.0, step, 0.3 / step)
    for epsilon in (0.1, 10.0, 40.0):
        exact = math.log(pn.Accountant("remove").compose(pn.Mechanism(law), 3).delta(epsilon))
        for side, sign in SIGNS.items():
            bound = lattice_profile([(node_measure(bins, side), 3)], 1e-18, side)
            assert bound.log_delta(epsilon) * sign >= exact * sign - 1e-6


# -- masses that share a total ---------------------------------------------------------------------


def tails(measure):
    """``P(L >= l)`` at all nodes, summed exactly but for the last rounding."""
    masses = measure.mass * math.exp(measure.log_norm)
    return np.array([math.fsum(masses[k:]) for k in range(masses.size)])


OFF = 1e-13
ERRORS = {
    "up": lambda x: 1.0,
    "down": lambda x: -1.0,
    "outwards": np.sign,
    "inwards": lambda x: -np.sign(x),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("side", "sign"), [("upper", 1.0), ("lower", -1.0)])
def test_order_is_kept_whatever_the_error(error, side, sign):
    """Masses off by all that they may be. The mutant: a total of 1, and no factors."""
    bins = coarse_bins()
    assert bins.whole
    none = np.zeros(bins.edges.size)
    bins = dataclasses.replace(bins, rounding=np.full(bins.edges.size, OFF))
    true = tails(node_measure(dataclasses.replace(bins, whole=False, rounding=none), side))
    median = np.searchsorted(np.cumsum(bins.mass), 0.5)
    off = 1.0 + OFF * ERRORS[error](np.arange(bins.mass.size) - median)
    other = dataclasses.replace(bins, mass=bins.mass * off, excess=bins.excess * off)
    kept = np.minimum(true, 1.0 - true) > 1e-4
    assert kept.sum() > 20
    ahead = sign * (tails(node_measure(other, side)) - true)
    assert (ahead[kept] >= -4e-15).all()
    if error == "up":
        # And no more than that: all masses together are what they are.
        assert abs(math.expm1(node_measure(other, side).log_norm)) <= 3e-14
        plain = dataclasses.replace(other, whole=False)
        assert abs(math.expm1(node_measure(plain, side).log_norm)) >= (1.9e-13 if sign > 0 else 0.0)
    if error in (("down", "inwards") if sign > 0.0 else ("up", "outwards")):
        other = dataclasses.replace(other, rounding=none)
        assert (sign * (tails(node_measure(other, side)) - true)[kept]).min() < -4e-15


@pytest.mark.parametrize("factor", [1.0 - 4e-14, 1.0 + 4e-14])
def test_a_billion_uses_of_masses_that_are_off(monkeypatch, factor):
    """Within what the masses may be off by, and the width does not suffer."""
    mechanism, delta = pn.Mechanism(pn.Gaussian(std=1.0)), 1e-8
    exact = mechanism.composed(10**9, 1e-3).estimate.epsilon(delta)
    width = 1e-6 * exact
    honest = lattice.loss_bins

    def scaled(*arguments):
        bins = honest(*arguments)
        return dataclasses.replace(bins, mass=bins.mass * factor, excess=bins.excess * factor)

    monkeypatch.setattr(lattice, "loss_bins", scaled)
    found = mechanism.epsilon(delta, 10**9, 1e-3, tolerance=width)
    assert found.lower <= exact <= found.upper
    # The mutant, each mass on its own: 10^9 times 1e-13, twice, is as wide as was asked for.
    monkeypatch.setattr(
        lattice, "loss_bins", lambda *a: dataclasses.replace(honest(*a), whole=False)
    )
    steps = ((Pair(pn.Gaussian(std=1.0), 1.0, 1e-3), 10**9),)
    question = target_of(steps, delta, exact, width)
    low, high = (
        profile_bound(question, bins_of(question, question.first_step), side).epsilon(
            math.log(delta), exact, width
        )
        for side in SIGNS
    )
    assert high - low > width


# -- what the rounding of masses may cost ----------------------------------------------------------


def narrow_bins(std, rate):
    """Bins of narrow Gaussian noise, whose densities have large logs, and what they should hold."""
    pair = Pair(pn.Gaussian(std=std), 1.0, rate)
    source = dense(pair, "remove", 80.0)
    chosen = np.ones(source.log_mass.size, bool)
    source = source.rounded_within(chosen)
    step = float(np.ptp(source.highest[source.log_mass > -50.0])) / 200.0
    bins = loss_bins(source, chosen, ~chosen, (step, 0.0), even_edges(source, step), 0.0, 0.0)

    def beyond(level):
        """``P`` and ``Q`` of losses above a level."""
        odds = mp.exp(level) - 1 + mp.mpf(rate)
        if odds <= 0:
            return mp.mpf(1), mp.mpf(1)
        x = mp.mpf(std) ** 2 * mp.log(odds / mp.mpf(rate)) + mp.mpf(1) / 2
        q, moved = (mp.erfc((x - c) / mp.mpf(std) / mp.sqrt(2)) / 2 for c in (0, 1))
        return (1 - mp.mpf(rate)) * q + mp.mpf(rate) * moved, q

    return bins, beyond


@for_each([0.1, 1e-2, 1e-3, 1e-4], [1.0, 0.01])
def test_masses_of_narrow_noise_are_as_right_as_is_said(std, rate):
    """Against 60 digits. Kills: errors of losses that do not grow with the logs (1e-9 here)."""
    bins, beyond = narrow_bins(std, rate)
    levels = bins.offset + bins.edges * bins.step
    checked = 0
    with mp.workdps(60):
        for j in np.flatnonzero(bins.mass > 1e-20).tolist():
            ends = [mp.mpf(levels[j]), mp.mpf(levels[j + 1])]
            inner, outer = (
                [ends[0] + sign * bins.slack, ends[1] - sign * bins.slack] for sign in (1, -1)
            )
            least, most = (beyond(a)[0] - beyond(b)[0] for a, b in (inner, outer))
            off = 1 + mp.mpf(bins.rounding[j])
            assert least / off <= bins.mass[j] <= most * off
            (p, q), (p_above, q_above) = map(beyond, ends)
            share = 1 - mp.exp(ends[0]) * (q - q_above) / (p - p_above)
            room = bins.slack + bins.rounding[j] * share
            assert abs(bins.excess[j] / mp.mpf(bins.mass[j]) - share) <= room
            checked += 1
    assert checked > 1


# -- rounding of small losses ----------------------------------------------------------------------


@for_each(["remove", "add"], [1e-3, 0.5])
def test_rounding_of_sampled_losses(direction, rate):
    """Losses of Gaussian noise at 40 digits. The mutant: the slope without the mixture's own."""
    pair = Pair(pn.Gaussian(std=1.0), 1.0, rate)
    source = dense(pair, direction, 80.0)
    chosen = np.abs(source.highest) <= 2.0 * rate
    assert chosen.any()
    within = source.rounded_within(chosen)
    assert within.rounding <= (0.05 if rate < 0.1 else 1.0) * source.rounding
    rows = np.flatnonzero(chosen[: source.panels])
    for x, loss in zip(source.x[rows].ravel(), source.loss[rows].ravel(), strict=True):
        with mp.workdps(40):
            exact = mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(float(x)) - mp.mpf(1) / 2))
            assert (
                abs((exact if direction == "remove" else -exact) - mp.mpf(float(loss)))
                <= within.rounding
            )


@for_each([1e-5, 1e-2, 0.5])
def test_rounding_of_losses_of_a_replaced_record(rate):
    """Two ratios, of which each has a slope of its own; at 40 digits."""
    pair = Pair(pn.Gaussian(std=1.0), 1.0, rate, replaced=True)
    source = dense(pair, "remove", 80.0)
    chosen = np.abs(source.highest) <= 2.0 * rate
    within = source.rounded_within(chosen)
    assert within.rounding <= (0.1 if rate < 0.1 else 2.0) * source.rounding
    rows = np.flatnonzero(chosen[: source.panels])
    for x, loss in zip(source.x[rows].ravel(), source.loss[rows].ravel(), strict=True):
        with mp.workdps(40):
            moved, other = (
                mp.log1p(mp.mpf(rate) * mp.expm1(sign * mp.mpf(float(x)) - mp.mpf(1) / 2))
                for sign in (1, -1)
            )
            assert abs(moved - other - mp.mpf(float(loss))) <= within.rounding


def test_bins_are_wide_where_little_mass_is():
    """Kills: panels in place of their nodes as what holds the mass (972 bins, now 570)."""
    pair = Pair(pn.Gaussian(mean_abs=1.6), 1.0, 0.005)
    question = target_of(((pair, 1000),), 1e-8, 0.73, 1e-4)
    (bins,) = bins_of(question, question.first_step)
    step = bins.step
    widths, losses = np.diff(bins.edges), bins.offset + bins.edges[:-1] * step
    mean = float(np.sum(bins.mass * losses))
    spread = math.sqrt(float(np.sum(bins.mass * (losses - mean) ** 2)))
    assert float(np.sum(bins.mass * widths**2)) <= 1.05 * float(bins.mass.sum())
    assert bins.mass.size <= 15.0 * spread / step


@for_each([(10.0, 5), (50.0, 2)])
def test_atoms_that_hold_the_tilted_mass_ask_for_no_fine_lattice(case):
    """Kills: a step from the spread of atoms; a width of which tilts allow few (57,000 bins)."""
    scale, count = case
    pair = Pair(pn.Laplace(scale=scale), 1.0, 1.0)
    exact = pn.Mechanism(pn.Laplace(scale=scale)).composed(count).estimate.epsilon(1e-6)
    question = target_of(((pair, count),), 1e-6, exact, 1e-4 * exact)
    bins = bins_of(question, question.first_step)
    assert bins[0].mass.size <= 2000
    bounds = (profile_bound(question, bins, side) for side in ("lower", "upper"))
    low, high = (bound.epsilon(math.log(1e-6), exact, 1e-6) for bound in bounds)
    assert low - 1e-8 <= exact <= high + 1e-8
    assert high - low <= 1e-4 * exact


def test_bins_that_get_wider_cost_little_of_many_uses():
    """Kills: wide bins by mass times width squared alone, which 10^9 uses do not forgive."""
    pair = Pair(pn.Airy(mean_abs=20.0), 0.5, 1e-3, replaced=True)
    exact = pn.Mechanism(pn.Airy(mean_abs=20.0), 1.0, contribution=0.5)
    exact = exact.composed(10**9, 1e-3, "replace").estimate.epsilon(1e-8)
    question = target_of(((pair, 10**9),), 1e-8, exact, 1e-4 * exact)
    low, high = (
        profile_bound(question, bins_of(question, question.first_step), side).epsilon(
            math.log(1e-8), exact, 1e-3
        )
        for side in ("lower", "upper")
    )
    assert 0.0 < high - low <= 1e-4 * exact


# -- mutants --------------------------------------------------------------------------------------


def sides():
    """Both bounds of a coarse lattice at the exact epsilon, over delta."""
    exact = float(gaussian_epsilon(10, 1e-8))
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 1.0)
    question = target_of(((pair, 100),), 1e-8, exact, 1e-2)
    return {
        side: profile_bound(question, bins_of(question, question.first_step), side).log_delta(exact)
        - math.log(1e-8)
        for side in SIGNS
    }


def test_mutant_all_mass_to_the_lower_node(monkeypatch):
    assert sides()["upper"] >= 0.0
    monkeypatch.setattr(lattice, "_connect_the_dots", lambda bins: np.append(bins.mass, 0.0))
    assert sides()["upper"] < 0.0


def test_mutant_all_mass_to_the_upper_node_is_no_lower_bound(monkeypatch):
    class Core:
        graded_edges = staticmethod(lattice.core.graded_edges)

        log_mgf = lattice.core.log_mgf

        @staticmethod
        def balanced_nodes(mass, excess, widths, tilt):
            return np.append(0.0, mass * np.exp(tilt * widths))

    assert sides()["lower"] <= 0.0
    monkeypatch.setattr(lattice, "core", Core)
    assert sides()["lower"] > 0.0


@for_each([1.0, 0.1, 1e-5])
def test_losses_of_atoms_are_as_right_as_is_said(rate):
    """Sampling passes on the rounding of a loss by the slope of the map: little of small ones."""
    high = 3.0
    pair = pn.promises.PureDP(epsilon=high).sampled(rate, None, "add-remove")[0][0]
    found = dense(pair, "remove", 50.0)
    with mp.workdps(40):
        exact = [mp.log(1 - mp.mpf(rate) * (1 - mp.exp(sign * mp.mpf(high)))) for sign in (1, -1)]
        errors = [min(abs(mp.mpf(loss) - true) for true in exact) for loss in found.lowest]
    assert max(errors) <= found.rounding
    assert found.rounding <= 3e-14 * high * rate * math.exp(high)
