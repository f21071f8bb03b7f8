"""Expectations of every noise law: moments, costs, Fisher information, divergence.

Part of the contract of test_laws.py, against quadrature, closed forms and mpmath.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.integrate import trapezoid

import psinoise as pn
from law_truth import MOMENTS, TAIL_INDEX, TRUTH, half_line, integral, is_heavy, near
from psinoise.noise import Noise


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


@pytest.fixture
def truth(law_class):
    assert law_class.__name__ in TRUTH, "a new law needs an independent truth here"
    return TRUTH[law_class.__name__]


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 2.5, 3, 4, 10])
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_moments_against_quadrature(law_class, order, scale):
    law = law_class(scale=scale)
    if order >= TAIL_INDEX.get(law.name, np.inf):
        assert law.moment(order) == np.inf
        return
    # Fractional powers are not smooth at 0: more panels there, down to 2**-60 of the scale.
    edges = np.concatenate([[0.0], scale * 2.0 ** np.arange(-60.0, -10.0), half_line(law)[1:]])
    expected = 2.0 * integral(lambda x: law.pdf(x) * x**order, edges).sum()
    assert law.moment(order) == near(expected, 1e-13 if float(order).is_integer() else 1e-9)


def test_moments_against_closed_forms(law_class):
    for order, expected in MOMENTS.get(law_class.__name__, {}).items():
        for scale in (1.0, 7.3e-5):
            value = law_class(scale=scale).moment(order)
            assert value == near(expected * scale**order, 1e-13), order


@pytest.mark.deep
def test_fractional_moments_keep_the_documented_accuracy(law, truth):
    """The documented 1e-13, also for orders that are not whole."""
    log_density, _ = truth
    for order in (0.5, 1.5, 0.01):
        tail = TAIL_INDEX.get(law.name, np.inf)
        if order >= tail:
            continue
        with mpmath.workdps(20):
            if is_heavy(law):
                # In u = log t, by the trapezoidal rule: the density is analytic in a sector.
                nodes = [mpf(k) / 5 for k in range(-240, int(210 / (tail - order)))]
                powers = [mpmath.exp((order + 1) * u + log_density(mpmath.exp(u))) for u in nodes]
                expected = 2 * mpmath.fsum(powers) / 5
            else:
                expected = 2 * mpmath.quad(
                    lambda t, order=order: t**order * mpmath.exp(log_density(t)),
                    [0, 1, 4, 10, 30, 100],
                )
        assert law.moment(order) == near(float(expected), 1e-13), order


@pytest.mark.parametrize("scale", [1.0, 0.3, 1e-100, 1e100])
def test_std_and_mean_abs_are_moments(law_class, scale):
    law = law_class(scale=scale)
    assert law.scale == scale
    if np.isfinite(law.std):
        assert law.std == near(law.moment(2) ** 0.5, 1e-13)
    if np.isfinite(law.mean_abs):
        assert law.mean_abs == near(law.moment(1), 1e-13)
    assert law.moment(0) == near(1.0, 1e-14)


def test_expected_cost(law_class):
    law = law_class(scale=0.3)
    if law.mean_abs < np.inf and law.std == np.inf:
        with pytest.raises(ValueError, match="cost must grow more slowly"):
            law.expected_cost(lambda x: x ** (0.999 * TAIL_INDEX[law.name]))
    assert law.expected_cost(lambda x: x**0.3) == near(law.moment(0.3), 1e-13)
    if not is_heavy(law):
        assert law.expected_cost(np.abs) == near(law.mean_abs, 1e-13)
    assert law.expected_cost(lambda x: x**2) == near(law.std**2, 1e-13)
    # A wave is not resolved far out in a heavy tail.
    cost = np.arctan if is_heavy(law) else np.cos
    bounded = 2.0 * integral(lambda x: law.pdf(x) * cost(x), half_line(law)).sum()
    assert law.expected_cost(cost) == near(bounded, 1e-13)
    with pytest.raises(TypeError, match="cost must be callable, got 3"):
        law.expected_cost(3)
    with pytest.raises(ValueError, match="cost must not be NaN, got NaN at x = "):
        law.expected_cost(lambda x: np.where(x > 1.0, np.nan, x))
    with pytest.raises(TypeError, match="must have the shape of x"):
        law.expected_cost(lambda x: x[:-1])
    with pytest.raises(TypeError, match="must be real numbers"):
        law.expected_cost(lambda x: x + 1j)
    with pytest.raises(ZeroDivisionError):
        law.expected_cost(lambda x: 1 // 0)


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (-1, ValueError),
        (np.nan, ValueError),
        (np.inf, ValueError),
        ("2", TypeError),
        (2j, TypeError),
    ],
)
def test_bad_orders(law, order, error):
    with pytest.raises(error, match="order must"):
        law.moment(order)


@pytest.mark.parametrize("scale", [1.0, 0.3, 1e-100])
def test_fisher_information_against_quadrature(law_class, scale):
    law = law_class(scale=scale)
    generic = Noise._standard_fisher_information(law) / scale**2
    assert law.fisher_information() == near(generic, 1e-13)
    unit = law_class(scale=1.0)
    own = 2.0 * integral(lambda x: unit.pdf(x) * unit.score(x) ** 2, half_line(unit)).sum()
    assert law.fisher_information() == near(own / scale**2, 1e-13)


@pytest.mark.deep
@pytest.mark.parametrize("shift", [1e-3, 0.0999, 0.4999, 1.0, 20.0])
def test_kl_against_mpmath(law, truth, shift):
    log_density, _ = truth
    shift = float(shift)

    def integrand(x):
        here, there = log_density(abs(x)), log_density(abs(x - shift))
        return mpmath.exp(here) * (here - there)

    def both_halves(u):
        x = shift / 2 + mpmath.sinh(u)
        here, there = log_density(abs(x)), log_density(abs(x - shift))
        return (mpmath.exp(there) - mpmath.exp(here)) * (there - here) * mpmath.cosh(u)

    edges = [-60, -30, *range(-16, 0, 2), 0, shift / 2, shift]
    edges += [shift + step for step in (*range(2, 18, 2), 30, 60)]
    with mpmath.workdps(25):
        if is_heavy(law):
            # Symmetric about s / 2 and decreasing as a power: the trapezoidal rule in asinh.
            step = mpf(1) / 10 if shift < 2 else mpf(1) / (10 + int(shift))
            nodes = [both_halves(k * step) for k in range(1, int(13 / step))]
            expected = step * (both_halves(mpf(0)) / 2 + mpmath.fsum(nodes))
        else:
            expected = mpmath.quad(integrand, edges, method="gauss-legendre", maxdegree=5)
    assert law.kl(shift) == near(float(expected), 1e-11)
    assert law.kl(-shift) == law.kl(shift)


LARGE = [3.0, 60.0, 70.0, 1e3, 1e6, 1e8, 1e12, 1e16, 1e18, 1e100, 1e150]


def test_shifts_of_any_size():
    """Kills: nodes that are no closer to the moved center than its last digit; variances of losses
    that are all alike but for theirs."""
    normal = pn.Schrodinger(cost=pn.costs.Power(2.0), scale=1.0)
    laplace = pn.Laplace(scale=1.0)
    for shift in LARGE:
        for name in ("kl", "kl_variance"):
            closed = getattr(pn.Gaussian(std=normal.std), name)(shift)
            assert getattr(normal, name)(shift) == near(closed, 1e-11)
        assert laplace.kl(shift) == near(shift - 1.0 + np.exp(-shift), 1e-11)
        if shift > 50.0:
            assert laplace.kl_variance(shift) == near(3.0, 1e-11)
    for alpha in (0.5, 1.0):
        stable = pn.SymmetricStable(alpha=alpha, scale=1.0)
        for low, high in ((1e30, 1e60), (1e60, 1e200)):
            rise = (1.0 + alpha) * (np.log(high) - np.log(low))
            assert stable.kl(high) - stable.kl(low) == near(rise, 1e-9)
            assert stable.kl_variance(high) == near(stable.kl_variance(low), 1e-5)
    for law in (pn.Airy(scale=1.0), pn.Schrodinger(cost=pn.costs.Power(1.5), scale=1.0)):
        for shift in LARGE[4:]:
            assert law.kl(shift) == near(float(-law.logpdf(shift)), 1e-6)
    assert pn.Airy(scale=1e-300).kl(1.0) == np.inf


@pytest.mark.parametrize("name", ["kl", "kl_variance"])
def test_shifts_beyond_float64_have_no_wrong_answer(name):
    """In units of the scale. Kills: NaN of heavy tails, infinity of the Cauchy law."""
    for alpha in (0.5, 1.0, 1.5):
        with pytest.raises(pn.DomainError, match="shift must be at most"):
            getattr(pn.SymmetricStable(alpha=alpha, scale=1e-307), name)(1e10)
    assert getattr(pn.Gaussian(scale=1e-307), name)(1e10) == np.inf
    if name == "kl":
        assert pn.Laplace(scale=1e-307).kl(1e10) == np.inf
    else:
        with pytest.raises(pn.DomainError, match="shift must be at most"):
            pn.Laplace(scale=1e-307).kl_variance(1e10)


def test_small_shifts_give_half_the_fisher_information(law):
    """KL = I s^2 / 2 (1 + O(s)): the order s term is there for laws with a kink at 0."""
    fisher = law.fisher_information()
    for shift in (1e-3, 1e-6, 1e-9, 1e-12, 1e-50, 1e-150):
        assert law.kl(shift) == near(0.5 * fisher * shift**2, max(1e-11, shift))
    assert law.kl(0.0) == 0.0


@pytest.mark.deep
def test_kl_scales_and_refuses(law_class):
    law, unit = law_class(scale=0.3), law_class(scale=1.0)
    assert law.kl(0.6) == near(unit.kl(2.0), 1e-14)
    # Increasing through the two places where the formula changes.
    shifts = np.linspace(0.0, 1.2, 61 if law.costly else 400)
    assert (np.diff([unit.kl(shift) for shift in shifts]) > 0.0).all()
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="shift must"):
            unit.kl(bad)
    with pytest.raises(TypeError, match="shift must be a real number"):
        unit.kl("1")


def test_expectations_raise_no_warning(law):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert law.expected_cost(np.abs) == near(law.mean_abs, 1e-13)
        assert law.moment(1.5) > 0.0
        assert law.kl(0.01) > 0.0


def test_moments_whose_factors_leave_float64():
    """Kills: the power of the scale, or the moment at scale 1, by itself."""
    with mpmath.workdps(40):
        for scale, order in (
            (0.01, 160),
            (0.01, 165),
            (0.01, 250),
            (1.0, 170),
            (0.1, 400),
            (1e-200, 1.5),
        ):
            own = mpf(scale) ** order
            laplace = mpmath.gamma(order + 1) * own
            half = mpf(order) / 2
            normal = 2**half * mpmath.gamma(half + 0.5) / mpmath.sqrt(mpmath.pi) * own
            for law, exact in (
                (pn.Laplace(scale=scale), laplace),
                (pn.Gaussian(std=scale), normal),
            ):
                assert law.moment(order) == near(float(exact), 4e-13)
        for epsilon, order in ((1.0, 150), (1.0, 200), (1.0, 250), (5.0, 100), (0.3, 60)):
            law = pn.Staircase(epsilon=epsilon, sensitivity=0.01)
            inner, fall = mpf(law.gamma), mpmath.exp(-mpf(epsilon))
            density = (1 - fall) / (inner + fall * (1 - inner)) / (order + 1)
            ends = [mpf(k) ** (order + 1) for k in range(int(3 * order / epsilon) + 400)]
            between = [(k + inner) ** (order + 1) for k in range(len(ends) - 1)]
            terms = (
                fall**k * (middle - ends[k] + fall * (ends[k + 1] - middle))
                for k, middle in enumerate(between)
            )
            exact = density * mpmath.fsum(terms) * mpf("0.01") ** order
            assert law.moment(order) == near(float(exact), 4e-13)
        for epsilon, delta, order in ((30.0, 0.49, 300), (5.0, 0.3, 450), (1.0, 0.49, 1e4)):
            law = pn.TruncatedLaplace(epsilon=epsilon, delta=delta)
            reach = mpf(law.half_width) * epsilon
            inside = mpmath.gammainc(order + 1, 0, reach) / (1 - mpmath.exp(-reach))
            exact = inside / mpf(epsilon) ** order
            assert law.moment(order) == near(float(exact), 1e-11)
        for order in (0.25, 0.5, 1.5):
            law = pn.Staircase(epsilon=20.0)
            inner, fall = mpf(law.gamma), mpmath.exp(-mpf(20))
            power = mpf(order) + 1
            first = inner**power + fall * (1 - inner**power)
            second = (1 + inner) ** power - 1 + fall * (2**power - (1 + inner) ** power)
            density = (1 - fall) / (inner + fall * (1 - inner)) / power
            assert law.moment(order) == near(float(density * (first + fall * second)), 1e-12)
    assert pn.Cauchy(scale=1e-300).moment(2.0) == np.inf
    assert pn.Laplace(scale=1.0).moment(171.0) == np.inf


def staircase_excess(law, place):
    """``E(|X| - place)^+``, the integral of a tail that is linear between its edges."""
    whole = np.arange(np.floor(place), np.floor(place) + 900.0 / min(law.epsilon, 1.0))
    edges = np.union1d(np.union1d(whole, whole + law.gamma), [place])
    edges = edges[edges >= place]
    return 2.0 * trapezoid(law.ccdf(edges), edges)


def test_costs_have_their_kinks():
    """Kills: panels across a kink, in the first cells or a copy; copies that end before one."""
    hinge = pn.costs.Hinge
    for std in (0.03, 0.1, 0.2, 1.0, 30.0):
        with mpmath.workdps(40):
            z = 1 / mpf(std)
            exact = 2 * (mpf(std) * mpmath.npdf(z) - mpmath.erfc(z / mpmath.sqrt(2)) / 2)
        assert pn.Gaussian(std=std).expected_cost(hinge(1.0)) == near(float(exact), 1e-12)
    for scale, place in ((0.1, 7.0), (0.01, 1.0), (1.0, 5.0), (30.0, 1.0)):
        exact = scale * np.exp(-place / scale)
        assert pn.Laplace(scale=scale).expected_cost(hinge(place)) == near(exact, 1e-12)
    for epsilon, place in ((5.0, 40.0), (5.0, 2.5), (1.0, 3.3), (1.0, 40.2), (0.1, 300.7)):
        law = pn.Staircase(epsilon=epsilon)
        exact = staircase_excess(law, place)
        assert law.expected_cost(hinge(place)) == near(exact, 1e-12)
    truncated = pn.TruncatedLaplace(epsilon=1.0, delta=1e-5)
    x = np.linspace(3.0, truncated.half_width, 100_001)
    exact = 2.0 * trapezoid(truncated.pdf(x) * (x - 3.0), x)
    assert truncated.expected_cost(hinge(3.0)) == near(exact, 1e-8)
    # Masses that underflow, from 708 on, are left out.
    for place, close in ((600.0, 1e-10), (650.0, 1e-10), (690.0, 1e-6)):
        exact = np.exp(-place)
        assert pn.Laplace(scale=1.0).expected_cost(hinge(place)) == near(exact, close)
    assert 0.0 < pn.Gaussian(std=1.0).expected_cost(hinge(37.0)) < 1e-299
    largest = pn.costs.maximum(pn.costs.Power(1), pn.costs.Power(2))
    scale = 0.1
    exact = scale * (1.0 + np.exp(-1.0 / scale) * (1.0 + 2.0 * scale))  # and (x^2 - x)^+
    assert pn.Laplace(scale=scale).expected_cost(largest) == near(exact, 1e-12)


def test_sizes_next_to_the_limits_of_float64(law_class):
    """What is in units of the query has its value where the square of it has none."""
    unit = law_class(scale=1.0)
    for scale in (1e-300, 1e-160, 1e160, 1e300):
        law = law_class(scale=scale)
        for name in ("std", "mean_abs"):
            assert getattr(law, name) == pytest.approx(
                scale * getattr(unit, name), rel=1e-14, abs=0.0
            )
        square = np.inf if scale > 1.0 or unit.std == np.inf else 0.0
        assert law.var == law.moment(2.0) == pytest.approx(square, abs=1e-300)
