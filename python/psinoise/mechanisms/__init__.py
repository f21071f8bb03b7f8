"""Mechanisms: what an accountant composes, and what can be released.

A `Mechanism` is the ideal law on a query; a `LatticeMechanism` is what is released of it; promises
and imported losses are steps that are known by their privacy alone.
"""

from __future__ import annotations

from psinoise.mechanisms import promises
from psinoise.mechanisms.imports import DiscreteLoss
from psinoise.mechanisms.lattice_mechanism import LatticeMechanism
from psinoise.mechanisms.mechanism import Mechanism

__all__ = ["DiscreteLoss", "LatticeMechanism", "Mechanism", "promises"]
