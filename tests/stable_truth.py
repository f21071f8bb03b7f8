"""What symmetric stable laws are compared with: stored values, and Holtsmark's law in mpmath."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import mpmath
from mpmath import mpf

#: Values of tools/stable_reference.py and of ball arithmetic; the file says which.
DATA = json.loads((Path(__file__).parent / "data" / "symmetric_stable.json").read_text("utf-8"))
#: Indices at which all formulas meet, as keywords of the law.
INDICES = [entry["index"] for entry in DATA["sweep"]]


@functools.cache
def _terms(alpha, count):
    with mpmath.workdps(150):
        alpha = mpf(alpha)
        near = [
            (-1) ** k
            * mpmath.gamma((2 * k + 1) / alpha)
            / (mpmath.pi * alpha * mpmath.factorial(2 * k))
            for k in range(count)
        ]
        far = [
            (-1) ** (k + 1)
            * mpmath.gamma(alpha * k + 1)
            * mpmath.sinpi(alpha * k / 2)
            / (mpmath.pi * mpmath.factorial(k))
            for k in range(1, count)
        ]
        return near, far


def holtsmark(t):
    """Density and survival function of index 3/2 by its two series, to 18 digits or more."""
    near, far = _terms(1.5, 420)
    t = mpf(t)
    if t <= 8:
        # The largest terms are about exp(4 t^3 / 27), and 45 t of them are not negligible.
        with mpmath.workdps(30 + int(t**3 / 7)):
            square = t * t
            density = mass = mpf(0)
            for k in reversed(range(40 + int(45 * t))):
                density, mass = density * square + near[k], mass * square + near[k] / (2 * k + 1)
            return density, mpf(1) / 2 - t * mass
    w = t ** mpf(-1.5)
    density = survival = mpf(0)
    previous = mpmath.inf
    for k, a in enumerate(far, start=1):
        term = a * w**k
        # Every fourth term is 0.
        if abs(term) > previous or 0 < abs(term) < survival * mpf(10) ** -40:
            break
        density, survival = density + term / t, survival + term / (mpf(1.5) * k)
        previous = abs(term) if term else previous
    return density, survival
