"""Widths of 1e-6 where they are hard to have: tiny rates with few uses, and 10^9 uses.

Their values come from contour integrals; those of one use and of two are exact. Each test of a
mechanism behind them names the mutant that it kills.
"""

from __future__ import annotations

import csv
import dataclasses
import math
from pathlib import Path
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_epsilon

import psinoise as pn
from psinoise.accounting.certified import certify_epsilon
from psinoise.accounting.lattice import bounds, target
from psinoise.accounting.lattice.bins import dense, loss_bins
from psinoise.accounting.lattice.bounds import MASS_ROUNDING, node_measure
from psinoise.accounting.lattice.grading import even_edges
from psinoise.accounting.loss.pairs import Pair

WIDTH = 1e-6
LAWS = {"Gaussian": pn.Gaussian(std=1.0), "Airy": pn.Airy(mean_abs=2.0)}


def cells():
    path = Path(__file__).parents[1] / "data" / "tight_epsilons.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        numbers = float(row["rate"]), int(row["count"]), float(row["delta"]), float(row["epsilon"])
        yield row["law"], *numbers


@pytest.mark.parametrize(("law", "rate", "count", "delta", "epsilon"), list(cells()))
def test_bounds_around_contour_integrals(law, rate, count, delta, epsilon):
    width = WIDTH * max(1.0, epsilon)
    bracket = pn.Mechanism(LAWS[law]).epsilon(delta, count, rate, tolerance=width)
    assert bracket.lower <= epsilon + 1e-3 * width
    assert bracket.upper >= epsilon - 1e-3 * width
    assert bracket.width <= width


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rate", [1.0, 0.1, 1e-3])
@pytest.mark.parametrize("delta", [1e-12, 1e-100])
def test_one_use(law, rate, delta):
    bracket = pn.Mechanism(LAWS[law]).epsilon(delta, 1, rate, tolerance=1e-10 * 25.0)
    assert bracket.width <= 1e-10 * 25.0


# -- masses that share a total ---------------------------------------------------------------------


def coarse_bins():
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 0.3)
    source = dense(pair, "remove", 80.0)
    chosen = np.ones(source.log_mass.size, bool)
    edges = even_edges(source, chosen, (0.05, 0.0))
    return loss_bins(source, chosen, ~chosen, (0.05, 0.0), edges, 0.0, 0.0)


def tails(measure):
    """``P(L >= l)`` at all nodes, summed exactly but for the last rounding."""
    masses = measure.mass * math.exp(measure.log_norm)
    return np.array([math.fsum(masses[k:]) for k in range(masses.size)])


ERRORS = {
    "up": lambda x: 1.0,
    "down": lambda x: -1.0,
    "outwards": np.sign,
    "inwards": lambda x: -np.sign(x),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("side", "sign"), [("upper", 1.0), ("lower", -1.0)])
def test_order_is_kept_whatever_the_error(monkeypatch, error, side, sign):
    """Masses off by all that they may be. The mutant: a total of 1, and no factors."""
    bins = coarse_bins()
    assert bins.whole
    with monkeypatch.context() as patch:
        patch.setattr(bounds, "MASS_ROUNDING", 0.0)
        true = tails(node_measure(dataclasses.replace(bins, whole=False), side))
    median = np.searchsorted(np.cumsum(bins.mass), 0.5)
    off = 1.0 + MASS_ROUNDING * ERRORS[error](np.arange(bins.mass.size) - median)
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
        monkeypatch.setattr(bounds, "MASS_ROUNDING", 0.0)
        assert (sign * (tails(node_measure(other, side)) - true)[kept]).min() < -4e-15


