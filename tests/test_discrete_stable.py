"""Discrete stable noise: masses against other formulas, sums, losses, releases and their sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

import psinoise as pn
from psinoise._backend import core
from psinoise.mechanisms.sums import shortfall
from psinoise.noise._discrete_stable_masses import DiscreteStableMasses
from psinoise.release import LatticeNoise, residues, sum_of_residues
from psinoise.release.weights import Weights


def by_quadrature(alpha: float, scale: float, k: int) -> mp.mpf:
    """The Fourier integral."""

    def integrand(u: mp.mpf) -> mp.mpf:
        return mp.cos(k * u) * mp.exp(-((2 * mp.mpf(scale) * mp.sin(u / 2)) ** mp.mpf(alpha)))

    points = {mp.pi * mp.mpf(2) ** -j for j in range(50)} | {mp.mpf(0)}
    return mp.quad(integrand, sorted(points | {mp.pi * j / k for j in range(1, k)})) / mp.pi


def by_series(alpha: float, scale: float, k: int) -> mp.mpf:
    """exp(-f) in powers of f, term by term: asymptotic in scale / k."""
    a = mp.mpf(alpha)
    return mp.fsum(
        mp.mpf(-1) ** (j + 1)
        * mp.mpf(scale) ** (a * j)
        * mp.exp(
            mp.loggamma(a * j + 1)
            + mp.loggamma(k - a * j / 2)
            - mp.loggamma(k + 1 + a * j / 2)
            - mp.loggamma(j + 1)
        )
        * mp.sin(mp.pi * a * j / 2)
        / mp.pi
        for j in range(1, 12)
    )


CASES = [
    *((by_quadrature, alpha, 0.3, k) for alpha in (0.1, 1.0, 1.9999) for k in (0, 7)),
    *((by_quadrature, alpha, 40.0, k) for alpha in (0.4, 1.5, 1.9, 1.9999999) for k in (1, 11)),
    *((by_series, alpha, 2.5, 10**6) for alpha in (1.1, 1.5, 1.9, 1.99999)),
    # Down to 1e-250 and beyond.
    *((by_series, 1.0, 2.5, 10**power) for power in (30, 124)),
    *((by_series, 1.9, 60.0, 10**power) for power in (20, 85)),
    *((lambda _a, c, k: mp.exp(-2 * c**2) * mp.besseli(k, 2 * c**2), 2.0, 3.0, k)
      for k in (1, 40, 171, 200)),
    *((lambda _a, c, k: mp.exp(-2 * mp.mpf(c)**2) * mp.besseli(k, 2 * mp.mpf(c)**2), 2.0, c, k)
      for c, k in ((1.0, 136), (6.0, 360), (40.0, 1720))),
]  # fmt: skip


@pytest.mark.deep
def test_masses_have_all_digits() -> None:
    """Kills: a coarser rule near the normal law (4e-10), the exponent by a logarithm (5e-13)."""
    with mp.workdps(40):
        for formula, alpha, scale, k in CASES:
            mp.mp.dps = 300 if formula is by_series else 40
            exact = mp.log(formula(alpha, scale, k))
            found = pn.DiscreteStable(alpha=alpha, scale=scale).logpmf(float(k))
            assert abs(found - exact) < 1e-13 * max(1.0, -float(exact) / 576.0), (alpha, scale, k)


def test_the_tail_of_the_skellam_law_does_not_end() -> None:
    """By Debye's formula, to where a float64 ends."""
    for scale in (2.0**-6, 4.0, 1e3):
        law = pn.DiscreteStable(alpha=2.0, scale=scale)
        k, x = 10.0 ** np.arange(9.0, 301.0, 12.0), 2.0 * scale**2
        root = np.hypot(k, x)
        expected = root - x - k * np.arcsinh(k / x) - 0.5 * np.log(2.0 * math.pi * root)
        np.testing.assert_allclose(law.logpmf(k), expected, rtol=1e-12)
        np.testing.assert_allclose(law.logccdf(k - 1.0), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("alpha", "scale"), [(0.3, 1e3), (1.0, 30.0), (1.9, 8.0), (1.9999999, 64.0), (2.0, 1e4)]
)
def test_masses_together_are_those_one_by_one(alpha: float, scale: float) -> None:
    """And add up to tails, and to 1; across all seams of the formulas."""
    k = np.arange(0.0, 40.0 * scale if scale < 1e4 else 40_000.0)
    masses = DiscreteStableMasses(alpha, scale)
    together = masses.log_masses(k)
    some = np.unique(np.geomspace(1.0, k[-1], 300).astype(int))
    alone = masses.log_masses(k[some])
    np.testing.assert_allclose(together[some], alone, rtol=0.0, atol=4e-14)
    law, last = pn.DiscreteStable(alpha=alpha, scale=scale), k[-1]
    total = 2.0 * math.fsum(np.exp(together)) - math.exp(together[0]) + 2.0 * law.ccdf(last)
    assert total == pytest.approx(1.0, abs=1e-13)
    pair = law.ccdf(k[some - 1]) - law.ccdf(k[some])
    np.testing.assert_allclose(pair, np.exp(alone), rtol=1e-12, atol=4e-15)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.9, 2.0])
