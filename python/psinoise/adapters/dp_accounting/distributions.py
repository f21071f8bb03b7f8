"""Exchange of privacy loss distributions.

Both sides keep a probability mass function of the loss on a lattice, for each direction of
"add-remove", and a mass at infinity. What is exported is the upper bound of
``psinoise.accounting.compose.frequencies.lattice``, so that every number which ``dp_accounting``
computes from it is an upper bound as well, up to the rounding of its own convolutions (about 1e-15
in delta for each, and no certificate): not for deltas near that. What is imported must
have been made pessimistic.

Its terms: the direction "remove" has the data set with the record as the upper distribution, as
here. Import reads the masses from attributes of the distribution that have no public accessor;
written for and tested with ``dp-accounting`` 0.6.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from psinoise import _validate
from psinoise._optional import required
from psinoise.accounting import Accountant
from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import directions
from psinoise.errors import DomainError
from psinoise.mechanisms import Mechanism
from psinoise.mechanisms.imports import DiscreteLoss, LossNodes, upper_nodes

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

__all__ = ["NEEDS", "from_pld", "to_pld"]

NEEDS = 'this exchange needs dp_accounting: pip install "psinoise[dp-accounting]"'
_DISTRIBUTIONS = "dp_accounting.pld.privacy_loss_distribution"
_LARGEST_STEP = 0.5


def to_pld(
    what: Accountant | Mechanism,
    *,
    count: int = 1,
    sampling_rate: float = 1.0,
    discretization: float = 1e-4,
    tail_mass: float = 1e-15,
) -> PrivacyLossDistribution:
    """Export a mechanism, or all that an accountant has composed, as a pessimistic distribution.

    Parameters
    ----------
    what : Accountant or Mechanism
        What to export. The steps of an accountant are composed by ``dp_accounting``.
    count : int
        Uses of a mechanism; 1 for an accountant, which has its own counts.
    sampling_rate : float
        Rate of Poisson sampling of a mechanism, in (0, 1]; 1 for an accountant.
    discretization : float
        Distance of the nodes, in (0, 1/2].
    tail_mass : float
        Mass that ``dp_accounting`` may move to infinity in each composition.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution

    Raises
    ------
    ModuleNotFoundError
        If ``dp_accounting`` is not installed.
    CertificationError
        If the losses span more than 2**22 nodes.
    TypeError, DomainError
        For other arguments, an accountant without steps, steps without certified bounds, or
        imported losses on another lattice.

    Examples
    --------
    >>> import psinoise as pn
    >>> from psinoise.adapters.dp_accounting import to_pld
    >>> mechanism = pn.Mechanism(pn.Airy(mean_abs=2.0))
    >>> bool(to_pld(mechanism).get_epsilon_for_delta(1e-6) >= mechanism.epsilon(1e-6).lower)
    True
    """
    pld = required(_DISTRIBUTIONS, NEEDS)
    count = _validate.count("count", count)
    rate = _validate.probability("sampling_rate", sampling_rate)
    step = _validate.positive("discretization", discretization)
    tail = _validate.probability("tail_mass", tail_mass)
    if step > _LARGEST_STEP:
        raise DomainError(f"discretization must be at most {_LARGEST_STEP}, got {discretization!r}")
    if isinstance(what, Mechanism):
        what = Accountant().compose(what, count, rate)
    elif not isinstance(what, Accountant):
        raise TypeError(f"only an Accountant or a Mechanism can be exported, got {what!r}")
    elif count != 1 or rate != 1.0:
        raise DomainError("count and sampling_rate must be 1 for an accountant")
    if not what._steps:
        raise DomainError("there must be at least one step to export, got none")
    found: Any = None
    for part, uses in what._steps:
        if isinstance(part, DiscreteLoss):
            single = _returned(pld, part, step)
        elif isinstance(part, Pair | AtomPair):
            single = _exported(pld, part, uses, step)
        else:
            raise DomainError(f"a step must be a mechanism to be exported, got {part!r}")
        composed = single if uses == 1 else single.self_compose(uses, tail)
        found = composed if found is None else found.compose(composed, tail)
    return found


def from_pld(pld: PrivacyLossDistribution) -> DiscreteLoss:
    """Import a pessimistic distribution as a step that composes from above.

    Parameters
    ----------
    pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        With ``pessimistic_estimate``; losses on a lattice of step at most 1/2.

    Returns
    -------
    DiscreteLoss
        For ``Accountant.compose``; the loss is a bound from above.

    Raises
    ------
    ModuleNotFoundError
        If ``dp_accounting`` is not installed.
    TypeError
        If ``pld`` is not a distribution of ``dp_accounting``.
    DomainError
        If it is optimistic, or its masses are not those of a distribution.

    Examples
    --------
    >>> import psinoise as pn
    >>> from psinoise.adapters.dp_accounting import from_pld, to_pld
    >>> theirs = from_pld(to_pld(pn.Mechanism(pn.Laplace(scale=4.0))))
    >>> both = pn.Accountant().compose(theirs).compose(pn.Mechanism(pn.Laplace(scale=4.0)))
    >>> round(float(both.epsilon(1e-6)), 3)
    0.5
    """
    if not isinstance(pld, required(_DISTRIBUTIONS, NEEDS).PrivacyLossDistribution):
        raise TypeError(f"pld must be a PrivacyLossDistribution, got {pld!r}")
    private: Any = pld
    remove = private._pmf_remove.to_dense_pmf()
    add = remove if private._symmetric else private._pmf_add.to_dense_pmf()
    for pmf in (remove, add):
        if not pmf._pessimistic_estimate:
            raise DomainError("pld must be pessimistic: an optimistic one bounds nothing")
    if remove._discretization != add._discretization:
        raise DomainError("both directions must share one discretization")
    nodes = _imported(remove)
    other = nodes if add is remove else _imported(add)
    return DiscreteLoss(float(remove._discretization), {"remove": nodes, "add": other})


def _exported(pld: Any, pair: Dominating, uses: int, step: float) -> Any:
    # Tails that no composition of double precision can see.
    reach = reach_for(math.log(1e-18), float(uses))
    both = directions(((pair, 1),))
    found = {direction: upper_nodes(pair, direction, step, reach) for direction in both}
    return _distribution(pld, found, step)


def _returned(pld: Any, loss: DiscreteLoss, step: float) -> Any:
    """An imported loss on its way back; its lattice cannot be changed."""
    if loss.step != step:
        raise DomainError(
            f"discretization must be that of the imported losses, {loss.step!r}, got {step!r}"
        )
    directions: tuple[Direction, ...] = ("remove",) if loss.symmetric else ("remove", "add")
    return _distribution(pld, {direction: loss.nodes[direction] for direction in directions}, step)


def _distribution(pld: Any, nodes: dict[Direction, LossNodes], step: float) -> Any:
    """Without "add" both directions are the same."""
    remove, other = nodes["remove"], {}
    if "add" in nodes:
        other = {
            "rounded_probability_mass_function_add": _as_mapping(nodes["add"]),
            "infinity_mass_add": nodes["add"].infinite,
            "symmetric": False,
        }
    return pld.PrivacyLossDistribution.create_from_rounded_probability(
        _as_mapping(remove), remove.infinite, step, **other
    )


def _as_mapping(nodes: LossNodes) -> dict[int, float]:
    return {nodes.first + k: mass for k, mass in enumerate(nodes.mass.tolist()) if mass > 0.0}


def _imported(pmf: Any) -> LossNodes:
    # Convolutions by Fourier transforms leave rounding errors of either sign where there is no
    # mass; taking negative ones for 0 moves the profile up.
    mass = np.maximum(np.asarray(pmf._probs, dtype=np.float64), 0.0)
    nodes = LossNodes(int(pmf._lower_loss), mass, float(pmf._infinity_mass))
    return nodes.adding_up(float(pmf._discretization))
