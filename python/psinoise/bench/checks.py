"""Assertions on the answers, from sources that do not share code with what is timed.

A fast wrong answer is worthless, so no row is reported without its check. They raise AssertionError
themselves, for ``python -O`` drops assert statements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from psinoise._backend import core
from psinoise.accounting import Mechanism
from psinoise.accounting.bracket import Bracket
from psinoise.bench.closed_forms import closed_form
from psinoise.noise import Noise, NoiseLaw

__all__ = [
    "bracket",
    "calibrated",
    "epsilon",
    "equal",
    "evaluation",
    "finite",
    "optimum",
    "positive",
    "released",
    "sample",
    "table",
    "upper_bound",
]

Float = NDArray[np.float64]

# A sound sampler fails a check of a normal mean once in 5e8 times.
_STANDARD_ERRORS = 6.0
# The laws promise 5e-14; what the comparison costs (rounding of the argument of exp, SciPy's Airy
# functions) is up to ten times as much.
_RELATIVE = 1e-12
# One point in so many is compared: a table that is wrong is wrong on a whole panel.
_COMPARED = 256

# Density per step of the integration grid below which nothing is left to add, and above which the
# likelihood ratio does not overflow.
_NEGLIGIBLE = 1e-200

# epsilon(1e-8) of 2000 uses at rate 0.01 of Airy noise of mean_abs 2 and sensitivity 1, to the
# digits given.
_ANCHOR = ("Airy(mean_abs=2.0)", 1e-8, 2000, 0.01)
_ANCHOR_EPSILON = 0.94027041
# By an interior point method with dense algebra that verified every shift to 1e-9.
_OPTIMA = {20: 1.7283085033, 200: 1.7272985311}


def sample(law: NoiseLaw, values: NDArray[Any]) -> None:
    """Signs are fair and ``|X|``, or a bounded function of it, has the right mean."""
    share = 0.5 / math.sqrt(values.size)
    positive = float(law.ccdf(0.0))  # not a half where there is an atom
    for sign in (1.0, -1.0):
        found = np.mean(sign * values > 0.0)
        _near("share of positive samples", found, positive, _STANDARD_ERRORS * share)
    size = np.abs(values, dtype=np.float64)
    if math.isinf(law.std):
        middle = 1.5 * float(law.iccdf(0.25))
        mean = law.expected_cost(lambda x: x / (x + middle))
        error = math.sqrt(law.expected_cost(lambda x: (x / (x + middle)) ** 2) - mean**2)
        found = np.mean(size / (size + middle))
        _near("mean of |X| / (|X| + m)", found, mean, 2.0 * _STANDARD_ERRORS * error * share)
    else:
        error = math.sqrt((law.std**2 - law.mean_abs**2) / values.size)
        _near("mean of |X|", np.mean(size), law.mean_abs, _STANDARD_ERRORS * error)


def released(law: Noise, noise: NDArray[Any], grid: float) -> None:
    """Multiples of the grid, and samples of the law rounded to it."""
    equal("multiples of the grid", bool((noise / grid % 1.0 == 0.0).all()), True)
    # Rounding gives 0 to either sign.
    zeros = np.where(np.arange(noise.size) % 2 == 0, 1e-9, -1e-9) * grid
    sample(law, np.where(noise == 0.0, zeros, noise))


def evaluation(law: Noise, operation: str, x: Float, answer: Float) -> None:
    """Agrees with a closed form if there is one, else with the law's own formulas."""
    equal("shape", answer.shape, x.shape)
    chosen = np.unique(np.linspace(0, x.size - 1, _COMPARED).astype(int))
    x, answer = x[chosen], answer[chosen]
    if operation == "iccdf":
        # The argument of the inverse is the value of the function; its condition number is
        # x p(x) / P(X > x), below 100 for a draw of 2^24.
        _close(operation, law.ccdf(answer), x, 100.0 * _RELATIVE)
        return
    form = closed_form(law, operation)
    expected = _stated(law, operation, x) if form is None else form.function(x)
    _close(operation, answer, expected, _RELATIVE, of_one=operation == "logpdf")


def table(law: Noise, answer: core.LawTable) -> None:
    """The density that the tables give is the law's own."""
    t = np.linspace(0.0, 8.0, _COMPARED)
    density = np.empty_like(t)
    core.evaluate(answer, "logpdf", 1.0, t, density, 1)
    hi, lo = law.log_density(t)
    _close("log density", density, hi + lo, _RELATIVE, of_one=True)


def epsilon(law: Noise, answer: float, delta: float, count: int, sampling_rate: float) -> None:
    """Near the Cornish-Fisher expansion, its delta leads back, and the anchor is met."""
    if (repr(law), delta, count, sampling_rate) == _ANCHOR:
        _near("epsilon", answer, _ANCHOR_EPSILON, 5e-9)
    # The first term left out of the expansion is of relative size 1 / count; its factor is 5 for
    # Gaussian noise, the largest seen.
    expected = _expanded_epsilon(law, delta, count, sampling_rate)
    _near("epsilon", answer, expected, answer * (1e-6 + 15.0 / count))
    back = (
        Mechanism(law, sensitivity=1.0)
        .composed(count=count, sampling_rate=sampling_rate)
        .estimate.delta(answer)
    )
    _near("delta of epsilon", back, delta, 1e-6 * delta)


