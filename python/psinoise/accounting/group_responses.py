"""Groups of records, to whose single records pure or approximate privacy is promised.

Let ``P_0, .., P_k`` be outputs on data sets of which each is epsilon-indistinguishable
from the next, and ``a = e^{-epsilon}``. For any test, ``p_i`` being its probability under ``P_i``,

    ``p_{i + 1} >= g(p_i)``,   ``g(p) = max(a p, 1 - (1 - p) / a)``,

and ``g`` rises, so that ``p_k >= g^k(p_0)`` (Dong, Roth and Su 2022, theorem 2.14).

Discrete Laplace noise of scale ``1 / epsilon`` on the counts ``0, .., k`` is such a sequence, with
equality: ``g`` maps the probability at or below a number, ``1/(1 + a)`` at the count itself, to
that of the next count. It bends only at ``1/(1 + a)``, so that ``g^k`` bends at none but these
probabilities; and the best tests of two counts are mixtures of those of ``x <= t``. So the pair of
two counts that are ``k`` apart dominates the group of ``k`` records, and is attained. Its losses
are ``(2 j - k) epsilon``, ``j = 0, .., k``; under ``Q`` they have the masses ``1/(1 + a)`` and
``a^k/(1 + a)`` at the ends, ``a^j (1 - a)/(1 + a)`` between. Randomized response of ``k epsilon``
has a larger profile, which no two ends of such a sequence have.

Of *more than 2^12 records* groups are those of blocks: blocks of ``b`` records are
``b epsilon``-indistinguishable, and ``ceil(k / b)`` of them hold the group. From below there is
Laplace noise, which moves by ``k epsilon`` scales.

For *(epsilon, delta)* a group has ``(k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1))`` from
above. What is attained is the pair above and, with probability ``delta``, an answer that tells the
data set: that is (epsilon, delta)-private for one record. With ``epsilon = 0`` the bound from above
is attained, by uniform noise that moves by a share ``delta`` of its width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Float, Pair
from psinoise.accounting.loss.responses import RandomizedResponse
from psinoise.noise import Laplace
from psinoise.numerics.rational import rounded

# Of groups of more records the losses are those of so many blocks of records.
_MOST_ATOMS = 2**12


@dataclass(frozen=True)
class GroupResponse(AtomPair):
    """The worst of pure privacy for groups: discrete Laplace noise, and with ``delta`` no noise.

    Attributes
    ----------
    epsilon : of the group, positive: ``size`` times that of a record
    size : records of the group, at least 2
    delta : in [0, 1)
    found : what is attained, if that is something else
    """

    epsilon: float
    size: int
    delta: float = 0.0
    found: Dominating | None = None

    sampling_rate = 1.0
    stated = True

    @property
    def attained(self) -> Dominating:
        return self.found or self

    @property
    def unsampled(self) -> tuple[Float, Float]:
        share = np.arange(self.size + 1) / self.size
        each = self.epsilon / self.size
        log_mass = -self.epsilon * share - math.log1p(math.exp(-each))
        log_mass[1:-1] += math.log(-math.expm1(-each))
        log_mass += math.log1p(-self.delta)
        # Exact differences of whole numbers: losses are right to some ulp of themselves.
        return log_mass, self.epsilon * (np.arange(-self.size, self.size + 1, 2) / self.size)

    @property
    def told(self) -> float:
        return self.delta

    @property
    def exact_loss(self) -> float | None:
        return self.epsilon


@dataclass(frozen=True)
class ApproximateGroup(RandomizedResponse):
    """What dominates a group of approximate privacy, and ``found``, which is attained."""

    found: Dominating | None = None

    @property
    def attained(self) -> Dominating:
        return self.found or self


def group_response(epsilon: float, size: int) -> AtomPair:
    """What dominates a group whose epsilon is ``size`` times that of a record."""
    if epsilon == 0.0:
        return RandomizedResponse(0.0, 0.0, 0.0, 1.0)
    block = -(-size // _MOST_ATOMS)
    if block == 1:
        return GroupResponse(epsilon, size)
    blocks = -(-size // block)
    whole = rounded(Fraction(epsilon) * blocks * block / size, up=True)
    return GroupResponse(whole, blocks, found=_laplace(epsilon))


def approximate_group(epsilon: float, delta: float, size: int, each: float) -> AtomPair:
    """The same, with the delta of the group and that of each record; all are positive."""
    listed = size <= _MOST_ATOMS
    found = GroupResponse(epsilon, size, each) if listed else _laplace(epsilon)
    return ApproximateGroup(epsilon, epsilon, delta, 1.0, found=found)


def _laplace(epsilon: float) -> Pair:
    return Pair(Laplace(scale=1.0), epsilon, 1.0)
