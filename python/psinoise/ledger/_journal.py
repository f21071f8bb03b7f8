"""The file of a ledger: lines that are only ever appended, by one process at a time.

``FILE`` has one line for the budget and one for each charge, numbered from 0, each with a SHA-256
of its content and of the hash of the line before it. ``FILE.head`` beside it has the number and the
hash of the last line, twice, and is what processes lock: it stays when somebody replaces ``FILE``.
Both are locked with ``flock``, so that either may go.

*Order.* Under the lock: the line is written, ``FILE`` is synced, the head is written and synced,
and only then is the charge accepted. What is released after that is known to both files. Whoever
holds the lock next finds one of these:

============================================= ====================================================
the last line is that of the head             nothing was going on
one whole line more                           a process stopped before it wrote the head: the
                                              charge counts, though nothing was released for it
one line more that is torn                    a process, or the machine, stopped while the line was
                                              written: nothing was released for it, since that comes
                                              after the head, and the line is cut off
less than the head says, another line in its  lines were lost, changed or put there by others:
place, or more than one line beyond it        refused
============================================= ====================================================

*What is noticed.* An older copy put over ``FILE``, and a line that was changed, taken out, cut off
or torn: by everybody who opens it, from the hashes and the head. Older copies of both files
together: by processes that have the ledger open, which look for the last line that they saw, and
count what they saw whatever becomes of the lines before it. By nobody else; neither are lines
written by somebody who computes the hashes, nor copies of both files that are used side by side.

Nothing is replaced: permissions, owners and links of ``FILE`` stay. The head lies beside the file
that a symbolic link leads to.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from psinoise._hashed_json import line, read_line
from psinoise.errors import DomainError

try:
    import fcntl
except ImportError:  # pragma: no cover  another operating system
    fcntl = None  # type: ignore[assignment]

__all__ = ["Journal", "head_of"]

# The head has two places, used in turn: one of them is whole whatever happens to the other.
_PLACE = 256
_BLOCK = 1 << 20


class _Line(NamedTuple):
    """The last line that was read: its number, its hash, and where it lies."""

    number: int
    sha256: str
    start: int
    end: int
    bytes_sha256: str

    def next(self, sha256: str, data: bytes) -> _Line:
        """The line after this one."""
        return _Line(self.number + 1, sha256, self.end, self.end + len(data), _digest(data))


#: What is done with a line that is new: its number and its members.
Enter = Callable[[int, dict[str, Any]], None]

_BEFORE = _Line(-1, "", 0, 0, hashlib.sha256(b"").hexdigest())


def head_of(path: Path) -> Path:
    """Where the head of a file lies."""
    return path.parent / (path.name + ".head")


class Journal:
    """A file of lines, which `create` made, and the last of them that this process has seen.

    ``path`` is where the file is, links followed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if fcntl is None:
            raise OSError(
                errno.ENOTSUP,
                "a ledger in a file needs fcntl.flock, which this system does not have; one in "
                "memory works everywhere",
            )
        self.path = Path(os.path.realpath(path))
        self._head_path = head_of(self.path)
        self._seen, self._least = _BEFORE, _BEFORE
        self._descriptors: list[int] = []

    @staticmethod
    def create(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
        """Make both files, with the line of the budget, where neither of them is."""
        made = Journal(path)
        text, digest = line("", content)
        with contextlib.ExitStack() as undo:
            for target, data in (
                (made.path, text.encode("ascii") + b"\n"),
                (made._head_path, _head(0, digest)),
            ):
                file = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
                undo.callback(target.unlink, missing_ok=True)
                try:
                    _write(file, data)
                    _sync(file)
                finally:
                    os.close(file)
            folder = os.open(made.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
            undo.pop_all()

    def forget(self) -> None:
        """Read everything again next time; what was seen must still be there then."""
        self._least = max(self._least, self._seen)
        self._seen = _BEFORE

    def after_fork(self) -> None:
        """In a child: let go of what another thread of the parent had open, and forget."""
        for file in self._descriptors:
            with contextlib.suppress(OSError):
                os.close(file)  # the parent's lock stays
        self._descriptors = []
        self.forget()

    @contextlib.contextmanager
    def locked(self, enter: Enter) -> Iterator[Callable[..., None]]:
        """Hold the locks, having given all new lines to ``enter``.

        Yields what appends a line and waits until it is on the disk. A DomainError says that the
        files are not what they were, or not those of a ledger.
        """
        try:
            head = self._opened(self._head_path, os.O_RDWR)
            file = self._opened(self.path, os.O_RDWR | os.O_APPEND)
            self._check_names(head, file)
            self._read(head, file, enter)
            yield lambda content: self._append(head, file, content)
        finally:
            # A child that was forked meanwhile has the same locks: closing alone would not do.
            # What happens to one of them is no reason to keep the other.
            with contextlib.ExitStack() as held:
                for descriptor in self._descriptors:
                    held.callback(self._let_go, descriptor)

    def _let_go(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            self._descriptors.remove(descriptor)
            os.close(descriptor)

    # -- under the lock --------------------------------------------------------------------------

    def _opened(self, path: Path, flags: int) -> int:
        try:
            file = os.open(path, flags)
        except FileNotFoundError:
            if path != self._head_path:
                raise
            missing, message = self.path, os.strerror(errno.ENOENT)
            if self.path.exists():
                missing = path
                message = (
                    "a ledger needs the file that says how many charges it has (a copy of one "
                    "must have both)"
                )
            raise FileNotFoundError(errno.ENOENT, message, str(missing)) from None
        self._descriptors.append(file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise DomainError(f"{path} must be an ordinary file")
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def _check_names(self, head: int, file: int) -> None:
        """That others who open these names now find what is locked."""
        for path, descriptor in ((self._head_path, head), (self.path, file)):
            try:
                same = os.path.samestat(os.stat(path), os.fstat(descriptor))
            except FileNotFoundError:
                same = False
            if not same:
                self._refuse("was replaced while it was in use")

    def _read(self, head: int, file: int, enter: Enter) -> None:
        number, sha256 = self._read_head(head)
        size, seen = os.fstat(file).st_size, self._seen
        if (
            size < seen.end
            or _digest(os.pread(file, seen.end - seen.start, seen.start)) != seen.bytes_sha256
            or number < max(seen.number, self._least.number)
        ):
            self._refuse("is not what this process has seen: an older copy, or changed")
        if number == seen.number and sha256 != seen.sha256:
            self._refuse("and its head do not belong together")
        for data in _lines(file, seen.end, size):
            before = self._seen
            beyond = before.number == number
            if beyond and before.end + len(data) < size:
                self._refuse("has lines that no ledger wrote")
            try:
                content, found = self._parsed(data)
            except DomainError:
                if not beyond:
                    self._refuse("was changed")
                os.ftruncate(file, before.end)
                _sync(file)
                return
            after = before.next(found, data)
            for known in ((number, sha256), (self._least.number, self._least.sha256)):
                if known[0] == after.number and known[1] != found:
                    self._refuse("is not what it was: another copy, or changed")
            if beyond:
                # Whoever wrote the line may have been stopped before it was on the disk.
                _sync(file)
                self._write_head(head, after)
            enter(after.number, content)
            self._seen = after
        if self._seen.number < number:
            self._refuse(
                f"has {max(self._seen.number, 0)} charges where {number} were entered: an older "
                "copy, or cut off"
            )

    def _parsed(self, data: bytes) -> tuple[dict[str, Any], str]:
        if not data.endswith(b"\n"):
            raise DomainError("a line must have an end")
        try:
            text = data[:-1].decode("ascii")
        except UnicodeDecodeError:
            raise DomainError("a line must be ASCII") from None
        return read_line(self._seen.sha256, text)

    def _append(self, head: int, file: int, content: Mapping[str, Any]) -> None:
        text, digest = line(self._seen.sha256, content)
        data = text.encode("ascii") + b"\n"
        after = self._seen.next(digest, data)
        _write(file, data)
        _sync(file)
        self._write_head(head, after)
        # Only now: until then the line may have to be read again.
        self._seen = after
        self._check_names(head, file)

    def _read_head(self, head: int) -> tuple[int, str]:
        data = os.pread(head, 2 * _PLACE, 0)
        found = [_place(data[:_PLACE]), _place(data[_PLACE:])]
        if found == [None, None]:
            raise DomainError(f"{self._head_path} must be the head of a ledger")
        return max(place for place in found if place is not None)

    def _write_head(self, head: int, last: _Line) -> None:
        data = _head(last.number, last.sha256)
        if os.pwrite(head, data, _PLACE * (last.number % 2)) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._head_path))
        _sync(head)

    def _refuse(self, what: str) -> NoReturn:
        raise DomainError(f"the ledger {self.path} {what}")


def _head(number: int, sha256: str) -> bytes:
    """One place of the head."""
    content = f"psinoise-ledger {number} {sha256}"
    return f"{content} {_digest(content.encode())}".ljust(_PLACE - 1).encode("ascii") + b"\n"


def _place(data: bytes) -> tuple[int, str] | None:
    """Number and hash in a place; None if it is torn, or was not used yet."""
    words = data.split()
    if not data.isascii() or len(words) != 4 or not words[1].isdigit():
        return None
    number, sha256 = int(words[1]), words[2].decode("ascii")
    return (number, sha256) if data == _head(number, sha256) else None


def _lines(file: int, start: int, end: int) -> Iterator[bytes]:
    """Lines between two places, each with its end but perhaps the last one."""
    rest = b""
    while start < end:
        data = os.pread(file, min(_BLOCK, end - start), start)
        if not data:
            break
        start += len(data)
        *whole, rest = (rest + data).split(b"\n")
        yield from (text + b"\n" for text in whole)
    if rest:
        yield rest


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _sync(file: int) -> None:
    """Wait until a file is on the disk, not only in its cache."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # pragma: no cover  macOS
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file)
