"""The interface: brackets are numbers, arrays in give arrays out, and what is composed is kept."""

from __future__ import annotations

import concurrent.futures
import copy
import itertools
import json
import math
import pickle
import sys
import threading

import numpy as np
import pytest

import psinoise as pn
from psinoise.accounting import queries, question
from psinoise.accounting.bracket import Bracket, Brackets
from refusals import for_each, refused

MECHANISM = pn.Mechanism(pn.Gaussian(std=2.0))


def test_a_bracket_is_its_upper_bound():
    """Kills: a tuple, which sorts by the lower bound and has six elements when doubled."""
    bracket, other = Bracket(1.0, 1.5, 2.0, "direct"), Bracket(0.0, 1.0, 3.0)
    assert max(bracket, other) is other
    assert sorted([other, 2.5, bracket]) == [2.0, 2.5, 3.0]
    assert 2 * bracket == 4.0
    assert type(bracket + 1) is float
    assert bracket == 2.0
    assert hash(bracket) == hash(2.0)
    assert bracket < 2.5
    assert f"{bracket:.3f}" == "2.000"
    assert round(bracket, 1) == 2.0
    assert json.dumps(bracket) == "2.0"
    assert math.sqrt(other * 3) == 3.0
    assert np.array([bracket, other]).dtype == np.float64
    assert "lower=1.0" in str(bracket)
    assert tuple(bracket) == (1.0, 1.5, 2.0)
    for again in (pickle.loads(pickle.dumps(bracket)), copy.copy(bracket), copy.deepcopy(bracket)):
        assert repr(again) == repr(bracket)
    for name in ("lower", "upper", "estimate", "other"):
        with pytest.raises(AttributeError):
            setattr(bracket, name, 0.0)


@for_each([*itertools.permutations((math.nan, 0.0, 1.0)), (1.0, 0.5, 0.0), (0.0, 1.0, -1.0)])
def test_no_bracket_of_nan_or_of_crossed_bounds(ends):
    """Kills: a certificate that every comparison fails for, or that holds no number."""
    for made in (Bracket, Brackets):
        refused(pn.DomainError, "must have lower <= upper and no NaN", made, *ends)


def test_an_array_of_brackets_is_an_array():
    brackets = MECHANISM.epsilon(np.array([[1e-3, 1e-6], [1e-9, 1.0]]), 5)
    assert isinstance(brackets, Brackets)
    assert brackets.shape == (2, 2)
    assert np.array_equal(np.asarray(brackets), brackets.upper)
    assert np.array_equal(brackets < 1.0, brackets.upper < 1.0)
    assert np.array_equal(2.0 * brackets, 2.0 * brackets.upper)
    assert isinstance(brackets[0], Brackets)
    assert len(brackets) == 2
    assert isinstance(brackets[0, 1], Bracket)
    assert brackets[1, 1] == 0.0
    assert np.all(brackets.lower <= brackets.estimate)
    assert np.all(brackets.estimate <= brackets.upper)
    assert np.array_equal(brackets.width, brackets.upper - brackets.lower)
    endless = pn.Mechanism(pn.UniformAtom(delta=0.5)).epsilon([0.1, 0.1])
    assert np.array_equal(endless.width, [0.0, 0.0])
    assert endless[0].width == 0.0
    with pytest.raises(TypeError, match="in place"):
        brackets += 1.0


@for_each([1, 7], [1.0, 0.01])
def test_arrays_answer_as_their_elements_do(count, rate):
    deltas = np.array([1e-3, 1e-12, 1e-3, 0.0, 1.0])
    composed = MECHANISM.composed(count, rate)
    found = composed.epsilon(deltas)
    for delta, bracket in zip(deltas.tolist(), found, strict=True):
        alone = MECHANISM.epsilon(delta, count, rate)
        assert bracket.lower <= alone.upper
        assert alone.lower <= bracket.upper
    epsilons = np.array([0.3, -1.0, 0.3, math.inf])
    profile = composed.delta(epsilons)
    for epsilon, bracket in zip(epsilons.tolist(), profile, strict=True):
        alone = MECHANISM.delta(epsilon, count, rate)
        assert bracket.lower <= alone.upper * (1 + 1e-12)
        assert alone.lower <= bracket.upper * (1 + 1e-12)
    fresh = MECHANISM.profile(epsilons, count, rate)
    assert np.array_equal(MECHANISM.delta(epsilons, count, rate).upper, fresh.upper)
    assert composed.epsilon([]).shape == (0,)


