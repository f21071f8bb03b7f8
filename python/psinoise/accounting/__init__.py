"""Privacy accounting: from a noise law to epsilon and delta of any composition."""

from __future__ import annotations

from psinoise.accounting.accountant import Accountant
from psinoise.accounting.lattice.discrete import DiscreteLoss
from psinoise.accounting.lattice_mechanism import LatticeMechanism
from psinoise.accounting.mechanism import Mechanism

__all__ = ["Accountant", "DiscreteLoss", "LatticeMechanism", "Mechanism"]
