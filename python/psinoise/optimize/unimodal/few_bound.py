"""How little epsilon any unimodal law can have in a few uses: bounds, and not to first order.

Let ``h(E) = sup P(A) - E Q(A)`` be the delta of one use of a law at ``log E``. Multipliers of the
linear program of least delta at ``log E`` and the cost prove ``h(E) >= f(E)`` for every unimodal
law of the cost (`one_use_bound`). Between levels where ``f`` is known ``h`` falls, and by no more
than its slope allows: an event with ``P(A) = h + E Q(A)`` and its mirror image are disjoint, so
that ``Q(A) <= (1 - h) / (1 + E)``. Below 1 it is ``1 - E + E h(1 / E)``, by symmetry. What is below
every such ``h``, and its convex hull ``g``, which is a delta too: that of a pair with the loss
``log E`` where ``g`` bends, of mass ``E`` times the bend. Of two pairs the one with the larger
delta everywhere has the larger one after any number of uses (Blackwell), so that delta of the uses
of any unimodal law of the cost is at least that of uses of this pair. Its losses are rounded down
to a lattice. Sampling at rate ``q`` keeps the order of pairs: in the direction "remove" it makes
``1 - q + q E`` of the likelihood ratio ``E`` and ``q h(E)`` of delta there.

The least delta at one level is another law's than at the next: no law has this pair, and however
many levels there are, the bound stays below the best law, by more for more uses.

Where the largest losses decide, one event says as much: see `_by_one_event`.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import replace

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.numerics.hull import concave_hull
from psinoise.optimize.unimodal.first import COARSE, size_of
from psinoise.optimize.unimodal.linear import NoLawError, least_delta
from psinoise.optimize.unimodal.one_use import (
    MOST_LINEAR,
    grid_for_one_use,
    least_epsilon_of_one_use,
)
from psinoise.optimize.unimodal.one_use_bound import least_sum, multipliers_of
from psinoise.optimize.unimodal.problem import Law, Problem
from psinoise.optimize.unimodal.program import Float, Program

__all__ = ["least_of_few"]

# Linear programs, the first ones, cells to a sensitivity and at most, and about the first delta.
_LEVELS, _FIRST, _FINE, _CELLS, _GUESS = 80, 6, 40, 1200, 1e-3
# The share of delta that one of the uses may have where losses end.
_LITTLE = 1e-2
# Points between two levels, nodes of the losses of one use and most of all, and what of a transform
# is rounding.
_BETWEEN, _NODES, _MOST_SUMS, _ROUNDING = 8, 1 << 16, 1 << 23, 1e-12
_HALVINGS = 50


def least_of_few(problem: Problem, mean_cost: float, width: int) -> float:
    """An epsilon of a few uses that no unimodal law of the cost is below."""
    by_event = _by_one_event(problem, mean_cost, min(width, COARSE))
    return max(by_event, _by_pair(problem, mean_cost))


def _best_of_one_use(one: Problem, mean_cost: float, width: int, most: int) -> Law | None:
    """The law of least epsilon of one use, on cells that are few."""
    size = size_of(one, mean_cost)
    with contextlib.suppress(CalibrationError):
        grid = grid_for_one_use(one, width, size=size)
        if grid.last > most:
            grid = grid_for_one_use(one, max(1, width * most // grid.last), size=size)
        if grid.last <= MOST_LINEAR:
            return least_epsilon_of_one_use(one, grid, mean_cost)
    return None


def _by_one_event(problem: Problem, mean_cost: float, width: int) -> float:
    """By an event of one use that may happen in all.

    One use of any unimodal law has an event of probabilities ``a`` and ``b`` under it and the law
    moved with ``a >= d + E b``, where ``log E`` is no more than what the best law of one use needs
    at ``d``. Sampled at rate ``q`` it has ``a' = q a + (1 - q) b >= q d + E' b`` with ``E' = 1 - q
    + q E``; let ``q d`` be the n-th root of delta. That it happens in all uses has the
    probabilities ``a'**n`` and ``b**n``, so that ``exp(epsilon) >= ((q d + E' b)**n - delta) /
    b**n``, which falls in ``b`` since ``(q d)**n = delta``; and ``b <= (1 - d) / (1 + E)``, since
    the event's mirror image is disjoint from it and has ``a`` and ``b`` the other way round.
    """
    count, root = problem.count, problem.delta ** (1.0 / problem.count)
    one = replace(problem, delta=root, count=1)
    if not one.inner_delta < 1.0:
        return 0.0
    found = _best_of_one_use(one, mean_cost, width, MOST_LINEAR)
    if found is None:
        return 0.0
    least = max(found.certificate.epsilon - found.certificate.gap, 0.0)
    grown = math.exp(least)
    largest = (1.0 - one.inner_delta) / (1.0 + math.exp(one.inner(least)))
    # ((q d + E' b)**n - delta) / b**n without cancellation.
    share = root / (root + grown * largest)
    each = math.log((root + grown * largest) / largest)
    return max(count * each + math.log1p(-(share**count)), 0.0)


def _by_pair(problem: Problem, mean_cost: float) -> float:
    """By a pair whose delta is below that of one use of every law."""
    little = _LITTLE * problem.inner_delta / problem.count
    if not little < 1.0:
        return 0.0
    one = replace(problem, delta=little, count=1, sampling_rate=1.0)
    best = _best_of_one_use(one, mean_cost, _FINE, _CELLS)
    if best is None:
        return 0.0
    program = problem.program(best.grid)

    def proven(epsilon: float, guess: float) -> float:
        return _least_delta(one, program, epsilon, mean_cost, guess)

    first = np.linspace(0.0, best.certificate.epsilon, _FIRST).tolist()
    deltas = {epsilon: proven(epsilon, _GUESS) for epsilon in first}

    def seen(epsilon: float) -> float:
        return max(deltas[epsilon], one.delta)

    while len(deltas) < _LEVELS:
        # Halve the interval in which most is lost: delta falls by a factor while epsilon rises.
        levels = sorted(deltas)
        lost = [(b - a) * math.log(seen(a) / seen(b)) for a, b in itertools.pairwise(levels)]
        worst = int(np.argmax(lost))
        if not lost[worst] > 0.0:
            break
        a, b = levels[worst : worst + 2]
        deltas[0.5 * (a + b)] = proven(0.5 * (a + b), math.sqrt(seen(a) * seen(b)))
    levels = sorted(deltas)
    falling = np.maximum.accumulate([deltas[epsilon] for epsilon in reversed(levels)])[::-1]
    return _epsilon_of_pair(np.exp(levels), falling, problem)


def _least_delta(
    one: Problem, program: Program, epsilon: float, mean_cost: float, guess: float
) -> float:
    """What delta of one use of any unimodal law of the cost is at least."""
    try:
        best, delta = least_delta(program, epsilon, mean_cost, guess)
    except NoLawError:
        return 0.0
    known = multipliers_of(replace(one, delta=delta), program, best, epsilon)
    z = float(known.values.max())
    if not z > 0.0:
        return 0.0
    least = least_sum(one, program, known, epsilon)
    return min(max((least - mean_cost) / z, 0.0), 1.0)


def _epsilon_of_pair(places: Float, deltas: Float, problem: Problem) -> float:
    """Of the uses of the pair whose delta is below all that is proven."""
    share = np.arange(_BETWEEN) / _BETWEEN
    x = (places[:-1, None] + np.diff(places)[:, None] * share).reshape(-1)
    fall = (1.0 - deltas) / (1.0 + places)
    sloped = deltas[:-1, None] - fall[:-1, None] * np.diff(places)[:, None] * share
    values = np.maximum(sloped, deltas[1:, None]).reshape(-1)
    # A last step to 0 where nothing is known.
    x, values = np.append(x, places[-1:]), np.append(values, 0.0)
    inverse = 1.0 / x[:0:-1]
    mirrored = 1.0 - inverse + inverse * values[:0:-1]
    at, height = np.concatenate([[0.0], inverse, x]), np.concatenate([[1.0], mirrored, values])
    corners = concave_hull(at, -height)
    at, height = at[corners], height[corners]
    bends = np.diff(np.append(np.diff(height) / np.diff(at), 0.0))
    # Mass under the second law, that of ratio 0 too, and what sampling makes of ratios.
    other, rate = np.append(max(1.0 - float(bends.sum()), 0.0), bends), problem.sampling_rate
    with np.errstate(divide="ignore"):
        loss = np.log1p(rate * (at - 1.0)) if rate < 1.0 else np.log(at)
    mass = other * (1.0 - rate + rate * at)
    mass, loss = mass[mass > 0.0], loss[mass > 0.0]
    # Losses rounded down; weights that make the largest ones of all uses likely.
    step = 2.0 * float(loss[-1]) / _NODES
    node = np.floor((loss - loss[0]) / step).astype(np.intp)
    masses = np.bincount(node, mass)
    count, size = problem.count, masses.size
    if count * size > _MOST_SUMS:
        return 0.0
    tilt = -math.log(problem.delta) / (count * float(loss[-1]))
    weights = np.exp(tilt * step * (np.arange(size) - size + 1.0))
    length = 1 << (count * size - 1).bit_length()
    whole = np.fft.irfft(np.fft.rfft(masses * weights, length) ** count, length)
    whole = whole[: count * (size - 1) + 1]
    whole[whole < _ROUNDING * whole.max()] = 0.0
    sums = count * float(loss[0]) + step * np.arange(whole.size)
    with np.errstate(over="ignore", invalid="ignore"):
        back = np.exp(tilt * step * (count * (size - 1.0) - np.arange(whole.size)))
        whole = np.where(whole > 0.0, whole * back, 0.0) * (1.0 - _ROUNDING)
    low, high = 0.0, max(float(sums[-1]), 0.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = sums > middle
        delta = float(np.sum(whole[above] * -np.expm1(middle - sums[above])))
        low, high = (middle, high) if delta > problem.delta else (low, middle)
    return low
