"""A bound on a privacy profile, and where it crosses a delta."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod

import numpy as np

from psinoise.accounting.compose.measures.measure import Side
from psinoise.accounting.loss.pairs import Float
from psinoise.numerics.crossing import narrowed

# The first stride goes a little beyond where the answer should be; in scales at least so far.
_FARTHER, _LEAST_STRIDE = 1.02, 1e-6
_MOST_STRIDES, _LARGEST = 80, sys.float_info.max
# Numbers below have fewer digits, the smaller the fewer.
_NORMAL = 2.3e-308


def delta_of(log: Float | float, side: Side) -> Float:
    """``e^log``; below normal numbers, which lie far apart, the next one outwards."""
    found = np.exp(log)
    outwards = np.nextafter(found, 0.0 if side == "lower" else 1.0)
    return np.asarray(np.where((found < _NORMAL) & (np.asarray(log) > -np.inf), outwards, found))


class Bound(ABC):
    """A function that is nowhere below delta (side "upper"), or nowhere above it ("lower").

    Attributes
    ----------
    side : which of both
    composer : what made it
    between : where the truth is from the lower to the upper bound, if biases are what they are for
        narrow bins
    same : logs of the bound that differ by less are the same but for rounding
    """

    side: Side
    composer: str
    between: float
    same: float = 1e-12

    @property
    def sign(self) -> float:
        """1 for an upper bound, -1 for a lower one."""
        return 1.0 if self.side == "upper" else -1.0

    @abstractmethod
    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound on delta at some epsilons, rounded outwards."""

    def log_delta(self, epsilon: float) -> float:
        """The same at one."""
        return float(self.log_deltas(np.array([epsilon]))[0])

    def slope(self, epsilon: float, scale: float) -> float:
        """How fast the logarithm of delta falls from epsilon on, over a factor of e or so.

        At epsilon itself kinks at the nodes would be seen.
        """
        value = self.log_delta(epsilon)
        if not value > -700.0:
            return 1.0 / scale
        # It need not fall at all: infinite losses stay.
        far = min(self.epsilon(value - 1.0, epsilon, scale), epsilon + 1e12 * scale, _LARGEST)
        fall = value - self.log_delta(far)
        if far > epsilon and 0.0 < fall < 20.0:
            return fall / (far - epsilon)
        return 1.0 / max(far - epsilon, 1e-12 * abs(epsilon), 1e-300)

    def epsilon(self, log_delta: float, around: float, scale: float) -> float:
        """A bound on the epsilon of a delta, on the same side, as sharp as it is.

        Delta falls in epsilon. So where a bound from above is at most ``delta`` epsilon has been
        passed, and where one from below is at least ``delta`` it has not: every such point is an
        answer, whether or not the bound falls everywhere; ``inf`` and 0 claim nothing. The search
        strides out from ``around``, at first as if delta fell by a factor of e over a ``scale``.
        """
        upper = self.side == "upper"

        def excess(epsilon: float) -> float:
            """At most 0 where the point is an answer."""
            return self.sign * (self.log_delta(epsilon) - log_delta)

        point = max(around, 0.0)
        at_point = excess(point)
        stride = scale * min(max(_FARTHER * abs(at_point), _LEAST_STRIDE), 1.0)
        stride = max(stride, 1e-15 * point, 1e-300)
        # Towards 0 if the answer can be smaller (upper) or must be (lower).
        towards_zero = (at_point <= 0.0) == upper
        for _ in range(_MOST_STRIDES):
            if towards_zero and point == 0.0:
                return 0.0
            other = max(point - stride, 0.0) if towards_zero else min(point + stride, _LARGEST)
            at_other = excess(other)
            if (at_other <= 0.0) != (at_point <= 0.0):
                break
            point, at_point = other, at_other
            stride *= 2.0
        else:
            return math.inf if upper else (point if at_point <= 0.0 else 0.0)
        if at_point <= 0.0:
            point, at_point, other, at_other = other, at_other, point, at_point
        return narrowed(excess, (point, at_point), (other, at_other), self.same)


class ChernoffBound(Bound):
    """``log delta <= log_norm - tilt epsilon``, everywhere: a line above the profile."""

    side: Side = "upper"
    composer = "exact"
    between = 0.0

    def __init__(self, log_norm: float, tilt: float) -> None:
        self.log_norm, self.tilt = log_norm, tilt

    def log_deltas(self, epsilons: Float) -> Float:
        with np.errstate(over="ignore"):
            return np.minimum(self.log_norm - self.tilt * epsilons, 0.0)