def bracket(law: Noise, answer: Bracket, delta: float, count: int, sampling_rate: float) -> None:
    """As narrow as by default, around a contour integral that passes its own check."""
    exact = Mechanism(law).composed(count, sampling_rate).estimate.epsilon(delta)
    if not answer.lower <= exact <= answer.upper:
        raise AssertionError(f"the estimate {exact!r} must lie between the bounds, got {answer!r}")
    widest = 1e-4 * answer.upper
    if not answer.upper - answer.lower <= widest:
        raise AssertionError(f"bounds must be at most {widest:.3g} apart, got {answer!r}")
    epsilon(law, exact, delta, count, sampling_rate)


def calibrated(law: Noise, target: float, delta: float, count: int, sampling_rate: float) -> None:
    """The law meets the target, and a scale smaller by 2e-4 would not."""
    certified = float(Mechanism(law).epsilon(delta, count, sampling_rate))
    if not certified <= target:
        raise AssertionError(f"epsilon must be at most {target!r}, got {certified!r}")
    # Epsilon falls about as fast as the scale grows.
    _near("epsilon of the calibrated law", certified, target, 2e-4 * target)
    expected = _expanded_epsilon(law, delta, count, sampling_rate)
    _near("epsilon of the calibrated law", certified, expected, target * (2e-4 + 15.0 / count))


def upper_bound(answer: float, exact: float, error: float) -> None:
    """Not below the exact value, nor further above it than it was set to."""
    if not exact <= answer <= exact + error:
        raise AssertionError(
            f"the upper bound must be in [{exact!r}, {exact + error!r}], got {answer!r}"
        )


def finite(answer: Any) -> None:
    """A reference row did its work."""
    if not np.isfinite(answer).all():
        raise AssertionError("answer must be finite")


def optimum(width: int, found: float, tolerance: float) -> None:
    """The divergence of the cactus law of figure 1 of its paper, by cells to a sensitivity."""
    _near("largest divergence", found, _OPTIMA[width], tolerance)


def positive(answer: float) -> None:
    """A duration."""
    if not answer > 0:
        raise AssertionError(f"answer must be positive, got {answer!r}")


def equal(what: str, found: object, expected: object) -> None:
    """Exact agreement."""
    if found != expected:
        raise AssertionError(f"{what} must be {expected!r}, got {found!r}")


def _near(what: str, found: Any, expected: float, tolerance: float) -> None:
    if not abs(found - expected) <= tolerance:
        raise AssertionError(
            f"{what} must be {expected:.9g} within {tolerance:.2g}, got {found:.9g}"
        )


def _close(
    what: str, found: Float, expected: Float, tolerance: float, of_one: bool = False
) -> None:
    floor = 1.0 if of_one else 0.0
    wrong = ~(np.abs(found - expected) <= tolerance * np.maximum(np.abs(expected), floor))
    if wrong.any():
        raise AssertionError(
            f"{what} must be {expected[wrong][0]!r} within {tolerance:.2g}, got {found[wrong][0]!r}"
        )


def _stated(law: Noise, operation: str, x: Float) -> Float:
    t = np.abs(x) / law.scale
    hi, lo = law.log_density(t)
    log_density = np.asarray(hi + lo, dtype=np.float64)
    if operation == "logpdf":
        return log_density - math.log(law.scale)
    if operation == "pdf":
        return np.asarray(np.exp(log_density) / law.scale)
    tail = np.exp(log_density + law.log_mills(t))
    return np.where(x > 0.0, tail, 1.0 - tail)


def _expanded_epsilon(law: Noise, delta: float, count: int, sampling_rate: float) -> float:
    # Cumulants of the privacy loss of one use, both directions, by the trapezoidal rule with
    # x = scale sinh(t): kinks cost the square of the step, 1e-8.
    t, step = np.linspace(-20.0, 20.0, 1 << 18, retstep=True)
    x = law.scale * np.sinh(t)
    mass = law.pdf(x) * law.scale * np.cosh(t) * step
    kept = mass > _NEGLIGIBLE
    x, mass = x[kept], mass[kept]
    excess = sampling_rate * np.expm1(law.logpdf(x - 1.0) - law.logpdf(x))
    loss = np.log1p(excess)
    results = []
    for sign, weights in ((1.0, 1.0 + excess), (-1.0, np.ones_like(loss))):
        # The excess has mean 0, and the rule does not know: without it terms of second order
        # remain, where the error of the first would be divided by the sampling rate.
        mean = float(np.sum(mass * sign * (weights * loss - excess)))
        variance = float(np.sum(mass * weights * loss**2)) - mean**2
        third = float(np.sum(mass * weights * (sign * loss - mean) ** 3))
        epsilon = _epsilon_of_normal(count * mean, math.sqrt(count * variance), delta)
        z_squared = (epsilon - count * mean) ** 2 / (count * variance)
        results.append(epsilon + third / (6.0 * variance) * (z_squared - 1.0))
    return max(results)


def _epsilon_of_normal(mean: float, deviation: float, delta: float) -> float:
    def excess(z: float) -> float:
        # delta(epsilon) of a normal loss at epsilon = mean + z deviation, which need not satisfy
        # mean = deviation^2 / 2: E (1 - exp(epsilon - L))+ in scaled normal tails.
        scaled = special.erfcx(np.array([z, z + deviation]) / math.sqrt(2.0))
        return math.log(0.5 * (scaled[0] - scaled[1])) - 0.5 * z * z - math.log(delta)

    return mean + deviation * float(optimize.brentq(excess, 0.0, 38.0))
