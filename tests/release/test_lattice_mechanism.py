"""Mechanisms on a lattice: cells, what they cost beside the ideal law, and their records."""

from __future__ import annotations

import json
import math
import pickle
import re
from fractions import Fraction

import mpmath
import pytest
from lattice_oracles import MECHANISMS
from scipy import stats

import psinoise as pn
from refusals import for_each, refused


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    return MECHANISMS[request.param]()


def test_the_default_lattice(mechanism):
    """Fine enough for the noise, and the sensitivity is a power of two of cells, exactly."""
    lattice = mechanism.on_lattice()
    assert math.log2(lattice.cells).is_integer() or lattice.grid == mechanism.noise.own_grid
    assert lattice.cells * Fraction(lattice.grid) == Fraction(mechanism.sensitivity)
    if mechanism.noise.own_grid is None:
        assert lattice.grid <= mechanism.noise.spread / 2**7 or lattice.cells == 1
    assert mechanism.on_lattice() is lattice


@pytest.mark.parametrize(
    ("sensitivity", "halvings"), [(1.0, 7), (3.0, 9), (0.3, 6), (1e-3, 0), (2.0**40, 47)]
)
def test_default_grids(sensitivity, halvings):
    """``spread / 2**7`` or just below, from the sensitivity by halving."""
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0), sensitivity)
    if halvings > 31:
        with pytest.raises(pn.DomainError, match=r"wider .* by a factor of 2\*\*16:"):
            mechanism.on_lattice()
        return
    lattice = mechanism.on_lattice()
    assert lattice.grid == math.ldexp(sensitivity, -halvings)
    assert lattice.cells == 2**halvings
    assert lattice.noise.weights.size <= 2**20


@pytest.mark.deep
@pytest.mark.parametrize(
    "name",
    ["Gaussian", "Laplace", "Airy", "SymmetricStable(alpha=1.5)", "Cauchy", "discrete Laplace"],
)
@pytest.mark.parametrize(("delta", "count"), [(1e-6, 1), (1e-6, 50)])
def test_the_lattice_costs_less_than_a_thousandth(name, delta, count):
    """Epsilon of the integers against epsilon of the law. Kills: a sensitivity of one cell more,
    weights of cells moved by a half."""
    mechanism = MECHANISMS[name]()
    ideal = mechanism.composed(count=count).estimate.epsilon(delta)
    found = mechanism.on_lattice().composed(count=count).estimate.epsilon(delta)
    assert found == pytest.approx(ideal, rel=1e-3)


@pytest.mark.parametrize("name", ["Laplace", "staircase", "discrete Laplace", "Cauchy"])
def test_pure_privacy_stays_pure(name):
    mechanism = MECHANISMS[name]()
    found = mechanism.on_lattice().pure_epsilon()
    assert found == pytest.approx(mechanism.pure_epsilon(), rel=1e-3)


def test_a_law_that_is_not_unimodal_takes_the_envelope():
    mechanism = MECHANISMS["cactus"]()
    lattice = mechanism.on_lattice()
    assert not lattice.noise.unimodal
    ideal = mechanism.composed().estimate.epsilon(1e-5)
    assert lattice.composed().estimate.epsilon(1e-5) == pytest.approx(ideal, rel=1e-3)


def test_bounded_noise_has_an_infinite_loss():
    """The mass beyond the bounds is that of the integers, which is that of the law."""
    mechanism = MECHANISMS["truncated Laplace"]()
    lattice = mechanism.on_lattice()
    assert lattice.pure_epsilon() == math.inf
    assert float(lattice.delta(1.001)) == pytest.approx(1e-3, rel=0.05)
    assert float(lattice.delta(math.inf)) == pytest.approx(
        2.0**-64 * sum(lattice.noise.weights[-lattice.cells :].tolist()), rel=1e-9
    )


def test_bounds_hold_the_estimate():
    lattice = MECHANISMS["Gaussian"]().on_lattice()
    bracket = lattice.epsilon(1e-6, count=10)
    assert bracket.lower <= bracket.estimate <= bracket.upper
    accountant = pn.Accountant().compose(lattice, count=10)
    assert float(accountant.epsilon(1e-6)) == float(bracket)
    assert lattice.composed().estimate.profile([1.0, 2.0]).shape == (2,)
    assert lattice.composed().estimate.tradeoff([0.1])[0] > 0.0


