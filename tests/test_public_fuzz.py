"""Anything said to the public interface: an answer, or an error of a documented kind.

Arguments are good, or nonsense, at random from one seed. What may be raised: TypeError, ValueError
(and with it DomainError), OverflowError, MemoryError, and the errors of ``psinoise.errors``. Not
AttributeError, IndexError, KeyError, ZeroDivisionError, a failed assertion, a warning, or a
floating-point exception (but underflow, of which 0 is the right answer).

``PSINOISE_FUZZ_CALLS`` says how many calls; the default makes a quick test.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import faulthandler
import fractions
import inspect
import os
import random
import traceback
import warnings

import numpy as np

import psinoise as pn
from psinoise.noise import NoiseLaw

CALLS = int(os.environ.get("PSINOISE_FUZZ_CALLS", "3500"))
ALLOWED = (
    TypeError,
    ValueError,
    OverflowError,
    MemoryError,
    pn.BudgetError,
    pn.CalibrationError,
    pn.CertificationError,
)

LAWS = [
    pn.Gaussian(std=2.0),
    pn.Laplace(scale=0.5),
    pn.Airy(mean_abs=1.0),
    pn.SymmetricStable(alpha=1.5, scale=1.0),
    pn.Cauchy(scale=2.0),
    pn.Schrodinger(cost=pn.costs.Power(2.0), mean_cost=1.0),
    pn.DiscreteLaplace(scale=2.0),
    pn.Staircase(epsilon=1.0),
    pn.TruncatedLaplace(epsilon=1.0, delta=1e-3),
    pn.UniformAtom(delta=0.1),
    pn.Cactus(mean_cost=0.5),
    pn.DiscreteStable(alpha=1.5, scale=1.0),
    pn.OptimalUnimodal(
        delta=1e-5, count=100, sampling_rate=0.1, mean_cost=1.0, cells_per_sensitivity=10
    ),
]
MECHANISMS = [pn.Mechanism(law) for law in LAWS]
LATTICES = [mechanism.on_lattice() for mechanism in MECHANISMS[:5]]

NONSENSE = [
    *(
        None,
        True,
        False,
        ...,
        NotImplemented,
        object(),
        int,
        "",
        "x",
        "certified",
        "nan",
        b"",
        b"1",
    ),
    *(0, -1, 1, 2, 3, 2**31, 2**53, 2**63, -(2**63), 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, -0.5, 1.5, 1e-9, 5e-324, 1e-300, 1e300, -1e300, np.nan, np.inf, -np.inf),
    *(
        1j,
        complex("nan"),
        fractions.Fraction(1, 3),
        decimal.Decimal("0.1"),
        decimal.Decimal("sNaN"),
    ),
    *((), [], {}, set(), [1.0], (0.5, 1.0), [None], [1.0, None], ["a", 1.0], [[1.0], [1.0, 2.0]]),
    *([10**400], {"a": 1.0}, {1.0}, range(3), iter([1.0]), slice(3), lambda x: x, lambda: 1.0),
    *(np.float32(0.3), np.float16(np.nan), np.int8(3), np.uint64(2**64 - 1), np.bool_(True)),
    *(np.longdouble(0.3), np.str_("a"), np.datetime64("2020-01-01"), datetime.date(2020, 1, 1)),
    *(np.array([0.5, 0.7]), np.array(0.5), np.zeros((0, 3)), np.array([np.nan, np.inf, -np.inf])),
    *(np.array(["a"]), np.array([None]), np.array([1j]), np.array([True]), np.zeros(2, "M8[s]")),
    *(np.zeros(2, [("a", float)]), np.arange(3), np.arange(3.0)[::-1], np.ones(3, ">f4")),
    *(np.ma.masked, np.ma.array([1.0, 2.0], mask=[True, False]), np.random.default_rng(1)),
    *(pn, pn.Gaussian, pn.Airy, pn.costs.Power(2.0), LAWS[0], LAWS[7], MECHANISMS[0], LATTICES[0]),
]
# What is good under a name; any other name gets a number.
GOOD = {
    "epsilon": [1.0, 0.1, 5],
    "delta": [1e-6, 0.0, 0.5, 1e-12],
    "count": [1, 2, 10],
    "sensitivity": [1.0, 0.5, 3],
    "contribution": [None, 0.5],
    "sampling_rate": [1.0, 0.01],
    "adjacency": ["add-remove", "replace"],
    "tolerance": [None, 0.1],
    "norm": ["linf", "l1", "l2"],
    "dimension": [1, 2],
    "noise": LAWS,
    "law": [pn.Gaussian, pn.Laplace, pn.Schrodinger, pn.DiscreteStable, pn.OptimalUnimodal],
    "laws": [[pn.Gaussian], [pn.Laplace, pn.DiscreteLaplace], None],
    "mechanism": [*MECHANISMS[:5], *LATTICES],
    "grid": [1.0, 0.25, None],
    "bounds": [(0.0, 1.0), (-5, 5), None],
    "units": [["a", "b", "a"], np.arange(3)],
    "groups": [[0, 1, 0], None],
    "values": [[1.0, 0.5, 0.2], np.arange(3), 1],
    "group_count": [2],
    "cost": [pn.costs.Power(2.0), pn.costs.Huber(1.0), "power:2", np.abs, 2.0],
    "mean_cost": [None, 1.0],
    "setting": ["local", "distributed"],
    "clients": [1, 100],
    "dropout": [0.0, 0.5],
    "cells_per_sensitivity": [5, 10],
    "cells": [None, 40],
    "tail_ratio": [None, 0.9],
    "text": ["power:2", "{}", "max(power:1,power:2)"],
    "label": ["a", ""],
    "dtype": [np.float64, np.float32],
    "rng": [None, 1],
    "out": [None, np.zeros(3)],
    "shape": [(), 3, (2, 2)],
    "threads": [None, 0, 2],
    "progress": [False],
    "alpha": [1.5, 2.0],
}
ANY = [0.5, 1.0, 2.0, np.array([0.1, 0.5, 0.9]), [0.2, 3.0], -1.0]

QUESTIONS = ["epsilon", "delta", "profile"]
# Of laws: what users ask. The rest of their names is what the machinery asks of a law.
OF_LAWS = ["pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf", "icdf", "iccdf", "sample"]
OF_LAWS += ["moment", "expected_cost", "fisher_information", "kl", "pmf", "logpmf"]
OF_LAWS += ["aggregate", "weighted_sum", "largest_loss"]
# What takes long when all is well: rarely, and then with nonsense among the arguments.
SLOW = ["calibrate", "calibrate_stable", "compare", "Cactus", "Schrodinger", "OptimalUnimodal"]


def methods(items, names):
    return [getattr(item, name) for item in items for name in names if hasattr(item, name)]


def quick():
    """What is called, in groups that are as frequent as each other."""
    constructors = [pn.Gaussian, pn.Laplace, pn.Airy, pn.SymmetricStable, pn.Cauchy]
    constructors += [pn.DiscreteLaplace, pn.Staircase, pn.TruncatedLaplace, pn.UniformAtom]
    constructors += [pn.DiscreteStable]
    stored = [pn.Accountant, pn.LatticeMechanism, pn.LatticeNoise]
    return [
        methods(LAWS, OF_LAWS),
        methods(
            [law for law in LAWS if isinstance(law, NoiseLaw)], ["__eq__", "__hash__", "__repr__"]
        ),
        constructors,
        methods(MECHANISMS, ["pure_epsilon", "composed", "on_lattice", "most_revealing_output"]),
        methods(MECHANISMS, ["for_group", "sampled"]),
        # The certified ones have tests of their own.
        methods([m.composed().estimate for m in (*MECHANISMS[:3], *LATTICES)], QUESTIONS),
        methods(LATTICES, ["pure_epsilon", "release", "record", "to_json"]),
        methods(
            [pn.promises, pn.sampling],
            [*pn.promises.__all__, "Poisson", "RandomAllocation", "WithoutReplacement"],
        ),
        [pn.Mechanism, pn.LatticeMechanism, pn.Accountant, pn.Ledger, pn.Bracket, pn.build_config],
        [*methods(stored, ["from_json"]), pn.LatticeNoise.of],
        [pn.exact_sum, pn.exact_sums],
        [getattr(pn.costs, name) for name in pn.costs.__all__],
    ]


class Caller:
    """Random calls from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.quick, self.slow = quick(), [getattr(pn, name) for name in SLOW]

    def argument(self, name, good):
        if self.random.random() < good:
            return self.random.choice(GOOD.get(name, ANY))
        return self.random.choice(NONSENSE)

    def next(self):
        """A callable, positional and keyword arguments."""
        slow = self.random.random() < 0.01
        function = self.random.choice(self.slow if slow else self.random.choice(self.quick))
        if self.random.random() < 0.05:
            # New ones each time, since they remember.
            made = self.random.choice(
                [pn.Ledger(10.0, 1e-6), pn.Accountant().compose(self.random.choice(MECHANISMS), 3)]
            )
            names = ["charge", "release", "affords", "compose", "epsilon", "delta", "to_json"]
            function = self.random.choice(methods([made], names))
        good = self.random.choice([0.95, 0.7, 0.3])
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        positional, keywords = [], {}
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                name = self.random.choice(["std", "scale", "mean_abs", "epsilon", "cost", "seed"])
                keywords[name] = self.argument(name, good)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional += [self.argument("x", good) for _ in range(self.random.randrange(3))]
            elif parameter.default is parameter.empty or self.random.random() < 0.4:
                keywords[parameter.name] = self.argument(parameter.name, good)
        if self.random.random() < 0.03:
            keywords[self.random.choice(["x", "extra"])] = self.argument("x", 0.5)
        if slow:
            keywords[self.random.choice(list(keywords) or ["epsilon"])] = self.random.choice(
                NONSENSE
            )
        positional_only = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
        positional = [
            keywords.pop(name) for name in positional_only if name in keywords
        ] + positional
        return function, positional, keywords


