"""Tables of symmetric stable laws: the same bits everywhere, wide enough panels, seams."""

from __future__ import annotations

import numpy as np
import pytest

import psinoise as pn
from psinoise import _core as native
from psinoise import reference
from psinoise.compile import compile_law
from psinoise.noise import _stable_forms, _stable_integral
from psinoise.noise._stable_forms import form
from stable_truth import INDICES


def stable(alpha, scale=1.0):
    return pn.SymmetricStable(alpha=alpha, scale=scale)


def capture_tables(law):
    """The arguments of ``LawTable`` for a law."""
    from types import SimpleNamespace
    from unittest import mock

    recorder = SimpleNamespace(LawTable=lambda *tables: tables)
    with mock.patch("psinoise.compile.core", recorder):
        return compile_law(law)


@pytest.mark.deep
def test_tables_are_the_same_bits_at_every_level_and_in_the_twins(run_python):
    """Series in decimals, integrals without libm: indices of every region and kind of panel."""
    code = """
import hashlib, numpy as np
import psinoise as pn
from psinoise import _backend
from psinoise.noise._stable_forms import form
state = hashlib.sha256()
t = np.concatenate([2.0 ** np.arange(-30.0, 60.0, 0.37), np.linspace(0.01, 30.0, 40)])
for index in ((0.3, 0.0), (0.9, 0.0), (1.0, 0.0), (1.0, 1e-12), (1.6, 0.0), (2.0, -1e-7)):
    law = form(*index)
    for part in (*law.log_density(t), *law.log_survival(t), law.log_mills(t), law.score(t)):
        state.update(part.tobytes())
    if law.far_tail is not None:
        for part in law.far_tail.log_quantile(np.linspace(60.0, 2000.0, 50)):
            state.update(part.tobytes())
print(_backend.core.build_config()["isa"], state.hexdigest())
"""
    levels = native.build_config()["isa_available"]
    answers = [run_python(code, PSINOISE_ISA=level).split() for level in levels]
    answers.append(run_python(code, PSINOISE_BACKEND="reference").split())
    assert [answer[0] for answer in answers] == [*levels, "numpy"]
    assert len({answer[1] for answer in answers}) == 1


def test_the_bend_needs_newton_in_the_kernels():
    """Mutant: the table of quantiles alone, right to 1e-4 only."""
    law = pn.SymmetricStable(two_minus_alpha=1e-6, scale=1.0)
    captured = capture_tables(law)
    depth = np.linspace(16.0, 20.0, 400)
    log_t = native.panel_values(*captured[2], depth)
    p = 0.5 * np.exp(-depth)
    assert np.abs(law.ccdf(np.exp(log_t)) / p - 1.0).max() > 1e-12


@pytest.mark.parametrize("alpha", [0.5, 1.9, 1.9999])
def test_kernels_and_twins_agree_on_every_kind_of_table(alpha):
    """The contract tests see one index; here finer panels and lower first exponents."""
    tables = capture_tables(stable(alpha))
    laws = native.LawTable(*tables), reference.LawTable(*tables)
    generator = np.random.default_rng(17)
    x = 10.0 ** generator.uniform(-12.0, 14.0, 4000)
    p = 10.0 ** -np.concatenate(
        [generator.uniform(0.0, 320.0, 2000), generator.uniform(0, 30, 2000)]
    )
    results = []
    for core, law in zip((native, reference), laws, strict=True):
        parts = []
        for name in ("pdf", "logpdf", "ccdf", "logccdf"):
            out = np.empty_like(x)
            core.evaluate(law, name, 0.3, x, out, 1)
            parts.append(out)
        out = np.empty_like(p)
        core.inverse_survival(law, 1.0, p, out, 1)
        parts.append(out)
        for dtype in ("float64", "float32"):
            out = np.empty(200_000, dtype=dtype)
            core.sample(law, bytes(range(32)), 5, 1.0, out, 1)
            parts.append(out)
        results.append(parts)
    for ours, theirs in zip(*results, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_too_coarse_a_rule_or_panel_is_seen(monkeypatch):
    """Mutants of the build: a step of the integral twice as long, panels of an octave's eighth."""
    y = np.linspace(2.0, 6.0, 50)
    exact = form(1.7, 0.0)._integral.values(y)[0]
    with monkeypatch.context() as patch:
        patch.setattr(_stable_integral, "_STEP", 0.5)
        coarse = _stable_integral.Integral(1.7, 1.7 - 1.0, 2.0 - 1.7).values(y)[0]
    assert np.abs(coarse[0] - exact[0]).max() > 1e-11
    _stable_forms.form.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(_stable_forms, "_panel_bits", lambda below_two: 3)
        in_parts = capture_tables(stable(1.999))[0][0]
    _stable_forms.form.cache_clear()
    # Panels that are too wide are cut; those of the law's own layout need not be.
    assert np.isnan(in_parts[-1, -1])
    assert not np.isnan(capture_tables(stable(1.999))[0][0][-1, -1])


@pytest.mark.parametrize("alpha", [1.6, 1.64, 1.66, 1.69, 1.7, 1.72, 1.75, 1.76])
def test_panels_are_narrow_enough_where_the_quantile_bends(alpha):
    """Once, 1.69 to 1.75 made no tables: panels of an eighth of an octave are too wide there."""
    law = stable(alpha)
    y = np.array([0.5, 4.125, 4.285, 4.785, 8.0])
    round_trip = law.iccdf(law.ccdf(y))
    np.testing.assert_allclose(round_trip, y, rtol=1e-14)


def test_series_and_integral_agree_where_they_meet():
    for words in INDICES:
        law = pn.SymmetricStable(**words, scale=1.0)
        general = form(*law._shape)
        for y, values in (
            (general._series.near, general._series.central_values),
            (general._series.far, general._series.tail_values),
        ):
            point = np.array([y])
            ours, theirs = values(point), general._integral.values(point)
            for our, their in zip(ours[:2], theirs[:2], strict=True):
                difference = float(((our[0] - their[0]) + (our[1] - their[1]))[0])
                assert abs(difference) < (4e-15 if law.two_minus_alpha > 1e-5 else 2e-14), words
            assert abs(float((ours[2] - theirs[2])[0])) * y < 2e-14, words
