"""Gaussian noise in digits: the tables, their sum, what it costs, and releases of vectors."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from lattice_oracles import KEY
from scipy import stats

import psinoise as pn
from psinoise._backend import core
from psinoise.mechanisms.leak import leak_of_normal
from psinoise.release import DigitNoise
from psinoise.release.discrete_gaussian import digits_of, rounding_of
from psinoise.testing import integers, replay

WIDE = DigitNoise(std=0.3 * 2.0**20, grid=0.3)


def discrete(variance, most):
    """``P(A = k)`` for ``|k| <= most``."""
    k = np.arange(-most, most + 1.0)
    shares = np.exp(-k * k / (2.0 * variance))
    return shares / shares.sum()


# -- one table -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(73, 10), Fraction(10**6, 3)])
def test_tables_are_those_of_the_law(variance):
    """Against 60 digits. Kills: weights of one sign for both, a series that is cut early, no rest,
    a rest that is taken twice as often as it should."""
    (digit,) = digits_of(variance)
    weights, rest = digit.weights.listed.tolist(), digit.rest.listed.tolist()
    assert sum(weights) == sum(rest) == 2**63
    beside = Fraction(weights.pop(), 2**63)
    assert len(weights) == len(rest)
    with mpmath.workdps(60):
        v = mpmath.mpf(variance.numerator) / variance.denominator
        shares = [
            2 * mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * v)) for k in range(len(weights) + 200)
        ]
        shares[0] /= 2
        total = mpmath.fsum(shares)
        both = zip(weights, rest, strict=True)
        drawn = [(a + beside * b) / Fraction(2**63) for a, b in both]
        drawn += [Fraction(0)] * 200
        missed = [
            abs(mpmath.mpf(p.numerator) / p.denominator - share / total)
            for p, share in zip(drawn, shares, strict=True)
        ]
        assert mpmath.fsum(missed) / 2 <= digit.price <= 1.01 * mpmath.fsum(missed) + 2.0**-119
        assert digit.price < 2.0**-90
        # Nothing that is listed is rarer than in the law, but for a share of the number 0.
        lacks = [
            1 - mpmath.mpf(p.numerator) / p.denominator * total / share
            for p, share in zip(drawn[: len(weights)], shares, strict=False)
        ]
        assert max(lacks[1:]) <= 0 and lacks[0] <= digit.lack < 2.0**-80
        beyond = mpmath.fsum(shares[len(weights) :]) / total
        assert beyond <= digit.unlisted < 2.0**-112


@pytest.mark.parametrize("bits", [10.0, 11.01, 11.5, 19.0, 19.001, 24.3, 32.0, 40.0, 50.0])
def test_the_variances_add_up_and_digits_smooth_each_other(bits):
    """What the proof asks of each digit, and the standard deviation of the sum."""
    variance = Fraction(2.0**bits) ** 2
    digits, total = digits_of(variance), 0.0
    for digit in digits:
        k = np.arange(float(digit.weights.listed.size))
        own = float((digit.weights.listed / 2.0**63 * k * k).sum())
        unit = 4.0**digit.shift
        if digit.shift:
            assert own * (total / unit) / (own + total / unit) >= 10.0
        total += unit * own
        assert digit.weights.listed.size <= 2**15
    assert total == pytest.approx(float(variance), rel=1e-12)


def test_the_sum_of_two_is_one_again():
    """Brute force: variances 40 and 30 with a unit of 2 give 160, to the last digits."""
    low, high = discrete(40.0, 90), discrete(30.0, 80)
    spread = np.zeros(2 * high.size - 1)
    spread[::2] = high
    found = np.convolve(low, spread)
    most = (found.size - 1) // 2
    expected = discrete(160.0, most)
    near = np.abs(np.arange(-most, most + 1)) < 60
    np.testing.assert_allclose(found[near], expected[near], rtol=1e-12)


@pytest.mark.parametrize("variance", [1000.0, 3000.0])
def test_the_price_of_rounding_the_normal_law(variance):
    """Between the discrete law and rounded normal numbers; within a factor of 10 of the bound.

    Kills: the discrete law of the same variance, without the twelfth that rounding adds."""
    std = math.sqrt(variance)
    k = np.arange(0.0, 12 * std)
    with mpmath.workdps(30):
        edges = [mpmath.erfc((x - 0.5) / mpmath.sqrt(2 * variance)) / 2 for x in [*k, k[-1] + 1.0]]
        normal = np.array([float(a - b) for a, b in itertools.pairwise(edges)])
    shares = np.exp(-k * k / (2.0 * (variance + 1.0 / 12.0)))
    shares /= 2.0 * shares.sum() - 1.0
    missed = np.abs(normal - shares)
    variation = missed.sum() - 0.5 * missed[0]
    bound = rounding_of(Fraction(variance)).price
    assert 0.1 * bound < variation < bound


@pytest.mark.parametrize("z", [0.0, 0.5, 1.0, 2.4, 7.0, 13.9999])
def test_the_share_that_rounding_takes_of_a_number(z):
    """Of one integer, as far out as the share is said to hold; a small variance shows more of it.

    Kills: a tenth of the share, the discrete law without the twelfth."""
    variance = 10**6
    share = rounding_of(Fraction(2**48)).lack * 2.0**96 / variance**2
    with mpmath.workdps(60):
        k, std = mpmath.mpf(math.floor(z * math.sqrt(variance))), mpmath.sqrt(variance)
        rounded = (
            mpmath.erfc((k - 0.5) / std / mpmath.sqrt(2))
            - mpmath.erfc((k + 0.5) / std / mpmath.sqrt(2))
        ) / 2
        wide = variance + mpmath.mpf(1) / 12
        drawn = mpmath.exp(-k * k / (2 * wide)) / mpmath.sqrt(2 * mpmath.pi * wide)
        missed = abs(float(1 - drawn / rounded))
    assert missed < share
    assert z < 13.0 or missed > 0.2 * share


def test_what_is_beyond_the_share_is_rare():
    with mpmath.workdps(40):
        assert (
            mpmath.erfc((14 - mpmath.mpf(2) ** -25) / mpmath.sqrt(2)) < rounding_of(2**48).missing
        )


# -- draws -----------------------------------------------------------------------------------------


def test_digits_are_drawn_apart_and_added():
    """Kills: one stream for two digits, a shift that is off by one."""
    count = 300_001
    found = integers(WIDE, count, KEY)
    total = np.zeros(count, np.int64)
    for place, digit in enumerate(WIDE.digits):
        drawn = np.empty(count, np.int64)
        table = core.LatticeTable(*digit.weights).with_rest(core.LatticeTable(*digit.rest))
        core.lattice_noise(table, KEY, place << 48, drawn, 1)
        total += drawn << digit.shift
    np.testing.assert_array_equal(found, total)
    scaled = found / 2.0**20
    assert stats.kstest(scaled, "norm").pvalue > 1e-3
    # The lowest bits are as good as uniform.
    assert stats.chisquare(np.bincount(found & 1023, minlength=1024)).pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_releases_are_exact(dtype):
    """Against rational arithmetic."""
    lattice = pn.LatticeMechanism(WIDE, 0.3)
    x = (np.random.default_rng(2).normal(size=2**17 + 77) * 1e6).astype(dtype)
    noise = integers(WIDE, x.size, KEY)
    found = replay(lattice, x, KEY)
    some = [0, 1, 2**17 - 1, 2**17, 2**17 + 76, *range(100, 200)]
    for value, k, released in zip(x[some].tolist(), noise[some].tolist(), found[some], strict=True):
        cells = math.floor(Fraction(value) / Fraction(0.3) + Fraction(1, 2)) + k
        assert released == found.dtype.type(float(cells) * 0.3)
    clipped = replay(lattice, x, KEY, bounds=(0.0, 0.0)).astype(float)
    np.testing.assert_array_equal(np.rint(clipped / 0.3)[some], noise[some])
    assert lattice.release(np.zeros((3, 2))).shape == (3, 2)
    assert lattice.release(x[:0]).size == 0


def test_the_same_integers_on_every_back_end(run_python):
    code = (
        "import numpy as np, psinoise as pn\nfrom psinoise.testing import replay\n"
        "m = pn.Mechanism(pn.Gaussian(std=2.0), dimension=40, norm='l2').on_lattice()\n"
        "print(m.noise.sha256, replay(m, np.linspace(-1.0, 1.0, 40), bytes(32)).tobytes().hex())\n"
    )
    native = run_python(code)
    assert run_python(code, PSINOISE_ISA="baseline") == native
    assert run_python(code, PSINOISE_BACKEND="reference") == native


# -- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [1e-3, 0.5, 3.0])
@pytest.mark.parametrize("rate", [1.0, 0.01])
@pytest.mark.parametrize("eta", [1e-15, 1e-9])
def test_the_leak_covers_the_total_variation(shift, rate, eta):
    """Wherever the bound of the total variation says something, in both directions, by closed
    forms. Kills: a leak without the factor 1 + exp(e), one that forgets the direction "add"."""
    leak = leak_of_normal(shift, rate, eta, eta)
    assert 2.0 * eta <= leak < 10.0 * eta * math.exp(8.0 * shift)

    def normal(e):
        return stats.norm.cdf(shift / 2 - e / shift) - np.exp(e) * stats.norm.cdf(
            -shift / 2 - e / shift
        )

    epsilons = np.linspace(0.0, 8.0 * shift, 20_001)
    gamma = np.exp(epsilons)
    kept = 1.0 - gamma * (1.0 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        add = np.where(kept > 0.0, kept * normal(np.log(gamma * rate / kept)), 0.0)
    for ideal in (rate * normal(np.log1p((gamma - 1.0) / rate)), add):
        priced = np.minimum.accumulate(ideal + (1.0 + gamma) * eta)
        assert (leak + (1.0 - leak) * ideal >= priced * (1.0 - 1e-6)).all()


@pytest.mark.parametrize("shift", [0.5, 3.0])
@pytest.mark.parametrize("rate", [1.0, 0.01])
@pytest.mark.parametrize(("eta", "missing"), [(1e-9, 1e-15), (1e-6, 0.0)])
def test_the_leak_covers_what_is_missing(shift, rate, eta, missing):
    """Kills: a leak without eta, or with missing that is not multiplied."""
    leak = leak_of_normal(shift, rate, eta, missing)
    epsilons = np.linspace(0.0, 8.0 * shift, 2001)
    losses = np.log1p(np.expm1(epsilons) / rate)
    ideal = rate * (
        stats.norm.cdf(shift / 2 - losses / shift)
        - np.exp(losses) * stats.norm.cdf(-shift / 2 - losses / shift)
    )
    priced = np.minimum.accumulate(ideal + eta + np.exp(epsilons) * missing)
    assert (leak + (1.0 - leak) * ideal >= priced * (1.0 - 1e-6)).all()
    assert leak < leak_of_normal(shift, rate, eta, eta)


@pytest.mark.parametrize("dimension", [2, 1000, 10**6])
@pytest.mark.parametrize("std", [0.2489, 0.2873, 0.2997, 1.1, 2.0, 100.0])
def test_vectors_cost_less_than_a_thousandth_more(dimension, std):
    """To an epsilon of 30. Kills: tables of multiples of 2**-63 alone, which take 1.3e-2 at 1.1 and
    1e-6; their total variation times exp(epsilon), 3.3e-2 at 0.25 and 1e-8; rounding as a mass and
    not a share, 1.2e-2 at 0.2873 and 1e-12."""
    mechanism = pn.Mechanism(pn.Gaussian(std=std), dimension=dimension, norm="l2")
    lattice = mechanism.on_lattice()
    assert lattice.grid <= 2.0**-13 / math.sqrt(dimension)
    for delta in (1e-12, 1e-10, 1e-8, 1e-5):
        ideal, released = mechanism.epsilon(delta), lattice.epsilon(delta)
        if ideal.upper > 30.0:
            continue
        assert ideal.lower < released.upper < ideal.upper * (1.0 + 1e-3)
    accountant = pn.Accountant().compose(lattice)
    assert accountant.epsilon(1e-5).upper == pytest.approx(released.upper, rel=1e-4)


def test_training_with_samples():
    """A thousand steps at rate 0.01, as private training takes them."""
    mechanism = pn.Mechanism(pn.Gaussian(std=2.0), dimension=1000, norm="l2")
    ideal, released = (
        made.epsilon(1e-5, 1000, 0.01).upper for made in (mechanism, mechanism.on_lattice())
    )
    assert ideal * (1.0 - 1e-4) < released < ideal * (1.0 + 1e-3)


def test_rounding_moves_vectors_no_farther_than_is_accounted():
    """Any two vectors at the sensitivity; the same noise on both."""
    dimension, generator = 500, np.random.default_rng(8)
    lattice = pn.Mechanism(pn.Gaussian(std=2.0), 0.7, dimension=dimension, norm="l2").on_lattice(
        grid=2.0**-9
    )
    farthest = 0.0
    for _ in range(20):
        x = generator.normal(size=dimension)
        step = generator.normal(size=dimension)
        y = x + 0.7 * step / np.linalg.norm(step) * (1.0 - 1e-12)
        moved = replay(lattice, y, KEY) - replay(lattice, x, KEY)
        farthest = max(farthest, float(np.linalg.norm(moved)))
    assert 0.7 < farthest <= lattice._moved
    assert lattice._moved == pytest.approx(0.7 + 2.0**-9 * math.sqrt(dimension), rel=1e-12)


@pytest.mark.parametrize("ratio", [2.0**18, 1e9, 2.0**40])
def test_noise_that_is_wide_against_the_sensitivity(ratio):
    """What a coarser grid made up to 0.007 where the ideal law has 0."""
    mechanism = pn.Mechanism(pn.Gaussian(std=0.3 * ratio), 0.3)
    lattice = mechanism.on_lattice()
    assert isinstance(lattice.noise, DigitNoise)
    assert lattice.cells * Fraction(lattice.grid) == Fraction(0.3)
    delta = mechanism.delta(0.0).upper
    assert lattice.delta(0.0).upper <= delta * (1.0 + 1e-4) + 1e-14
    assert lattice.pure_epsilon() == math.inf
    assert math.isfinite(lattice.release(1.0))


def test_how_far_it_goes():
    with pytest.raises(pn.DomainError, match=r"at most 2\*\*50 times the grid"):
        pn.Mechanism(pn.Gaussian(std=2.0**51)).on_lattice()
    with pytest.raises(pn.DomainError, match="for Gaussian noise only"):
        pn.Mechanism(pn.Laplace(scale=1.0), dimension=3, norm="l1").on_lattice()
    for std in (2.0**9, 2.0**51):
        with pytest.raises(pn.DomainError, match="std must be in"):
            DigitNoise(std, 1.0)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("law", "ratio"),
    [
        (lambda s: pn.Laplace(scale=s), 2**15),
        (lambda s: pn.Airy(mean_abs=s), 2**15),
        (lambda s: pn.Cauchy(scale=s), 2**12),
        (lambda s: pn.SymmetricStable(alpha=1.5, scale=s), 2**12),
        (lambda s: pn.Staircase(epsilon=1.0 / s), 2**15),
        (lambda s: pn.UniformAtom(delta=1.0 / s), 2**42),
        (lambda s: pn.DiscreteLaplace(scale=s), 2**15),
        (lambda s: pn.DiscreteStable(alpha=1.5, scale=s), 2**12),
    ],
    ids=["laplace", "airy", "cauchy", "stable", "staircase", "uniform", "discrete", "sums"],
)
def test_other_laws_say_how_far_they_go(law, ratio):
    """In sensitivities; noise that is narrower by what the error says can be released."""
    assert pn.Mechanism(law(ratio)).on_lattice().cells == 1
    for times in (64, 2**20):
        with pytest.raises(pn.DomainError, match="noise must be narrower") as caught:
            pn.Mechanism(law(times * ratio)).on_lattice()
        factor = float(re.search(r"by a factor of (?:some )?([\d.e+]+)", str(caught.value))[1])
        assert 1.0 < factor <= 2.0 * times
        assert pn.Mechanism(law(times * ratio / (1.5 * factor))).on_lattice().cells == 1


def test_records_come_back_and_changes_are_refused():
    lattice = pn.Mechanism(pn.Gaussian(std=2.0), dimension=3, norm="l2").on_lattice()
    again = pn.LatticeMechanism.from_json(lattice.to_json())
    assert again == lattice
    assert again.record() == lattice.record()
    assert again.record()["norm"] == "l2"
    text = lattice.noise.to_json()
    assert DigitNoise.from_json(text).sha256 == lattice.noise.sha256
    for name, value in (("std", "0x1p2"), ("grid", "nan"), ("integers", "0" * 64), ("std", 1)):
        with pytest.raises(pn.DomainError):
            DigitNoise.from_json(json.dumps({**json.loads(text), name: value}))


def test_a_ledger_charges_vectors():
    ledger = pn.Ledger(3.0, 1e-5)
    mechanism = pn.Mechanism(pn.Gaussian(std=2.0), dimension=3, norm="l2").on_lattice()
    assert ledger.release(mechanism, np.zeros(3)).shape == (3,)
    with pytest.raises(pn.BudgetError):
        ledger.release(mechanism, np.zeros((2, 3)))


def test_a_step_of_two_is_composed_whole_or_not_at_all():
    """Kills: a pair that is counted, and then an error at its price."""
    first = pn.Mechanism(pn.Gaussian(std=2.0**30)).on_lattice()
    second = pn.Mechanism(pn.Gaussian(std=2.0**31), 2.0).on_lattice()
    accountant = pn.Accountant().compose(first, 2**62)
    before = accountant._steps
    with pytest.raises(OverflowError, match="count"):
        accountant.compose(second, 2**62)
    assert accountant._steps == before
