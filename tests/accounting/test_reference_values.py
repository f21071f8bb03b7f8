"""Committed reference values, and the figures of the Schrodinger paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import psinoise as pn
from refusals import for_each, for_rows

DATA = Path(__file__).parents[1] / "data" / "epsilon_contour.json"
CASES = [
    case
    for case in json.loads(DATA.read_text(encoding="utf-8"))["cases"]
    if case["noise"] in ("gaussian", "airy")
]
LAWS = {
    "gaussian": lambda case: pn.Gaussian(std=case["std"]),
    "airy": lambda case: pn.Airy(mean_abs=case["mean_abs"]),
}


@for_each(CASES)
def test_epsilon_in_one_direction(case):
    """Two contour integrations that share no code; the values claim 1e-8."""
    mechanism = pn.Mechanism(LAWS[case["noise"]](case), case["sensitivity"])
    question = case["delta"], case["n"], case["q"], case["direction"]
    epsilon = mechanism.composed(*question[1:]).estimate.epsilon(question[0])
    bounds = mechanism.epsilon(*question)
    assert bounds.lower <= case["eps"] * (1.0 + 1e-9)
    assert bounds.upper >= case["eps"] * (1.0 - 1e-9)
    assert epsilon == pytest.approx(case["eps"], rel=1e-10, abs=1e-10)


def test_both_directions_report_the_larger():
    for add in CASES:
        if add["direction"] == "add":
            mechanism = pn.Mechanism(LAWS[add["noise"]](add), add["sensitivity"])
            epsilon = mechanism.composed(add["n"], add["q"]).estimate.epsilon(add["delta"])
            assert epsilon > add["eps"]


@for_rows(
    [
        (100, 0.20587318, 0.22955),
        (500, 0.46132589, 0.52834),
        (1000, 0.65747722, 0.75741),
        (2000, 0.94027041, 1.08784),
    ]
)
def test_figure_two(count, airy, laplace):
    """E|Z| = 2, sensitivity 1, rate 0.01, delta 1e-8; Laplace was tabulated to 1e-5."""
    for law, value, tolerance in ((pn.Airy, airy, 1e-8), (pn.Laplace, laplace, 2e-5)):
        mechanism = pn.Mechanism(law(mean_abs=2.0))
        epsilon = mechanism.composed(count, 0.01).estimate.epsilon(1e-8)
        assert epsilon == pytest.approx(value, abs=tolerance)
