"""Reference rows: what the same work costs elsewhere, timed in the same rounds.

Each case has at least one. A figure without them cannot be compared with one from another machine.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special, stats

from psinoise.accounting import Mechanism
from psinoise.bench import checks
from psinoise.bench.cases import (
    DELTA,
    EPSILON_MEAN_ABS,
    EVALUATIONS,
    SAMPLING_RATE,
    Case,
    coarse_cactus,
    import_workload,
    points,
    standard_law,
)
from psinoise.bench.closed_forms import closed_form
from psinoise.bench.conic import conic_solver, has_conic_solver
from psinoise.bench.timing import Workload
from psinoise.noise import DESIGNED

__all__ = ["FEW", "Reference", "group_references", "references"]

_SEED = 1
_PIECE = 4096
_STABLE = "SymmetricStable"
_DESIGNED = frozenset(law.__name__ for law in DESIGNED)
# It takes half a minute at 60 cells to a sensitivity, and fails at 100.
_LARGEST_CONIC = 20
#: Elements of a reference that would not finish with all of them.
FEW = 64


@dataclass(frozen=True)
class Reference:
    """A row to compare with, on the data of a case."""

    name: str
    case: Case
    prepare: Callable[[Case], Workload]

    def make(self) -> Workload:
        """Prepare the data, so that only the work remains to be timed."""
        return self.prepare(self.case)


def references(case: Case) -> tuple[Reference, ...]:
    """The reference rows of a case, the nearest one first; never empty."""
    fixed = Reference("numpy exp(1j x), 2^18 points", case, _exponentials)
    store = Reference("plain store", case, _store)
    rows: tuple[Reference, ...] = (fixed,)
    if case.operation in ("sample", "release", "vector"):
        rows = (_sampler(case), store)
        if case.law in _DESIGNED:
            rows += (Reference("psinoise Gaussian", case, _gaussian),)
    elif case.operation in EVALUATIONS:
        rows = (_evaluation(case), store)
    elif case.operation == "import":
        rows = (Reference("import scipy", case, _import),)
    elif case.operation == "optimize" and case.size <= _LARGEST_CONIC and has_conic_solver():
        rows = (Reference("cvxpy + Clarabel", case, _conic), fixed)
    elif case.operation == "epsilon" and _dp_accounting_has(case):
        rows = (Reference("dp_accounting", case, _dp_accounting), fixed)
    elif case.operation == "certified" and _dp_accounting_has(case):
        rows = (Reference("dp_accounting, upper bound", case, _dp_accounting_to_width), fixed)
    return rows


def _sampler(case: Case) -> Reference:
    if case.operation != "sample":
        # Not of the same law: what adding noise without any safety costs at least.
        return Reference("numpy standard_normal", case, _standard_normal)
    if case.law.startswith(_STABLE):
        return Reference("scipy levy_stable", case, _levy_stable_samples)
    # NumPy has no float32 Laplace.
    if case.law == "Laplace" and case.dtype == "float64":
        return Reference("numpy laplace", case, _laplace)
    return Reference("numpy standard_normal", case, _standard_normal)


def group_references(cases: Iterable[Case]) -> dict[str, tuple[Reference, ...]]:
    """The distinct reference rows of each group, by its name."""
    groups: dict[str, dict[str, Reference]] = {}
    for case in cases:
        rows = groups.setdefault(case.group, {})
        for reference in references(case):
            rows.setdefault(reference.name, reference)
    return {group: tuple(rows.values()) for group, rows in groups.items()}


def _standard_normal(case: Case) -> Workload:
    out = np.empty(case.size, dtype=case.dtype)
    rng = np.random.Generator(np.random.PCG64(_SEED))
    return Workload(
        lambda: rng.standard_normal(out=out, dtype=out.dtype.type), checks.finite, case.size
    )


def _gaussian(case: Case) -> Workload:
    return replace(case, law="Gaussian").make()


def _conic(case: Case) -> Workload:
    solver = conic_solver(coarse_cactus(case.size))
    return Workload(solver, lambda answer: checks.optimum(case.size, answer, 2e-4))


def _laplace(case: Case) -> Workload:
    rng = np.random.Generator(np.random.PCG64(_SEED))
    return _in_pieces(case, lambda size: rng.laplace(size=size))


def _in_pieces(case: Case, draw: Callable[[int], Any]) -> Workload:
    """What has no out= and no float32: in pieces, its temporaries stay in the cache."""
    out = np.empty(case.size)

    def run() -> object:
        for start in range(0, case.size, _PIECE):
            piece = out[start : start + _PIECE]
            piece[...] = draw(piece.size)
        return out

    return Workload(run, checks.finite, case.size)


def _store(case: Case) -> Workload:
    out = np.empty(case.size, dtype=case.dtype)

    def run() -> object:
        out.fill(1.0)
        return out

    return Workload(run, checks.finite, case.size)


def _levy_stable(case: Case) -> Any:
    ours: Any = standard_law(case.law)
    return stats.levy_stable(ours.alpha, 0.0, scale=ours.scale)


def _levy_stable_samples(case: Case) -> Workload:
    law = _levy_stable(case)
    rng = np.random.Generator(np.random.PCG64(_SEED))
    return _in_pieces(case, lambda size: law.rvs(size=size, random_state=rng))


def _levy_stable_values(case: Case) -> Workload:
    law = _levy_stable(case)
    names = {"ccdf": "sf", "iccdf": "isf"}
    function = getattr(law, names.get(case.operation, case.operation))
    # A third of a millisecond for each, and ten times that for a quantile.
    x = points(case)[:FEW]
    return Workload(lambda: function(x), checks.finite, x.size)


def _evaluation(case: Case) -> Reference:
    if case.law.startswith(_STABLE):
        return Reference("scipy levy_stable", case, _levy_stable_values)
    form = closed_form(standard_law(case.law), case.operation)
    if form is not None:
        return Reference(form.name, case, lambda of: _of_points(form.function, of))
    if case.operation == "iccdf":
        return Reference("scipy.special.ndtri", case, lambda of: _into(special.ndtri, of))
    return Reference("numpy exp", case, lambda of: _into(np.exp, of))


def _of_points(function: Callable[[Any], Any], case: Case) -> Workload:
    x = points(case)
    return Workload(lambda: function(x), checks.finite, case.size)


def _into(function: np.ufunc, case: Case) -> Workload:
    x = points(case)
    out = np.empty_like(x)
    return Workload(lambda: function(x, out=out), checks.finite, case.size)


def _exponentials(_case: Case) -> Workload:
    # Nobody else computes these epsilons or tables; a fixed piece of NumPy stands for the machine.
    phases = 1j * np.multiply.outer(np.arange(512.0), np.linspace(0.0, 1.0, 512))
    return Workload(lambda: np.exp(phases).sum(), checks.finite)


def _import(_case: Case) -> Workload:
    # That imports NumPy too, and almost nothing of SciPy's own.
    return import_workload("pass", "scipy")


def _dp_accounting_has(case: Case) -> bool:
    # Its grid of losses does not reach 10^9 compositions.
    known = case.law in _PRIVACY_LOSS and case.size <= 10**4
    return known and importlib.util.find_spec("dp_accounting") is not None


# Constructors of dp_accounting whose first parameter is the scale of the law.
_PRIVACY_LOSS = {"Gaussian": "from_gaussian_mechanism", "Laplace": "from_laplace_mechanism"}


# The library's own distance of losses, and the largest one (to two digits) whose upper bound on
# epsilon is off by no more than the default width of certified bounds, for Gaussian and Laplace.
_DEFAULT_INTERVAL = 1e-4
_INTERVAL_OF_DEFAULT_WIDTH = 1.4e-4


def dp_accounting_epsilon(case: Case, interval: float) -> Callable[[], float]:
    """Its pessimistic epsilon (connect the dots) for the question of a case."""
    library = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    construct = getattr(library, _PRIVACY_LOSS[case.law])
    scale = standard_law(case.law, EPSILON_MEAN_ABS).scale

    def run() -> float:
        one = construct(scale, sampling_prob=SAMPLING_RATE, value_discretization_interval=interval)
        return float(one.self_compose(case.size).get_epsilon_for_delta(DELTA))

    return run


def _dp_accounting(case: Case) -> Workload:
    return Workload(dp_accounting_epsilon(case, _DEFAULT_INTERVAL), checks.finite)


def _dp_accounting_to_width(case: Case) -> Workload:
    mechanism = Mechanism(standard_law(case.law, EPSILON_MEAN_ABS))
    exact = mechanism.composed(case.size, SAMPLING_RATE).estimate.epsilon(DELTA)
    return Workload(
        dp_accounting_epsilon(case, _INTERVAL_OF_DEFAULT_WIDTH),
        lambda answer: checks.upper_bound(answer, exact, 1e-4 * exact),
    )
