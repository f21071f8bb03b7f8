"""Members that stand for each law that is made for a target."""

from __future__ import annotations

import numpy as np

import psinoise as pn

SMALL = {"cells_per_sensitivity": 20, "cells": 160, "tail_ratio": 0.35}
TARGET = {"delta": 1e-5, "count": 100, "sampling_rate": 0.1, "cells_per_sensitivity": 10}
MEMBERS = {
    "cactus": lambda: pn.Cactus(**SMALL),
    "cactus of |x|": lambda: pn.Cactus(3.0, 1.0, 1.5, 10, 120, 0.7),
    "cactus that is mostly tail": lambda: pn.Cactus(1.0, 2.0, 0.9, 2, 3, 0.8),
    "optimal unimodal": lambda: pn.OptimalUnimodal(**TARGET, mean_cost=1.0),
    "optimal unimodal of |x|": lambda: pn.OptimalUnimodal(
        **{**TARGET, "sensitivity": 3.0}, mean_cost=1.5, cost=1.0
    ),
    "uniform": lambda: pn.UniformAtom(delta=0.3, sensitivity=2.0),
    "uniform with an atom": lambda: pn.UniformAtom(delta=0.9, power=2),
    "staircase": lambda: pn.Staircase(epsilon=1.0),
    "fine staircase": lambda: pn.Staircase(epsilon=1e-3, sensitivity=0.3, power=2),
    "truncated Laplace": lambda: pn.TruncatedLaplace(epsilon=1.0, delta=1e-3, sensitivity=0.7),
    "discrete Laplace": lambda: pn.DiscreteLaplace(scale=2.5),
    "wide discrete Laplace": lambda: pn.DiscreteLaplace(epsilon=1e-4, sensitivity=3),
    "discrete stable": lambda: pn.DiscreteStable(alpha=1.9, scale=4.0),
}
WITH_DENSITY = [name for name in MEMBERS if "discrete" not in name and "atom" not in name]


def points(law):
    """Points from the center to tail probabilities of 1e-30, atoms left out."""
    p = np.concatenate([np.linspace(0.499, 0.01, 60), 10.0 ** -np.linspace(2.1, 30.0, 60)])
    x = law.iccdf(p)
    return np.unique(x[x > 0.0])
