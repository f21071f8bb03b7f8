"""Reference rows: what the same work costs elsewhere, timed in the same rounds.

Each case has at least one. A figure without them cannot be compared with one from another machine.
Rows of packages that are not installed are left out; only NumPy and SciPy always are.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse, special, stats

from psinoise.bench import checks
from psinoise.bench.cases import (
    DELTA,
    EPSILON_MEAN_ABS,
    EVALUATIONS,
    SAMPLING_RATE,
    Case,
    coarse_cactus,
    import_workload,
    optimum,
    points,
    standard_law,
)
from psinoise.bench.timing import Workload
from psinoise.mechanisms import Mechanism
from psinoise.noise import DESIGNED

__all__ = ["FEW", "Reference", "group_references", "references"]

_SEED = 1
_PIECE = 4096
#: Elements of a reference that would not finish with all of them.
FEW = 64
# Clarabel takes half a minute at 60 cells to a sensitivity, and fails at 100.
_LARGEST_CONIC = 20
# Where NumPy, mkl_random and JAX have the law; for others their normal is drawn.
_SAME_LAW = {"Laplace": "laplace", "SymmetricStable(alpha=1.0)": "standard_cauchy"}
_METHODS = {"pdf": "pdf", "logpdf": "logpdf", "ccdf": "sf", "iccdf": "isf"}
# Constructors of dp_accounting whose first parameter is the scale of the law.
_PRIVACY_LOSS = {"Gaussian": "from_gaussian_mechanism", "Laplace": "from_laplace_mechanism"}
# The library's own distance of losses, and the largest one (to two digits) whose upper bound on
# epsilon is off by no more than the default width of certified bounds, for both laws.
_DEFAULT_INTERVAL = 1e-4
_INTERVAL_OF_DEFAULT_WIDTH = 1.4e-4


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
    return tuple(Reference(name, case, prepare) for name, prepare in _rows(case))


def group_references(cases: Iterable[Case]) -> dict[str, tuple[Reference, ...]]:
    """The distinct reference rows of each group, by its name."""
    groups: dict[str, dict[str, Reference]] = {}
    for case in cases:
        rows = groups.setdefault(case.group, {})
        for reference in references(case):
            rows.setdefault(reference.name, reference)
    return {group: tuple(rows.values()) for group, rows in groups.items()}


def _rows(case: Case) -> Iterator[tuple[str, Callable[[Case], Workload]]]:
    if case.operation == "sample":
        yield from _samplers(case)
    elif case.operation in ("release", "vector"):
        # Not of the same law: what adding noise without any safety costs at least.
        yield "numpy standard_normal", partial(_drawn, np.random.default_rng, "standard_normal")
    elif case.operation in EVALUATIONS:
        yield from _functions(case)
    elif case.operation == "import":
        # That imports NumPy too, and almost nothing of SciPy's own.
        yield "import scipy", lambda _: import_workload("pass", "scipy", scipy.__file__)
        return
    elif case.operation == "optimize" and case.size <= _LARGEST_CONIC and _has("cvxpy", "clarabel"):
        yield "cvxpy + Clarabel", _conic
    elif case.law in _PRIVACY_LOSS and case.size <= 10**4 and _has("dp_accounting"):
        # Its grid of losses does not reach 10^9 compositions.
        if case.operation == "epsilon":
            yield "dp_accounting", _dp_accounting
        elif case.operation == "certified":
            yield "dp_accounting, upper bound", _dp_accounting_to_width
    if case.elements > 1:
        yield "plain store", _store
    else:
        # Nobody else computes these epsilons or tables; this stands for the machine.
        yield "numpy exp(1j x), 2^18 points", _exponentials


def _has(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


# -- samples ---------------------------------------------------------------------------------------


def _samplers(case: Case) -> Iterator[tuple[str, Callable[[Case], Workload]]]:
    law = _SAME_LAW.get(case.law, "standard_normal")
    if case.law in (designed.__name__ for designed in DESIGNED):
        yield "psinoise Gaussian", lambda of: replace(of, law="Gaussian").make()
    if case.law.startswith("SymmetricStable"):
        yield "scipy levy_stable", _levy_stable_samples
    yield f"numpy {law}", partial(_drawn, np.random.default_rng, law)
    if _has("mkl_random"):
        yield f"mkl_random {law}", partial(_drawn, _mkl_random, law)
    if _has("randomgen"):
        yield "numpy from ChaCha8 (randomgen)", partial(_drawn, _chacha8, law)
    if _has("jax"):
        yield "jax normal", _jax_normal


def _drawn(make: Callable[[int], Any], law: str, case: Case) -> Workload:
    """A method of a generator: into warm memory, or in pieces where it has no ``out=``, so that
    its temporaries stay in the cache."""
    draw = getattr(make(_SEED), law)
    out = np.empty(case.size, dtype=case.dtype)
    if law == "standard_normal" and make is not _mkl_random:
        return Workload(lambda: draw(out=out, dtype=out.dtype.type), checks.finite, case.size)
    return _in_pieces(draw, out)


def _in_pieces(draw: Callable[..., Any], out: NDArray[Any]) -> Workload:
    def run() -> object:
        for start in range(0, out.size, _PIECE):
            piece = out[start : start + _PIECE]
            piece[...] = draw(size=piece.size)
        return out

    return Workload(run, checks.finite, out.size)


def _mkl_random(seed: int) -> Any:
    return importlib.import_module("mkl_random").MKLRandomState(seed)


def _chacha8(seed: int) -> np.random.Generator:
    return np.random.Generator(importlib.import_module("randomgen").ChaCha(seed, rounds=8))


def _jax_normal(case: Case) -> Workload:
    jax = importlib.import_module("jax")
    draw = jax.jit(lambda key: jax.random.normal(key, (case.size,), "float32"))
    key = jax.random.key(_SEED)
    return Workload(lambda: draw(key).block_until_ready(), checks.finite, case.size)


def _levy_stable(case: Case) -> Any:
    law: Any = standard_law(case.law)
    return stats.levy_stable(law.alpha, 0.0, scale=law.scale)


def _levy_stable_samples(case: Case) -> Workload:
    draw = partial(_levy_stable(case).rvs, random_state=np.random.default_rng(_SEED))
    return _in_pieces(draw, np.empty(case.size, dtype=case.dtype))


def _store(case: Case) -> Workload:
    out = np.empty(case.size, dtype=case.dtype)
    return Workload(lambda: np.copyto(out, 1.0), lambda _: checks.finite(out), case.size)


# -- functions -------------------------------------------------------------------------------------


def _functions(case: Case) -> Iterator[tuple[str, Callable[[Case], Workload]]]:
    method = _METHODS[case.operation]
    if case.law.startswith("SymmetricStable"):
        yield "scipy levy_stable", _levy_stable_values
    elif case.law == "Laplace":
        yield f"scipy.stats.laplace.{method}", partial(_values, getattr(stats.laplace, method))
    elif case.law == "Airy" and case.operation != "iccdf":
        # No formula of the law costs less than this.
        yield "scipy.special.airy", partial(_values, special.airy)
    elif case.operation == "iccdf":
        yield "scipy.special.ndtri", partial(_into, special.ndtri)
    elif case.operation == "ccdf":
        yield "scipy.special.ndtr", partial(_into, special.ndtr)
    else:
        yield "numpy exp", partial(_into, np.exp)


def _values(function: Callable[[Any], Any], case: Case) -> Workload:
    x = points(case)
    return Workload(lambda: function(x), checks.finite, case.size)


def _into(function: np.ufunc, case: Case) -> Workload:
    x = points(case)
    out = np.empty_like(x)
    return Workload(lambda: function(x, out=out), checks.finite, case.size)


def _levy_stable_values(case: Case) -> Workload:
    function = getattr(_levy_stable(case), _METHODS[case.operation])
    # A third of a millisecond for each, and ten times that for a quantile.
    x = points(case)[:FEW]
    return Workload(lambda: function(x), checks.finite, x.size)


# -- questions -------------------------------------------------------------------------------------


def _exponentials(_case: Case) -> Workload:
    phases = 1j * np.multiply.outer(np.arange(512.0), np.linspace(0.0, 1.0, 512))
    return Workload(lambda: np.exp(phases).sum(), checks.finite)


def _dp_accounting_epsilon(case: Case, interval: float) -> Callable[[], float]:
    """Its pessimistic epsilon (connect the dots) for the question of a case."""
    library = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    construct = getattr(library, _PRIVACY_LOSS[case.law])
    scale = standard_law(case.law, EPSILON_MEAN_ABS).scale

    def run() -> float:
        one = construct(scale, sampling_prob=SAMPLING_RATE, value_discretization_interval=interval)
        return float(one.self_compose(case.size).get_epsilon_for_delta(DELTA))

    return run


def _dp_accounting(case: Case) -> Workload:
    return Workload(_dp_accounting_epsilon(case, _DEFAULT_INTERVAL), checks.finite)


def _dp_accounting_to_width(case: Case) -> Workload:
    law = standard_law(case.law, EPSILON_MEAN_ABS)
    exact = Mechanism(law).composed(case.size, SAMPLING_RATE).estimate.epsilon(DELTA)
    half = 0.5e-4 * exact
    return Workload(
        _dp_accounting_epsilon(case, _INTERVAL_OF_DEFAULT_WIDTH),
        lambda answer: checks.near("upper bound", answer, exact + half, half),
    )


def _conic(case: Case) -> Workload:
    """Program (20) of Alghamdi et al., "Cactus mechanisms" (ISIT 2022), in a general conic solver:
    one exponential cone for each pair of cells and shift."""
    cvxpy = importlib.import_module("cvxpy")
    law = coarse_cactus(case.size)
    width, last, ratio = law.cells_per_sensitivity, law.cells, law.tail_ratio
    counts = np.append(1.0, np.full(last, 2.0))
    counts[-1] /= 1.0 - ratio
    costs = law._costs_of_cells(law._grid)

    def masses(cells: NDArray[np.int64]) -> sparse.csr_array:
        away = np.abs(cells)
        values = ratio ** np.maximum(away - last, 0).astype(float)
        places = np.arange(cells.size), np.minimum(away, last)
        return sparse.csr_array((values, places), shape=(cells.size, last + 1))

    def run() -> float:
        p, largest = cvxpy.Variable(last + 1), cvxpy.Variable()
        constraints = [p >= 0, counts @ p == 1, costs @ p <= law.mean_cost]
        for shift in range(1, width + 1):
            cells = np.arange(1 - last, last + shift)
            pair = masses(cells) @ p, masses(cells - shift) @ p
            tail = (1.0 - ratio**shift) / (1.0 - ratio) * -shift * np.log(ratio)
            constraints.append(cvxpy.sum(cvxpy.rel_entr(*pair)) + tail * p[last] <= largest)
        problem = cvxpy.Problem(cvxpy.Minimize(largest), constraints)
        with warnings.catch_warnings():
            # At 20 cells to a sensitivity Clarabel ends with an "inaccurate" solution: 6e-5 off.
            warnings.simplefilter("ignore", UserWarning)
            return float(problem.solve(solver="CLARABEL"))

    return Workload(run, lambda answer: optimum(case.size, answer, 2e-4))
