"""The largest loss of laws that are not log-concave is bounded from both sides, at every scale."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import psinoise as pn
from psinoise.accounting.loss.largest import largest_log_ratio_bounds, turning_distance
from refusals import for_each, for_rows

INDICES = [0.1, 0.12, 0.13, 0.17, 0.3, 0.5, 0.7, 0.99, 1.0, 1.01, 1.5, 1.8, 1.9, 1.99, 1.9999]
SCALES = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 3.0, 30.0, 1e3, 1e4, 1e6, 1e8, 1e10, 1e12]
ROUNDING = 3e-13  # of a difference of two log densities


def stable(alpha, scale):
    return pn.SymmetricStable(alpha=alpha, scale=scale)


def losses(law, beyond):
    return law.logpdf(beyond) - law.logpdf(beyond + 1.0)


@pytest.mark.deep
@for_each(INDICES, SCALES)
def test_no_loss_exceeds_the_bound(alpha, scale):
    """Kills: a grid about max(scale, s / 2), which misses the core of a small index; a first panel
    or a tail that is left out; values on nodes taken for bounds (at 1e-12 of the loss)."""
    law = stable(alpha, scale)
    lower, upper = largest_log_ratio_bounds(law, 1.0)
    turn = max(turning_distance(law, 1.0), 1e-30)
    beyond = np.concatenate(
        [scale * np.geomspace(1e-30, 1e15, 100_000), turn * np.linspace(0.9, 1.1, 4001), [0.0]]
    )
    found = float(losses(law, beyond).max())
    noise = ROUNDING * max(1.0, math.log(1.0 + 1.0 / scale))
    assert lower <= upper
    assert found <= upper + noise
    assert found >= upper - 1e-8 * upper - 10.0 * noise
    # Where the loss is of order 1, or small, but where t times the score is: 6e-3 at index 0.1.
    assert upper - lower <= 1e-12 * upper + (1e-11 * upper if alpha >= 0.5 else 5e-12)


@for_each([10.0**k for k in range(-15, 16)], [1.0, 0.3, 1e-9, 1e9])
def test_cauchy_in_closed_form(scale, sensitivity):
    """``2 asinh(s / (2 scale))`` (theorem 25 of the paper) is between the bounds. Kills: rounding
    that is not taken outwards, a difference of logarithms for a small shift."""
    lower, upper = largest_log_ratio_bounds(pn.Cauchy(scale=scale), sensitivity)
    with mpmath.workdps(50):
        exact = 2 * mpmath.asinh(mpmath.mpf(sensitivity) / (2 * mpmath.mpf(scale)))
        assert lower <= exact <= upper
        assert upper - lower <= 2e-12 * exact


@for_rows([(1.8, 1e4), (0.7, 1e10), (1.5, 1e7), (0.3, 1e12)])
def test_small_shifts_against_the_score(alpha, scale):
    """The loss is ``s`` times the largest score but for the square of the shift. Kills: a bracket
    that is a difference of floats (off by 1e-5 at index 0.7)."""
    law = stable(alpha, scale)
    lower, upper = largest_log_ratio_bounds(law, 1.0)
    t = turning_distance(law, 1.0) / scale * np.linspace(0.999, 1.001, 2001)
    steepest = float(law.score(t).max()) / scale
    assert upper >= steepest * (1.0 - 1e-8)
    assert lower <= steepest * (1.0 + 1e-12)
    assert upper - lower <= 5e-12 * upper


@pytest.mark.deep
@for_each(INDICES, [1e-6, 1e-2, 0.3, 1.0, 10.0, 1e3, 1e6, 1e9])
def test_the_loss_rises_and_falls_at_the_turning_point(alpha, scale):
    """The quadrature takes it for monotone on both sides. Kills: the old grid; a place found from
    values alone, which are flat (relative error 1e-5 at small shifts)."""
    law = stable(alpha, scale)
    turn = 1.0 + turning_distance(law, 1.0)
    beyond = turn - 1.0
    if beyond < 1e-6:  # the loss turns where the shift does, to the digits of the output
        assert losses(law, np.array([0.0])) >= losses(law, np.array([1e-5])) - 1e-9 or alpha > 1
        return
    ends = beyond * (1.0 + np.array([-2.0, 2.0]) * 1e-6 * turn / beyond)
    rise, fall = law.score((ends + 1.0) / scale) - law.score(ends / scale)
    assert rise > 0.0 > fall
    grid = np.geomspace(1e-9, 1e9, 4001) * beyond
    steps = np.diff(losses(law, grid))
    slack = 5e-13 * (1.0 + abs(math.log(scale)))
    assert (steps[grid[1:] <= beyond] >= -slack).all()
    assert (steps[grid[:-1] >= beyond] <= slack).all()


def test_pure_epsilon_of_a_small_index():
    """Finding: .6057 was certified, where two outputs already show 2.4275."""
    law = stable(0.12, 1e6)
    mechanism = pn.Mechanism(law)
    seen = float(law.logpdf(0.0) - law.logpdf(1.0))
    assert 2.42 < seen <= mechanism.pure_epsilon() <= 2.4276
    assert mechanism.epsilon(1e-6).upper > 2.3


@pytest.mark.deep
@for_each([0.1, 0.12, 0.15, 0.17])
def test_calibration_of_a_small_index(alpha):
    """Kills: a largest loss that is not the largest, which gave 4.18 for 0.1."""
    law = pn.calibrate(pn.noise.Family(pn.SymmetricStable, alpha=alpha), epsilon=0.1, delta=0.0)
    scales = law.scale * np.geomspace(1e-30, 1e6, 200_001)
    assert losses(law, scales).max() <= 0.1 * (1.0 + 1e-9)


@dataclass(frozen=True)
class Student:
    """A law of the user's, without tables: p ~ (n + x^2)^(-(n + 1) / 2)."""

    scale: float
    freedom: float = 3.0
    log_concave = False
    unimodal = True
    kinks = ()
    score_limit = 0.0
    support = math.inf

    def logpdf(self, x):
        n, t = self.freedom, np.abs(np.asarray(x)) / self.scale
        constant = math.lgamma((n + 1.0) / 2.0) - math.lgamma(n / 2.0)
        constant -= 0.5 * math.log(n * math.pi) + math.log(self.scale)
        return constant - 0.5 * (n + 1.0) * np.log1p(t * t / n)


