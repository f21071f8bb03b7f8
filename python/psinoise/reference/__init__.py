"""NumPy twins of the compiled kernels.

Same names and signatures as the extension (``_core.pyi``). They define what the kernels must
return: the same bits, except where a kernel's documentation states a tolerance. Selected by
``PSINOISE_BACKEND=reference``; they import NumPy only.
"""

from __future__ import annotations

import os
from typing import Any

from psinoise.numerics.elementary import exponential, log_one_plus, logarithm
from psinoise.reference.band import band_backward, band_cholesky, band_forward, gram
from psinoise.reference.cell_values import CellLaw, evaluate_cells, inverse_survival_cells
from psinoise.reference.cells import CellTable, sample_cells
from psinoise.reference.lattice import Transform, balanced_nodes, graded_edges
from psinoise.reference.law import LawTable, evaluate, inverse_survival, panel_values
from psinoise.reference.losses import loss_bins, loss_panels, panel_pieces, point_losses
from psinoise.reference.release import (
    LatticeTable,
    SecretKey,
    all_finite,
    lattice_cells,
    lattice_choices,
    lattice_columns,
    lattice_noise,
    lattice_release,
)
from psinoise.reference.riccati import ground_state, riccati
from psinoise.reference.sample import sample
from psinoise.reference.stable import stable_sums
from psinoise.reference.stream import chacha_block, stream_words
from psinoise.reference.sums import (
    binned_products,
    characteristic,
    excess_above,
    largest_rows,
    log_mgf,
    missing_near,
    peaks_above,
    placed_sums,
    suffix_sums,
    tilted_moments,
    wave_sums,
)
from psinoise.reference.ziggurat import ziggurat

__all__ = [
    "CellLaw",
    "CellTable",
    "LatticeTable",
    "LawTable",
    "SecretKey",
    "Transform",
    "all_finite",
    "balanced_nodes",
    "band_backward",
    "band_cholesky",
    "band_forward",
    "binned_products",
    "build_config",
    "chacha_block",
    "characteristic",
    "evaluate",
    "evaluate_cells",
    "excess_above",
    "exponential",
    "graded_edges",
    "gram",
    "ground_state",
    "inverse_survival",
    "inverse_survival_cells",
    "largest_rows",
    "lattice_cells",
    "lattice_choices",
    "lattice_columns",
    "lattice_noise",
    "lattice_release",
    "log_mgf",
    "log_one_plus",
    "logarithm",
    "loss_bins",
    "loss_panels",
    "missing_near",
    "panel_pieces",
    "panel_values",
    "peaks_above",
    "placed_sums",
    "point_losses",
    "riccati",
    "sample",
    "sample_cells",
    "stable_sums",
    "stream_words",
    "suffix_sums",
    "tilted_moments",
    "wave_sums",
    "ziggurat",
]


def build_config() -> dict[str, Any]:
    """What runs the kernels; the keys are those of the compiled module."""
    return {
        "backend": "reference",
        "isa": "numpy",
        "isa_available": ("numpy",),
        "compiler": "none",
        "build_type": "none",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
    }