def test_a_coarse_grid_is_paid_for():
    """Half a cell of sensitivity is a whole cell."""
    law = pn.Laplace(scale=1.0)
    coarse = pn.Mechanism(law, 0.3).on_lattice(grid=0.5)
    assert coarse.cells == 1
    assert coarse.pure_epsilon() == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        (0.0, pn.DomainError, "grid must be positive"),
        (-1.0, pn.DomainError, "grid must be positive"),
        (math.nan, pn.DomainError, "grid must be positive"),
        (math.inf, pn.DomainError, "grid must be positive"),
        ("1", TypeError, "grid must be a real number"),
        (True, TypeError, "grid must be a real number"),
        (2.0**-1020, pn.DomainError, "grid must be in"),
        (2.0**1000, pn.DomainError, "grid must be in"),
        (2.0**-40, pn.DomainError, "grid must be at least"),
        (2.0**-20, pn.DomainError, "grid must be at least 7.6"),
    ],
)
def test_wrong_grids(grid, error, message):
    with pytest.raises(error, match=message):
        pn.Mechanism(pn.Gaussian(std=1.0)).on_lattice(grid)


def test_whole_numbers_have_their_own_grid():
    with pytest.raises(pn.DomainError, match=r"grid must be 1\.0"):
        pn.Mechanism(pn.DiscreteLaplace(scale=2.0)).on_lattice(0.5)


def test_more_cells_than_are_allowed():
    with pytest.raises(pn.DomainError, match="grid must be at least"):
        pn.Mechanism(pn.Gaussian(std=1.0), 1e9).on_lattice(2.0**-7)


def test_laws_of_others_cannot_be_put_on_a_lattice():
    class Law:
        scale = 1.0

        def logpdf(self, x):
            return x

        def __hash__(self):
            return 1

    with pytest.raises(TypeError, match="noise must be a noise law"):
        pn.Mechanism(stats.norm(scale=2.0))  # has a density, and no scale
    with pytest.raises(TypeError, match="noise must be a noise law"):
        pn.Mechanism(Law()).on_lattice()
    with pytest.raises(TypeError, match="noise must be a noise law"):
        pn.LatticeNoise.of(Law(), 1.0)
    with pytest.raises(TypeError, match="LatticeNoise"):
        pn.LatticeMechanism(pn.Gaussian(std=1.0), 1.0)


# -- records ---------------------------------------------------------------------------------------


def test_a_later_reader_computes_the_same_epsilon(mechanism):
    lattice = mechanism.on_lattice()
    text = lattice.to_json()
    again = pn.LatticeMechanism.from_json(text)
    assert again == lattice
    assert again.record() == lattice.record()
    assert again.to_json() == text
    assert pickle.loads(pickle.dumps(lattice)) == lattice
    if lattice.noise.unimodal and lattice.noise.weights.size < 10_000:
        assert again.composed().estimate.delta(1.0) == lattice.composed().estimate.delta(1.0)


def test_the_record_names_what_was_drawn_from():
    lattice = pn.Mechanism(pn.Laplace(scale=2.0), 3.0).on_lattice()
    record = json.loads(json.dumps(lattice.record()))
    assert record["law"] == "Laplace(scale=2.0)"
    assert float.fromhex(record["sensitivity"]) == 3.0
    assert record["grid"] == (3.0 / 256).hex()
    assert record["cells"] == 256
    assert record["sha256"] == lattice.noise.sha256
    assert record["library"] == f"psinoise {pn.__version__}"


def edited(*path, value):
    content = json.loads(pn.Mechanism(pn.Laplace(scale=1.0)).on_lattice(0.5).to_json())
    at = content
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{}",
        "[" * 100_000,
        edited("format", value="other"),
        edited("version", value=2),
        edited("record", "cells", value=1),
        edited("record", "sensitivity", value="0x1.0p-9"),
        edited("record", value=[]),
        edited("noise", "grid", value="0x1p-2"),
        edited("sha256", value="0" * 64),
    ],
)
def test_changed_mechanisms_are_refused(text):
    with pytest.raises(pn.DomainError):
        pn.LatticeMechanism.from_json(text)


def test_a_record_that_contradicts_the_noise_is_refused():
    """With a hash that fits, too: everything is computed again."""
    from psinoise._hashed_json import _digest

    content = json.loads(edited("record", "cells", value=1))
    del content["sha256"]
    content["sha256"] = _digest(content)
    with pytest.raises(pn.DomainError, match="record"):
        pn.LatticeMechanism.from_json(json.dumps(content))


# -- noise that is much narrower than the sensitivity ----------------------------------------------


def log_probability(noise, k):
    """Of an integer in a geometric tail too, where no float64 holds the probability."""
    start = noise.weights.size - noise.repeated
    if k < start:
        return mpmath.log(int(noise.weights[k])) - 64 * mpmath.log(2)
    copies, place = divmod(k - start, noise.repeated)
    rho = mpmath.mpf(noise.ratio) / 2**64
    share = mpmath.log(int(noise.weights[start + place])) - 64 * mpmath.log(2)
    return share + mpmath.log(1 - rho) + copies * mpmath.log(rho)


