"""Names of test cases that are the same in every process."""

from __future__ import annotations

import re


def case_name(value):
    """The ``repr`` of a value without addresses of objects."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))
