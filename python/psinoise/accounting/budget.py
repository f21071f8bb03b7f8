"""Whether a composition is certified to be within a budget."""

from __future__ import annotations

from psinoise.accounting.accountant import Accountant
from psinoise.errors import CertificationError

__all__ = ["is_within"]


def is_within(accountant: Accountant, epsilon: float, delta: float) -> bool:
    """Whether everything composed is proven to be (epsilon, delta)-private.

    Either bound is a proof, and one may hold where the other cannot be had or is a little too wide.
    Only the largest loss proves a delta of 0: bounds on delta are 0 below the least float64.
    """
    try:
        if delta > 0.0 and accountant.delta(epsilon).upper <= delta:
            return True
    except CertificationError:
        pass
    try:
        return accountant.epsilon(delta).upper <= epsilon
    except CertificationError:
        return False