@pytest.mark.parametrize(
    "mechanism",
    [
        pn.Mechanism(pn.Laplace(scale=1e-3)),
        pn.Mechanism(pn.Gaussian(std=0.004)),
        pn.Mechanism(pn.DiscreteLaplace(scale=1.0), 1000),
        pn.Mechanism(pn.Staircase(epsilon=1.0), 2000.0),
    ],
    ids=repr,
)
def test_losses_beyond_the_range_of_probabilities(mechanism):
    """A probability below 1e-308 is not 0, and a loss of 1000 not infinite.

    Kills: both ends infinite, as they were; one piece for many of the same loss; a ratio that is
    off in the tail.
    """
    lattice = mechanism.on_lattice()
    noise, cells = lattice.noise, lattice.cells
    with mpmath.workdps(40):
        at = range(cells, min(cells + noise.weights.size, cells + 3000))
        losses = [log_probability(noise, abs(k - cells)) - log_probability(noise, k) for k in at]
        # 0 has no second sign.
        losses[0] += mpmath.log(2)
        exact = float(max(losses))
    assert exact > 800.0
    assert lattice.pure_epsilon() == pytest.approx(exact, rel=1e-12)
    one = lattice.epsilon(0.01)
    assert 0.9 * exact < one.lower <= one.upper < exact
    assert one.width <= 1e-4 * one
    five = lattice.epsilon(1e-10, 5, 0.1)
    assert 4.9 * (one - math.log(10.0) - 5.0) < five.lower <= five.upper < 5.0 * exact
    assert five.width <= 1e-4 * five


@pytest.mark.deep
def test_narrow_noise_that_is_not_unimodal():
    """All shifts are accounted: they are no more than memory holds, and more are refused."""
    mechanism = pn.Mechanism(pn.Cactus(mean_cost=1e-3))
    lattice = mechanism.on_lattice()
    assert lattice.cells == 512
    found = lattice.epsilon(1e-3)
    assert found.upper <= mechanism.epsilon(1e-3).upper * (1.0 + 1e-9)
    with pytest.raises(pn.DomainError, match="grid must be coarser for noise"):
        mechanism.on_lattice(2.0**-14).epsilon(1e-3)


@for_each([1e-3, 1e-12, 1e-15, 1e-17, 1e-20, 1e-100, 1e-300], [1e-4, 0.1])
def test_truncated_laws_of_any_epsilon(epsilon, delta):
    """The density hardly falls. Masses were differences of exponentials that lost it, or all 0."""
    law = pn.TruncatedLaplace(epsilon=epsilon, delta=delta)
    end = int(law.half_width * 128.0)
    masses = law.lattice_masses(1 / 128, 0, end - 2)
    inside = -math.expm1(-law.half_width / law.scale) or law.half_width / law.scale
    for k in (0, 1, end // 2, end - 3):
        width = (0.5 if k == 0 else 1.0) / 128.0 / law.scale
        low = max(k - 0.5, 0.0) / 128.0 / law.scale
        expected = math.exp(-low) * -math.expm1(-width) / inside
        assert masses[k] == pytest.approx(expected, rel=1e-13, abs=0.0)
    released = pn.Mechanism(law).on_lattice()
    assert released.epsilon(delta).upper <= epsilon * (1.0 + 1e-9)
    assert released.delta(epsilon).lower >= delta * (1.0 - 2.0**-16)


@for_each([0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0])
def test_wide_noise_on_whole_numbers_says_by_how_much(alpha):
    """Numbers from 2**53 on are floats themselves: there was no next one, an IndexError."""
    factors = []
    for scale in (2.0**30, 2.0**34, 2.0**38, 2.0**40):
        law = pn.DiscreteStable(alpha=alpha, scale=scale)
        said = refused(pn.DomainError, "narrower, by a factor", pn.Mechanism(law).on_lattice)
        factors.append(float(re.search("of some ([^,]*),", said)[1]) / scale)
    assert max(factors) <= 2.1 * min(factors)


def test_very_wide_geometric_noise_says_by_how_much():
    """All of its masses are below what is listed: the factor was 1."""
    for scale in (2.0**30, 2.0**40):
        law = pn.DiscreteLaplace(scale=scale)
        said = refused(pn.DomainError, "narrower, by a factor", pn.Mechanism(law).on_lattice)
        factor = float(re.search("of some ([^,]*),", said)[1])
        pn.Mechanism(pn.DiscreteLaplace(scale=scale / (2.0 * factor))).on_lattice()
        assert law.lattice_masses(1.0, 1 << 62, (1 << 62) + 1).shape == (1,)
