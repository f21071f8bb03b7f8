"""What the answers to questions of ``acceptance.py`` must be, where that is known otherwise.

* in 50 digits: Gaussian noise without sampling in any mixture, one use of Gaussian, Laplace, Cauchy
  and Airy noise, any uses of discrete Laplace and uniform noise, largest losses;
* to about nine digits: largest losses of stable noise, by contour integrals;
* to a few digits, if ``dp_accounting`` is installed: mixtures of Gaussian and Laplace noise with
  sampling, by its bounds from above on three lattices, which are off by about a square of the step.

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

import numpy as np
from acceptance_questions import IMPORTED, Question, Step
from mpmath import mp, mpf

mp.dps = 50
# Of bisections, relative.
_PRECISION = mpf(10) ** -35
_STABLE_PRECISION = 1e-9
_MOST_TERMS = 10**4
_INFINITE = mpf("inf")
# The law has a support that is rounded up, so that a little less than its delta is moved out of it.
_SUPPORT = mpf(10) ** -9
_UNBOUNDED = ("Gaussian", "Airy", "Power", "Log", "Maximum")
_STABLE = {"Stable": 1.5, "Stable(.12)": 0.12, "Stable(.7)": 0.7, "Stable(1.8)": 1.8}
_BOUNDED = ("UniformAtom", "TruncatedLaplace")


Range = tuple[Any, Any]


def truth(question: Question) -> Range | None:
    """Between which numbers the value lies that was asked for, or None where it is not known."""
    steps = question.steps
    outside, laws = mass_outside(steps), {step.law for step in steps}
    edge = "TruncatedLaplace" in laws and abs(question.delta - outside) < _SUPPORT * outside
    if edge or any(step.lattice or step.law in IMPORTED for step in steps):
        return None
    shift = gaussian_shift(steps)
    if question.epsilon is not None:
        return exactly(known_delta(question, shift))
    delta = mpf(question.delta)
    if delta < outside or (delta == 0 and laws.intersection(_UNBOUNDED)):
        return _INFINITE, _INFINITE
    if delta == 0:
        losses = [pure_loss(step, question.adjacency) for step in steps]
        error = _STABLE_PRECISION if any(step.law in _STABLE for step in steps) else _PRECISION
        return None if None in losses else exactly(mp.fsum(losses), error)
    if shift is None:
        return exactly(single(steps[0], delta, question.adjacency)) if len(steps) == 1 else None
    return exactly(gaussian_epsilon(shift, delta))


def exactly(value: Any, error: Any = _PRECISION) -> Range | None:
    """A range of a relative error."""
    return None if value is None else (value * (1 - error), value * (1 + error))


def miss(lower: float, upper: float, known: Range) -> float:
    """By how much, relative, a bracket has nothing in common with a range; 0 where it has."""
    low, high = known
    if mpf(lower) <= high and mpf(upper) >= low:
        return 0.0
    if mp.isinf(low) or mp.isinf(lower):
        return math.inf
    return float(max(mpf(lower) - high, low - mpf(upper)) / low) if low else math.inf


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


def mass_outside(steps: tuple[Step, ...]) -> Any:
    """The probability of infinite losses."""
    finite = mpf(0)
    for step in steps:
        if step.law in _BOUNDED and step.sensitivity == 1.0 and step.dimension == 1:
            finite += step.count * mp.log1p(-mpf(step.rate) * mpf(step.size))
    return -mp.expm1(finite)


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
    elif step.law in _STABLE:
        loss = mpf(stable_loss(_STABLE[step.law], step.sensitivity / step.size))
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
    rate = mpf(step.rate)
    if step.count != 1 or step.law not in _ALONE:
        return None
    if delta >= rate:
        return mpf(0)
    alone = _ALONE[step.law](mpf(step.sensitivity), mpf(step.size), delta / rate)
    return mp.log1p(rate * mp.expm1(alone))


def one_laplace(moved: Any, size: Any, delta: Any) -> Any:
    """Epsilon of one use of Laplace noise."""
    return max(mpf(0), moved / size + 2 * mp.log1p(-delta))


def one_cauchy(moved: Any, size: Any, delta: Any) -> Any:
    """Epsilon of one use of Cauchy noise, whose largest losses are those of an interval."""

    def excess(epsilon: Any) -> Any:
        ratio = mp.exp(epsilon)
        # (x^2 + size^2) > ratio ((x - moved)^2 + size^2), centered at the middle of the interval.
        center = ratio * moved / (ratio - 1)
        half = mp.sqrt(max(mpf(0), center * center - ratio / (ratio - 1) * moved**2 - size**2))
        ends = center - half, center + half
        shifted, base = (
            (mp.atan((ends[1] - at) / size) - mp.atan((ends[0] - at) / size)) / mp.pi
            for at in (moved, 0)
        )
        return shifted - ratio * base - delta

    if 2 * mp.atan(moved / (2 * size)) / mp.pi <= delta:
        return mpf(0)
    return bisected(excess, mpf(10) ** -60, 2 * mp.asinh(moved / (2 * size)))


def one_airy(moved: Any, size: Any, delta: Any) -> Any:
    """Epsilon of one use of Airy noise of mean ``|x|`` ``size``, by the place where its loss is."""
    zero = mp.airyaizero(1, derivative=1)
    growth = -2 * zero / (3 * size)

    def tail(x: Any) -> Any:
        z = zero + growth * abs(x)
        beyond = mp.airyai(z, derivative=1) ** 2 - z * mp.airyai(z) ** 2
        half = beyond / (growth * 3 * size * mp.airyai(zero) ** 2)
        return half if x >= 0 else 1 - half

    def loss(x: Any) -> Any:
        near, far = (mp.airyai(zero + growth * abs(x - at)) for at in (moved, 0))
        return 2 * mp.log(near / far)

    def excess(x: Any) -> Any:
        return tail(x - moved) - mp.exp(loss(x)) * tail(x) - delta

    low, high = moved / 2, moved
    if excess(low) <= 0:
        return mpf(0)
    while excess(high) > 0:
        high *= 2
    return loss(bisected(excess, low, high))


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
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


_ALONE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Gaussian": lambda moved, size, delta: gaussian_epsilon(moved / size, delta),
    "Laplace": one_laplace,
    "Cauchy": one_cauchy,
    "Airy": one_airy,
}

# -- stable noise, in double precision -------------------------------------------------------------


def stable_density(alpha: float, x: Any) -> tuple[Any, Any]:
    """Density and its slope at ``x >= 0``, by a contour on which the integrand does not wave.

    ``pi p(x) = Re integral of exp(i x u - u^alpha)`` along ``u = t e^(i phi)``, with ``t = e^y``.
    """
    turn = min(math.pi / 3.0, 0.36 * math.pi / alpha)
    y = np.arange(-45.0, 4.0 / alpha + 8.0, 0.01)
    u = np.exp(y + 1j * turn)
    values = np.exp(1j * np.multiply.outer(x, u) - u**alpha) * u * 0.01 / math.pi
    return values.sum(axis=-1).real, (1j * u * values).sum(axis=-1).real


def stable_loss(alpha: float, moved: float) -> float:
    """The largest ``log p(x - moved) / p(x)``."""
    nodes, weights = np.polynomial.legendre.leggauss(8)

    def ratio(x: Any) -> Any:
        if moved > 0.01 or alpha < 0.5:
            return np.log(stable_density(alpha, np.abs(x - moved))[0] / stable_density(alpha, x)[0])
        # The integral of the score: a difference of logarithms has no digits left.
        at = np.subtract.outer(x, 0.5 * moved * (1.0 + nodes))
        density, slope = stable_density(alpha, np.abs(at))
        return 0.5 * moved * (-slope / density * np.sign(at)) @ weights

    around = np.geomspace(1e-9, 1e5, 300) * max(moved, 1e-4)
    x = np.sort(np.concatenate((moved + around, moved * np.linspace(0.5, 1.0, 40))))
    largest = -math.inf
    for _ in range(8):
        values = np.concatenate([ratio(part) for part in np.array_split(x, 20)])
        best = int(np.argmax(values))
        largest = max(largest, float(values[best]))
        x = np.linspace(x[max(best - 1, 0)], x[min(best + 1, x.size - 1)], 21)
    return largest


# -- another accountant ----------------------------------------------------------------------------

_OTHER_LAWS = {"Gaussian": "from_gaussian_mechanism", "Laplace": "from_laplace_mechanism"}
_LEAST_DELTA, _MOST_USES, _MOST_STEPS = 1e-8, 10**5, 12


def elsewhere(question: Question, upper: float) -> Range | None:
    """What ``dp_accounting`` makes of a question, given about what its answer is.

    Its bounds from above connect the dots: they fall to the truth with the square of the step. What
    three of them say about the limit is no proof.
    """
    steps = question.steps
    fits = question.delta >= _LEAST_DELTA and question.epsilon is None and 1e-3 <= upper <= 60.0
    fits = fits and sum(step.count for step in steps) <= _MOST_USES and len(steps) <= _MOST_STEPS
    fits = fits and (question.adjacency == "add-remove" or steps[0].rate == 1.0)
    if not fits or any(
        step.law not in _OTHER_LAWS or step.lattice or step.dimension > 1 for step in steps
    ):
        return None
    try:
        from dp_accounting.pld import privacy_loss_distribution as library
    except ModuleNotFoundError:
        return None

    def above(interval: float) -> float:
        total = library.identity(interval)
        for step in steps:
            one = getattr(library, _OTHER_LAWS[step.law])(
                step.size,
                step.sensitivity,
                sampling_prob=step.rate,
                value_discretization_interval=interval,
            )
            total = total.compose(one.self_compose(step.count))
        return float(total.get_epsilon_for_delta(question.delta))

    interval = max(min(upper / 1000.0, 2e-3), upper / 1e5, 1e-5)
    coarse, middle, fine = (above(interval / cut) for cut in (1, 2, 4))
    falling = 3.0 < (coarse - middle) / max(middle - fine, 1e-12) < 5.0
    # Three times what a square leaves: the fall is not smooth.
    rest = middle - fine if falling else 4.0 * abs(coarse - fine)
    slack = 1e-6 * max(1.0, fine)
    return mpf(fine - rest - slack), mpf(fine + slack)