@pytest.mark.parametrize("scale", [0.02, 1.0, 30.0, 65.0, 1e4, 1e8])
def test_tails_together_are_those_one_by_one(alpha: float, scale: float) -> None:
    """Kills: polynomials whose largest coefficient is rounded in every term (2e-13), and those of
    narrow Skellam laws, whose logarithm falls by 400 on a panel (1e-12)."""
    law, masses = pn.DiscreteStable(alpha=alpha, scale=scale), DiscreteStableMasses(alpha, scale)
    end = 30.0 * scale + 40.0 if alpha == 2.0 else 1e6 * scale + 1e4
    k = np.unique(np.floor(np.geomspace(1.0, end, 400)))
    together = law.logccdf(k - 1.0)
    assert law.logccdf(k[7] - 1.0) == together[7]
    alone = masses._in_chunks(k - 0.5, tail=True)
    likely = alone > -575.0
    np.testing.assert_allclose(together[likely], alone[likely], rtol=5e-15, atol=4e-14)


def test_draws_far_out_take_few_integrals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: one for every number that a search tries, .5 ms a draw."""
    law, asked = pn.DiscreteStable(alpha=1.3, scale=1e8), []
    honest = DiscreteStableMasses._integral

    def counted(masses: DiscreteStableMasses, k: np.ndarray, tail: bool) -> np.ndarray:
        asked.append(k.size)
        return honest(masses, k, tail)

    law.sample(1, rng=1)
    monkeypatch.setattr(DiscreteStableMasses, "_integral", counted)
    many = law.sample(20_000, rng=1)
    assert sum(asked) < 20_000
    asked.clear()
    np.testing.assert_array_equal(law.sample(5_000, rng=1, offset=15_000), many[15_000:])
    assert sum(asked) < 50


def test_the_mean_absolute_value() -> None:
    for alpha, scale in ((1.001, 5.0), (1.5, 0.1), (2.0, 20.0)):
        law = pn.DiscreteStable(alpha=alpha, scale=scale)
        # The continuous law, but for the grid; the Skellam law in closed form.
        ideal = pn.SymmetricStable(alpha=alpha, scale=scale)
        if alpha == 2.0:
            m = 2.0 * scale**2
            exact = m * (special.ive(0, m) + special.ive(1, m))
        elif scale > 1.0:
            exact = ideal.mean_abs
        else:
            k = np.arange(1.0, 1 << 20)
            exact = 2.0 * float(k @ law.pmf(k)) + 4.0 * k[-1] * law.ccdf(k[-1]) * 1.5
        assert law.mean_abs == pytest.approx(exact, rel=1e-12 if alpha == 2.0 else 1e-3)
    assert pn.DiscreteStable(alpha=1.0, scale=1.0).mean_abs == math.inf


@pytest.mark.deep
def test_costs_and_divergences_are_sums() -> None:
    """Kills: no correction at the end of the terms that are listed (the first law)."""
    for alpha, scale in ((1.3, 0.5), (1.5, 300.0), (1.9, 1e6)):
        law = pn.DiscreteStable(alpha=alpha, scale=scale)
        assert law.expected_cost(np.abs) == pytest.approx(law.mean_abs, rel=3e-13)
        assert law.expected_cost(np.ones_like) == pytest.approx(1.0, abs=1e-14)
        assert law.expected_cost(np.square) == math.inf
    assert pn.DiscreteStable(alpha=2.0, scale=20.0).moment(4.0) == pytest.approx(
        3.0 * 800.0**2 + 800.0, rel=1e-12
    )
    for alpha, scale, shift in ((1.9, 4.0, 3), (2.0, 20.0, 8), (1.5, 64.0, 1)):
        law = pn.DiscreteStable(alpha=alpha, scale=scale)
        k = np.arange(-20_000.0, 20_001.0)
        base, moved = law.log_mass(np.abs(k)), law.log_mass(np.abs(k - shift))
        masses, losses = np.exp(base), base - moved
        mean = float(masses @ losses)
        # Losses beyond are less than 3 s / k, on both sides.
        tails, most = 2.0 * law.ccdf(k[-1]), (3.0 * shift / k[-1]) ** 2
        assert law.kl(shift) == pytest.approx(mean, rel=1e-10, abs=tails * most)
        variance = float(masses @ (losses - mean) ** 2)
        left_out = 1.01 * tails * (most + mean**2)
        assert law.kl_variance(shift) == pytest.approx(variance, rel=1e-10, abs=left_out)
    assert law.kl(0.5) == math.inf
    with pytest.raises(pn.DomainError, match="shift must be from 1/64 of the scale"):
        pn.DiscreteStable(alpha=1.5, scale=65.0).kl(1)


LAWS = [(0.5, 100.0, 64), (1.0, 64.0, 63), (1.5, 4.0, 4), (1.1, 1.0, 100), (1.9999, 64.0, 64)]


@pytest.mark.parametrize(("alpha", "scale", "sensitivity"), LAWS)
def test_blocks_contain_the_loss_of_all_numbers(
    alpha: float, scale: float, sensitivity: int
) -> None:
    law = pn.DiscreteStable(alpha=alpha, scale=scale)
    mechanism = pn.Mechanism(law, float(sensitivity))
    k = np.arange(-40_000.0, 40_001.0)
    moved, base = law.pmf(k - sensitivity), law.pmf(k)
    losses = np.log(moved / base)
    assert losses.max() <= mechanism.pure_epsilon() <= losses.max() * (1.0 + 1e-6) + 1e-11
    for epsilon in (0.5 * losses.max(), 0.9 * losses.max()):
        delta = float(np.maximum(moved - math.exp(epsilon) * base, 0.0).sum())
        found = mechanism.delta(epsilon)
        assert found.lower - 1e-12 <= delta <= found.upper + 1e-12
        assert found.upper == pytest.approx(delta, rel=1e-6)


def test_wide_laws_are_accounted_like_their_limit() -> None:
    """Runs of many numbers; sums of 1e12 messages."""
    for alpha, scale in ((1.92, 2340.0), (1.98, 1e8), (0.8, 1e6)):
        law = pn.DiscreteStable(alpha=alpha, scale=scale)
        found = pn.Mechanism(law, 64.0).pure_epsilon()
        ideal = pn.SymmetricStable(alpha=alpha, scale=scale)
        assert found == pytest.approx(pn.Mechanism(ideal, 64.0).pure_epsilon(), rel=1e-4)


def test_skellam_noise_is_private_with_a_delta() -> None:
    mechanism = pn.Mechanism(pn.DiscreteStable(alpha=2.0, scale=64.0), 64.0)
    assert mechanism.pure_epsilon() == math.inf
    k = np.arange(-5000.0, 5001.0)
    moved, base = special.ive(np.abs(k - 64.0), 8192.0), special.ive(np.abs(k), 8192.0)
    delta = float(np.maximum(moved - math.exp(2.0) * base, 0.0).sum())
    found = mechanism.delta(2.0)
    assert found.lower <= delta * (1.0 + 1e-9)
    assert found.upper >= delta * (1.0 - 1e-9)
    assert found.upper == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize(("alpha", "scale"), [(0.5, 1.0), (1.6, 2.0), (1.92, 64.0), (2.0, 8.0)])
def test_a_message_is_released_as_it_is_accounted(alpha: float, scale: float) -> None:
    law = pn.DiscreteStable(alpha=alpha, scale=scale)
    mechanism = pn.Mechanism(law, 4.0)
    lattice = mechanism.on_lattice()
    assert lattice.noise.unimodal
    assert float(lattice.release([3.0])[0]).is_integer()
    if alpha < 2.0:
        assert 0.999 < lattice.pure_epsilon() / mechanism.pure_epsilon() <= 1.0
    assert 0.999 < float(lattice.epsilon(1e-6)) / float(mechanism.epsilon(1e-6)) <= 1.0
    assert mechanism.for_sum(2).shortfall < 1e-2


@pytest.mark.deep
@pytest.mark.parametrize(("alpha", "last"), [(1.2, 13), (1.9, 13), (0.5, 8), (0.1, 2)])
def test_scales_that_can_be_released(alpha: float, last: int) -> None:
    """The last power of two, as the class and docs/stable.md have it."""
    mechanism = pn.Mechanism(pn.DiscreteStable(alpha=alpha, scale=2.0**last))
    assert 0.0 < mechanism.on_lattice().pure_epsilon() < math.inf
    with pytest.raises(pn.DomainError, match="must be narrower"):
        pn.Mechanism(pn.DiscreteStable(alpha=alpha, scale=2.0 ** (last + 1))).on_lattice()


def test_a_lighter_table_has_no_sum() -> None:
    """The test of `shortfall`: half of a tail gone is seen, all of a tail too."""
    law = pn.DiscreteStable(alpha=1.6, scale=2.0)
    good = pn.Mechanism(law, 1.0).on_lattice().noise
    law = pn.Mechanism(law, 1.0).for_sum(2).drawn
    assert shortfall(good, law) < 1e-4
    listed, tail, repeated, ratio = good.integers
    for change in (0.5, 0.999):
        worse = Weights(listed.copy(), tail, repeated, int(ratio * change))
        assert shortfall(LatticeNoise._made(1.0, worse), law) > 1e-2
    cut = LatticeNoise._made(1.0, Weights(listed.copy(), "none", 0, 0))
    assert shortfall(cut, law) == 1.0


@pytest.mark.deep
@pytest.mark.parametrize(("alpha", "scale", "count"), [(1.3, 1.0, 8), (1.9, 0.5, 40)])
def test_sums_of_table_draws_are_as_private_as_certified(
    alpha: float, scale: float, count: int
) -> None:
    """By the convolution of the table itself."""
    mechanism = pn.Mechanism(pn.DiscreteStable(alpha=alpha, scale=scale), 1.0)
    size = 1 << 22
    k = np.arange(size) - size // 2
    masses = mechanism.on_lattice().noise.pmf(k)
    table = np.fft.rfft(np.fft.ifftshift(masses))
    total = np.fft.fftshift(np.fft.irfft(table**count, size))
    summed = mechanism.for_sum(count)
    # What lies beyond is put where it is, or folded: some 1e-8.
    folded = count * (1.0 - math.fsum(masses))
    for epsilon in (0.5 * summed.epsilon(1e-2), float(summed.epsilon(1e-4))):
        delta = float(np.maximum(np.roll(total, 1) - math.exp(epsilon) * total, 0.0).sum())
        found = float(summed.delta(epsilon))
        assert delta - 2.0 * folded <= found < 1.02 * delta + 2.0 * folded
        # Dropouts: fewer messages hide less.
        assert mechanism.for_sum(count - 2).delta(epsilon) > found


def test_small_deltas_of_sums_are_those_of_a_message() -> None:
    mechanism = pn.Mechanism(pn.DiscreteStable(alpha=1.5, scale=4.0), 4.0)
    message = mechanism.on_lattice()
    two = mechanism.for_sum(2)
    assert two.epsilon(0.0) == message.epsilon(0.0) == message.pure_epsilon() == two.pure_epsilon()
    assert two.epsilon(1e-6) < 0.9 * message.epsilon(1e-6)
    assert mechanism.for_sum(1).epsilon(1e-6) == message.epsilon(1e-6)


def test_small_deltas_of_sums_among_others() -> None:
    """Kills: an array of deltas with a 0, all answered by one message; a message's lower end."""
    summed = pn.Mechanism(pn.DiscreteStable(alpha=1.8, scale=8.0), sensitivity=4).for_sum(1000)
    deltas = [0.0, 1e-200, 1e-30, 1e-9, 1e-6]
    found = summed.epsilon(deltas)
    for k, delta in enumerate(deltas):
        alone = summed.epsilon(delta)
        assert found.lower[k] == pytest.approx(alone.lower, rel=1e-9)
        assert found.upper[k] == pytest.approx(alone.upper, rel=1e-9)
    assert found.upper[3] < 0.1 * found.upper[0]
    assert np.all(np.diff(found.lower) <= 0.0)
    assert np.all(np.diff(found.upper) <= 0.0)
    for bad in ("abc", None):
        with pytest.raises(TypeError, match="delta must be a real number"):
            summed.epsilon(bad)
    with pytest.raises(TypeError, match="count must be an integer"):
        summed.epsilon(1e-6, None)


