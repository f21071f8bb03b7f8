"""The Airy law against a table of 60-digit values, and against mpmath at other scales."""

from __future__ import annotations

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from psinoise.noise import Airy

DATA = json.loads((Path(__file__).parent / "data" / "laws_airy.json").read_text("utf-8"))
LAW = Airy(mean_abs=1.0)
# The documented accuracy: relative for values, relative to max(1, |value|) for logarithms.
TOLERANCE = mpf(5e-14)
SMALLEST_NORMAL = mpf(2) ** -1022


@pytest.fixture(autouse=True)
def sixty_digits():
    with mpmath.workdps(60):
        yield


def rows():
    """The rows of the table, moved from their decimal points to the float64 that we can ask for.

    The step is 1e-16 of x, but the law's logarithms have slopes up to 1e5, so it matters.
    """
    for row in DATA["pdf_rows"]:
        x = float(row["x"])
        with mpmath.workdps(60):
            step = mpf(x) - mpf(row["x"])
            logpdf, logsf = mpf(row["logpdf"]), mpf(row["logsf"])
            hazard = mpmath.exp(logpdf - logsf)
            yield x, logpdf - mpf(row["score"]) * step, logsf - hazard * step


def assert_close(value, truth, where):
    """Relative closeness wherever the truth is a normal number."""
    if abs(truth) >= SMALLEST_NORMAL:
        assert abs(mpf(float(value)) - truth) <= TOLERANCE * abs(truth), where
    else:
        assert abs(mpf(float(value)) - truth) <= mpf(2) ** -1073, where


def assert_log_close(value, truth, where):
    assert abs(mpf(float(value)) - truth) <= TOLERANCE * max(1, abs(truth)), where


def test_table_is_complete():
    assert len(DATA["pdf_rows"]) >= 30
    assert max(float(row["x"]) for row in DATA["pdf_rows"]) >= 1e10
    assert min(float(row["sf"]) for row in DATA["isf_rows"]) <= 1e-300


def test_density_and_distribution_against_the_table():
    for x, logpdf, logsf in rows():
        survival = mpmath.exp(logsf)
        assert_close(LAW.pdf(x), mpmath.exp(logpdf), x)
        assert_close(LAW.ccdf(x), survival, x)
        assert_close(LAW.cdf(-x), survival, x)
        assert_close(LAW.cdf(x), 1 - survival, x)
        assert_log_close(LAW.logpdf(x), logpdf, x)
        assert_log_close(LAW.logccdf(x), logsf, x)
        assert_log_close(LAW.logcdf(-x), logsf, x)
        # Near 0 from below: relative to the tiny value itself, where it is normal.
        if survival > SMALLEST_NORMAL:
            assert_close(LAW.logcdf(x), mpmath.log1p(-survival), x)


def test_score_against_the_table():
    for row in DATA["pdf_rows"]:
        x, score = float(row["x"]), mpf(row["score"])
        value = float(LAW.score(np.array([x]))[0])
        # Relative to score where it is not near its zero, to its slope 2 kappa^2 |a1'| x there.
        assert abs(mpf(value) - score) <= mpf(1e-15) * max(abs(score), mpf(x)) + mpf(1e-33), x


def test_quantiles_against_the_table():
    for row in DATA["isf_rows"]:
        probability = float(row["sf"])
        x = mpf(row["x"])
        log_survival = mpmath.log(mpf(row["sf"]))
        density = density_at(x, 1)
        # The decimal probability is not the binary one: move the truth.
        x = x - (mpf(probability) - mpf(row["sf"])) / density
        value = mpf(float(LAW.iccdf(probability)))
        # A few ulp of x, and half an ulp of -log(2 p) (its size times 2**-53) over the hazard.
        hazard = density / mpf(row["sf"])
        bound = mpf(2) ** -53 * (
            8 * abs(x) + 2 * abs(log_survival) / hazard * (probability <= 0.25)
        )
        assert abs(value - x) <= bound, probability
        assert float(LAW.icdf(probability)) == -float(LAW.iccdf(probability))


def test_kl_against_the_table():
    for row in DATA["KL_shift"]:
        assert LAW.kl(float(row["shift_over_C"])) == pytest.approx(
            float(row["KL"]), rel=1e-11, abs=0
        )


