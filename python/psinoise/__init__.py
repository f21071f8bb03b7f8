"""Optimal differential-privacy noise: sampled, evaluated and accounted.

A noise law is data, the machinery is generic: see :mod:`psinoise.noise` for the laws,
:class:`Mechanism` and :class:`Accountant` for privacy, and ``python -m psinoise`` for the command
line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psinoise import costs, sampling
from psinoise._backend import core as _kernels
from psinoise._lazy import lazy_names
from psinoise._version import __version__ as __version__
from psinoise.errors import BudgetError, CalibrationError, CertificationError, DomainError
from psinoise.noise import Noise, _laws
from psinoise.noise._laws import *  # noqa: F403

if TYPE_CHECKING:
    from psinoise.accounting import Accountant
    from psinoise.accounting.bracket import Bracket
    from psinoise.calibration import calibrate, noise_multiplier
    from psinoise.calibration.stable import calibrate_stable
    from psinoise.comparison import compare
    from psinoise.ledger import Ledger
    from psinoise.mechanisms import LatticeMechanism, Mechanism, promises
    from psinoise.release import LatticeNoise
    from psinoise.release.exact_sum import exact_sum
    from psinoise.release.exact_sums import exact_sums
else:
    # To load these takes longer than all that is above.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            __name__: ("accounting", "ledger", "mechanisms", "release"),
            "psinoise.accounting": ("Accountant",),
            "psinoise.accounting.bracket": ("Bracket",),
            "psinoise.calibration": ("calibrate", "noise_multiplier"),
            "psinoise.calibration.stable": ("calibrate_stable",),
            "psinoise.comparison": ("compare",),
            "psinoise.ledger": ("Ledger",),
            "psinoise.mechanisms": ("LatticeMechanism", "Mechanism", "promises"),
            "psinoise.release": ("LatticeNoise",),
            "psinoise.release.exact_sum": ("exact_sum",),
            "psinoise.release.exact_sums": ("exact_sums",),
        },
        {"calibrate_release": "in 0.2 by calibrate(..., on_lattice=True)"},
    )

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
