"""What the compiler is doing, in memory that outlives it: all there is to say of a process that
MLIR or LLVM ended.

A parent shares a page before it forks (`shared`); the child writes into it what it begins (`at`),
and the parent reads the last entry (`last`) if the child dies. In a process that shares nothing
`at` does nothing.
"""

from __future__ import annotations

import json
import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tilec.messages.diagnostics import Location
from tilec.records import dataclass

_BYTES = 8192
"""Two pages: a record is a name, a file, a line; what does not fit is left out."""
_page: mmap.mmap | None = None


@dataclass(frozen=True)
class Progress:
    """The last thing begun.

    `place`: of what it is done to; `is_text`: whether that is `.tile` text, which may be anything,
    and not a kernel of the frontend's.
    """

    doing: str
    place: Location | None = None
    is_text: bool = False


class _Begun(threading.local):
    """What this thread began last: threads that tune compile side by side, each its own kernel."""

    last = Progress("")


_begun = _Begun()


@contextmanager
def shared() -> Iterator[None]:
    """Notes are kept inside, for whoever of this process and its children reads them."""
    global _page
    _page = mmap.mmap(-1, _BYTES)
    try:
        yield
    finally:
        _page = None


def at(doing: str, place: Location | None = None, *, is_text: bool | None = None) -> None:
    """Notes what begins. What is left out is as in this thread's entry before."""
    page = _page  # another thread may leave `shared` meanwhile
    if page is None:
        return
    before = _begun.last
    place = before.place if place is None else place
    is_text = before.is_text if is_text is None else is_text
    _begun.last = Progress(doing, place, is_text)
    where = None if place is None else (place.file, place.line, place.column)
    entry = json.dumps((doing, where, is_text)).encode() + b"\0"
    if len(entry) <= _BYTES:
        page[: len(entry)] = entry  # one copy: no thread sees a part of it


def last() -> Progress | None:
    """The last entry of any thread, None without."""
    page = _page
    entry = b"" if page is None else page[:].partition(b"\0")[0]
    if not entry:
        return None
    doing, where, is_text = json.loads(entry)
    return Progress(doing, None if where is None else Location(*where), is_text)
