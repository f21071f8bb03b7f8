"""Exact values for questions of ``acceptance.py`` that have a closed form, in 50 digits.

No code is shared with the library: the laws are given by their parameters, and float64 parameters
are taken for the numbers that they are.

*Sampling of one use.* With ``h`` the profile of a symmetric pair, "remove" has ``q h(1 + (g-1)/q)``
at ``g = e^epsilon >= 1`` and "add" has ``a h(g q / a)``, ``a = q - (g - 1)(1 - q)``. Since
``g q^2 - (q + g - 1) a = (g - 1)^2 (1 - q)``, the second argument is the larger; ``h`` falls and
``a <= q``, so that "remove" is the worst direction of one use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from acceptance_questions import IMPORTED, Question, Step
from mpmath import mp, mpf

mp.dps = 50
#: Of the values below, relative.
PRECISION = mpf(10) ** -35
_MOST_TERMS = 10**4
_INFINITE = mpf("inf")
_UNBOUNDED = ("Gaussian", "Airy", "Power", "Log", "Maximum")
_BOUNDED = ("UniformAtom", "TruncatedLaplace")


def truth(question: Question) -> Any:
    """The value that was asked for, or None where it is not known."""
    steps = question.steps
    plain = all(not step.lattice and step.law not in IMPORTED for step in steps)
    if not plain:
        return None
    shift = gaussian_shift(steps)
    if question.epsilon is not None:
        return known_delta(question, shift)
    delta = mpf(question.delta)
    if infinite(steps, delta):
        return _INFINITE
    if delta == 0:
        losses = [pure_loss(step, question.adjacency) for step in steps]
        return None if None in losses else mp.fsum(losses)
    if shift is not None:
        return gaussian_epsilon(shift, delta)
    return single(steps[0], delta, question.adjacency) if len(steps) == 1 else None


def known_delta(question: Question, shift: Any) -> Any:
    """Delta of Gaussian noise without sampling; total variation of some laws."""
    if shift is not None:
        return gaussian_delta(shift, mpf(question.epsilon))
    (step, *more) = question.steps
    if more or question.epsilon or step.count != 1 or step.rate != 1.0 or step.sensitivity != 1.0:
        return None
    if step.law == "UniformAtom":
        return mpf(step.size)
    # P(|Z| < 1/2), and P(Z = 0) for whole numbers.
    return mp.tanh(1 / (2 * mpf(step.size))) if step.law == "DiscreteLaplace" else None


def infinite(steps: tuple[Step, ...], delta: Any) -> bool:
    """Whether no epsilon is enough."""
    if delta == 0 and any(step.law in _UNBOUNDED for step in steps):
        return True
    finite = mpf(0)
    for step in steps:
        if step.law in _BOUNDED and step.sensitivity == 1.0 and step.dimension == 1:
            finite += step.count * mp.log1p(-mpf(step.rate) * mpf(step.size))
    return bool(delta < -mp.expm1(finite))


def pure_loss(step: Step, adjacency: str) -> Any:
    """The largest loss of all uses, where it is known in closed form."""
    size, moved, rate = mpf(step.size), mpf(step.sensitivity), mpf(step.rate)
    replaced = adjacency == "replace" and step.rate < 1.0
    if replaced:
        moved = mpf(step.contribution)
    if step.law == "Laplace" or (step.law == "DiscreteLaplace" and step.sensitivity % 1 == 0):
        loss = moved / size
    elif step.law == "Cauchy":
        loss = 2 * mp.asinh(moved / (2 * size))
    elif step.law == "Staircase" and step.sensitivity == 1.0:
        loss = size
    else:
        return None
    uses = step.count * (1 if step.norm == "l1" else step.dimension)
    gained = mp.log1p(rate * mp.expm1(loss))
    return uses * (gained - mp.log1p(rate * mp.expm1(-loss)) if replaced else gained)


def single(step: Step, delta: Any, adjacency: str) -> Any:
    """Epsilon of one law: one use of Gaussian or Laplace noise, any uses of two-valued losses."""
    if step.dimension > 1 or (adjacency == "replace" and step.rate < 1.0):
        return None
    if step.sensitivity == 1.0 and step.count <= _MOST_TERMS:
        if step.law == "DiscreteLaplace":
            up = 1 / (1 + mp.exp(-1 / mpf(step.size)))
            return two_valued(up, 1 - up, step, delta)
        if step.law == "UniformAtom" and step.size < 0.5:
            # Under "remove" the finite losses are not positive.
            gone = mpf(step.size)
            pairs = ((gone, (1 - mpf(step.rate)) * gone), (1 - gone, 1 - gone))
            return binomial(pairs, step.count, delta) if step.rate < 1.0 else mpf(0)
    if step.count != 1 or step.law not in ("Gaussian", "Laplace"):
        return None
    rate = mpf(step.rate)
    if delta >= rate:
        return mpf(0)
    if step.law == "Gaussian":
        alone = gaussian_epsilon(mpf(step.sensitivity) / mpf(step.size), delta / rate)
    else:
        loss = mpf(step.sensitivity) / mpf(step.size)
        alone = max(mpf(0), loss + 2 * mp.log1p(-delta / rate))
    return mp.log1p(rate * mp.expm1(alone))


def two_valued(up: Any, down: Any, step: Step, delta: Any) -> Any:
    """The loss is ``+-log(up / down)``: both directions of any number of sampled uses."""
    mixed = down + mpf(step.rate) * (up - down)
    remove = ((mixed, down), (1 - mixed, 1 - down))
    add = ((1 - down, 1 - mixed), (down, mixed))
    return max(binomial(pairs, step.count, delta) for pairs in (remove, add))


def binomial(pairs: tuple[tuple[Any, Any], tuple[Any, Any]], count: int, delta: Any) -> Any:
    """Epsilon of ``count`` losses ``log(P/Q)`` with two values, the larger first.

    ``delta(e) = sum over losses above e of P - e^e Q`` is solved between the right two losses.
    """
    (p, q), (other_p, other_q) = pairs
    high, low = mp.log(p / q), mp.log(other_p / other_q)
    mass_p, mass_q = p**count, q**count
    above_p, above_q = mass_p, mass_q
    for k in range(count - 1, -1, -1):
        below = (k * high) + (count - k) * low
        if above_p - mp.exp(below) * above_q >= delta:
            break
        choices = mpf(k + 1) / (count - k)
        mass_p *= choices * other_p / p
        mass_q *= choices * other_q / q
        above_p += mass_p
        above_q += mass_q
    return max(mpf(0), mp.log((above_p - delta) / above_q)) if above_p > delta else mpf(0)


def gaussian_shift(steps: tuple[Step, ...]) -> Any:
    """``sqrt(sum n s^2 / sigma^2)``, if all noise is Gaussian and nothing is sampled."""
    if any(step.law != "Gaussian" or step.rate != 1.0 for step in steps):
        return None
    squares = mpf(0)
    for step in steps:
        coordinates = step.dimension if step.norm == "linf" else 1
        squares += step.count * coordinates * (mpf(step.sensitivity) / mpf(step.size)) ** 2
    return mp.sqrt(squares)


def gaussian_delta(shift: Any, epsilon: Any) -> Any:
    """``Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)``."""
    at = epsilon / shift
    return mp.ncdf(shift / 2 - at) - mp.exp(epsilon) * mp.ncdf(-shift / 2 - at)


def gaussian_epsilon(shift: Any, delta: Any) -> Any:
    """Where `gaussian_delta` is delta, by bisection."""
    if gaussian_delta(shift, mpf(0)) <= delta:
        return mpf(0)
    high = shift * shift / 2 + shift * mp.sqrt(-2 * mp.log(delta))
    return bisected(lambda epsilon: gaussian_delta(shift, epsilon) - delta, mpf(0), high)


def bisected(falling: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """The zero of a function that falls."""
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


def miss(lower: float, upper: float, exact: Any) -> float:
    """By how much, relative, a bracket does not hold the exact value; 0 where it does."""
    slack = exact * PRECISION if mp.isfinite(exact) else mpf(0)
    if mpf(lower) <= exact + slack and mpf(upper) >= exact - slack:
        return 0.0
    if math.isinf(exact) or math.isinf(lower):
        return math.inf
    return float(max(mpf(lower) - exact, exact - mpf(upper)) / abs(exact)) if exact else math.inf
