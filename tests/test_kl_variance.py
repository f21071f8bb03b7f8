"""Mean and variance of the loss of a shift: against sums over a fine line."""

from __future__ import annotations

import math

import numpy as np
import pytest

import psinoise as pn

LAWS = {
    "Gaussian": pn.Gaussian(std=2.0),
    "Laplace": pn.Laplace(scale=1.3),
    "Airy": pn.Airy(mean_abs=2.0),
    "Huber": pn.Schrodinger(cost=pn.costs.Huber(1.0), mean_cost=0.5),
    "stable": pn.SymmetricStable(alpha=1.9, scale=1.0),
    "Staircase": pn.Staircase(epsilon=1.0),
    "Cactus": pn.Cactus(cells_per_sensitivity=5, cells=40, tail_ratio=0.3),
}


@pytest.mark.parametrize("name", LAWS)
def test_against_sums(name: str) -> None:
    """Shifts of many periods of a staircase too; kills a tail that is forgotten on one side, and
    a second moment in place of the variance."""
    law = LAWS[name]
    x = np.linspace(-250.0, 250.0, 250_001) + 2e-3 / 3.0
    p, step = law.pdf(x), x[1] - x[0]
    rough = 2e-3 if isinstance(law, pn.Staircase | pn.Cactus) else 2e-4
    for shift in (0.2, 0.7, 3.0, 7.3):
        loss = law.logpdf(x) - law.logpdf(x - shift)
        mean = float(p @ loss) * step
        assert law.kl(shift) == pytest.approx(mean, rel=rough)
        assert law.kl_variance(-shift) == pytest.approx(
            float(p @ (loss - mean) ** 2) * step, rel=rough
        )


def test_edges() -> None:
    for law in (pn.Airy(mean_abs=2.0), pn.Schrodinger(cost=pn.costs.Power(3.0), mean_cost=1.0)):
        small = law.kl_variance(1e-6)
        assert small == pytest.approx(1e-12 * law.fisher_information(), rel=1e-9)
    assert pn.Gaussian(std=1.0).kl_variance(0.0) == 0.0
    assert pn.UniformAtom(delta=0.3).kl_variance(0.1) == math.inf
    assert pn.TruncatedLaplace(epsilon=1.0, delta=0.1).kl_variance(0.1) == math.inf
    with pytest.raises(pn.DomainError, match="shift must be finite"):
        pn.Airy(mean_abs=1.0).kl_variance(math.inf)
    stairs = pn.Staircase(epsilon=1.0)
    narrow = [stairs.kl_variance(shift) for shift in (0.1, 0.15, 0.1887, 0.189)]
    assert narrow == sorted(narrow)


@pytest.mark.parametrize("shift", [1, 2, 5])
def test_whole_numbers(shift: int) -> None:
    law = pn.DiscreteLaplace(scale=2.0)
    k = np.arange(-300.0, 301.0)
    p, loss = law.pmf(k), 0.5 * (np.abs(k - shift) - np.abs(k))
    variance = p @ (loss - p @ loss) ** 2
    assert law.kl_variance(shift) == pytest.approx(float(variance), rel=1e-13)
    assert law.kl_variance(0.5) == math.inf
