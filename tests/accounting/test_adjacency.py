"""Neighbors that differ in the value of a record, with and without sampling."""

from __future__ import annotations

import pytest

import psinoise as pn
from refusals import for_each


@for_each([pn.Gaussian, pn.Airy, pn.Laplace])
def test_without_sampling_only_the_meaning_of_the_sensitivity_differs(law):
    mechanism = pn.Mechanism(law(mean_abs=2.0), 1.5)
    arguments = (1e-6, 30, 1.0)
    assert mechanism.epsilon(*arguments, "replace") == mechanism.epsilon(*arguments, "add-remove")
    accountant = pn.Accountant(adjacency="replace").compose(mechanism, 30)
    assert accountant.epsilon(1e-6) == mechanism.epsilon(*arguments)


@for_each([pn.Gaussian, pn.Airy, pn.Laplace])
def test_replace_with_sampling_needs_the_contribution(law):
    mechanism = pn.Mechanism(law(mean_abs=2.0))
    with pytest.raises(pn.DomainError, match="how far adding one record"):
        mechanism.composed(10, 0.5, "replace").estimate.epsilon(1e-6)
    with pytest.raises(pn.DomainError, match="how far adding one record"):
        pn.Accountant("replace").compose(mechanism, 10, 0.5)
    assert mechanism.composed(10, 0.0, "replace").estimate.epsilon(1e-6) == 0.0


def test_sampling_without_replacement_has_no_parameter():
    with pytest.raises(TypeError, match="sampling"):
        pn.Mechanism(pn.Gaussian(std=1.0)).epsilon(1e-6, sampling="without-replacement")