def described(function, positional, keywords):
    owner = getattr(function, "__self__", None)
    arguments = [*map(repr, positional), *(f"{name}={value!r}" for name, value in keywords.items())]
    whose = f"{type(owner).__name__}." if owner is not None else ""
    return f"{whose}{getattr(function, '__name__', function)}({', '.join(arguments)})"[:400]


def offence(function, positional, keywords):
    """What is wrong with a call: nothing, or a text that names the line."""
    try:
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            function(*positional, **keywords)
    except ALLOWED as error:
        return None if str(error) or isinstance(error, MemoryError) else "no message"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:80]} at {last.filename}:{last.lineno}"
    return None


def test_errors_are_of_documented_kinds():
    caller, found = Caller(20261), collections.defaultdict(list)
    faulthandler.dump_traceback_later(300.0 + CALLS / 20.0, exit=True)  # a call that hangs
    try:
        for _ in range(CALLS):
            call = caller.next()
            wrong = offence(*call)
            if wrong:
                found[wrong].append(described(*call))
    finally:
        faulthandler.cancel_dump_traceback_later()
    lines = [f"{len(calls)} x {wrong}: {calls[0]}" for wrong, calls in found.items()]
    assert not lines, "\n".join(lines)


def test_an_offence_would_be_seen():
    def bad():
        raise KeyError("x")

    assert "KeyError" in offence(bad, [], {})
    assert "FloatingPointError" in offence(lambda: np.float64(1.0) / np.zeros(1), [], {})
    assert "Warning" in offence(lambda: warnings.warn("x", stacklevel=1), [], {})
    assert offence(pn.Gaussian, [], {"std": -1.0}) is None


def test_far_shifts_do_not_take_all_memory():
    """Found by a hundred thousand calls, by which a process was killed."""
    assert offence(LAWS[7].kl, [], {"shift": 2**31}) is None
    # A period of the shift is one of the loss, but for what the noise moves within the first.
    assert 999.0 < LAWS[7].kl(1000) < 1000.0
