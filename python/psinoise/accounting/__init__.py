"""Privacy accounting: from pairs of laws to epsilon and delta of any composition.

The package has floors, and imports go down: ``loss`` (one use), ``estimate`` (a composition, by
contour integration), ``compose`` (bounds on a composition), and on top of them the modules here:
what can be asked of an `Accountant`. What it composes is in ``psinoise.mechanisms``.
"""

from __future__ import annotations

from psinoise.accounting import hypotheses
from psinoise.accounting.accountant import Accountant
from psinoise.accounting.moments import moments_epsilon

__all__ = ["Accountant", "hypotheses", "moments_epsilon"]
