"""Fit the polynomials of ``psinoise.numerics.airy`` and write them.

Each number is rounded once, to nearest, from 70 digits. Every row starts with c0 as a rounded part
and its remainder, then c1, c2, ... in powers of u in [-1, 1], from Chebyshev interpolation at the
degree given here. The first omitted Chebyshev coefficients are asserted to stay below
``TRUNCATION``, relative to the function that the polynomial ends up in.

Usage: ``python tools/airy_constants.py [--check]``; with ``--check`` nothing is written and the
exit status is 1 if a committed file differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath
from mpmath import mpf

ROOT = Path(__file__).resolve().parents[1]
MODULE = ROOT / "python" / "psinoise" / "numerics" / "airy_coefficients.py"

DIGITS = 70
TRUNCATION = 2e-18
NEAR_END = 5.0  # the near region is 0 <= z - a1' < NEAR_END
PANELS_PER_UNIT = 4
NEAR_DEGREE = 13
FAR_DEGREE = 18
SPARE_NODES = 8  # nodes beyond the degree, so that aliasing stays below the truncation

Function = Callable[[mpf], mpf]


def rounded(x: mpf) -> float:
    """The double nearest to ``x``, whatever rounding ``float`` uses in this version of mpmath."""
    with mpmath.workprec(53):
        return float(+x)


def pair(x: mpf) -> tuple[float, float]:
    """``x`` as a double and the rounded remainder."""
    hi = rounded(x)
    return hi, rounded(x - mpf(hi))


def chebyshev(function: Function, lower: mpf, upper: mpf, count: int) -> list[mpf]:
    """Coefficients of the interpolant of ``function`` at ``count`` Chebyshev nodes."""
    angles = [mpmath.pi * (2 * k + 1) / (2 * count) for k in range(count)]
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    values = [function(middle + half * mpmath.cos(angle)) for angle in angles]
    coefficients = [
        2 * mpmath.fsum(v * mpmath.cos(j * a) for v, a in zip(values, angles, strict=True)) / count
        for j in range(count)
    ]
    coefficients[0] /= 2
    return coefficients


def monomials(coefficients: list[mpf]) -> list[mpf]:
    """The Chebyshev sum rewritten in powers of u."""
    total = [mpf(0)] * len(coefficients)
    previous, current = [mpf(1)], [mpf(0), mpf(1)]
    for coefficient in coefficients:
        for power, factor in enumerate(previous):
            total[power] += coefficient * factor
        doubled = [mpf(0)] + [2 * factor for factor in current]
        for power, factor in enumerate(previous):
            doubled[power] -= factor
        previous, current = current, doubled
    return total


def row(function: Function, lower: mpf, upper: mpf, degree: int, scale: float) -> list[float]:
    """c0 in two parts and c1, ..., c_degree; the truncation is relative to ``scale``."""
    fit = chebyshev(function, lower, upper, degree + 1 + SPARE_NODES)
    omitted = float(mpmath.fsum(abs(c) for c in fit[degree + 1 :]))
    if omitted > TRUNCATION * scale:
        raise ValueError(f"degree {degree} leaves {omitted / scale:.1e} on [{lower}, {upper}]")
    powers = monomials(fit[: degree + 1])
    return [*pair(powers[0]), *(rounded(c) for c in powers[1:])]


def log_airy(z: mpf) -> mpf:
    return mpmath.log(mpmath.airyai(z))


def decay(z: mpf) -> mpf:
    return -mpmath.airyai(z, derivative=1) / mpmath.airyai(z)


def decay_slope(z: mpf) -> mpf:
    return decay(z) ** 2 - z


def log_two_sqrt_pi() -> mpf:
    return mpmath.log(2 * mpmath.sqrt(mpmath.pi))


def near_rows(zero: mpf) -> list[list[float]]:
    """Three rows for every panel: log Ai(a1' + d), rho / d and rho' in d."""
    functions: list[Function] = [
        lambda d: log_airy(zero + d),
        lambda d: decay(zero + d) / d,
        lambda d: decay_slope(zero + d),
    ]
    rows = []
    for panel in range(int(NEAR_END * PANELS_PER_UNIT)):
        lower, upper = (mpf(panel + side) / PANELS_PER_UNIT for side in (0, 1))
        for function in functions:
            scale = min(1.0, abs(float(function((lower + upper) / 2))))
            rows.append(row(function, lower, upper, NEAR_DEGREE, scale))
    return rows


def far_rows(far_zeta: float) -> list[list[float]]:
    """log S / w, (R - 1) / w and (T - 1) / w in w = far_zeta / zeta, 0 < w < 1."""

    def point(w: mpf) -> mpf:
        return (mpf(3) / 2 * far_zeta / w) ** (mpf(2) / 3)

    def log_factor(w: mpf) -> mpf:
        z = point(w)
        return (log_airy(z) + far_zeta / w + log_two_sqrt_pi() + mpmath.log(z) / 4) / w

    def decay_factor(w: mpf) -> mpf:
        return (decay(point(w)) / mpmath.sqrt(point(w)) - 1) / w

    def slope_factor(w: mpf) -> mpf:
        return (decay_slope(point(w)) * 2 * mpmath.sqrt(point(w)) - 1) / w

    functions: list[Function] = [log_factor, decay_factor, slope_factor]
    return [row(function, mpf(0), mpf(1), FAR_DEGREE, 1.0) for function in functions]


def constants(zero: mpf, far_zeta: float) -> dict[str, float]:
    """The named numbers, under their Python names."""
    named = {
        "FIRST_SLOPE_ZERO": pair(zero),
        "LOG_PEAK": pair(log_airy(zero)),
        "TWO_THIRDS": pair(mpf(2) / 3),
        "LOG_TWO_SQRT_PI": pair(log_two_sqrt_pi()),
    }
    # The high part has 32 bits, so that its products with an exponent are exact.
    quarter = mpmath.log(2) / 4
    quarter_hi = mpmath.floor(mpmath.ldexp(quarter, 34)) / 2**34
    named["QUARTER_LOG_TWO"] = (rounded(quarter_hi), rounded(quarter - quarter_hi))
    result = {
        f"{name}_{part}": value
        for name, values in named.items()
        for part, value in zip(("HI", "LO"), values, strict=True)
    }
    return result | {"NEAR_END": NEAR_END, "FAR_ZETA": far_zeta}


def wrapped(values: list[float]) -> str:
    """Hexadecimal literals, four to a line."""
    literals = [value.hex() for value in values]
    return "\n".join(" ".join(literals[i : i + 4]) for i in range(0, len(literals), 4))


REMARKS = {
    "FIRST_SLOPE_ZERO_HI": "a1', the first zero of Ai'; HI + LO misses it by 4.2e-34",
    "LOG_PEAK_HI": "log Ai(a1')",
    "NEAR_END": "The near region is 0 <= z - a1' < NEAR_END",
    "FAR_ZETA": "The variable w = FAR_ZETA / zeta is 1 where the far region starts",
}


def module_text(named: dict[str, float], near: list[list[float]], far: list[list[float]]) -> str:
    lines = [
        '"""Constants of the Airy functions; generated by tools/airy_constants.py, do not edit.',
        "",
        "Rows: c0 as hi and lo, then c1, c2, ... in powers of u in [-1, 1].",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "import numpy as np",
        "from numpy.typing import NDArray",
        "",
        "",
        "def _table(text: str, *shape: int) -> NDArray[np.float64]:",
        "    return np.array([float.fromhex(word) for word in text.split()]).reshape(shape)",
        "",
        "",
    ]
    for name, value in named.items():
        if name in REMARKS:
            lines.append(f"# {REMARKS[name]}.")
        lines.append(f'{name} = float.fromhex("{value.hex()}")')
    lines += [
        "",
        f"PANELS_PER_UNIT = {PANELS_PER_UNIT}",
        f"NEAR_DEGREE = {NEAR_DEGREE}",
        f"FAR_DEGREE = {FAR_DEGREE}",
        "",
        "# For every panel in d = z - a1': log Ai, rho / d, rho'.",
        'NEAR = _table(\n    """',
        *(wrapped(r) for r in near),
        f'""",\n    {len(near) // 3},\n    3,\n    NEAR_DEGREE + 2,\n)',
        "",
        "# In w: log S / w, (R - 1) / w, (T - 1) / w.",
        'FAR = _table(\n    """',
        *(wrapped(r) for r in far),
        '""",\n    3,\n    FAR_DEGREE + 2,\n)',
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    check = parser.parse_args().check
    mpmath.mp.dps = DIGITS
    zero = mpmath.airyaizero(1, derivative=1)
    far_zeta = rounded(mpf(2) / 3 * (zero + NEAR_END) ** mpf("1.5"))
    text = module_text(constants(zero, far_zeta), near_rows(zero), far_rows(far_zeta))
    if check:
        return int(not MODULE.exists() or MODULE.read_text(encoding="utf-8") != text)
    MODULE.write_text(text, encoding="utf-8")
    print(f"wrote {MODULE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
