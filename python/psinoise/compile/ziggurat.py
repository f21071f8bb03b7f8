"""The edge of strip 0 that makes the strips of a ziggurat end at the mode."""

from __future__ import annotations

import numpy as np

from psinoise._backend import core
from psinoise.compile.panels import Float, Layout, PanelArguments

# Edges are found to this relative width; what is left of the last strip above the mode is rejected,
# which costs about layers * 2**-24 of the draws.
_RESOLUTION = 2.0**-24
_ATTEMPTS = 200


def strips(
    log_density: PanelArguments, log_mills: PanelArguments, layout: Layout, layers: int
) -> tuple[np.ndarray, Float, float, float]:
    """Strips of equal area that cover the half density.

    Larger edges give smaller strips. ``low`` always covers the mode and ``high`` never does; the
    answer is ``low`` once the two are close.
    """
    centers, halves = layout.centers()
    edges = centers + halves * (1.0 - 2.0**-20)
    zero = np.zeros_like(edges)
    density = core.exponential(core.panel_values(*log_density, edges), zero)
    mills = core.exponential(core.panel_values(*log_mills, edges), zero)
    # The area of a strip is that of strip 0; a little more than 1/2 is covered by all of them. It
    # decreases in the edge for a decreasing density: d/dr (r p + S) = r p' <= 0.
    area = edges * density + density * mills
    share = 0.5 / layers
    low = float(edges[np.flatnonzero(area >= 1.25 * share)[-1]])
    high = float(edges[np.flatnonzero(area < share)[0]])
    mode = core.exponential(core.panel_values(*log_density, np.zeros(1)), np.zeros(1))[0]
    found = None
    edge = low + 0.5 * (high - low)
    for _ in range(_ATTEMPTS):
        candidate = core.ziggurat(log_density, log_mills, edge, layers)
        reached = candidate[1][-1]
        if reached >= mode:
            low = edge
            found = candidate if reached < np.inf else found
        else:
            high = edge
        if high - low > _RESOLUTION * low:
            edge = low + 0.5 * (high - low)
        elif found is not None:
            return found
        else:
            # Rounded widths jump, and the strips with them: look a little further down.
            edge = edge * (1.0 - 16.0 * _RESOLUTION)
    raise ValueError(f"no ziggurat of {layers} layers covers the density")
