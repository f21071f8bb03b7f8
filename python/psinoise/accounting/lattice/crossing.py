"""Where a bound on the privacy profile crosses a delta."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

_MOST_STRIDES = 60
_MOST_ITERATIONS = 100
# Crossings are found to this, in units of max(1, epsilon).
_RESOLUTION = 1e-12


class ProfileBound(ABC):
    """A bound on the privacy profile: above it if ``sign`` is 1, below it if -1."""

    sign: float

    @property
    @abstractmethod
    def tilt(self) -> float:
        """About the rate at which ``log_delta`` falls where the bound is sharp."""

    @abstractmethod
    def log_delta(self, epsilon: float) -> float:
        """Log of the bound on delta at ``epsilon``."""

    def epsilon(self, log_delta: float, around: float, width: float) -> float:
        """Where the bound crosses ``log_delta``, rounded outwards.

        The search starts ``around`` the estimate and goes out from there, because far from it the
        additive errors take over: with a large tilt, as just below the largest loss, that is a few
        ``1 / tilt`` away. Where no crossing is seen within ``64 * width`` the answer is the one
        that claims nothing: ``inf`` above, 0 below.
        """
        inner, at_inner = around, self._excess(around, log_delta)
        if at_inner <= 0.0:
            # The bound holds at the estimate already: an ulp to the other side is enough.
            return around
        distance = min(0.25 * width, 0.5 / self.tilt)
        while distance <= 64.0 * width:
            outer = max(0.0, around + self.sign * distance)
            at_outer = self._excess(outer, log_delta)
            if at_outer <= 0.0:
                return self._narrowed(log_delta, (inner, at_inner), (outer, at_outer))
            inner, at_inner = outer, at_outer
            distance *= 2.0
        return math.inf if self.sign > 0.0 else 0.0

    def _excess(self, epsilon: float, log_delta: float) -> float:
        """Positive where the bound does not hold yet."""
        return (self.log_delta(epsilon) - log_delta) * self.sign

    def _narrowed(
        self, log_delta: float, inner: tuple[float, float], outer: tuple[float, float]
    ) -> float:
        """A point between two where the bound holds, next to one where it does not: by secants.

        A nudge to the side that the last point was not on makes both ends close in.
        """
        (before, at_before), (last, at_last) = inner, outer
        low, high = before, last
        resolution = _RESOLUTION * max(1.0, abs(before))
        for iteration in range(_MOST_ITERATIONS):
            if abs(high - low) <= resolution:
                break
            rise = at_last - at_before
            point = last - at_last * ((last - before) / rise) if abs(rise) > 0.0 else math.nan
            point += 0.25 * self.sign * math.copysign(resolution, at_last)
            if iteration % 8 == 7 or not min(low, high) < point < max(low, high):
                point = 0.5 * (low + high)
            if point in (low, high):
                break
            before, at_before = last, at_last
            last, at_last = point, self._excess(point, log_delta)
            if at_last <= 0.0:
                high = point
            else:
                low = point
        return high

    def root(self, log_delta: float, around: float, stride: float, resolution: float) -> float:
        """The least epsilon >= 0 at which the bound is at most ``log_delta``, rounded up.

        It is looked for on both sides of ``around``, in strides that double; ``inf`` if it is not
        found. Where the bound does not fall the answer is one of several such points.
        """
        # A bound from below falls short of everything where its additive errors take over.
        if self.sign > 0.0 and self.log_delta(0.0) <= log_delta:
            return 0.0
        low = high = max(around, 0.0)
        up = down = stride
        for _ in range(_MOST_STRIDES):
            if self.log_delta(high) <= log_delta:
                break
            low, high, up = high, high + up, 2.0 * up
        else:
            return math.inf
        while low > 0.0 and self.log_delta(low) <= log_delta:
            low, high, down = max(low - down, 0.0), low, 2.0 * down
        while high - low > resolution:
            middle = 0.5 * (low + high)
            if self.log_delta(middle) <= log_delta:
                high = middle
            else:
                low = middle
        return high