@for_each([1e-6, 1e-2, 0.2, 1.0, 7.0, 100.0])
def test_laws_of_users_are_bounded_by_monotony(scale):
    """Cauchy's form to the power (n + 1) / 2. Kills: the far tail taken for nothing; a bound that
    is not above the best value when the search gives up."""
    lower, upper = largest_log_ratio_bounds(Student(scale), 1.0)
    exact = 4.0 * math.asinh(0.5 / (scale * math.sqrt(3.0)))
    assert lower <= exact <= upper
    assert upper - lower <= (1e-7 if scale < 5.0 else 1e-4) * exact


@dataclass(frozen=True)
class Mixture:
    """Two Laplace laws, half of each: the score falls from that of the narrow to the wide one."""

    scale: float = 1.0
    log_concave = False
    unimodal = True
    kinks = (0.0,)
    score_limit = 0.25
    support = math.inf

    def logpdf(self, x):
        t = np.abs(np.asarray(x))
        return np.logaddexp(-t, -math.log(4.0) - 0.25 * t) - math.log(4.0)


@dataclass(frozen=True)
class Steepening(Mixture):
    """Its score rises to the limit: the largest loss is at infinity."""

    score_limit = 2.0

    def logpdf(self, x):
        t = np.abs(np.asarray(x))
        return -2.0 * t + 0.1 * np.log1p(t) - 1.0