@pytest.mark.parametrize("factor", [1.0 - 9e-14, 1.0 + 9e-14])
def test_a_billion_uses_of_masses_that_are_off(monkeypatch, factor):
    """Within what the masses may be off by, and the width does not suffer."""
    pair, delta = Pair(pn.Gaussian(std=1.0), 1.0, 1e-3), 1e-8
    exact = pn.Mechanism(pn.Gaussian(std=1.0)).epsilon(delta, 10**9, 1e-3, method="estimate")
    honest = target.loss_bins

    def scaled(*arguments):
        bins = honest(*arguments)
        return dataclasses.replace(bins, mass=bins.mass * factor, excess=bins.excess * factor)

    monkeypatch.setattr(target, "loss_bins", scaled)
    bracket = certify_epsilon.certify_epsilon(((pair, 10**9),), delta, WIDTH * exact)
    assert bracket.lower <= exact <= bracket.upper
    # The mutant, each mass on its own: 10^9 times 1e-13, twice, is as wide as was asked for.
    monkeypatch.setattr(
        target, "loss_bins", lambda *a: dataclasses.replace(honest(*a), whole=False)
    )
    with pytest.raises(pn.CertificationError):
        certify_epsilon.certify_epsilon(((pair, 10**9),), delta, WIDTH * exact)


@pytest.mark.parametrize("count", [10**4, 10**9])
def test_many_uses_without_sampling(count):
    exact = gaussian_epsilon(mp.sqrt(count), 1e-8)
    width = WIDTH * float(exact)
    bracket = pn.Mechanism(pn.Gaussian(std=1.0)).epsilon(1e-8, count, tolerance=width)
    assert bracket.lower <= exact <= bracket.upper
    assert bracket.width <= width


# -- rounding of small losses ----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["remove", "add"])
@pytest.mark.parametrize("rate", [1e-3, 0.5])
def test_rounding_of_sampled_losses(way, rate):
    """Losses of Gaussian noise at 40 digits. The mutant: the slope without the mixture's own."""
    pair = Pair(pn.Gaussian(std=1.0), 1.0, rate)
    source = dense(pair, way, 80.0)
    chosen = np.abs(source.highest) <= 2.0 * rate
    assert chosen.any()
    within = source.rounded_within(chosen)
    assert within.rounding <= (0.05 if rate < 0.1 else 1.0) * source.rounding
    rows = np.flatnonzero(chosen[: source.panels])
    for x, loss in zip(source.x[rows].ravel(), source.loss[rows].ravel(), strict=True):
        with mp.workdps(40):
            exact = mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(float(x)) - mp.mpf(1) / 2))
            assert (
                abs((exact if way == "remove" else -exact) - mp.mpf(float(loss))) <= within.rounding
            )


# -- offsets of lattices ---------------------------------------------------------------------------


@pytest.mark.parametrize("peak", [0.06, 0.31, 0.97])
def test_offsets_where_the_sides_of_the_peak_are_bent(peak):
    """Kills: lines alone, which meet outside of the interval and leave the offset where it is."""

    def loss(fraction):
        distance = (fraction - peak) % 1.0
        return min(1.0 - distance, 4.0 * math.sqrt(distance * 0.1))

    looks = []

    def at(fraction):
        looks.append(fraction)
        return SimpleNamespace(log_norm=-loss(fraction % 1.0), at=fraction % 1.0)

    best = bounds.best_offset(at, 0.02)
    coarse = min(loss(k / 8) for k in range(8))
    assert -best.log_norm <= 0.6 * coarse
    assert len(looks) <= 40


@pytest.mark.parametrize(("rate", "count", "delta"), [(1e-3, 10, 1e-12)])
def test_losses_that_crowd_at_their_lower_end(rate, count, delta):
    """Small noise at a small rate: nine tenths of the losses next to ``log(1 - q)``."""
    mechanism = pn.Mechanism(pn.Gaussian(std=0.3))
    exact = mechanism.epsilon(delta, count, rate, method="estimate")
    bracket = mechanism.epsilon(delta, count, rate, tolerance=WIDTH * exact)
    assert bracket.lower <= exact + 1e-9 and exact - 1e-9 <= bracket.upper
    assert bracket.width <= WIDTH * exact
