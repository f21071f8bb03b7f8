"""The acceptance grid asks what it says, and its known values are those of the library."""

from __future__ import annotations

import pytest
from acceptance import Worker, answer, answered, comparison, summary
from acceptance_questions import (
    COUNTS,
    DELTAS,
    RATES,
    SIZES,
    Question,
    Step,
    all_questions,
    sampled_grid,
    strata,
)
from acceptance_truth import elsewhere, miss, truth

# Rounding of the library where it is exact but for that.
ROUNDING = 1e-9


def test_sample_has_every_value_with_every_family():
    seen = set().union(*map(strata, sampled_grid(0, 0)))
    for law in SIZES:
        for axis, values in enumerate((COUNTS, RATES, DELTAS, (False, True))):
            assert {(law, axis, value) for value in values} <= seen


def test_questions_are_stable_and_distinct():
    questions = all_questions(100, 50, 1)
    assert questions == all_questions(100, 50, 1)
    assert len({question.digest for question in questions}) == len(questions)


@pytest.mark.parametrize(
    "question",
    [
        Question("", (Step("Gaussian", 2.0, 10), Step("Gaussian", 3.0, 5)), 1e-6),
        Question("", (Step("Gaussian", 2.0, 1, 0.1),), 1e-6),
        Question("", (Step("Laplace", 2.0, 1, 0.1),), 1e-2),
        Question("", (Step("Cauchy", 2.0, 1, 0.1),), 1e-4),
        Question("", (Step("Airy", 2.0),), 1e-8),
        Question("", (Step("DiscreteLaplace", 2.0, 100, 0.1),), 1e-6),
        Question("", (Step("UniformAtom", 0.05, 10, 0.1),), 0.45),
        Question("", (Step("Stable", 3.0, 7),), 0.0),
        Question("", (Step("Laplace", 4.0, 7, 0.2, contribution=0.5),), 0.0, "replace"),
    ],
    ids=lambda question: question.steps[0].law,
)
def test_known_values(question):
    found = answer(question)
    assert answered(found)
    known = truth(question)
    assert known is not None
    assert miss(found["lower"], found["upper"], known) < ROUNDING


def test_another_accountant():
    question = Question("", (Step("Gaussian", 2.0, 100, 0.1), Step("Laplace", 5.0, 10)), 1e-5)
    found = answer(question)
    low, high = elsewhere(question, found["upper"])
    assert miss(found["lower"], found["upper"], (low, high)) == 0.0
    assert high - low < 1e-2 * high


def test_miss_is_relative():
    assert miss(1.0, 2.0, (1.5, 1.5)) == 0.0
    assert miss(1.0, 2.0, (4.0, 4.0)) == 0.5


def test_late_workers_are_replaced():
    # Some tenths of a second: a worker that is quick may answer before anybody listens.
    slow = Question("slow", (Step("Cactus(200)", 1.0, 20, 0.01),), 1e-5)
    worker = Worker(limit=1e-6, gigabytes=8.0)
    try:
        first = worker.ask(slow)
        worker._limit = 60.0
        second = worker.ask(slow)
    finally:
        worker.stop()
    assert first["error"].startswith("Timeout")
    assert answered(second)
    answers = [{"id": f"grid/{k}", "digest": "0", **one} for k, one in enumerate((first, second))]
    assert any("1 of 2" in line for line in summary(answers))
    assert any("answered by the second alone: 1" in line for line in comparison(answers, answers))
