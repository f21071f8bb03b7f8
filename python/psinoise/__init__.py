"""Optimal differential-privacy noise: sampled, evaluated and accounted.

A noise law is data, the machinery is generic: see :mod:`psinoise.noise` for the laws,
:class:`Mechanism` and :class:`Accountant` for privacy, and ``python -m psinoise`` for the command
line.
"""

from __future__ import annotations

from typing import Any

from psinoise import costs, sampling
from psinoise._backend import core as _kernels
from psinoise._version import __version__ as __version__
from psinoise.accounting import Accountant
from psinoise.accounting.bracket import Bracket
from psinoise.calibrate import calibrate, noise_multiplier
from psinoise.calibrate_stable import calibrate_stable
from psinoise.compare import compare
from psinoise.errors import BudgetError, CalibrationError, CertificationError, DomainError
from psinoise.ledger import Ledger
from psinoise.mechanisms import LatticeMechanism, Mechanism, promises
from psinoise.noise import Noise, _laws
from psinoise.noise._laws import *  # noqa: F403
from psinoise.release import LatticeNoise, exact_sum, exact_sums

__all__ = [
    "Accountant",
    "Bracket",
    "BudgetError",
    "CalibrationError",
    "CertificationError",
    "DomainError",
    "LatticeMechanism",
    "LatticeNoise",
    "Ledger",
    "Mechanism",
    "Noise",
    "build_config",
    "calibrate",
    "calibrate_stable",
    "compare",
    "costs",
    "exact_sum",
    "exact_sums",
    "noise_multiplier",
    "promises",
    "sampling",
]
__all__ += _laws.__all__


def build_config() -> dict[str, Any]:
    """What this installation is made of.

    Returns
    -------
    dict
        ``version``, ``backend`` ("native" or "reference"), ``isa`` in use, ``isa_available``,
        ``compiler``, ``build_type`` and ``cores``.

    Examples
    --------
    >>> import psinoise as pn
    >>> pn.build_config()["backend"] in {"native", "reference"}
    True
    """
    return {**_kernels.build_config(), "version": __version__}
