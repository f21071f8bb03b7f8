"""What tests of bad input share: a mechanism, the error of a call, and tables in one test."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import psinoise as pn

GAUSSIAN = pn.Mechanism(pn.Gaussian(std=2.0))


def refused(error, match, call, *arguments, **keywords):
    """The error that a call must raise, of the right class and no other."""
    with pytest.raises(error, match=match or None) as caught:
        call(*arguments, **keywords)
    if error is ValueError:
        assert not isinstance(caught.value, UnicodeError | np.exceptions.AxisError)
    return str(caught.value)


def _named(row):
    return ", ".join(getattr(value, "__name__", None) or repr(value)[:60] for value in row)


def check_rows(rows, check):
    """Check every row; fail with all that do not hold, and with what was wrong with each."""
    assert rows
    failures, names = [], []
    for number, row in enumerate(rows):
        try:
            check(*row)
        except (Exception, pytest.fail.Exception) as error:
            names.append(f"row {number} ({_named(row)})")
            error.add_note(f"in {names[-1]}")
            failures.append(error)
    if failures:
        raise BaseExceptionGroup("; ".join(names), failures)


def for_rows(rows):
    """A table of arguments in one test, where ``pytest.mark.parametrize`` makes a test of each."""
    rows = list(rows)

    def decorate(check):
        def test():
            check_rows(rows, check)

        test.__name__, test.__doc__, test.__module__ = (
            check.__name__,
            check.__doc__,
            check.__module__,
        )
        return test

    return decorate


def for_each(*columns):
    """Every combination of the values of some columns, in one test."""
    return for_rows(itertools.product(*columns))
