"""The noise laws, one file each. This list is the only one."""

from __future__ import annotations

from psinoise.noise._base import Noise
from psinoise.noise._family import Family
from psinoise.noise._parameter import Parameter
from psinoise.noise.airy import Airy
from psinoise.noise.gaussian import Gaussian
from psinoise.noise.laplace import Laplace
from psinoise.noise.schrodinger import Schrodinger
from psinoise.noise.stable import Cauchy, SymmetricStable

LAWS: tuple[type[Noise], ...] = (Gaussian, Laplace, Airy, SymmetricStable, Schrodinger)

#: What contract tests, benchmarks and comparisons go through: members that stand for each law.
FAMILIES: tuple[Family, ...] = tuple(
    Family(law, **shape) for law in LAWS for shape in law.representatives
)

__all__ = [
    "FAMILIES",
    "LAWS",
    "Airy",
    "Cauchy",
    "Family",
    "Gaussian",
    "Laplace",
    "Noise",
    "Parameter",
    "Schrodinger",
    "SymmetricStable",
]
