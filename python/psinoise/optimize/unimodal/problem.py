"""What a unimodal law is to be the best for, and what is known of one that was found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psinoise._kept import cached_property
from psinoise.errors import CalibrationError
from psinoise.optimize.cells import Grid
from psinoise.optimize.unimodal.cost import IntervalCost
from psinoise.optimize.unimodal.few import FewUses
from psinoise.optimize.unimodal.linear import resolved
from psinoise.optimize.unimodal.program import Float, Program
from psinoise.optimize.unimodal.uses import Point, Uses

__all__ = ["Law", "Problem", "Progress", "UnimodalCertificate"]

Progress = Callable[[int, float], None]

# Noise reaches as far as it is likelier than this share of delta.
_RARE = 1e-4
# Losses are convolved, and laws of one use are tried, of so many uses, and of more of which no more
# than a few are drawn, and of more of which the noise is small: then losses of one use are so large
# that sums of hundreds are on few places. Of more uses yet what a lattice adds to each of them
# counts.
_FEW, _FEW_DRAWS, _MOST_USES, _FEW_SMALL = 64, 16, 10**6, 1024
# For deltas that programs do not resolve: one that they do.
_LARGER = 1e-9
# Of one use without sampling: its exponential is a number.
_LARGEST_EPSILON = 700.0


@dataclass(frozen=True)
class UnimodalCertificate:
    """How good a law is, as far as convexity tells.

    Attributes
    ----------
    epsilon : float
        Of the law: exact for one use, else an estimate.
    order : float
        Of the saddle point there: delta is about the moment of the loss of this order. ``inf``
        where one use decides.
    gap : float
        By how much epsilon would fall at most, to first order, if uses had other noise: any
        symmetric unimodal law of at most the same expected cost, on whatever grid or on none.
        Delta is a convex function of the law of each use while the others are what they are, which
        makes this a bound, for one use at a time. Of one use, and at delta = 0, it is a bound for
        all of them, and not to first order; so it is for a few uses whose losses are close to the
        largest possible, where tangents say nothing. ``inf`` where nothing is known. Of one
        use and of a few it may take longer than the law, and is found when it is first asked for.
    slope : float
        By how much epsilon falls for a unit of the expected cost.
    """

    epsilon: float
    order: float
    _gap: float | Callable[[], float] = field(compare=False)
    slope: float

    @cached_property
    def gap(self) -> float:
        """See above."""
        return self._gap() if callable(self._gap) else self._gap

    def __repr__(self) -> str:
        words = ("epsilon", "order", "gap", "slope")
        return f"UnimodalCertificate({', '.join(f'{w}={getattr(self, w)!r}' for w in words)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.epsilon, self.order, self.gap, self.slope)


@dataclass(frozen=True)
class Problem:
    """What a law is to be the best for, at unit sensitivity.

    Parameters
    ----------
    cost_of_cells : callable
        From a grid to the expected cost per unit of each mass.
    cost : IntervalCost
        The same cost, 0 at 0.
    small : bool
        Whether noise is small against the sensitivity.
    """

    delta: float
    count: int
    sampling_rate: float
    cost_of_cells: Callable[[Grid], Float]
    cost: IntervalCost
    small: bool = False

    @property
    def single(self) -> bool:
        """Whether one use decides: there is one, or losses add up to their largest values."""
        return self.count == 1 or self.delta == 0.0

    @property
    def few(self) -> bool:
        """Whether losses are so few that their largest values decide."""
        if self.count <= (_FEW_SMALL if self.small else _FEW):
            return True
        return self.count <= _MOST_USES and self.drawn_at_most(_FEW_DRAWS)

    def drawn_at_most(self, times: int) -> bool:
        """Whether a record is in more uses than this with a probability too small to matter.

        Of a binomial variable that is at most ``exp(-n KL(k / n, q))``, by Chernoff's bound.
        """
        share, rate = (times + 1) / self.count, self.sampling_rate
        if share > 1.0:
            return True
        if share <= rate:
            return False
        rest = (1.0 - share) * math.log((1.0 - share) / (1.0 - rate)) if share < 1.0 else 0.0
        bound = self.count * (share * math.log(share / rate) + rest)
        return -bound < math.log(_RARE * self.delta)

    @property
    def inner_delta(self) -> float:
        """What one use without sampling may have of delta, where `single`."""
        return self.delta / self.sampling_rate

    @property
    def solved_delta(self) -> float:
        """The same as far as linear programs know it, `resolved`."""
        return resolved(self.inner_delta)

    @property
    def bounding(self) -> Problem:
        """What bounds of this one are found for: laws that a larger delta excludes, it does."""
        if self.solved_delta > 0.0 or self.delta == 0.0:
            return self
        return replace(self, delta=_LARGER * self.sampling_rate)

    def inner(self, epsilon: float) -> float:
        """What one use without sampling may have of epsilon, where `single`.

        With ``E`` of all, one sampled use has ``e = E**(1 / count)``: the largest losses add up.
        In the direction "remove" its delta is ``q delta(1 + (e - 1) / q)`` of one without sampling.
        The other direction has ``a delta(q e / a)`` with ``a = 1 - e (1 - q)``, which is less:
        ``a <= q``, and ``q e / a >= 1 + (e - 1) / q`` since ``q**2 e - (q + e - 1) a`` is ``(e -
        1)**2 (1 - q)``. At delta = 0 it is said in `psinoise.noise._target`.
        """
        most = _LARGEST_EPSILON + math.log(self.sampling_rate)
        if not epsilon / self.count <= most:
            raise CalibrationError(
                f"epsilon must be at most {most * self.count:g} for these uses, got {epsilon!r}"
            )
        return math.log1p(math.expm1(epsilon / self.count) / self.sampling_rate)

    def outer(self, epsilon: float) -> float:
        """The inverse of `inner`."""
        return self.count * math.log1p(self.sampling_rate * math.expm1(epsilon))

    def program(self, grid: Grid) -> Program:
        """The program on a grid."""
        costs = self.cost_of_cells(grid)
        return Program(grid.width, grid.tail_ratio, costs, self.sampling_rate)

    def uses(self, program: Program, masses: Float) -> tuple[Uses, ...]:
        """Of each direction that matters."""
        base, ratio = program.ratios(masses)
        ways = (False,) if self.sampling_rate == 1.0 else (False, True)
        if self.few:
            return tuple(FewUses(base, ratio, self.count, add, self.delta) for add in ways)
        return tuple(Uses(base, ratio, self.count, add) for add in ways)

    def worst(self, program: Program, masses: Float) -> tuple[Point, Uses]:
        """The larger epsilon of the directions."""
        found = [(uses.at_delta(self.delta), uses) for uses in self.uses(program, masses)]
        return max(found, key=lambda pair: pair[0].epsilon)

    def rare(self, share: float = _RARE) -> float:
        """A probability too small to matter: a share of delta, for each use."""
        return share * self.delta / (self.count * self.sampling_rate)

    def reach(self, program: Program, masses: Float, share: float = _RARE) -> int:
        """The cell beyond which the law is rare."""
        above = np.cumsum((masses * program.multiplicities)[::-1])[::-1]
        return int(np.searchsorted(-above, -self.rare(share)))


@dataclass(frozen=True, eq=False)
class Law:
    """Masses on a grid, with their certificate."""

    grid: Grid
    masses: Float
    mean_cost: float
    certificate: UnimodalCertificate
