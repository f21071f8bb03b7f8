"""What a ledger counts: the values that are released, read once."""

from __future__ import annotations

from typing import Any

import numpy as np

from psinoise.release.data import declares_a_type, is_masked
from psinoise.release.tables import column_of, table_of

__all__ = ["read_once"]


def read_once(x: Any, columns: object = None) -> tuple[Any, int, bool]:
    """Values that nobody else holds, how many there are, and whether any is masked.

    They are in an array, or in lists where nothing declares a type. Array-likes may say anything of
    their size, give other values when they are read again, or change in another thread. Masks are
    lost on the way, and what is under them would be released.
    """
    table = table_of(x)
    if table is not None:
        own = table.held(columns)
        return own, sum(own.column(name).values.size for name in own.chosen(columns)), False
    column = column_of(x)
    if column is not None:
        return column.held(), column.values.size, False
    if declares_a_type(x):
        found = np.asanyarray(x)
        # The second step copies whatever the first one found, and drops subclasses.
        held = np.array(found, copy=True, subok=False)
        return held, held.size, is_masked(found)
    try:
        items = np.array(x, dtype=object)
    except ValueError:
        raise TypeError("x must be a rectangular array of real numbers") from None
    # Which type they get is for the release to say, by its bounds.
    values = items.tolist()
    return values, items.size, is_masked(x) or is_masked(values)
