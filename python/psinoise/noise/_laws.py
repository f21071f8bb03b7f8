"""The noise laws, one file each; nothing else lists them."""

from __future__ import annotations

from psinoise.noise._base import Noise
from psinoise.noise._interface import NoiseLaw
from psinoise.noise.airy import Airy
from psinoise.noise.cactus import Cactus
from psinoise.noise.discrete_laplace import DiscreteLaplace
from psinoise.noise.discrete_stable import DiscreteStable
from psinoise.noise.gaussian import Gaussian
from psinoise.noise.laplace import Laplace
from psinoise.noise.optimal_unimodal import OptimalUnimodal
from psinoise.noise.schrodinger import Schrodinger
from psinoise.noise.stable import Cauchy, SymmetricStable
from psinoise.noise.staircase import Staircase
from psinoise.noise.truncated_laplace import TruncatedLaplace
from psinoise.noise.uniform_atom import UniformAtom

#: Laws with a smooth density that are given by their size.
LAWS: tuple[type[Noise], ...] = (Gaussian, Laplace, Airy, SymmetricStable, Schrodinger)

#: Laws without a smooth density: made for a sensitivity and a target, or on the whole numbers.
DESIGNED: tuple[type[NoiseLaw], ...] = (
    Cactus,
    OptimalUnimodal,
    UniformAtom,
    Staircase,
    TruncatedLaplace,
    DiscreteLaplace,
    DiscreteStable,
)

# What `psinoise` and `psinoise.noise` show.
__all__ = [
    "Airy",
    "Cactus",
    "Cauchy",
    "DiscreteLaplace",
    "DiscreteStable",
    "Gaussian",
    "Laplace",
    "OptimalUnimodal",
    "Schrodinger",
    "Staircase",
    "SymmetricStable",
    "TruncatedLaplace",
    "UniformAtom",
]
