"""Laws that are made for a target, and are not given by their size.

Most are what a theorem says: `for_target` of the law. The accountant checks the answer where it
can; rounding may put it an ulp beyond the target, and it is made again for a little less. Of a
cactus law the cost bound is searched for: `cactus`; of an optimal unimodal one it is found with the
law: `unimodal`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from psinoise.accounting.bracket import Bracket
from psinoise.calibration import cactus, unimodal
from psinoise.calibration.search import Calibration
from psinoise.calibration.target import Target
from psinoise.errors import CalibrationError, CertificationError, DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise import Cactus, Family, NoiseLaw, OptimalUnimodal, PrivacyTarget

__all__ = ["design", "designed_law"]

# By which shares a law is made for less than the target, until the accountant agrees; the last is
# more than the rounding of what a theorem says, and stays where the accountant cannot tell.
_MARGINS = (0.0, 1e-14, 1e-12, 1e-9)


def designed_law(law: object) -> tuple[type[NoiseLaw], Mapping[str, Any]] | None:
    """Class and arguments of a law that is made for targets, None for anything else."""
    arguments: Mapping[str, Any] = {}
    if isinstance(law, Family):
        family: Family = law
        law, arguments = family.law, family.shape
    elif isinstance(law, functools.partial) and not law.args:
        made: functools.partial[Any] = law
        law, arguments = made.func, made.keywords
    if isinstance(law, type) and issubclass(law, NoiseLaw) and not law.ordered_by_scale:
        return law, arguments
    return None


def design(law: type[NoiseLaw], arguments: Mapping[str, Any], target: Target) -> Calibration:
    """The member of a designed law that meets a target.

    Raises
    ------
    CalibrationError
        If the law is not made for such a target; the message says why.
    """
    if target.adjacency == "replace" and target.sampling_rate < 1.0:
        raise CalibrationError(f'{law.__name__} noise is not made for "replace" with sampling')
    if issubclass(law, Cactus):
        return cactus.cheapest(arguments, target)
    if issubclass(law, OptimalUnimodal):
        return unimodal.cheapest(arguments, target)
    for margin in _MARGINS:
        less = PrivacyTarget(
            target.epsilon * (1.0 - margin),
            target.delta * (1.0 - margin),
            target.sensitivity,
            target.count,
            target.sampling_rate,
        )
        noise = law.for_target(less, **arguments)
        bounds = _delta(noise, target)
        if bounds is not None and bounds.upper <= target.delta:
            return Calibration(noise, bounds, margin, "certified")
    # The theorem stands where the accountant's bounds are too wide, or it has none.
    known = bounds or Bracket(0.0, target.delta, target.delta)
    if not known.lower <= target.delta:
        raise CalibrationError(f"{noise!r} was made for the target and does not meet it: {known!r}")
    return Calibration(noise, target.capped(known), margin, "certified")


def _delta(noise: Any, target: Target) -> Bracket | None:
    """Bounds of delta at the target's epsilon; None if the accountant cannot say."""
    use = (target.count, target.sampling_rate, target.adjacency)
    try:
        mechanism = Mechanism(noise, target.sensitivity)
        if float(mechanism.epsilon(0.0, *use).upper) <= target.epsilon:
            return Bracket(0.0, 0.0, 0.0)
        return mechanism.delta(target.epsilon, *use)
    except (DomainError, CertificationError):
        return None
