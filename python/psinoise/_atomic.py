"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psinoise.errors import DomainError

__all__ = ["check_target", "temporary_beside", "write_text"]


def check_target(path: Path, *, force: bool = False) -> None:
    """Refuse a target that cannot be written, or that is there already.

    Raises
    ------
    DomainError
        If something has that name and ``force`` is false, or if it is not an ordinary file.
    FileNotFoundError
        If its directory does not exist.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the directory of {path} does not exist")
    if path.exists() and not path.is_file():
        raise DomainError(f"{path} must be an ordinary file")
    if path.exists() and not force:
        raise DomainError(f"{path} must not exist (--force overwrites it)")


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """The name of a file that takes the place of ``path`` when the block ends well.

    It lies in the same directory, so that the replacement is one step of the file system: at every
    moment ``path`` is what it was before or what was written, even if the machine stops. An
    exception removes what was written. A process that is killed leaves a file whose name begins
    with a dot and ends with ``.tmp``, and nothing under the name of ``path``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     target = Path(directory) / "answer.txt"
    ...     with temporary_beside(target) as temporary:
    ...         written = temporary.write_text("42")
    ...         early = target.exists()
    ...     early, target.read_text()
    (False, '42')
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        # Made here, so that nobody else's file is written, with the permissions of any new file.
        temporary.touch(exist_ok=False)
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        if os.name == "posix":
            _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a small file whole or not at all."""
    with temporary_beside(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
