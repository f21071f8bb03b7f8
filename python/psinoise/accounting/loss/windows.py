"""Smooth windows on the losses: parts of a measure whose transforms decay as fast as the whole's.

A measure that is cut off sharply has a transform that falls like ``1/t``. So a cut is spread over
a range of losses, on which a share of the measure descends from 1 to 0 with all derivatives zero at
both ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

# Panels of 16 nodes on a cut: the transform of what is left of the exact one is below 1e-14.
_PIECES = 12.0
_ALMOST = 1.0 - 1e-12


def descent(u: Float) -> Float:
    """From 1 at -1 to 0 at 1, ``descent(-u) = 1 - descent(u)``; constant beyond."""
    from scipy import special  # slow to import, and rarely needed

    u = np.clip(u, -_ALMOST, _ALMOST)
    return np.asarray(0.5 * special.erfc(2.5 * u / np.sqrt((1.0 - u) * (1.0 + u))))


@dataclass(frozen=True)
class Cut:
    """What divides losses at a positive size: those up to ``begin`` from those above ``end``."""

    begin: float
    end: float

    @property
    def width(self) -> float:
        return self.end - self.begin

    def below(self, loss: Float) -> Float:
        """The share of the measure at each loss that is below the cut."""
        return descent(self._place(loss))

    def above(self, loss: Float) -> Float:
        """The share that is above it, to full relative precision."""
        return descent(-self._place(loss))

    def pieces(self, low: Float, high: Float) -> Float:
        """Into how many pieces panels must be cut whose losses reach from ``low`` to ``high``."""
        hit = (high > self.begin) & (low < self.end)
        # The pieces are equal in outputs, and the loss may vary more slowly at the cut than above.
        reach = np.minimum(high, self.end + self.width) - np.maximum(low, 0.0)
        return np.where(hit, np.maximum(_PIECES * reach / self.width, 1.0), 1.0)

    def _place(self, loss: Float) -> Float:
        return np.asarray((2.0 / self.width) * (loss - self.begin) - 1.0)


@dataclass(frozen=True)
class Window:
    """The losses above one cut and below the next one; None is no cut on that side.

    Windows that share a cut add up. The cuts of one window must not overlap.
    """

    low: Cut | None
    high: Cut | None

    def shown(self, loss: Float) -> Float:
        """The share of the measure at each loss that is in the window."""
        share = np.ones(loss.shape) if self.low is None else self.low.above(loss)
        return share if self.high is None else share * self.high.below(loss)

    def hidden(self, loss: Float) -> Float:
        """The share that is not, to full relative precision."""
        share = np.zeros(loss.shape) if self.low is None else self.low.below(loss)
        return share if self.high is None else share + self.high.above(loss)
