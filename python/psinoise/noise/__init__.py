"""The noise laws, and what they have in common."""

from __future__ import annotations

from psinoise.noise import _laws
from psinoise.noise._base import Noise
from psinoise.noise._family import Family, Parameter
from psinoise.noise._interface import NoiseLaw
from psinoise.noise._laws import *  # noqa: F403
from psinoise.noise._laws import DESIGNED, LAWS
from psinoise.noise._piecewise import PiecewiseNoise
from psinoise.noise._target import PrivacyTarget

#: What contract tests, benchmarks and comparisons go through: members that stand for each law.
FAMILIES: tuple[Family, ...] = tuple(
    Family(law, **shape) for law in LAWS for shape in law.representatives
)

__all__ = [
    "DESIGNED",
    "FAMILIES",
    "LAWS",
    "Family",
    "Noise",
    "NoiseLaw",
    "Parameter",
    "PiecewiseNoise",
    "PrivacyTarget",
]
__all__ += _laws.__all__