def test_what_is_composed_is_kept(monkeypatch):
    """Kills: a question that composes again what answers it; an answer that changes."""
    rounds = []
    honest = question.OneDirection.sharpen
    monkeypatch.setattr(
        question.OneDirection, "sharpen", lambda part: (rounds.append(1), honest(part))
    )
    composed = MECHANISM.composed(300, 0.02)
    first = composed.epsilon(1e-6)
    after = len(rounds)
    assert after > 0
    assert repr(composed.epsilon(1e-6)) == repr(first)
    near = composed.epsilon(1.1e-6)
    assert near.width <= 1.0001e-4 * near
    assert abs(near.estimate - MECHANISM.composed(300, 0.02).estimate.epsilon(1.1e-6)) < 1e-6
    assert len(rounds) == after, "a related question reads what there is"
    alone = len(rounds)
    assert MECHANISM.epsilon(1e-6, 300, 0.02) == first
    assert len(rounds) > alone
    alone = len(rounds)
    assert repr(MECHANISM.epsilon(1e-6, 300, 0.02)) == repr(first)
    assert len(rounds) == alone, "the same question is answered once"


def test_what_is_kept_is_of_the_composition():
    """Kills: bounds that outlive the composition that they bound."""
    accountant = MECHANISM.composed(3)
    before = accountant.epsilon(1e-6)
    after = accountant.compose(MECHANISM, 3).epsilon(1e-6)
    assert after == MECHANISM.epsilon(1e-6, 6)
    assert after > 1.3 * before
    single = accountant.epsilon(1e-6, tolerance=1e-7)
    assert single.width <= 1e-7


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_a_copy_goes_its_own_way(duplicate):
    """Mutant: a copy that shares the dictionary of steps."""
    use = pn.Mechanism(pn.Gaussian(std=5.0))
    first = pn.Accountant("remove").compose(use, 10)
    first.epsilon(1e-6)
    second = duplicate(first).compose(use, 1000)
    assert second.adjacency == "remove"
    for composed, count in ((first, 10), (second, 1010)):
        known = use.epsilon(1e-12, count, adjacency="remove")
        assert composed.epsilon(1e-12) == pytest.approx(known, rel=1e-3)


@for_each(
    [
        (pn.Gaussian(std=1.0), 20, 0.5),
        (pn.Gaussian(std=1.0), 2000, 0.01),
        (pn.Laplace(scale=0.5), 3, 0.9),
        (pn.Staircase(epsilon=1.0), 12, 0.3),
        (pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=18, tail_ratio=0.05), 12, 0.3),
    ],
    [1e-3, 1e-12],
)
def test_a_direction_that_is_behind_widens_no_bracket(case, delta):
    """It is bounded as closely as it takes to be behind. Mutant: that closeness for the leader."""
    law, count, rate = case
    use = pn.Mechanism(law)
    found = use.epsilon(delta, count, rate)
    directions = [
        use.epsilon(delta, count, rate, adjacency=direction) for direction in ("remove", "add")
    ]
    larger = max(directions, key=lambda bracket: bracket.lower)
    assert found.lower <= larger.upper
    assert larger.lower <= found.upper
    assert found.width <= 1.01e-4 * found


def test_an_answer_belongs_to_what_it_was_asked_of(monkeypatch):
    """A thread composes while another one asks. Mutant: answers kept where they are found last."""
    use = pn.Mechanism(pn.Gaussian(std=5.0))
    shared, asked = pn.Accountant().compose(use), queries.epsilon_of

    def interrupted(question, delta):
        found = asked(question, delta)
        monkeypatch.setattr(queries, "epsilon_of", asked)
        shared.compose(use, 99)
        return found

    monkeypatch.setattr(queries, "epsilon_of", interrupted)
    assert shared.epsilon(1e-6) == use.epsilon(1e-6)
    assert shared.epsilon(1e-6) == use.epsilon(1e-6, 100)


def test_no_use_is_lost_between_threads():
    """Mutant: no lock around the sum."""
    use, shared = pn.Mechanism(pn.Laplace(scale=2.0)), pn.Accountant()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: shared.compose(use), range(2000)))
    finally:
        sys.setswitchinterval(interval)
    assert shared.epsilon(0.0).upper == use.epsilon(0.0, 2000).upper


def test_threads_that_ask_the_same_get_the_same():
    """Mutant: the last of them to know an answer keeps it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for count in range(30, 42):
            shared = pn.Mechanism(pn.Laplace(scale=2.0)).composed(count, 0.1)
            start = threading.Barrier(3)

            def asked(before, shared=shared, start=start):
                start.wait()
                return [tuple(shared.epsilon(delta)) for delta in (before, 1e-5)][-1]

            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                found = set(pool.map(asked, (0.99e-5, 1e-5, 1.01e-5)))
            assert found == {tuple(shared.epsilon(1e-5))}
    finally:
        sys.setswitchinterval(interval)


def test_an_array_without_dimensions_is_a_number():
    composed = pn.Mechanism(pn.Gaussian(std=2.0)).composed(3)
    assert composed.epsilon(np.array(1e-5)) == composed.epsilon(1e-5)
    assert composed.delta(np.array(1)) == composed.delta(1.0)
    for wrong in (np.array("1"), np.array(None), np.ma.masked):
        with pytest.raises(TypeError, match="epsilon must be a real number"):
            composed.delta(wrong)
