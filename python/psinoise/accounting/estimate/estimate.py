"""Where a composition should be looked at: saddle points, and contour integrals that converge.

A contour integral converges in a moment for many uses, and for few uses of smooth losses. Where it
does not (losses that are atoms, digits that cancel, long contours) the direct composer knows more.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np

from psinoise.accounting.estimate.composition import (
    LEAST_LOG_DELTA,
    Composition,
    NotConvergedError,
    Saddle,
)
from psinoise.accounting.estimate.line import Line, trace
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import Pairs
from psinoise.errors import CertificationError

# A contour belongs to the epsilons within this many standard deviations of its saddle point.
_LARGEST_MISS = 4.0
# And is read at others within so many.
_SHARED = 1.0
_MOST_SEARCHES = 3
# Relative error of delta, by its own estimate, up to which a contour has converged.
LARGEST_ERROR = 1e-10
_FIRST_REACH = 80.0


def start_at_delta(
    steps: Pairs, direction: Direction, log_delta: float, uses: float
) -> tuple[Composition, Saddle]:
    """The composition and the saddle point of the epsilon of a log delta."""
    composition = Composition.of(steps, direction, reach_for(log_delta, uses))
    return _resolved(composition, lambda finer: finer.saddle_at_delta(log_delta))


def start_at_epsilon(
    steps: Pairs, direction: Direction, epsilon: float, uses: float
) -> tuple[Composition, Saddle]:
    """The same for an epsilon, from nodes that reach as far as its delta asks."""
    reach = _FIRST_REACH
    while True:
        composition, saddle = _resolved(
            Composition.of(steps, direction, reach),
            lambda finer: finer.saddle_at_epsilon(epsilon),
        )
        need = reach_for(max(saddle.log_chernoff(epsilon), LEAST_LOG_DELTA), uses)
        if need <= reach:
            return composition, saddle
        reach = need


def contour_epsilon(composition: Composition, saddle: Saddle, log_delta: float) -> float:
    """Epsilon by contour integration, to about 1e-10 of ``max(epsilon, 1)``.

    Raises `NotConvergedError` if the integral does not converge in a moment.
    """
    if not saddle.saturated:
        line = trace(composition, saddle, saddle.epsilon)
        epsilon = line.epsilon(log_delta, saddle.epsilon)
        near = abs(epsilon - saddle.epsilon) <= _LARGEST_MISS * math.sqrt(saddle.curvature)
        if near and line.error(epsilon) <= LARGEST_ERROR:
            return epsilon
    raise NotConvergedError("the contour integral does not converge")


def contour_log_delta(composition: Composition, saddle: Saddle, epsilon: float) -> float:
    """Log delta by contour integration; see `contour_epsilon`."""
    line = trace(composition, saddle, epsilon)
    if not line.error(epsilon) <= LARGEST_ERROR:
        raise NotConvergedError("digits cancel along the contour")
    return line.log_delta(epsilon)[0]


def contour_log_deltas(steps: Pairs, direction: Direction, epsilons: Float, uses: float) -> Float:
    """Log delta at epsilons that rise: one contour for all that are close to its saddle point.

    NaN where that does not converge in a moment.
    """
    found = np.full(epsilons.size, np.nan)
    line: Line | None = None
    for place, epsilon in enumerate(epsilons.tolist()):
        found[place] = math.nan if line is None else _read(line, epsilon)
        if math.isnan(found[place]):
            with contextlib.suppress(CertificationError):
                line = trace(*start_at_epsilon(steps, direction, epsilon, uses), epsilon)
                found[place] = _read(line, epsilon)
    return found


def _read(line: Line, epsilon: float) -> float:
    """Log delta by a contour, NaN where it is another's to say."""
    near = abs(epsilon - line.saddle.epsilon) <= _SHARED * math.sqrt(line.saddle.curvature)
    known = near and line.error(epsilon) <= LARGEST_ERROR
    return line.log_delta(epsilon)[0] if known else math.nan


def _resolved(
    composition: Composition, search: Callable[[Composition], Saddle]
) -> tuple[Composition, Saddle]:
    """A composition whose panels resolve the tilt of its own saddle point, and that."""
    saddle = search(composition)
    for _ in range(_MOST_SEARCHES):
        found = composition.resolved(saddle, 0.0)
        if found is None or found[0] is composition:
            break
        composition, saddle = found[0], search(found[0])
    return composition, saddle
