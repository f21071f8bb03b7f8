"""Write tests/data/symmetric_stable.json: the part that is a sweep over index and argument.

Densities and tails of symmetric stable laws by Fourier's integral along a ray of the complex plane,
in ball arithmetic (python-flint), to 20 digits: a method that the package does not use. The other
parts of the file come from elsewhere (its "origin" says from where) and are kept.

Run from the root of the repository with the package installed; takes about a minute.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from flint import acb, arb, ctx

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


def fourier(alpha, y, digits):
    """Density and survival function by Fourier's integral on a ray ``t = exp(v + i phi)``.

    ``pi p = Re of integral of exp(i t y - t**alpha) dt`` and
    ``pi P = Im of integral of (1 - exp(-t**alpha)) exp(i t y) dt / t``, by the trapezoidal rule in
    ``v``. What cancels is unknown beforehand: the digits are those of the smallest probability in
    sight.
    """
    depth = int(max(0.0, math.log10(1.0 + y)) * (1.0 + float(alpha))) + 20
    ctx.dps = digits + depth
    y, alpha = arb(y), arb(alpha)
    reach = (digits + depth) * math.log(10.0)
    index = float(alpha)
    phi = min(1.0, 1.0 / index) * math.pi / 3.0
    # Analytic for |Im v| below about pi / 6 around phi.
    step = arb(2.0 * math.pi * min(1.0, 1.0 / index) * math.pi / 6.0 / reach)
    low = -math.log1p(float(y)) - reach / min(index, 1.0)
    high = math.log(reach / math.sin(phi)) - math.log(float(y))
    early = math.log(reach / math.cos(index * phi)) / index
    density, tail = acb(0), acb(0)
    t, power = acb(low, phi).exp(), (alpha * acb(low, phi)).exp()
    grow, power_grow = step.exp(), (alpha * step).exp()
    for k in range(int((high - low) / float(step)) + 2):
        wave = (acb(0, 1) * t * y).exp()
        if low + k * float(step) < early:
            density += t * (wave * (-power).exp())
        tail -= (-power).expm1() * wave
        t, power = t * grow, power * power_grow
    share = step / arb.pi()
    return (density * share).real, (tail * share).imag


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
        ctx.dps = 60
        signed = -arb(value) if name == "two_minus_alpha" else arb(value)
        alpha = {"alpha": 0, "two_minus_alpha": 2, "alpha_minus_one": 1}[name] + signed
        rows = []
        for y in points(SymmetricStable(**words, scale=1.0)):
            values = fourier(alpha, float(y), 22)
            assert all(value.rel_accuracy_bits() > 70 for value in values)
            rows.append([float(y).hex(), *(value.str(21, radius=False) for value in values)])
        found.append({"index": words, "rows": rows})
        print(words, flush=True)
    data = json.loads(FILE.read_text("utf-8"))
    data["sweep"] = found
    FILE.write_text(json.dumps(data).replace("], [", "],\n[") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