@for_each([1e-3, 0.1, 1.0, 10.0, 1e3])
def test_exponential_tails(shift):
    """Kills: the limit of the score left out of the upper or of the lower bound."""
    law = Mixture()
    lower, upper = largest_log_ratio_bounds(law, shift)
    top = float(law.logpdf(0.0) - law.logpdf(shift))
    assert lower <= top * (1.0 + 1e-12)
    assert top <= upper
    assert upper <= top * (1.0 + 1e-6) + 1e-10 or shift < 0.1  # monotony alone
    lower, upper = largest_log_ratio_bounds(Steepening(), shift)
    assert lower <= 2.0 * shift <= upper
    assert upper <= 2.0 * shift * (1.0 + 1e-2) or shift < 1.0


@dataclass(frozen=True)
class Bounded(Student):
    """Its density is 1 / (scale + |x|)^2 but for a factor, and ends at 1."""

    score_limit = 0.0
    support = 1.0

    def logpdf(self, x):
        t = np.abs(np.asarray(x))
        with np.errstate(divide="ignore"):
            return np.where(t <= 1.0, -2.0 * np.log(self.scale + t), -np.inf) - self.log_total

    @property
    def log_total(self):
        return math.log(2.0 / (self.scale * (self.scale + 1.0)))

    def _left_by(self, shift):
        return float(self.cdf(shift - 1.0))

    def cdf(self, x):
        t = np.clip(x, -1.0, 1.0)
        below = np.abs(t) / (self.scale * (self.scale + np.abs(t))) * math.exp(-self.log_total)
        return 0.5 + np.sign(t) * below


@for_each([0.1, 1.0], [1.0, 1.2, 1.5])
def test_a_shift_beyond_the_support(scale, shift):
    """The loss rises to the last output that both laws have. Kills intervals of nothing, in which
    no maximum is found."""
    law = Bounded(scale)
    exact = float(law.logpdf(shift - 1.0) - law.logpdf(1.0))
    lower, upper = largest_log_ratio_bounds(law, shift)
    assert lower <= exact <= upper
    assert upper - lower <= 1e-12
    assert turning_distance(law, shift) == 1.0 - shift
    # Infinite losses have no divergence, and no contour converges next to where a density ends.
    composed = pn.Mechanism(law, shift).composed(2)
    assert composed.renyi.delta(exact) == 1.0
    with pytest.raises(pn.CertificationError, match=r"law of psinoise\.noise"):
        composed.estimate.delta(0.5 * exact)
    assert largest_log_ratio_bounds(law, 2.5) == (-math.inf, -math.inf)


@for_each([0.01, 0.3, 0.7])
def test_a_limit_of_the_score_beyond_the_support_says_nothing(shift):
    """Kills: the loss at infinity of a law that ends."""

    class Ended(Bounded):
        score_limit = 50.0

    lower, upper = largest_log_ratio_bounds(Ended(1.0), shift)
    exact = 2.0 * math.log1p(shift)  # from 0
    assert lower <= exact * (1.0 + 1e-12)
    assert exact <= upper


def test_a_loss_that_grows_beyond_where_anyone_looks():
    """Kills: intervals to the last edge taken for the whole line; a lower bound of values alone."""

    @dataclass(frozen=True)
    class Late(Mixture):
        score_limit = 2.0

        def logpdf(self, x):
            t = np.abs(np.asarray(x))
            return -0.1 * t - 1.9 * np.maximum(t - 1e6, 0.0) + 0.1 * np.log1p(t)

    lower, upper = largest_log_ratio_bounds(Late(), 1.0)
    assert 2.0 * (1.0 - 1e-15) <= lower <= 2.0 <= upper <= 2.1


def test_light_tails_that_are_not_log_concave():
    """A mixture of normal laws loses without bound, whatever a grid says."""

    @dataclass(frozen=True)
    class Normals(Mixture):
        score_limit = math.inf

        def logpdf(self, x):
            t = np.asarray(x)
            return np.logaddexp(-0.5 * t * t, -0.02 * t * t - 1.6)

    assert largest_log_ratio_bounds(Normals(), 1.0) == (math.inf, math.inf)
    assert turning_distance(Normals(), 1.0) == math.inf


