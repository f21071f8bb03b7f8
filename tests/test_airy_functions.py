"""log Ai, -Ai'/Ai and its slope against mpmath."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from psinoise.numerics.airy import airy
from psinoise.numerics.airy_coefficients import (
    FIRST_SLOPE_ZERO_HI,
    FIRST_SLOPE_ZERO_LO,
    LOG_PEAK_HI,
    LOG_PEAK_LO,
    NEAR_END,
    PANELS_PER_UNIT,
)

ROOT = Path(__file__).resolve().parents[1]
ULP = 2.0**-53
# a1' is a pair of doubles here; what the pair misses, times rho'(a1').
ZERO_RESIDUAL = 5e-34


@pytest.fixture(scope="module")
def reference():
    text = (ROOT / "tests" / "data" / "airy_functions.json").read_text(encoding="utf-8")
    rows = [[float.fromhex(part) for part in row] for row in json.loads(text)["values"]]
    return np.ascontiguousarray(np.array(rows).T)


def panel_edges():
    """The doubles next to every edge of a panel or region, as pairs with a zero low part."""
    edges = FIRST_SLOPE_ZERO_HI + np.arange(int(NEAR_END * PANELS_PER_UNIT) + 1) / PANELS_PER_UNIT
    below, above = np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)
    return np.concatenate([below, edges, above])


def test_log_is_a_pair_accurate_beyond_a_double(reference):
    z_hi, z_lo, hi, lo = reference[:4]
    log_hi, log_lo, _, _ = airy(z_hi, z_lo)
    error = np.abs((log_hi - hi) + (log_lo - lo))
    assert np.all(np.abs(log_lo) <= 0.5 * np.spacing(np.abs(log_hi)))
    # A near panel rounds sums of up to 0.3, the far region sums of up to 0.1, and zeta as a pair.
    bound = np.where(z_hi < NEAR_END + FIRST_SLOPE_ZERO_HI, 1.2e-16, 4e-17 + 2.0**-100 * np.abs(hi))
    assert np.all(error <= bound)


def test_density_keeps_its_digits_down_to_underflow(reference):
    z_hi, z_lo, hi, lo = reference[:4]
    normal = hi > -354.0
    log_hi, log_lo, _, _ = airy(z_hi[normal], z_lo[normal])
    relative_error_of_square = 2.0 * ((log_hi - hi[normal]) + (log_lo - lo[normal]))
    assert np.max(np.abs(relative_error_of_square)) < 2.4e-16


def test_decay_is_accurate_up_to_its_zero(reference):
    z_hi, z_lo = reference[:2]
    hi, lo = reference[4:6]
    error = np.abs((airy(z_hi, z_lo)[2] - hi) - lo)
    assert np.all(error <= 0.65 * np.spacing(np.abs(hi)) + ZERO_RESIDUAL)


def test_decay_slope_does_not_cancel(reference):
    z_hi, z_lo = reference[:2]
    hi, lo = reference[6:8]
    error = np.abs((airy(z_hi, z_lo)[3] - hi) - lo)
    assert np.all(error <= 0.7 * np.spacing(hi))


def test_riccati_equation():
    generator = np.random.default_rng(3)
    z = generator.uniform(FIRST_SLOPE_ZERO_HI, 20.0, 5000)
    _, _, decay, slope = airy(z, np.zeros_like(z))
    # rho^2 - z cancels to rho': the rounding of rho^2, of rho (twice) and of the difference remain.
    bound = 2.0 * ULP * (2.0 * decay**2 + np.abs(z) + slope)
    assert np.all(np.abs(decay**2 - z - slope) <= bound)


def test_regions_and_panels_join():
    edges = panel_edges().reshape(3, -1)
    # a1' itself has no left neighbor.
    below, middle, above = (airy(z[1:], np.zeros(z.size - 1)) for z in edges)
    step = edges[2, 1:] - edges[0, 1:]
    jump = (above[0] - below[0]) + (above[1] - below[1])
    # The slopes -rho, rho' and rho'' = 2 rho rho' - 1 in (-1, 0] explain the difference.
    assert np.all(np.abs(jump + middle[2] * step) <= 2e-16)
    assert np.all(np.abs(above[2] - below[2] - middle[3] * step) <= 1.4 * np.spacing(middle[2]))
    slope_change = (2.0 * middle[2] * middle[3] - 1.0) * step
    assert np.all(np.abs(above[3] - below[3] - slope_change) <= 1.4 * np.spacing(middle[3]))


def test_first_zero_of_the_slope():
    log_hi, log_lo, decay, slope = airy(
        np.array([FIRST_SLOPE_ZERO_HI]), np.array([FIRST_SLOPE_ZERO_LO])
    )
    assert abs((log_hi[0] - LOG_PEAK_HI) + (log_lo[0] - LOG_PEAK_LO)) < 1e-17
    assert decay[0] == 0.0
    assert slope[0] == -FIRST_SLOPE_ZERO_HI


def test_decay_is_the_distance_times_the_slope_close_to_the_zero():
    distance = 2.0 ** np.arange(-60.0, -26.0)
    z_hi = np.full_like(distance, FIRST_SLOPE_ZERO_HI) + distance
    z_lo = (distance - (z_hi - FIRST_SLOPE_ZERO_HI)) + FIRST_SLOPE_ZERO_LO
    # rho = |a1'| d - d^2 / 2 + ...; z_lo itself is rounded, by up to 2^-106.
    expected = distance * (-FIRST_SLOPE_ZERO_HI - 0.5 * distance)
    error = np.abs(airy(z_hi, z_lo)[2] - expected)
    assert np.all(error <= 2.0 * distance * (distance**2 + ULP) + 2.0**-104)


@pytest.mark.parametrize("z", [np.nan, -np.inf, -1.02, FIRST_SLOPE_ZERO_HI - 2.0**-51])
def test_outside_the_domain(z):
    assert all(np.isnan(value[0]) for value in airy(np.array([z]), np.zeros(1)))


def test_limits_at_infinity():
    z = np.array([np.nextafter(2.0**600, 0.0), np.nextafter(2.0**600, np.inf), 1e308, np.inf])
    log_hi, log_lo, decay, slope = airy(z, np.zeros(4))
    np.testing.assert_allclose(log_hi[:2], -(2.0 / 3.0) * z[:2] * np.sqrt(z[:2]), rtol=4 * ULP)
    np.testing.assert_array_equal(log_hi[2:], [-np.inf, -np.inf])
    np.testing.assert_array_equal(log_lo[1:], [0.0, 0.0, 0.0])
    np.testing.assert_allclose(decay, np.sqrt(z), rtol=2 * ULP)
    np.testing.assert_allclose(slope, 0.5 / np.sqrt(z), rtol=2 * ULP)


def test_committed_constants_are_those_of_the_generator():
    pytest.importorskip("mpmath")
    tool = ROOT / "tools" / "airy_constants.py"
    assert subprocess.run([sys.executable, str(tool), "--check"], check=False).returncode == 0
