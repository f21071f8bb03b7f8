"""Composition of bounds in stages, for more uses than one lattice could hold.

With ``n`` uses the window grows like ``sqrt(n)`` while the step shrinks like ``1/sqrt(n)``. So
``n / r`` uses are composed on a fine lattice, the result is moved to a lattice ``sqrt(n / r)``
times as coarse by the two constructions of ``bounds`` (it remains a bound), and composed ``r``
times: both lattices have about ``n^(1/4)`` times the nodes of a single use. A third and a fourth
stage do the same once more.
"""

from __future__ import annotations

import math

from psinoise.accounting.lattice.bounds import NodeMeasure, Side, coarsen, node_measure
from psinoise.accounting.lattice.convolution import (
    Composed,
    Profile,
    compose,
    tail_within,
    window_size,
)
from psinoise.accounting.lattice.crossing import ProfileBound
from psinoise.accounting.lattice.divided_bound import divided_bound
from psinoise.accounting.lattice.frequencies import low_profile
from psinoise.accounting.lattice.single_bound import SingleBound
from psinoise.accounting.lattice.target import Target, bound_of_step
from psinoise.accounting.loss.pairs import Pair
from psinoise.errors import CertificationError

# A window of this many nodes needs about 64 bytes for each.
_LARGEST_WINDOW = 2**21
_COMFORTABLE_WINDOW = 2**18
# More stages than two are worth their bias above this.
_LONG_WINDOW = 2**19
_MOST_STAGES = 4
_LEAST_LOG_TAIL = -200.0
# Of so few uses the bias of a stage is worth a longer window, or any that there can be.
_MANY_USES, _FEW_WINDOW = 1024.0, 2**20
_FEW_USES = 64.0

# A bound on the masses of one step, its count, and how far off its masses are in total.
_Part = tuple[NodeMeasure, int, float]


def profile_bound(target: Target, step: float, side: Side, tuned: bool = False) -> ProfileBound:
    """A bound on the profile of one direction, sharp around the target.

    One use needs no lattice, and many their low frequencies alone; few are convolved on a lattice
    of this step or a coarser one.
    """
    sign = 1.0 if side == "upper" else -1.0
    first = target.steps[0][0]
    if target.uses == 1.0 and isinstance(first, Pair):
        near = target.log_delta
        return SingleBound(first, target.direction, target.reach, near, target.tilt, sign)
    parts = [
        (bound_of_step(target, pair, step, side, tuned), count) for pair, count in target.steps
    ]
    division = target.division
    if division is not None and all((m.losses <= division.threshold).any() for m, _ in parts):
        place = target.log_delta, target.epsilon
        return divided_bound(parts, division, *place, target.share, sign)
    tail = tail_within(parts, target.log_delta, target.epsilon, target.share, _LEAST_LOG_TAIL)
    profile = low_profile(parts, tail, sign)
    if profile is not None:
        return profile
    stages = _stages(window_size(parts, tail)[1], target.uses)
    composed = _compose_in_stages(
        [(measure, count, 0.0) for measure, count in parts], side, tail, stages
    )
    return Profile(composed, sign)


def _stages(size: int, uses: float) -> int:
    """How many stages compose ``uses`` that would take one window of ``size`` nodes.

    ``k`` stages take the power ``(k - 1)/(2 k)`` of the number of uses off its length. Each has a
    bias of its own, and the first must hold the largest losses however many there are.
    """
    if uses < _FEW_USES or size <= (_COMFORTABLE_WINDOW if uses >= _MANY_USES else _FEW_WINDOW):
        return 1
    sizes = [size * uses ** (-0.5 + 0.5 / k) for k in range(2, _MOST_STAGES)]
    return next((k for k, length in enumerate(sizes, 2) if length <= _LONG_WINDOW), _MOST_STAGES)


def _compose_in_stages(parts: list[_Part], side: Side, tail: float, stages: int) -> Composed:
    """Compose a share of the uses, move the result to a coarser lattice, and go on with that.

    Convolving ``n`` measures of mass 1, each off by ``d`` in total, gives one off by ``n d``.
    """
    if stages == 1:
        return _compose_once(parts, tail)
    uses = sum(count for _, count, _ in parts)
    repeats = max(uses // max(round(float(uses) ** (1.0 / stages)), 2), 1)
    factor = max(2 ** round(0.5 * math.log2(uses / repeats)), 2)
    inner = [(measure, count // repeats, off) for measure, count, off in parts if count >= repeats]
    rest = [(measure, count % repeats, off) for measure, count, off in parts if count % repeats]
    coarse: list[_Part] = []
    for group, count in ((inner, repeats), (rest, 1)):
        if group:
            fine = _compose_once(group, tail / repeats)
            coarse.append((node_measure(coarsen(fine.measure, factor), side), count, fine.distance))
    return _compose_in_stages(coarse, side, tail, stages - 1)


def _compose_once(parts: list[_Part], tail: float) -> Composed:
    plain = [(measure, count) for measure, count, _ in parts]
    first, size, outside = window_size(plain, tail)
    if size > _LARGEST_WINDOW:
        raise CertificationError(
            f"the bounds need a lattice of {size} nodes, more than {_LARGEST_WINDOW}"
        )
    inherited = math.fsum(count * off for _, count, off in parts)
    return compose(plain, first, size, outside + inherited)
