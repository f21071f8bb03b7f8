"""Privacy accounting: from a noise law to epsilon and delta of any composition.

The package has floors, and imports go down: ``loss`` (one use), ``estimate`` (a composition, by
contour integration), ``compose`` (bounds on a composition), and on top of them the modules here:
what can be asked of a `Mechanism` and an `Accountant`.
"""

from __future__ import annotations

from psinoise.accounting import hypotheses, promises
from psinoise.accounting.accountant import Accountant
from psinoise.accounting.imports import DiscreteLoss
from psinoise.accounting.lattice_mechanism import LatticeMechanism
from psinoise.accounting.mechanism import Mechanism
from psinoise.accounting.moments import moments_epsilon

__all__ = [
    "Accountant",
    "DiscreteLoss",
    "LatticeMechanism",
    "Mechanism",
    "hypotheses",
    "moments_epsilon",
    "promises",
]