def test_a_sum_with_a_saturated_message_shows_the_other() -> None:
    """Why delta 0 has nothing better: the sum ``2**61 + y`` of two, the second of which holds
    ``2**50``, before it is brought back to ``2**61``."""
    law = pn.DiscreteStable(alpha=1.5, scale=4.0)
    message = pn.Mechanism(law, 4.0).on_lattice()
    y = np.arange(-200, 201)
    one, other = message.noise.pmf(y), message.noise.pmf(y - 4)
    saturated = 0.99 * law.ccdf(2.0**61)
    # The first is saturated and the second is y; neither is, and one of them is beyond 2**60.
    more = 1.02 * law.ccdf(2.0**61 - 4.0) * law.pmf(2.0**49) + 2.04 * law.pmf(2.0**60)
    losses = np.log(saturated * other / (saturated * one + more))
    assert losses.max() == pytest.approx(message.pure_epsilon(), rel=1e-9)


def p_value(seen, expected):
    """Of the counts, whatever the last digits of their sums are."""
    return stats.chisquare(seen, expected * (seen.sum() / expected.sum())).pvalue


def test_sums_of_releases_have_the_law_of_the_aggregate() -> None:
    """Ten million sums of three."""
    law = pn.DiscreteStable(alpha=1.6, scale=1.0)
    lattice = pn.Mechanism(law, 1.0).on_lattice()
    half, seen, zeros = 40, np.zeros(82), np.zeros((3, 1 << 20))
    for _ in range(10):
        sums = lattice.release(zeros).sum(axis=0)
        inside = sums[np.abs(sums) <= half].astype(np.int64)
        seen[:-1] += np.bincount(inside + half, minlength=81)
        seen[-1] += sums.size - inside.size
    k = np.arange(-half, half + 1.0)
    p_values = []
    for scale in (law.aggregate(3).scale, law.aggregate(3).scale * 1.005):
        total = pn.DiscreteStable(alpha=1.6, scale=scale)
        expected = np.append(total.pmf(k), 2.0 * total.ccdf(float(half))) * seen.sum()
        p_values.append(p_value(seen, expected))
    assert p_values[0] > 1e-6 > p_values[1]


