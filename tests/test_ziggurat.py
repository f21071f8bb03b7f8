"""The strips: equal areas, cover, conservative thresholds, and masses that add up."""

from __future__ import annotations

import numpy as np
import pytest

from psinoise import _core as native
from psinoise import reference
from psinoise.compile import LAYOUT
from psinoise.compile.ziggurat import strips

FORMATS = {"wide": (2048, np.uint64, 32), "narrow": (1024, np.uint32, 12)}


class Strips:
    """A ziggurat, decoded without the package's own code."""

    def __init__(self, arguments, low_bits):
        self.entries, self.heights, self.edge, self.depth = arguments
        real = np.float64 if self.entries.dtype == np.uint64 else np.float32
        self.widths = self.entries.view(real).astype(float)
        mask = self.entries.dtype.type((1 << low_bits) - 1)
        self.fractions = (self.entries & mask).astype(float) / 2.0**low_bits


@pytest.fixture(params=FORMATS)
def form(request):
    return request.param


@pytest.fixture
def zig(law_class, tables_of, form):
    return Strips(getattr(tables_of(law_class), form), FORMATS[form][2])


def areas(zig):
    return zig.widths * np.diff(zig.heights)


def not_covered(zig, law):
    """How far the curve sticks out to the right of the strips, relative to the curve.

    Strip i starts at the height of the curve at its right end, or above it: then every point under
    the curve at that height or higher lies to the left. Strip 0 ends at the edge of the tail.
    """
    right = np.concatenate([[zig.edge], zig.widths[1:]])
    start = zig.heights[:-1].copy()
    start[0] = zig.heights[1]
    return (law.pdf(right) / start - 1.0).max()


def thresholds_beyond_the_curve(zig, law):
    """How far accepted-at-once points lie above the curve, relative to the curve."""
    inner = zig.fractions * zig.widths
    return (zig.heights[1:] / law.pdf(inner) - 1.0)[:-1].max()


def test_shapes(zig, form):
    layers, dtype, _ = FORMATS[form]
    assert zig.entries.shape == (layers,)
    assert zig.entries.dtype == dtype
    assert zig.heights.shape == (layers + 1,)
    assert zig.heights[0] == 0.0
    assert (np.diff(zig.heights) > 0.0).all()
    assert (np.diff(zig.widths[1:]) <= 0.0).all()


def test_areas_are_equal_to_1e12(zig):
    """Kills: heights of neighboring strips swapped, a width that lost its low bits."""
    area = areas(zig)
    # Heights are sums: their rounding is 2**-53 of the mode, strips are at least 1e-4 of it wide.
    assert np.ptp(area) / area[0] < 1e-12
    swapped = zig.heights.copy()
    swapped[[100, 101]] = swapped[[101, 100]]
    mutant = zig.widths * np.diff(swapped)
    assert np.ptp(mutant) / area[0] > 1e-12


def test_strips_cover_the_curve(zig, law):
    """Kills: widths rounded down. 1e-13 is the error of the tables and of the inverse."""
    assert not_covered(zig, law) < 1e-13
    zig.widths = zig.widths * (1.0 - 1e-3)
    assert not_covered(zig, law) > 1e-13


def test_thresholds_are_conservative(zig, law, form):
    """Kills: thresholds rounded up, or three units too high, anywhere."""
    assert thresholds_beyond_the_curve(zig, law) < 1e-13
    unit = 2.0 ** -FORMATS[form][2]
    zig.fractions = zig.fractions + 3.0 * unit
    assert thresholds_beyond_the_curve(zig, law) > 1e-13


def test_thresholds_are_not_needlessly_low(zig, law, form):
    """What the search for a threshold that is part of its own width gives away: next to nothing."""
    slack = {"wide": 1024.0, "narrow": 3.0}[form] * 2.0 ** -FORMATS[form][2]
    inner = ((zig.fractions + slack) * zig.widths)[1:-1]
    assert (law.pdf(inner) <= zig.heights[2:-1]).all()


def test_base_threshold_stays_below_the_edge(zig):
    assert zig.fractions[0] * zig.widths[0] <= zig.edge
    assert zig.widths[0] > zig.edge


def test_tail_mass_is_exact(zig, law):
    """P(tail | strip 0) times the area of strip 0 is the survival function at the edge."""
    tail_share = 1.0 - zig.edge / zig.widths[0]
    survival = law.ccdf(zig.edge)
    # The subtraction loses the digits of edge / (width - edge), at most a factor 16.
    assert tail_share * areas(zig)[0] == pytest.approx(survival, rel=16 * 2e-14, abs=0)
    assert zig.depth == pytest.approx(-np.log(2.0) - law.logccdf(zig.edge), rel=1e-15, abs=1e-15)


def test_strips_add_up(zig, form):
    """All layers together cover half the mass and a known small excess."""
    total = areas(zig).sum()
    assert total > 0.5
    wedges = zig.widths[1:] * (1.0 - zig.fractions[1:]) * np.diff(zig.heights)[1:]
    assert total - 0.5 < wedges.sum()  # what is drawn in vain is drawn in wedges
    # Draws that need more than one look: 0.3 % and 1.2 % for well-behaved laws.
    undecided = np.mean(1.0 - zig.fractions)
    assert undecided < {"wide": 0.005, "narrow": 0.02}[form]


def test_last_strip_ends_just_above_the_mode(zig, law):
    mode = law.pdf(0.0)
    assert zig.heights[-1] >= mode
    last = zig.heights[-1] - zig.heights[-2]
    # What is above is rejected: one draw in 16 times the layers, and rounded widths cost as much.
    assert zig.heights[-1] - mode <= 0.0625 * last * (1.0 + 1e-9)


@pytest.mark.deep
def test_native_equals_reference(law_class, tables_of):
    tables = tables_of(law_class)
    for name, (layers, _, _) in FORMATS.items():
        edge = getattr(tables, name)[2]
        for candidate in (edge, edge * 1.001, edge * 0.9):
            ours, twin = (
                core.ziggurat(tables.log_density, tables.log_mills, candidate, layers)
                for core in (native, reference)
            )
            # An edge that is too small stops the recursion early; only the flag counts then.
            assert np.isinf(ours[1][-1]) == np.isinf(twin[1][-1])
            if np.isfinite(ours[1][-1]):
                np.testing.assert_array_equal(ours[0], twin[0])
                np.testing.assert_array_equal(ours[1], twin[1])
            assert ours[2:] == twin[2:]


def test_too_small_an_edge_is_flagged(core, law_class, tables_of):
    tables = tables_of(law_class)
    _, heights, _, _ = core.ziggurat(tables.log_density, tables.log_mills, 0.5, 1024)
    assert np.isinf(heights[-1])


def test_bad_arguments(core, law_class, tables_of):
    tables = tables_of(law_class)
    with pytest.raises(ValueError, match="layers must be 2048 or 1024"):
        core.ziggurat(tables.log_density, tables.log_mills, 3.0, 256)


def test_the_search_is_repeatable(law_class, tables_of):
    tables = tables_of(law_class)
    again = strips(tables.log_density, tables.log_mills, LAYOUT, 1024)
    np.testing.assert_array_equal(again[0], tables.narrow[0])
    np.testing.assert_array_equal(again[1], tables.narrow[1])
