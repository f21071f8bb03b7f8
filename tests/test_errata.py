"""docs/errata.md: what holds in place of the formulas of the papers, and that they do not."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

import psinoise as pn


def test_stable_noise() -> None:
    alpha, x = 1.5, 60.0
    law = pn.SymmetricStable(alpha=alpha, scale=1.0)
    k = np.arange(1.0, 5.0)
    terms = -((-1.0) ** k) * special.gamma(alpha * k + 1.0) / x ** (alpha * k + 1.0) / math.pi
    terms *= np.sin(0.5 * k * alpha * math.pi)
    density = float(law.pdf(x))
    assert abs(np.sum(terms / special.gamma(k + 1.0)) / density - 1.0) < 1e-6  # (25)
    assert abs(np.sum(terms) / density - 1.0) > 1e-4
    wide = pn.SymmetricStable(alpha=alpha, scale=3.0)
    assert abs(wide.pdf(6.0) / (law.pdf(2.0) / 3.0) - 1.0) < 1e-12  # (27)
    assert abs(law.pdf(0.0) / (math.gamma(1 / alpha) / (math.pi * alpha)) - 1.0) < 1e-12  # (58)
    g = 0.8
    root = math.sqrt(1.0 + 4.0 * g * g)
    loss = math.log(
        (1.0 + (1.0 + root) ** 2 / (4 * g * g)) / (1.0 + (1.0 - root) ** 2 / (4 * g * g))
    )
    assert abs(loss - 2.0 * math.asinh(0.5 / g)) < 1e-12  # (81)
    pure = pn.Mechanism(pn.Cauchy(scale=g)).pure_epsilon()
    assert abs(pure - loss) < 1e-9
    printed = math.log((1.0 + (1.0 + root) / (4 * g * g)) / (1.0 + (1.0 + 4 * g * g) / (4 * g * g)))
    assert abs(printed - loss) > 0.1
    assert abs(math.log(1.1 / 0.9) - (0.2 + 2e-3 / 3 + 2e-5 / 5)) < 1e-7  # (84)


def test_schrodinger_noise() -> None:
    law = pn.Airy(mean_abs=1.0)
    a = float(special.ai_zeros(1)[1][0])  # of the derivative
    theta = (-2.0 * a / 3.0) ** 3
    density = special.airy(theta ** (1 / 3) * 0.7 + a)[0] ** 2 / (3.0 * special.airy(a)[0] ** 2)
    assert abs(float(law.pdf(0.7)) / density - 1.0) < 1e-12  # (106)
    # The tail, in the variable of the function of Airy.
    t = 400.0
    rate = -float(law.logpdf((t - a) / theta ** (1 / 3))) / t**1.5
    assert abs(rate - 4.0 / 3.0) < 1e-3
