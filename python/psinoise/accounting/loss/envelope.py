"""The worst case over several shifts: one pair whose profile is the envelope of theirs.

For a shift ``a`` the profile is ``H_a(gamma) = sup over events A of T_a p(A) - gamma p(A)``: the
upper envelope of lines, one for each threshold of the loss, with intercept ``P = T_a p(loss > l)``
and slope ``-Q = -p(loss > l)``. The supremum over several shifts is the upper envelope of all their
lines, which is the concave hull of all points ``(Q, P)``: the receiver operating curve of an
adversary who may choose the shift. An edge of the hull from ``(Q, P)`` to ``(Q', P')`` is an atom
of the dominating pair, with probabilities ``P' - P`` and ``Q' - Q`` and the loss
``log((P' - P) / (Q' - Q))``. A supremum of profiles is convex with the right limits, so that such a
pair exists; it dominates each of the shifts, and is the pair of a single one.

By the symmetry of ``p`` the reflection ``x -> a - x`` exchanges the two densities, and every curve
is symmetric about the line ``P + Q = 1``. Only the half with losses above 0 is computed, from small
probabilities to large ones, so that each keeps its relative accuracy; the other half is its mirror.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.loss.pairs import Float
from psinoise.numerics.distinct import distinct
from psinoise.numerics.hull import concave_hull

Index = NDArray[np.int64]

# Profiles that are above others by less, relative to the sums that they are made of, are not: less
# than the rounding of masses and losses that is charged for each use (`dense`).
_NEEDLESS = 4e-15
# Ratios at which profiles are compared first.
_LOOKS = 64


@dataclass(frozen=True, eq=False)
class Envelope:
    """Atoms of the pair that dominates several shifts, with losses that fall.

    Attributes
    ----------
    log_mass, loss : log of the probability under ``p``, and ``log`` of the ratio; both signs
    infinite : probability, under the shifted law, of outputs that ``p`` does not have
    """

    log_mass: Float
    loss: Float
    infinite: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Pieces of one shift with losses above 0, largest first, and the points between them."""

    shifted: Float
    base: Float
    q: Float
    p: Float

    @property
    def ratios(self) -> Float:
        """Of probabilities, infinite above all float64."""
        with np.errstate(over="ignore"):
            return np.asarray(self.shifted / self.base)

    @classmethod
    def of(cls, shifted: Float, base: Float) -> Curve:
        """From the probabilities of pieces of the line under the shifted law and under the law
        itself; on each piece the ratio of the densities is constant."""
        certain = base == 0.0
        infinite = float(shifted[certain].sum())
        shifted, base = shifted[~certain], base[~certain]
        with np.errstate(divide="ignore"):
            ratio = np.log(shifted) - np.log(base)
        order = np.argsort(-ratio, kind="stable")
        order = order[ratio[order] > 0.0]
        shifted, base = shifted[order], base[order]
        # Pieces of one loss are one piece.
        starts = np.flatnonzero(np.diff(ratio[order], prepend=np.inf) != 0.0)
        if starts.size:
            shifted, base = np.add.reduceat(shifted, starts), np.add.reduceat(base, starts)
        q = np.concatenate([[0.0], np.cumsum(base)])
        p = np.concatenate([[0.0], np.cumsum(shifted)]) + infinite
        return cls(shifted, base, q, p)


def envelope(curves: list[Curve]) -> Envelope:
    """The envelope over shifts, of the curve of each."""
    q, p = (np.concatenate([getattr(curve, name) for curve in curves]) for name in ("q", "p"))
    sizes = [curve.q.size for curve in curves]
    shift = np.repeat(np.arange(len(curves)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    hull = concave_hull(q, p)
    rise, run = np.diff(p[hull]), np.diff(q[hull])
    # Neighbors on one curve are a piece of that shift, which is known better than the difference.
    same = (np.diff(shift[hull]) == 0) & (np.diff(hull) == 1)
    for k in np.flatnonzero(same):
        curve, piece = curves[shift[hull[k]]], place[hull[k]]
        rise[k], run[k] = curve.shifted[piece], curve.base[piece]
    # Beyond the edge of slope 1 lies the mirror.
    upper = rise > run
    rise, run = rise[upper], run[upper]
    infinite = max(float(curve.p[0]) for curve in curves)
    log_rise, log_run = np.log(rise), np.log(run)
    rest = 1.0 - float(rise.sum() + run.sum()) - infinite
    log_mass = np.concatenate([log_run, [np.log(max(rest, 1e-320))], log_rise[::-1]])
    loss = np.concatenate([log_rise - log_run, [0.0], (log_run - log_rise)[::-1]])
    return Envelope(log_mass, loss, infinite)


def undominated(every: list[Curve], shifts: Float) -> tuple[int, ...]:
    """Which of several shifts are needed: the profile of each other one is below a mixture of two.

    Every function of a loss that rises and is convex in ``e^{-L}``, as delta before further uses
    is, has a mean that is a mixture of profiles, with weights that do not depend on the shift. So a
    shift whose profile is at most that of another, or a mean of those of two others, is never a
    better choice; nor with sampling, which scales profiles alike. A profile is a chain of lines
    between the ratios of its pieces, and the quotient of two lines is monotone: it is enough to
    look at the ratios of all. Those below 1 follow by symmetry. Shifts rise.
    """
    ratios = distinct(np.concatenate([curve.ratios for curve in every]))
    look = _profiles(every, [], np.append(1.0, ratios[:: ratios.size // _LOOKS + 1]))[0]

    def single(k: int) -> bool:
        """Whether one is below another one, of those that are not below it."""
        others = np.flatnonzero((look[k] <= look).all(axis=1) & (look[k] < look).any(axis=1))
        for other in others[::-1].tolist():
            (above,), (one,) = _profiles([every[other]], [every[k]])
            if (one <= above).all():
                return True
        return False

    alone = [k for k in range(len(every)) if not single(k)]
    curves, places, last = [every[k] for k in alone], shifts[alone], len(alone) - 1

    def below(start: int, end: int) -> bool:
        """Whether all between two are below mixtures of these."""
        (low, high), inner = _profiles([curves[start], curves[end]], curves[start + 1 : end])
        share = (places[start + 1 : end] - places[start]) / (places[end] - places[start])
        mean = (1.0 - share[:, None]) * low + share[:, None] * high
        return bool((inner <= mean).all())

    kept = [0]
    while kept[-1] < last:
        # The farthest one that makes all between needless, by doubling and halving.
        start, step = kept[-1], 1
        reach = start + 1
        while reach < last and below(start, min(reach + step, last)):
            reach, step = min(reach + step, last), 2 * step
        while step > 1:
            step //= 2
            if reach + step <= last and below(start, reach + step):
                reach += step
        kept.append(reach)
    return tuple(alone[k] for k in kept)


def _profiles(
    above: list[Curve], below: list[Curve], at: Float | None = None
) -> tuple[Float, Float]:
    """Profiles at all ratios of some curves, those of the second group rounded down."""
    curves = above + below
    ratios = [curve.ratios for curve in curves]
    if at is None:
        at = distinct(np.concatenate([np.ones(1), *ratios]))
    found = np.empty((len(curves), at.size))
    for k, (curve, ratio) in enumerate(zip(curves, ratios, strict=True)):
        place = np.searchsorted(-ratio, -at, side="left")
        p, q = curve.p[place], at * curve.q[place]
        # Sums of probabilities that are right to some ulp of themselves.
        found[k] = p - q - (_NEEDLESS * (p + q) if k >= len(above) else 0.0)
    return found[: len(above)], found[len(above) :]
