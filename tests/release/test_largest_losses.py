"""The largest loss of a lattice beside that of its law, and of the integers that are drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np

import psinoise as pn
from psinoise.release.weights import ONE
from refusals import for_each

LARGEST_LOSSES = [
    lambda size, sensitivity: (pn.Laplace(scale=size), sensitivity),
    lambda size, sensitivity: (pn.DiscreteLaplace(scale=size), math.ceil(sensitivity)),
    lambda size, sensitivity: (
        pn.DiscreteLaplace(epsilon=size, sensitivity=math.ceil(sensitivity)),
        math.ceil(sensitivity),
    ),
    lambda size, sensitivity: (pn.Staircase(epsilon=size), sensitivity),
    lambda size, sensitivity: (pn.Staircase(epsilon=size, sensitivity=sensitivity), sensitivity),
]


@for_each(LARGEST_LOSSES)
def test_no_loss_of_a_lattice_is_larger(make):
    """Kills: all that is left of a cut level for the weight of 0 (2e-10); masses with the error of
    their computation (1e-13); a scale that is too little by its rounding."""
    random = np.random.default_rng(7)
    for _ in range(25):
        law, sensitivity = make(math.exp(random.uniform(-3.0, 2.5)), random.choice([1.0, 0.7, 3.0]))
        mechanism = pn.Mechanism(law, float(sensitivity))
        ideal, drawn = mechanism.pure_epsilon(), mechanism.on_lattice().pure_epsilon()
        assert drawn <= ideal
        assert drawn >= ideal * (1.0 - 1e-4)
        if "epsilon" in law._arguments() and law.sensitivity == sensitivity:
            assert ideal == law.epsilon


def test_the_budget_that_a_law_was_made_for():
    """Kills: a price that is an ulp above it."""
    for epsilon in (0.1, 0.3, 0.7, 1.0 / 3.0, 1.0, 4.0):
        for law, sensitivity in (
            (pn.DiscreteLaplace(epsilon=epsilon, sensitivity=3), 3.0),
            (pn.Staircase(epsilon=epsilon), 1.0),
            (pn.Laplace(scale=1.0 / epsilon), 1.0),
        ):
            mechanism = pn.Mechanism(law, sensitivity)
            budget = max(epsilon, mechanism.pure_epsilon())
            assert budget <= epsilon * (1.0 + 2.0**-52)
            pn.Ledger(epsilon=budget, delta=0.0).release(mechanism, [3])
        law = pn.TruncatedLaplace(epsilon=epsilon, delta=1e-6)
        assert pn.Mechanism(law).epsilon(1e-6).upper <= epsilon


def test_the_largest_loss_of_a_lattice_is_rounded_up():
    """Of the integers, at 40 digits. Kills: logarithms of masses that are right to an ulp of 1."""
    random = np.random.default_rng(9)
    for _ in range(60):
        sensitivity, scale = math.exp(random.uniform(-1.0, 1.0)), math.exp(random.uniform(0.0, 3.0))
        law = random.choice([pn.Laplace, pn.Gaussian, pn.Airy])(scale=scale)
        lattice = pn.Mechanism(law, sensitivity).on_lattice(grid=sensitivity)
        masses = integer_masses(lattice.noise, 100)
        with mpmath.workdps(40):
            logs = [mpmath.log(m.numerator) - mpmath.log(m.denominator) for m in masses]
            largest = max(abs(a - b) for a, b in pairwise(logs))
            assert largest <= lattice.pure_epsilon()


def integer_masses(noise, count):
    """Of the first whole numbers, each of one sign but 0, which counts twice."""
    weights = [int(w) for w in noise.weights]
    start, ratio = len(weights) - noise.repeated, Fraction(noise.ratio, ONE)
    listed = [Fraction(2 * weights[0]), *map(Fraction, weights[1 : min(start, count)])]
    if noise.tail != "translate":
        return listed
    copies = (divmod(k - start, noise.repeated) for k in range(start, count))
    return [*listed, *(weights[start + j] * (1 - ratio) * ratio**i for i, j in copies)]
