"""A progress bar for people who are watching, and nothing for anybody else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import closing, contextmanager
from typing import TypeVar

__all__ = ["track", "watch"]

Item = TypeVar("Item")


def track(items: Iterable[Item], description: str, *, enabled: bool = True) -> Iterator[Item]:
    """Iterate over ``items``, showing progress if standard error is a terminal and tqdm is there.

    Parameters
    ----------
    items : iterable
        Its length, where it has one, is the end of the bar.
    description : str
        Shown in front of the bar.
    enabled : bool
        False never shows anything.

    Examples
    --------
    >>> list(track([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    if not enabled or not _watched():
        yield from items
        return
    try:
        from tqdm import tqdm  # optional, and slow to import
    except ModuleNotFoundError:
        yield from items
        return
    total = len(items) if isinstance(items, Sized) else None
    # Closed on an early exit too, so that an error message starts on a line of its own.
    with closing(
        tqdm(items, description, total=total, file=sys.stderr, leave=False, dynamic_ncols=True)
    ) as bar:
        yield from bar


@contextmanager
def watch(
    description: str, *, enabled: bool = True
) -> Iterator[Callable[[int, float], None] | None]:
    """Yield a function to be told of each step of a search: the level it is on, and the gap left.

    None where nobody is watching, or tqdm is not installed.

    Examples
    --------
    >>> with watch("solving", enabled=False) as report:
    ...     print(report)
    None
    """
    if not enabled or not _watched():
        yield None
        return
    try:
        from tqdm import tqdm  # optional, and slow to import
    except ModuleNotFoundError:
        yield None
        return
    with closing(tqdm(desc=description, file=sys.stderr, leave=False, dynamic_ncols=True)) as bar:

        def report(level: int, rest: float) -> None:
            bar.update()
            bar.set_postfix_str(f"level {level}, gap {rest:.1e}")

        yield report


def _watched() -> bool:
    # Standard error is None under pythonw and closed in some daemons.
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False