def test_closed_forms():
    closed = DATA["closed"]
    assert LAW.mean_abs == 1.0
    assert LAW.std**2 == pytest.approx(float(closed["E_X2_over_C2"]), rel=1e-15, abs=0)
    assert LAW.moment(2) == pytest.approx(float(closed["E_X2_over_C2"]), rel=1e-14, abs=0)
    assert LAW.moment(3) == pytest.approx(float(closed["E_absX3_C1_quad"]), rel=1e-14, abs=0)
    assert LAW.moment(4) == pytest.approx(float(closed["E_X4_C1_quad"]), rel=1e-14, abs=0)
    assert LAW.pdf(0.0) == pytest.approx(float(closed["p0_times_C"]), rel=1e-15, abs=0)
    slope_zero = mpf(DATA["a1_prime"])
    fisher = 16 * abs(slope_zero) ** 3 / 27
    assert LAW.fisher_information() == pytest.approx(float(fisher), rel=1e-15, abs=0)
    assert float(closed["Fisher_times_C2"]) == pytest.approx(float(fisher), rel=1e-15, abs=0)
    # The cost rate of the eigenvalue problem: theta = Fisher / 2 for the cost |x|.
    assert float(closed["theta_times_C3"]) == pytest.approx(
        LAW.fisher_information() / 2, rel=1e-15, abs=0
    )


def test_it_has_the_least_fisher_information_of_its_mean():
    """Against the other laws at one E|X|: Gaussian 2 / pi, Laplace 1 (proposition 4)."""
    assert LAW.fisher_information() < 2.0 / np.pi < 1.0


# -- other scales, from scratch --------------------------------------------------------------------


def density_at(x, scale):
    """The density from its definition."""
    slope_zero = mpmath.airyaizero(1, derivative=1)
    kappa = 2 * abs(slope_zero) / 3
    value = mpmath.airyai(slope_zero + kappa * abs(mpf(x)) / mpf(scale))
    return value**2 / (3 * mpf(scale) * mpmath.airyai(slope_zero) ** 2)


def survival_at(x, scale):
    """From the antiderivative of Ai^2: z Ai^2 - Ai'^2."""
    slope_zero = mpmath.airyaizero(1, derivative=1)
    z = slope_zero + 2 * abs(slope_zero) / 3 * mpf(x) / mpf(scale)
    tail = mpmath.airyai(z, derivative=1) ** 2 - z * mpmath.airyai(z) ** 2
    return tail / (2 * abs(slope_zero) * mpmath.airyai(slope_zero) ** 2)


@pytest.mark.deep
@pytest.mark.parametrize("scale", [3.0, 0.1, 1e-3])
def test_other_scales_against_mpmath(scale):
    law = Airy(mean_abs=scale)
    generator = np.random.default_rng(51)
    unit = np.concatenate(
        [
            [0.0, 1e-300, 1e-8],
            generator.uniform(0.0, 12.0, 40),
            10.0 ** generator.uniform(-6, 4, 40),
        ]
    )
    x = unit * scale
    truth = [density_at(point, scale) for point in x]
    survival = [survival_at(point, scale) for point in x]
    values = np.stack([law.pdf(x), law.logpdf(x), law.ccdf(x), law.logccdf(x)], axis=1)
    for point, row, density, tail in zip(x, values, truth, survival, strict=True):
        assert_close(row[0], density, point)
        assert_log_close(row[1], mpmath.log(density), point)
        assert_close(row[2], tail, point)
        assert_log_close(row[3], mpmath.log(tail), point)


def test_the_remainder_of_x_over_scale_matters():
    """Kills: x divided by the scale with one rounding, which the tail magnifies 800 times."""
    law = Airy(mean_abs=0.1)
    x = np.random.default_rng(52).uniform(8.5, 9.0, 30)
    truth = [density_at(point, 0.1) for point in x]

    def worst(values):
        pairs = zip(values, truth, strict=True)
        return max(abs(mpf(float(value)) / density - 1) for value, density in pairs)

    assert worst(law.pdf(x)) < TOLERANCE
    assert worst(LAW.pdf(x / 0.1) / 0.1) > TOLERANCE
