"""Write tests/data/symmetric_stable.json: the part that is a sweep over index and argument.

Densities and tails of symmetric stable laws by Fourier's integral along a ray of the complex plane,
in mpmath, at 22 digits: a method that the package does not use. The other parts of the file come
from elsewhere (its "origin" says from where) and are kept.

Run from the root of the repository with the package installed; takes about ten minutes.
"""

from __future__ import annotations

import json
from pathlib import Path

import mpmath
import numpy as np
from mpmath import mpf

from psinoise import SymmetricStable
from psinoise.noise._stable_series import series

FILE = Path(__file__).parents[1] / "tests" / "data" / "symmetric_stable.json"

INDICES = [
    {"alpha": 0.1},
    {"alpha": 0.3},
    {"alpha": 0.5},
    {"alpha": 0.65},
    {"alpha": 0.9},
    {"alpha_minus_one": -1e-6},
    {"alpha_minus_one": 1e-12},
    {"alpha": 1.07},
    {"alpha": 1.3},
    {"alpha": 1.45},
    {"alpha": 1.65},
    {"alpha": 1.78},
    {"alpha": 1.97},
    {"alpha": 1.9995},
    {"two_minus_alpha": 1e-5},
    {"two_minus_alpha": 1e-7},
    {"two_minus_alpha": 1e-12},
]


def density(alpha, y, digits=20):
    """Fourier's integral on a ray of the complex plane, by the trapezoidal rule."""
    ray = _ray(alpha, y, digits, lambda t, power, wave: t * mpmath.exp(-power + wave), True)
    return ray.real


def survival(alpha, y, digits=20):
    """``Im of integral (1 - exp(-t**alpha)) exp(i t y) dt / (pi t)``: positive down to any tail."""
    ray = _ray(
        alpha, y, digits, lambda t, power, wave: -mpmath.expm1(-power) * mpmath.exp(wave), False
    )
    return ray.imag


def _ray(alpha, y, digits, integrand, ends_early):
    """``integral of integrand(t) dv / pi`` over ``t = exp(v + i phi)``.

    What the integral of the other part, real or imaginary, cancels is unknown beforehand: the
    digits are those of the smallest probability in sight.
    """
    y = mpf(y)
    depth = int(max(0, mpmath.log10(1 + y)) * (1 + alpha)) + 20
    with mpmath.workdps(digits + depth):
        alpha = mpf(alpha)
        phi = min(mpmath.pi / 3, mpmath.pi / (3 * alpha))
        turn = mpmath.expjpi(phi / mpmath.pi)
        power_turn = mpmath.expjpi(alpha * phi / mpmath.pi)
        # Analytic for |Im v| below about pi / 6 around phi.
        reach = (digits + depth) * mpmath.log(10)
        step = 2 * mpmath.pi * min(mpmath.pi / 6, mpmath.pi / (6 * alpha)) / reach
        low = min(-mpmath.log(1 + y), mpf(0)) - reach / min(alpha, mpf(1))
        high = mpmath.log(reach / (y * mpmath.sin(phi)))
        if ends_early:
            high = min(high, mpmath.log(reach / mpmath.cos(alpha * phi)) / alpha)
        total = mpmath.mpc(0)
        grow, power_grow = mpmath.exp(step), mpmath.exp(alpha * step)
        t, power = mpmath.exp(low) * turn, mpmath.exp(alpha * low) * power_turn
        for _ in range(int((high - low) / step) + 2):
            total += integrand(t, power, 1j * t * y)
            t, power = t * grow, power * power_grow
        return total * step / mpmath.pi


def points(law):
    """Both sides of where the package changes its formula, between, close in and far out."""
    formulas = series(*law._shape)
    near, far = formulas.near, formulas.far
    generator = np.random.default_rng(int(1e6 * law.alpha))
    between = near * (far / near) ** generator.uniform(0.0, 1.0, 4)
    return [
        near * (1 - 1e-9),
        far * (1 + 1e-9),
        1e-200,
        *between,
        *10.0 ** generator.uniform(1, 12, 3),
    ]


def main():
    """Compute the sweep and write the file."""
    found = []
    for words in INDICES:
        ((name, value),) = words.items()
        with mpmath.workdps(50):
            signed = -mpf(value) if name == "two_minus_alpha" else mpf(value)
            alpha = {"alpha": 0, "two_minus_alpha": 2, "alpha_minus_one": 1}[name] + signed
        rows = []
        for y in points(SymmetricStable(**words, scale=1.0)):
            with mpmath.workdps(30):
                values = density(alpha, float(y), 25), survival(alpha, float(y), 25)
                rows.append([float(y).hex(), *(mpmath.nstr(v, 22) for v in values)])
        found.append({"index": words, "rows": rows})
        print(words, flush=True)
    data = json.loads(FILE.read_text("utf-8"))
    data["sweep"] = found
    FILE.write_text(json.dumps(data).replace("], [", "],\n[") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