def test_draws_for_simulation() -> None:
    law = pn.DiscreteStable(alpha=1.2, scale=0.5)
    draws = law.sample(200_000, rng=3)
    k = np.arange(-6.0, 7.0)
    seen = np.array([np.count_nonzero(draws == j) for j in k])
    expected = np.append(law.pmf(k), 2.0 * law.ccdf(6.0)) * draws.size
    seen = np.append(seen, draws.size - seen.sum())
    assert p_value(seen, expected) > 1e-6


def test_no_draw_is_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a quantile of 0, where the list has all of a law and its sum is short of 1 by its
    rounding: the largest uniform number was one beyond, once in 10^15 draws."""
    words = np.full(6, 2**64 - 1, dtype=np.uint64)
    monkeypatch.setattr(core, "stream_words", lambda *_: words)
    for alpha in (2.0, 1.5, 0.5):
        for scale in (3.0, 100.0, 1000.0):
            draws = pn.DiscreteStable(alpha=alpha, scale=scale).sample(3, rng=1)
            assert np.isfinite(draws).all()


def test_residues_of_sums_are_sums_of_residues() -> None:
    numbers = np.array([2**62, -(2**62), -7, 3, 2**61, -(2**61)])
    for bits in (1, 5, 32, 63, 64):
        sent = residues(numbers, bits)
        assert sent.dtype == np.uint64
        assert [int(m) % 2**bits for m in numbers] == sent.tolist()
        expected = (-4 + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
        assert int(sum_of_residues(sent, bits)) == expected
    two = sum_of_residues(np.array([[1, 2], [3, 253]]), 8)
    assert two.tolist() == [4, -1]


def test_near_the_continuous_law() -> None:
    """At a grid of 1/64 of the scale errors and losses are those of the continuous law to 1 %."""
    law = pn.DiscreteStable(alpha=1.92, scale=64.0)
    ideal = pn.SymmetricStable(alpha=1.92, scale=64.0)
    assert law.mean_abs == pytest.approx(ideal.mean_abs, rel=1e-3)
    loss = pn.Mechanism(law, 64.0).pure_epsilon()
    assert loss == pytest.approx(pn.Mechanism(ideal, 64.0).pure_epsilon(), rel=1e-3)


def test_bad_arguments() -> None:
    for alpha, scale in ((0.09, 1.0), (2.1, 1.0), (math.nan, 1.0), (1.5, 0.01), (1.5, 2e12)):
        with pytest.raises(pn.DomainError, match=r"must"):
            pn.DiscreteStable(alpha=alpha, scale=scale)
    law = pn.DiscreteStable(alpha=1.5, scale=1.0)
    refused: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: law.aggregate(0), "count must be at least 1"),
        (lambda: law.aggregate(2**63 - 1), "scale must be in"),
        (lambda: law.pdf(0.0), "has no density"),
        (lambda: pn.Mechanism(law, 1.5).pure_epsilon(), "whole number"),
        (
            lambda: pn.Mechanism(law, 2.0, contribution=1.0).epsilon(1e-6, 1, 0.5, "replace"),
            "log-concave",
        ),
        (lambda: pn.Mechanism(law).for_sum(0), "count must be at least 1"),
        (lambda: pn.Mechanism(pn.DiscreteLaplace(scale=1.0)).for_sum(2), "closed under sums"),
        (lambda: pn.Mechanism(law, dimension=2).for_sum(2), "dimension must be 1"),
        (
            lambda: pn.Mechanism(pn.DiscreteStable(alpha=1.5, scale=1e5)).on_lattice(),
            "must be narrower",
        ),
        (lambda: residues([1], 65), "bits must be from 1 to 64"),
    )
    for call, message in refused:
        with pytest.raises(pn.DomainError, match=message):
            call()
    with pytest.raises(TypeError, match="messages must be integers"):
        residues([1.0], 8)


def test_renyi_divergences_are_bounds_from_above() -> None:
    """Kills: moments of merged blocks, which are less by 1e-7 and bound from below."""
    law, shift, last = pn.DiscreteStable(alpha=1.5, scale=200.0), 100, 20_000
    mechanism = pn.Mechanism(law, sensitivity=shift)
    k = np.arange(-last, last + 1.0)
    moved, base = law.log_mass(np.abs(k - shift)), law.log_mass(np.abs(k))
    # Each tail as one answer, which has less.
    ends = last + 1.0 + np.array([-shift, shift])
    moved = np.append(moved, law.log_tail(ends))
    base = np.append(base, law.log_tail(np.full(2, last + 1.0)))
    for order in (2.0, 8.0):
        logs = order * moved + (1.0 - order) * base
        exact = float(np.logaddexp.reduce(logs)) / (order - 1.0)
        found = float(mechanism.renyi_divergence([order])[0])
        assert exact <= found <= exact * (1.0 + 1e-5)
    composed = mechanism.composed(10)
    assert composed.epsilon(1e-5).lower <= composed.renyi.epsilon(1e-5) < math.inf
