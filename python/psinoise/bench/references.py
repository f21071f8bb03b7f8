"""Reference rows: what the same work costs elsewhere, timed in the same rounds.

Each case has at least one. A figure without them cannot be compared with one from another machine.
Rows of packages that are not installed are left out; only NumPy and SciPy always are.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from psinoise.bench import checks
from psinoise.bench.cases import EVALUATIONS, Case, points, standard_law
from psinoise.bench.timing import Workload
from psinoise.noise import DESIGNED

__all__ = ["FEW", "references"]

_SEED = 1
_PIECE = 4096
#: Elements of a reference that would not finish with all of them.
FEW = 64
# Where NumPy, mkl_random and JAX have the law; for others their normal is drawn.
_SAME_LAW = {"Laplace": "laplace", "SymmetricStable(alpha=1.0)": "standard_cauchy"}
_METHODS = {"pdf": "pdf", "logpdf": "logpdf", "ccdf": "sf", "iccdf": "isf"}


def references(case: Case) -> dict[str, Callable[[], Workload]]:
    """What prepares the reference rows of a case, by their names, the nearest first; never empty.

    They have as many elements as the case, or `FEW`.
    """
    return {name: partial(prepare, case) for name, prepare in _rows(case)}


def _rows(case: Case) -> Iterator[tuple[str, Callable[[Case], Workload]]]:
    if case.operation == "sample":
        yield from _samplers(case)
    elif case.operation in ("release", "vector"):
        # Not of the same law: what adding noise without any safety costs at least.
        yield "numpy standard_normal", partial(_drawn, np.random.default_rng, "standard_normal")
    elif case.operation in EVALUATIONS:
        yield from _functions(case)
    if case.operation != "compile":
        yield "plain store", _store
    else:
        # Nobody else computes these tables; this stands for the machine.
        yield "numpy exp(1j x), 2^18 points", _exponentials


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


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


def _exponentials(_case: Case) -> Workload:
    phases = 1j * np.multiply.outer(np.arange(512.0), np.linspace(0.0, 1.0, 512))
    return Workload(lambda: np.exp(phases).sum(), checks.finite)
