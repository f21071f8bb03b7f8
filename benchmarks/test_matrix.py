"""Every case of the matrix and its reference rows, with the assertion on the answer."""

from __future__ import annotations

import pytest

from psinoise.bench.cases import Case, matrix
from psinoise.bench.references import references

CASES = matrix()


def group_of(case):
    """Cases of one operation, size and type do the same work and share their reference rows."""
    return f"{case.operation}-{case.size}-{case.dtype}"


REFERENCES = {(group_of(case), name): case for case in CASES for name in references(case)}

# A collection in the middle of a round belongs to whoever made the garbage before.
pytestmark = pytest.mark.benchmark(disable_gc=True, warmup=True, warmup_iterations=1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, time_row):
    time_row(group_of(case), Case.make, case)


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for (_, name), case in REFERENCES.items()],
    ids=[f"{group}-{name}" for group, name in REFERENCES],
)
def test_reference(name, case, time_row):
    time_row(group_of(case), lambda sized: references(sized)[name](), case)
