"""Assertions on the answers: a fast wrong answer is worthless, so no row is without its check.

They raise AssertionError themselves, for ``python -O`` drops assert statements. The proof that an
answer is right to the last digits is in ``tests/``; these see that the timed call did its work.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.noise import Noise, NoiseLaw

__all__ = ["evaluation", "finite", "near", "released", "sample", "table"]

Float = NDArray[np.float64]

# A sound sampler fails a check of a normal mean once in 5e8 times.
_STANDARD_ERRORS = 6.0
# The laws promise 5e-14; rounding of the argument of exp in the comparison is up to ten times that.
_RELATIVE = 1e-12
# One point in so many is compared: a table that is wrong is wrong on a whole panel.
_COMPARED = 256


def sample(law: NoiseLaw, values: NDArray[Any]) -> None:
    """Signs are fair and ``|X|``, or a bounded function of it, has the right mean."""
    share = 0.5 / math.sqrt(values.size)
    positive = float(law.ccdf(0.0))  # not a half where there is an atom
    for sign in (1.0, -1.0):
        found = float(np.mean(sign * values > 0.0))
        near("share of positive samples", found, positive, _STANDARD_ERRORS * share)
    size = np.abs(values, dtype=np.float64)
    mean, square = law.mean_abs, law.std**2
    if math.isinf(law.std):
        middle = 1.5 * float(law.iccdf(0.25))
        size /= size + middle
        mean = law.expected_cost(lambda x: x / (x + middle))
        square = law.expected_cost(lambda x: (x / (x + middle)) ** 2)
    error = _STANDARD_ERRORS * math.sqrt((square - mean**2) / values.size)
    near("mean of |X|", float(np.mean(size)), mean, error)


def released(law: Noise, noise: NDArray[Any], grid: float) -> None:
    """Multiples of the grid, and samples of the law rounded to it."""
    near("distance to the grid", float(np.abs(np.remainder(noise / grid, 1.0)).max()), 0.0, 0.0)
    # Rounding gives 0 to either sign.
    zeros = np.where(np.arange(noise.size) % 2 == 0, 1e-9, -1e-9) * grid
    sample(law, np.where(noise == 0.0, zeros, noise))


def evaluation(law: Noise, operation: str, x: Float, answer: Float) -> None:
    """Agrees with the law's own formulas, a quantile through the tail that it leads back to."""
    if answer.shape != x.shape:
        raise AssertionError(f"shape must be {x.shape!r}, got {answer.shape!r}")
    chosen = np.unique(np.linspace(0, x.size - 1, _COMPARED).astype(int))
    x, answer = x[chosen], answer[chosen]
    if operation == "iccdf":
        # The condition number of the tail, x p(x) / P(X > x), is below 100 for a draw of 2^24.
        _close(operation, law.ccdf(answer), x, 100.0 * _RELATIVE)
        return
    expected = _stated(law, operation, x)
    _close(operation, answer, expected, _RELATIVE, 1.0 if operation == "logpdf" else 0.0)


def table(law: Noise, answer: core.LawTable) -> None:
    """The density that the tables give is the law's own."""
    t = np.linspace(0.0, 8.0, _COMPARED)
    density = np.empty_like(t)
    core.evaluate(answer, "logpdf", 1.0, t, density, 1)
    hi, lo = law.log_density(t)
    _close("log density", density, hi + lo, _RELATIVE, 1.0)


def finite(answer: Any) -> None:
    """A reference row did its work."""
    if not np.isfinite(answer).all():
        raise AssertionError("answer must be finite")


def near(what: str, found: float, expected: float, tolerance: float) -> None:
    """Agreement within a tolerance; NaN agrees with nothing."""
    if not abs(found - expected) <= tolerance:
        raise AssertionError(
            f"{what} must be {expected:.9g} within {tolerance:.2g}, got {found:.9g}"
        )


def _close(what: str, found: Float, expected: Float, tolerance: float, floor: float = 0.0) -> None:
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
