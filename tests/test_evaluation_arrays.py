"""``out=``, ``threads=`` and float32 of evaluation, for laws of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psinoise as pn
from psinoise.errors import DomainError

# Tables of a smooth density with far points, cells, and laws that NumPy evaluates.
LAWS: tuple[Any, ...] = (
    pn.Airy(mean_abs=2.0),
    pn.SymmetricStable(alpha=1.5, scale=0.7),
    pn.Staircase(epsilon=1.0, sensitivity=1.3),
    pn.UniformAtom(delta=0.9),
    pn.TruncatedLaplace(epsilon=1.0, delta=1e-6),
    pn.DiscreteLaplace(scale=2.0),
    pn.DiscreteStable(alpha=1.2, scale=3.0),
)
QUANTITIES = ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf", "icdf", "iccdf")


def _points(quantity: str) -> Any:
    if quantity in ("icdf", "iccdf"):
        return np.array([0.0, 1e-300, 1e-30, 0.2, 0.5, 0.7, 1.0, 1.5, np.nan, 0.9, 0.25, 1e-3])
    return np.array([0.0, -0.0, 1e-30, 1.3, -2.0, 7.0, -1e4, 1e13, -1e200, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_one_value_however_it_is_asked_for(law: Any, quantity: str) -> None:
    """Of any shape, in place or not, on any number of threads, and rounded once to float32."""
    evaluate = getattr(law, quantity)
    points = _points(quantity).reshape(3, 4)
    try:
        expected = evaluate(points)
    except DomainError:
        # No density: nothing is written.
        out = np.full(points.shape, 7.0)
        with pytest.raises(DomainError):
            evaluate(points, out=out)
        assert (out == 7.0).all()
        return
    out = np.empty(points.shape)
    assert evaluate(points, out=out) is out
    np.testing.assert_array_equal(out, expected)
    if not law.for_whole_numbers:
        many = np.resize(points, (3, 12_000))
        np.testing.assert_array_equal(evaluate(many, threads=2), evaluate(many, threads=1))
    in_place = points.copy()
    evaluate(in_place, out=in_place)
    np.testing.assert_array_equal(in_place, expected)
    shifted = np.append(points.reshape(-1), 0.0)
    evaluate(shifted[:-1], out=shifted[1:])
    np.testing.assert_array_equal(shifted[1:], expected.reshape(-1))
    with np.errstate(over="ignore", under="ignore"):
        single, rounded = points.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(evaluate(points, out=np.empty_like(single)), rounded)
    from_single = evaluate(single)
    assert from_single.dtype == np.float64
    np.testing.assert_array_equal(from_single, evaluate(single.astype(np.float64)))
    assert isinstance(evaluate(0.3), float)


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.empty(4), ValueError),
        (np.empty((2, 3)), ValueError),
        (np.empty((3, 2)).T[:, :2], ValueError),
        (np.empty(3, dtype=np.int64), TypeError),
        (np.empty(3, dtype=">f8"), TypeError),
        ([0.0, 0.0, 0.0], TypeError),
        (np.empty(6)[::2], ValueError),
    ],
)
def test_out_that_cannot_hold_the_results(out: Any, error: type[Exception]) -> None:
    for law in (pn.Airy(scale=1.0), pn.DiscreteLaplace(scale=2.0)):
        for quantity in ("cdf", "iccdf"):
            with pytest.raises(error, match="out must"):
                getattr(law, quantity)(np.array([0.1, 0.2, 0.3]), out=out)
    locked = np.empty(3)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        pn.Airy(scale=1.0).cdf(np.zeros(3), out=locked)
    with pytest.raises(ValueError, match="shape"):
        pn.Airy(scale=1.0).cdf(0.5, out=np.empty(3))
    with pytest.raises((TypeError, ValueError), match="threads"):
        pn.Airy(scale=1.0).cdf(0.5, threads=-1)
