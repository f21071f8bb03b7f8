"""The edge of strip 0 that makes the strips of a ziggurat end at the mode."""

from __future__ import annotations

import numpy as np

from psinoise._backend import core
from psinoise.compile.panels import Float, Layout, PanelArguments

# How much of the last strip may lie above the mode: one draw in 16 * layers is rejected there.
_ABOVE = 2.0**-4
# Rounded widths jump, and the strips with them: after so many edges a worse one will do.
_USUAL = 12
_ATTEMPTS = 100

Strips = tuple[np.ndarray, Float, float, float]


def strips(
    log_density: PanelArguments, log_mills: PanelArguments, layout: Layout, layers: int
) -> Strips:
    """Strips of equal area that cover the half density and end just above the mode.

    Larger edges give smaller strips, of which more are needed: about one over their area. ``low``
    needs too few, ``high`` too many, and the next edge is where the secant through the last two
    says, or half way if that is not between.
    """

    def area(edges: Float) -> Float:
        # That of strip 0, which decreases in the edge for a decreasing density:
        # d/dr (r p + S) = r p' <= 0.
        zero = np.zeros_like(edges)
        density = core.exponential(core.panel_values(*log_density, edges), zero)
        mills = core.exponential(core.panel_values(*log_mills, edges), zero)
        return edges * density + density * mills

    mode = float(core.exponential(core.panel_values(*log_density, np.zeros(1)), np.zeros(1))[0])
    centers, halves = layout.centers()
    edges = centers + halves * (1.0 - 2.0**-20)
    for _ in range(2):
        # A little more than 1/2 is covered by all strips.
        areas = layers * area(edges)
        first, last = np.flatnonzero(areas >= 0.625)[-1], np.flatnonzero(areas < 0.5)[0]
        low, high = float(edges[first]), float(edges[last])
        before, now = ((float(edges[i]), 0.5 * layers / float(areas[i])) for i in (first, last))
        edges = low + (high - low) * (np.arange(65.0) / 64.0)
    wanted = layers - 0.5 * _ABOVE
    best = 0.0
    found: Strips | None = None
    for attempt in range(_ATTEMPTS):
        edge = now[0] + (now[0] - before[0]) * ((wanted - now[1]) / (now[1] - before[1]))
        if not low < edge < high:
            edge = low + 0.5 * (high - low)
        candidate = core.ziggurat(log_density, log_mills, edge, layers)
        before, now = now, (edge, _count(candidate[1], mode))
        if max(best, layers - 1) < now[1] <= layers:
            best, found = now[1], candidate
        if found is not None and (best >= layers - _ABOVE or attempt >= _USUAL):
            return found
        low, high = (edge, high) if now[1] <= layers else (low, edge)
    raise ValueError(f"no ziggurat of {layers} layers covers the density")


def _count(heights: Float, mode: float) -> float:
    """How many strips reach the mode, with the part of the last one that is below it."""
    last = min(int(np.searchsorted(heights, mode)), heights.size - 1)
    below, above = float(heights[last - 1]), float(heights[last])
    return last - 1 + (mode - below) / (above - below)
