"""Events of ``dp_accounting``, which describe what was released, as an accountant.

An event is taken at its word: sums of values of norm at most ``C`` with noise of ``noise
multiplier`` times ``C``. Under "add-remove" one value is added, which moves the sum by ``C``; under
"replace" one value takes the place of another one, which moves it by up to ``2 C``.

============================ ====================================================================
event                        becomes
============================ ====================================================================
Gaussian                     `Mechanism` with Gaussian noise, whatever the dimension
Laplace, DiscreteLaplace     the same, where the norm is l1: an axis is the worst direction
                             (``accounting.vectors``)
Composed, SelfComposed       all of their events
PoissonSampled               the sampling rate of its events, which see one sample: several of one
                             kind are the coordinates of a vector, Gaussian ones a single one
SampledWithoutReplacement    `sampling.WithoutReplacement`, under "replace"
MixtureOfGaussians           if one shift is not 0: Poisson sampling of Gaussian noise
RandomizedResponse           its three losses, under "replace"
SingleEpochTreeAggregation   Gaussian noise: a value is in one node of each level; under "replace"
ZCDp                         `promises.ZCDP`, if ``xi`` is 0
============================ ====================================================================

A Poisson sample of a sample is one at the product of the rates. Several events on one sample are an
adaptive composition with and without the record: each part is dominated, products of dominating
pairs dominate (Zhu, Dong and Wang 2022, theorem 10), and the sampled profile increases with the
unsampled one (``accounting.loss.responses``). Gaussian noise moved by ``a`` in one part and by
``b`` in another is one of two dimensions, moved by ``sqrt(a^2 + b^2)``.

Everything else is refused. Written for and tested with ``dp-accounting`` 0.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any

from psinoise import _validate, promises
from psinoise._optional import required
from psinoise.accounting import Accountant
from psinoise.accounting.loss.responses import RandomizedResponse
from psinoise.accounting.loss.steps import Step
from psinoise.adapters.dp_accounting.distributions import NEEDS
from psinoise.errors import DomainError
from psinoise.mechanisms import Mechanism
from psinoise.mechanisms.accounted import Accounted
from psinoise.noise import DiscreteLaplace, Gaussian, Laplace
from psinoise.numerics.rational import rounded
from psinoise.sampling import WithoutReplacement

if TYPE_CHECKING:
    from dp_accounting import DpEvent

__all__ = ["from_event"]


def from_event(event: DpEvent, adjacency: str = "add-remove") -> Accountant:
    """An accountant that has composed what an event describes.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        What was released.
    adjacency : str
        "add-remove", their ``ADD_OR_REMOVE_ONE``, or "replace", their ``REPLACE_ONE``.

    Returns
    -------
    Accountant
        Its epsilon and delta are certified, and those of the same mechanisms composed by hand.

    Raises
    ------
    ModuleNotFoundError
        If ``dp_accounting`` is not installed.
    TypeError
        If ``event`` is not one of its events.
    DomainError
        For an event whose worst case is not known, or that has no finite epsilon; it is named.

    Examples
    --------
    >>> import dp_accounting as dpa
    >>> from psinoise.adapters.dp_accounting import from_event
    >>> step = dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(1.1))
    >>> accountant = from_event(dpa.SelfComposedDpEvent(step, 1000))
    >>> round(accountant.epsilon(1e-5), 4)
    1.5154
    """
    if not isinstance(event, required("dp_accounting.dp_event", NEEDS).DpEvent):
        raise TypeError(f"event must be an event of dp_accounting, got {event!r}")
    accountant = Accountant(adjacency)
    for one, count in _parts(event, 1):
        try:
            use = _use(one, accountant.adjacency)
            if use is not None:
                accountant.compose(use.what, count, use.rate, sampling=use.sampling)
        except DomainError as error:
            raise _refusal(one, error) from None
    return accountant


@dataclass(frozen=True)
class _Use:
    """A mechanism, and how it is used."""

    what: Accounted
    rate: float = 1.0
    sampling: WithoutReplacement | None = None


@dataclass(frozen=True)
class _Buckets(Accounted):
    """Randomized response over some buckets: the true one, or with ``noise`` any of them.

    The answers of two records that differ have the losses ``epsilon`` and ``-epsilon`` where they
    are the one or the other record, and 0 elsewhere.
    """

    noise: float
    buckets: int

    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
        """Its three losses."""
        if adjacency != "replace" or sampling_rate != 1.0:
            raise DomainError(
                "randomized response must be under adjacency 'replace' and without sampling: it is "
                "about the value of a record"
            )
        # Rounded up by more than its errors.
        epsilon = math.log1p(self.buckets * (1.0 - self.noise) / self.noise) * (1.0 + 2.0**-50)
        silent = self.noise * (self.buckets - 2) / self.buckets
        return RandomizedResponse(epsilon, epsilon, 0.0, 1.0, silent), 1


def _refusal(event: Any, reason: object) -> DomainError:
    return DomainError(f"event must be one that is answered: {reason} ({event!r})")


def _name(event: Any) -> str:
    return type(event).__name__.removesuffix("DpEvent").removesuffix("DPEvent")


def _parts(event: Any, count: int) -> Iterator[tuple[Any, int]]:
    """The events of a composition, and how often there are."""
    name = _name(event)
    if name == "Composed":
        for one in event.events:
            yield from _parts(one, count)
    elif name == "SelfComposed":
        try:
            times = _validate.count("count", event.count)
        except DomainError as error:
            raise _refusal(event, error) from None
        yield from _parts(event.event, count * times)
    elif name != "NoOp" and count:
        yield event, count


def _use(event: Any, adjacency: str) -> _Use | None:
    """What an event is that is no composition; None if nothing is released."""
    name = _name(event)
    if name == "MixtureOfGaussians":
        return _mixture(event, adjacency)
    rate, scheme, what = 1.0, None, None
    if name == "PoissonSampled":
        inner = event
        while _name(inner) == "PoissonSampled":
            further = _validate.probability_above(
                "sampling_probability", inner.sampling_probability
            )
            rate, inner = rounded(Fraction(rate) * Fraction(further), up=True), inner.event
        if rate > 0.0:
            what = _on_one_sample(inner, adjacency)
    elif name == "SampledWithoutReplacement":
        if _validate.count("sample_size", event.sample_size):
            scheme = WithoutReplacement(event.sample_size, event.source_dataset_size)
            what = _on_one_sample(event.event, adjacency)
    elif name in _MECHANISMS:
        what = _MECHANISMS[name](event, adjacency)
    else:
        raise DomainError(f"{type(event).__name__} has no known worst case")
    return None if what is None else _Use(what, rate, scheme)


def _on_one_sample(event: Any, adjacency: str) -> Accounted | None:
    """One mechanism for all that is released of a sample; None if that is nothing."""
    uses: dict[Accounted, int] = {}
    for one, count in _parts(event, 1):
        use = _use(one, adjacency)
        if use is None:
            continue
        if use.rate != 1.0 or use.sampling is not None:
            raise DomainError("a sample of which some is sampled again has no known worst case")
        uses[use.what] = uses.get(use.what, 0) + count
    if not uses:
        return None
    if len(uses) == 1:
        ((what, count),) = uses.items()
        if count == 1:
            return what
        if isinstance(what, Mechanism):
            return replace(what, dimension=count * what.dimension)
    # Gaussian noise of unit scale, moved as far as all of them together.
    moved = Fraction(0)
    for what, count in uses.items():
        if not (isinstance(what, Mechanism) and isinstance(what.noise, Gaussian)):
            raise DomainError("different mechanisms on one sample have no known worst case")
        one = Fraction(what.sensitivity) / Fraction(what.noise.std)
        moved += count * what.dimension * one**2
    sensitivity = math.sqrt(rounded(moved, up=True)) * (1.0 + 2.0**-51)
    return _sum(Gaussian(std=1.0), sensitivity, adjacency, replaced=1.0)


def _sum(noise: Any, value: float, adjacency: str, *, replaced: float = 2.0) -> Mechanism:
    """Noise on a sum of values of some norm; what replacing one of them moves it by, in these."""
    if adjacency != "replace":
        return Mechanism(noise, value)
    return Mechanism(noise, replaced * value, contribution=0.5 * replaced * value)


def _mixture(event: Any, adjacency: str) -> _Use | None:
    """Gaussian noise on a shift that is drawn where the record is there, and 0 where it is not."""
    if adjacency == "replace":
        raise DomainError("a drawn shift must not be under 'replace': it is that of a new record")
    if len(event.sensitivities) != len(event.sampling_probs):
        raise DomainError("there must be as many sampling_probs as sensitivities")
    rates: dict[float, Fraction] = {}
    for shift, probability in zip(event.sensitivities, event.sampling_probs, strict=True):
        exact = Fraction(_validate.probability("sampling_probs", probability))
        rates[shift] = rates.get(shift, Fraction(0)) + exact
    if not abs(float(sum(rates.values())) - 1.0) < 1e-12:
        raise DomainError("sampling_probs must add up to 1")
    moved = {shift: rate for shift, rate in rates.items() if shift != 0.0 and rate > 0}
    if len(moved) > 1:
        raise DomainError("several shifts have no known worst case")
    if not moved:
        return None
    ((shift, rate),) = moved.items()
    noise = Gaussian(std=_not_zero(event.standard_deviation))
    return _Use(Mechanism(noise, abs(shift)), min(rounded(rate, up=True), 1.0))


def _not_zero(noise: float) -> float:
    if noise == 0.0:
        raise DomainError("without noise there is no finite epsilon")
    return noise


def _of_gaussian(event: Any, adjacency: str) -> Mechanism:
    return _sum(Gaussian(std=_not_zero(event.noise_multiplier)), 1.0, adjacency)


def _of_laplace(event: Any, adjacency: str) -> Mechanism:
    return _sum(Laplace(scale=_not_zero(event.noise_multiplier)), 1.0, adjacency)


def _of_discrete_laplace(event: Any, adjacency: str) -> Mechanism:
    # The smaller of the two scales around the reciprocal.
    parameter = Fraction(_validate.positive("noise_parameter", event.noise_parameter))
    value = float(_validate.count("sensitivity", event.sensitivity))
    return _sum(DiscreteLaplace(scale=rounded(1 / parameter, up=False)), value, adjacency)


def _of_response(event: Any, adjacency: str) -> _Buckets | None:
    noise = _validate.probability("noise_parameter", event.noise_parameter)
    buckets = _validate.positive_count("num_buckets", event.num_buckets)
    if buckets == 1 or noise == 1.0:
        return None
    return _Buckets(_not_zero(noise), buckets)


def _of_tree(event: Any, adjacency: str) -> Mechanism | None:
    if adjacency != "replace":
        raise DomainError(
            "a tree must be under adjacency 'replace': adding a record moves those that follow it"
        )
    counts = event.step_counts
    steps = [counts] if isinstance(counts, Integral) else list(counts)
    # A value is in one node of each level, of which a tree of 2^k leaves has k + 1.
    levels = max((_validate.count("step_counts", count).bit_length() for count in steps), default=0)
    if not levels:
        return None
    noise = Gaussian(std=_not_zero(event.noise_multiplier))
    return _sum(noise, math.sqrt(levels) * (1.0 + 2.0**-51), adjacency)


def _of_zcdp(event: Any, adjacency: str) -> promises.ZCDP | None:
    if event.xi != 0.0:
        raise DomainError(f"xi must be 0, got {event.xi!r}")
    return None if event.rho == 0.0 else promises.ZCDP(event.rho)


def _unprotected(event: Any, adjacency: str) -> None:
    raise DomainError("what is not private has no finite epsilon")


_MECHANISMS: dict[str, Callable[[Any, str], Accounted | None]] = {
    "Gaussian": _of_gaussian,
    "Laplace": _of_laplace,
    "DiscreteLaplace": _of_discrete_laplace,
    "RandomizedResponse": _of_response,
    "SingleEpochTreeAggregation": _of_tree,
    "ZC": _of_zcdp,
    "NonPrivate": _unprotected,
}
