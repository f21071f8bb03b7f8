"""One use of a mechanism whose noise is uniform in cells, or lives on a lattice: a loss of atoms.

Where both densities are constant the loss is one number: nothing has to be integrated. Such laws
need not be unimodal, and then no single shift is the worst. Their pair is the envelope over shifts
(``envelope``), whose profile is the supremum of the profiles of all of them: it dominates every use
of the mechanism, whichever shift the neighbors choose, and so do compositions.

From below each *fixed* shift is a bound, that of neighbors who move every query by the same amount.
For one use the supremum is attained and both agree. For many uses they may differ: the envelope
lets neighbors choose the best shift for each outcome, which no pair of data sets does; what they
can do is choose each shift by earlier outcomes (``compose.choices``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, TypeGuard

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.loss.atoms import LOSS_ROUNDING, AtomPair
from psinoise.accounting.loss.envelope import Curve, Envelope, envelope, undominated
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.errors import DomainError

# Numbers below have fewer than 53 digits.
_NORMAL = 2.0**-1022


class CellLaw(Protocol):
    """What accounting needs to know about noise in cells: hashable, symmetric about 0.

    ``worst_shifts`` are shifts up to a sensitivity among which one is the worst for every profile,
    and for every moment, which is an average of profiles: either these rise with the shift, or they
    are affine from each of the shifts to the next. ``pieces`` are the probabilities of pieces of
    the line under the shifted law and under the law itself, with a constant ratio on each, all of
    them right to a few ulp of themselves. A law may state their losses, ``piece_losses``, and the
    largest of them, ``largest_piece_loss``, rounded up once.
    """

    def __hash__(self) -> int: ...
    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]: ...
    def pieces(self, shift: float) -> tuple[Float, Float]: ...


def in_cells(noise: object) -> TypeGuard[CellLaw]:
    """Whether a law is accounted from its pieces; much quicker than asking for the protocol."""
    return callable(getattr(noise, "pieces", None)) and hasattr(noise, "worst_shifts")


@dataclass(frozen=True)
class CellPair(AtomPair):
    """One use of noise in cells, for both directions at once.

    Attributes
    ----------
    noise, sensitivity, sampling_rate : of the mechanism
    among : how far neighbors may be apart; None for all shifts up to the sensitivity

    Raises
    ------
    DomainError
        if the worst shifts of the law are not known
    """

    noise: CellLaw
    sensitivity: float
    sampling_rate: float
    among: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.among is None:
            self.noise.worst_shifts(self.sensitivity)

    @property
    def shifts(self) -> tuple[float, ...]:
        """Those that the pair dominates, but for shifts that are never a better choice."""
        return _worst(self.noise, self.sensitivity) if self.among is None else self.among

    @property
    def _envelope(self) -> Envelope:
        return _envelope(self.noise, self.shifts)

    @property
    def unsampled(self) -> tuple[Float, Float]:
        return self._envelope.log_mass, self._envelope.loss

    @property
    def told(self) -> float:
        return self._envelope.infinite

    @property
    def stated(self) -> bool:
        return not self.several and hasattr(self.noise, "piece_losses")

    @property
    def exact_loss(self) -> float | None:
        stated = getattr(self.noise, "largest_piece_loss", None)
        return None if self.several or stated is None else stated(self.shifts[0])

    @property
    def distance(self) -> float:
        """The largest of the shifts."""
        return self.shifts[-1]

    @property
    def several(self) -> bool:
        return len(self.shifts) > 1

    @property
    def compares_all(self) -> bool:
        """Whether there are no infinite losses: else `at_tilt` leaves shifts out."""
        return self.told == 0.0

    def at_tilt(self, direction: Direction, tilt: float) -> CellPair:
        """The fixed shift with the largest `moment`, of those with as many infinite losses as the
        envelope: one with fewer may have more of finite ones than is left for that."""
        if self.among is not None and not self.several:
            return self
        found = [replace(self, among=(shift,)) for shift in self.shifts]
        if self.told > 0.0:
            found = [pair for pair in found if pair.told == self.told]
        return max(found, key=lambda pair: pair.moment(direction, tilt))

    def groups(
        self, direction: Direction, tilt: float, most: int
    ) -> tuple[tuple[CellPair, CellPair], ...]:
        shifts, worst = self.shifts, self.at_tilt(direction, tilt).shifts[0]
        ends = _ends(np.array(shifts), worst, most)
        groups = [replace(self, among=shifts[a:b]) for a, b in pairwise(ends)]
        return tuple((group.at_tilt(direction, tilt), group) for group in groups)


def _ends(shifts: Float, near: float, most: int) -> list[int]:
    """Ends of at most so many groups, cut at gaps that are wide for their distance from a shift."""
    gaps = np.diff(shifts)
    middle = 0.5 * (shifts[1:] + shifts[:-1])
    widest = np.argsort(-gaps / (np.abs(middle - near) + gaps), kind="stable")[: most - 1]
    return [0, *sorted(int(k) + 1 for k in widest), shifts.size]


@kept()
def _worst(noise: CellLaw, sensitivity: float) -> tuple[float, ...]:
    """The shifts that are the worst somewhere."""
    shifts = noise.worst_shifts(sensitivity)
    if len(shifts) == 1:
        return shifts
    needed = undominated(_curves(noise, shifts), np.array(shifts))
    return tuple(shifts[k] for k in needed)


@kept()
def _envelope(noise: CellLaw, shifts: tuple[float, ...]) -> Envelope:
    if len(shifts) > 1:
        return envelope(_curves(noise, shifts))
    return _alone(noise, shifts[0])


def _curves(noise: CellLaw, shifts: tuple[float, ...]) -> list[Curve]:
    """That of each shift, whose ratios are those of masses.

    Raises
    ------
    DomainError
        if a mass is below 2**-1022, though the law has it: its ratios are not known
    """
    curves = []
    for shift in shifts:
        shifted, base = noise.pieces(shift)
        coarse = np.minimum(shifted, base) < _NORMAL
        if coarse.any() and np.isfinite(_logs(noise, shift)[1][coarse]).any():
            raise DomainError(
                f"sensitivity must leave cells of {noise!r} masses that float64 holds (losses of "
                f"one use below 708), got shifts up to {shifts[-1]!r}"
            )
        curves.append(Curve.of(shifted, base))
    return curves


def _logs(noise: CellLaw, shift: float) -> tuple[Float, Float]:
    """Logs of the masses of the pieces under the law itself, and their losses.

    A probability below 2**-1022 has lost digits, or all: it is known by its logarithm, or by a loss
    that is stated and the larger of the two probabilities.
    """
    shifted, base = noise.pieces(shift)
    coarse = np.minimum(shifted, base) < _NORMAL
    with np.errstate(divide="ignore", invalid="ignore"):
        log_shifted, log_base = np.log(shifted), np.log(base)
        if hasattr(noise, "piece_losses"):
            loss = np.asarray(noise.piece_losses(shift))
            return np.where(coarse & (base < shifted), log_shifted - loss, log_base), loss
        if coarse.any() and hasattr(noise, "log_pieces"):
            log_shifted, log_base = noise.log_pieces(shift)
        return log_base, np.asarray(log_shifted - log_base)


def _alone(noise: CellLaw, shift: float) -> Envelope:
    """The pair of a single shift, with equal losses merged.

    Losses that the law states are right to an ulp of the largest; others are differences of
    logarithms, right to an ulp of 1. A loss is infinite only where the law itself has nothing.
    """
    shifted, base = noise.pieces(shift)
    if not (np.all(shifted >= 0.0) and np.all(base >= 0.0)):
        raise DomainError("probabilities of pieces must be at least 0 and not NaN")
    log_base, loss = _logs(noise, shift)
    infinite = float(shifted[loss == np.inf].sum())
    there = np.isfinite(loss) & np.isfinite(log_base)
    log_base, base, loss = log_base[there], base[there], loss[there]
    # Losses this close are rounding images of one.
    least = 1e-300 if hasattr(noise, "piece_losses") else 1.0
    unit = LOSS_ROUNDING * max(float(np.abs(loss).max(initial=0.0)), least)
    order = np.argsort(-loss, kind="stable")
    loss, base, log_base = loss[order], base[order], log_base[order]
    # Whole multiples of a distance below rounding: what is merged is never farther apart.
    first = np.diff(np.rint(loss / unit), prepend=np.inf) != 0.0
    starts = np.flatnonzero(first)
    # Of equal losses the likeliest piece has the least rounding error.
    likeliest = np.lexsort((-log_base, np.cumsum(first)))[starts]
    with np.errstate(divide="ignore"):
        log_mass = np.log(np.add.reduceat(base, starts))
    log_mass = np.where(log_mass > -700.0, log_mass, np.logaddexp.reduceat(log_base, starts))
    return Envelope(log_mass, loss[likeliest], infinite)
