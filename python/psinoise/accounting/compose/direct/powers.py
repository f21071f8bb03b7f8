"""Powers of independent parts: the one order of products that composers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from psinoise.accounting.compose.direct.plan import Key

Part = TypeVar("Part")


def halves(
    parts: Sequence[Part], counts: Sequence[int], product: Callable[[Part, Part, Key, int], Part]
) -> tuple[Part, Part | None]:
    """Two parts whose product has so many uses of each part; the second is none for one use.

    In the manner of Horner: from the highest binary digit of the counts on, what there is is
    composed with itself, and with each part whose count has the next digit. ``product`` gets two
    parts, the name of the stage and the uses that the result stands for.
    """
    operations: list[tuple[Part | None, int]] = []
    for bit in range(max(counts).bit_length() - 1, -1, -1):
        if operations:
            operations.append((None, 1 << bit))
        each = zip(parts, counts, strict=True)
        operations += [(part, 1 << bit) for part, count in each if count >> bit & 1]
    current, other, before = operations[0][0], None, 1
    assert current is not None
    for place, (part, uses) in enumerate(operations[1:]):
        if other is not None:
            current = product(current, other, ("product", place), before)
        other, before = current if part is None else part, uses
    return current, other