def test_log_concave_laws_have_their_closed_form():
    assert largest_log_ratio_bounds(pn.Laplace(scale=4.0), 2.0) == (0.5, 0.5)
    law = pn.Schrodinger(cost=pn.costs.Log(), mean_cost=1.0)
    assert largest_log_ratio_bounds(law, 1.0)[1] == math.inf


@for_each([0.37, 0.01, 1e-5])
def test_sampled_losses_of_atoms_are_rounded_up(rate):
    """A third of them was below the truth by a fraction of an ulp."""
    with mpmath.workdps(40):
        for k in range(1, 40):
            epsilon = k / 17.0
            found = pn.Mechanism(pn.DiscreteLaplace(epsilon=epsilon)).epsilon(0.0, 3, rate)
            loss = [
                -mpmath.log(1 + rate * mpmath.expm1(-mpmath.mpf(epsilon))),
                mpmath.log1p(rate * mpmath.expm1(mpmath.mpf(epsilon))),
            ]
            assert found.lower <= 3 * max(loss) <= found.upper
            assert found.width <= 1e-14 * found.upper


def test_rounding_of_atoms_at_tiny_rates():
    """Against 300 digits. Kills: a slope ``1 - (1 - q) e^-loss``, which is 0 at losses below an ulp
    of 1: of large losses without sampling the last digits decide."""
    generator = np.random.default_rng(3)
    drawn = [(x, 10.0 ** -generator.uniform(x / 2.303, 290.0)) for x in np.linspace(20, 660, 150)]
    with mpmath.workdps(300):
        for epsilon, rate in [(60.0, 1e-60), (600.0, 1e-290), (660.0, 1e-287), *drawn]:
            scale = 10.0 / epsilon
            largest = mpmath.mpf(10) / mpmath.mpf(scale)
            exact = mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(largest))
            for count in (1, 3):
                mechanism = pn.Mechanism(pn.DiscreteLaplace(scale=scale), 10)
                found = mechanism.epsilon(0.0, count, rate)
                assert found.lower <= count * exact <= found.upper
                assert found.width <= 1e-12 * found.upper


def test_losses_that_are_fractions_are_rounded_up_once():
    """Kills: a quotient that is rounded to nearest, of which every other one is below the loss."""
    random = np.random.default_rng(1)
    for _ in range(100):
        scale, sensitivity = math.exp(random.uniform(-1.0, 3.0)), int(random.integers(1, 9))
        exact = Fraction(sensitivity) / Fraction(scale)
        for law in (pn.DiscreteLaplace(scale=scale), pn.Laplace(scale=scale)):
            mechanism = pn.Mechanism(law, sensitivity)
            assert exact <= Fraction(mechanism.pure_epsilon()) <= exact * (1 + Fraction(2) ** -52)
            assert Fraction(mechanism.epsilon(0.0).lower) <= exact
        assert pn.promises.BoundedRange(scale).pure_epsilon() == scale
        assert pn.promises.PureDP(scale).pure_epsilon() == scale
        epsilon = math.exp(random.uniform(-3.0, 2.0))
        staircase = pn.Mechanism(pn.Staircase(epsilon=epsilon), 0.3 * sensitivity)
        steps = math.ceil(Fraction(0.3 * sensitivity))
        assert 0 <= Fraction(staircase.pure_epsilon()) - steps * Fraction(epsilon) <= 2e-15


@for_each([-1022, 950, 1020], [0.3, 40.0])
def test_the_unit_of_length_does_not_matter(exponent, ratio):
    """Next to the limits of float64. Kills: lengths in the unit that they were given in."""
    unit = 2.0**exponent
    # No unit has both: losses are next to nothing.
    far = pn.Mechanism(pn.Gaussian(scale=4.0 * unit), 1e-170 if exponent > 0 else 1e170)
    assert far.epsilon(1e-5) == (0.0 if exponent > 0 else math.inf)

    def truncated(scale):
        return pn.TruncatedLaplace(epsilon=0.7, delta=1e-6, sensitivity=0.7 * scale)

    for law in (pn.Gaussian, pn.Laplace, pn.Airy, pn.Cauchy, truncated):
        if law is truncated and exponent > 1010:
            continue  # the half width is no float64
        far, near = law(scale=4.0 * unit), law(scale=4.0)
        if not math.isfinite(4.0 * ratio * unit):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = pn.Mechanism(far, 4.0 * ratio * unit).epsilon(1e-5, 3, 0.3)
            estimate = pn.Mechanism(far, 4.0 * ratio * unit).composed(3, 0.3).estimate.epsilon(1e-5)
        true = pn.Mechanism(near, 4.0 * ratio).composed(3, 0.3)
        assert found.lower == pytest.approx(true.epsilon(1e-5).lower, rel=1e-9)
        assert found.upper == pytest.approx(true.epsilon(1e-5).upper, rel=1e-9)
        assert estimate == pytest.approx(true.estimate.epsilon(1e-5), rel=1e-9)


@for_each([2, 3, 5, 10], [0.1, 1.0], [0.31, 1.7, 1216032.485711599])
def test_delta_next_to_the_largest_loss(count, rate, scale):
    """Kills: a saddle point whose estimate of delta overflows there, taken as a guess."""
    noises = pn.DiscreteLaplace(scale=scale), pn.Laplace(scale=scale)
    plans = [pn.Mechanism(noise, sensitivity=2).composed(count, rate) for noise in noises]
    plans.append(pn.Accountant().compose(pn.promises.PureDP(0.3), count))
    plans[-1].compose(pn.promises.PureDP(0.5), 1, 0.1)
    for plan in plans:
        top = plan.epsilon(0.0).upper
        epsilon = math.nextafter(top, 0.0)
        found = plan.delta(epsilon)
        assert 0.0 <= found.lower <= found.upper <= -math.expm1(epsilon - top) * (1.0 + 1e-12)
        assert plan.profile([epsilon]).upper[0] >= found.lower


def test_rates_near_one_leave_a_largest_loss():
    """Against 60 digits. Kills: ``log1p(q expm1(-r))``, which has lost the
    digits of ``1 - q``: of Laplace noise a bracket that ended 1.5e-4 below the loss."""
    generator = np.random.default_rng(7)
    named = [(12.0, 1.0 - 1e-6), (30.0, 1.0 - 1e-14), (36.0, 1.0 - 2.0**-53), (700.0, 0.5)]
    drawn = [
        (10.0 ** generator.uniform(-2.0, 2.8), 1.0 - 10.0 ** generator.uniform(-15.9, -0.01))
        for _ in range(200)
    ]
    for ratio, rate in named + drawn:
        with mpmath.workdps(60):
            r, q = mpmath.mpf(ratio), mpmath.mpf(rate)
            added = -mpmath.log((1 - q) + q * mpmath.exp(-r))
            both = added + mpmath.log((1 - q) + q * mpmath.exp(r))
            laplace = pn.Mechanism(pn.Laplace(scale=1.0), ratio)
            replaced = pn.Mechanism(pn.Laplace(scale=1.0), 2.0 * ratio, contribution=ratio)
            for mechanism, adjacency, exact in (
                (laplace, "add", added),
                (replaced, "replace", both),
            ):
                found = mechanism.epsilon(0.0, 1, rate, adjacency)
                assert found.lower <= exact <= found.upper
                assert found.upper - found.lower <= 1e-14 * exact
    # Deltas that hardly differ from 0: the bounds contradicted each other.
    found = pn.Mechanism(pn.Laplace(scale=1.0), 30.0).epsilon(1e-30, 2, 1.0 - 1e-14, "add")
    assert found.upper == pytest.approx(2.0 * 29.8985457056272642, rel=1e-9)
