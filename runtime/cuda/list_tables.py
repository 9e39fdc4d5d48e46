"""The tables of lists in a GPU's memory: made once for each content, then only read.

A table is copied before the first launch that reads it, by a stream of its own, and never changes.
So launches on any stream need no order with the copy, and it may be made while a stream is being
captured. A launch that is captured keeps its tables for good: nobody says when its graph is gone.
Others are freed when many have gathered, and a round of gathering has not used them.
"""

from __future__ import annotations

import ctypes
import threading
from array import array
from collections.abc import Sequence
from dataclasses import field, replace
from functools import cache, cached_property
from typing import Any

from tilec.executable.kernel import Parameter
from tilec.records import dataclass
from tilec.runtime.array_list import ArrayList, rows_of, table_of
from tilec.runtime.cuda.context import CudaContext, context_of
from tilec.runtime.cuda.driver import check

MOST_BYTES = 64 << 20
"""Of all tables before unused ones are freed: those of 8,000 lists of 300 arrays, whose pointers
change at every step of a training, or of one list of 2 million."""


@dataclass(eq=False)
class Table:
    """A table at `pointer`. `round`: of gathering, in which it was last used; `is_kept`: for a
    graph; `is_alive`: it is not freed."""

    pointer: int
    bytes: int
    round: int = 0
    is_kept: bool = False
    is_alive: bool = True


class TableStore:
    """The tables of one GPU. Safe to use from several threads."""

    def __init__(self, context: CudaContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._tables: dict[bytes, Table] = {}
        self._bytes = 0
        self.round = 0

    def table(self, words: array[int], stream: int) -> Table:
        """The table of these words, for a launch on a stream."""
        content = words.tobytes()
        with self._lock, self._context.entered():
            found = self._tables.get(content)
            if found is None:
                if self._bytes > MOST_BYTES:
                    self._free_unused(stream)
                found = self._tables[content] = self._copied(content)
                self._bytes += found.bytes
            found.round = self.round
            found.is_kept = found.is_kept or self._is_captured(stream)
            return found

    def use(self, tables: Sequence[Table], stream: int) -> bool:
        """Whether all these tables are there still; then they are for a launch on this stream."""
        with self._lock:
            if not all([table.is_alive for table in tables]):
                return False
            if not all([table.is_kept for table in tables]):
                with self._context.entered():
                    is_captured = self._is_captured(stream)
                for table in tables:
                    table.is_kept = table.is_kept or is_captured
            for table in tables:
                table.round = self.round
            return True

    def _is_captured(self, stream: int) -> bool:
        driver = self._context.driver
        status = check(driver.cuStreamIsCapturing(stream), "asking whether a stream is captured")
        return status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE

    @cached_property
    def _stream(self) -> Any:
        """The stream that copies tables."""
        flags = self._context.driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        return check(self._context.driver.cuStreamCreate(flags), "creating a stream")

    def _copied(self, content: bytes) -> Table:
        """A new table. The thread's calls are no part of a capture that goes on meanwhile (CUDA
        driver API, cuThreadExchangeStreamCaptureMode)."""
        driver, size = self._context.driver, len(content)
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        before = check(driver.cuThreadExchangeStreamCaptureMode(relaxed), "leaving a capture")
        try:
            pointer = int(check(driver.cuMemAlloc(size), f"allocating {size} bytes for a list"))
            stream = self._stream
            host = ctypes.create_string_buffer(content, size)
            copied = driver.cuMemcpyHtoDAsync(pointer, ctypes.addressof(host), size, stream)
            check(copied, "copying the table of a list")
            check(driver.cuStreamSynchronize(stream), "copying the table of a list")
        finally:
            check(driver.cuThreadExchangeStreamCaptureMode(before), "going on with a capture")
        return Table(pointer, size)

    def _free_unused(self, stream: int) -> None:
        """Frees what this round has not used, and begins another; not while the caller's stream is
        captured, since all launches must be over first."""
        if self._is_captured(stream):
            return
        driver = self._context.driver
        check(driver.cuCtxSynchronize(), "waiting for launches with lists")
        for content, table in list(self._tables.items()):
            if table.round < self.round and not table.is_kept:
                table.is_alive = False
                del self._tables[content]
                self._bytes -= table.bytes
                check(driver.cuMemFree(table.pointer), "freeing the table of a list")
        self.round += 1


@cache
def tables_of(context: CudaContext) -> TableStore:
    """The tables of a GPU."""
    return TableStore(context)


_NO_TABLE = Table(0, 0, is_alive=False)


@dataclass(frozen=True, eq=False)
class PlacedList(ArrayList):
    """A list whose table is in a GPU's memory, at `pointer`. `words`: what it holds."""

    table: Table = field(default=_NO_TABLE, repr=False)
    words: Any = field(default=None, repr=False)


def use_tables(lists: Sequence[PlacedList], stream: int) -> None:
    """Keeps the tables of lists that a launch on a stream reads. KeyError where one is gone."""
    store = tables_of(context_of(lists[0].device[1]))
    if not store.use([one.table for one in lists], stream):
        raise KeyError("a table that was freed")


def with_tables(
    context: CudaContext, parameters: Sequence[Parameter], arguments: Sequence[Any], stream: int
) -> list[Any]:
    """The arguments of a launch on a stream, lists with the tables that a kernel of these
    parameters reads."""
    return [
        placed(context, parameter, value, stream) if parameter.is_list else value
        for parameter, value in zip(parameters, arguments, strict=True)
    ]


def placed(
    context: CudaContext, parameter: Parameter, arrays: ArrayList, stream: int
) -> PlacedList:
    """A list with its table."""
    words = table_of(arrays, parameter)
    table = tables_of(context).table(words, stream)
    told = {name: getattr(arrays, name) for name in _TOLD}
    return PlacedList(
        **told, pointer=table.pointer, rows=rows_of(parameter), table=table, words=words
    )


_TOLD = ("shape", "strides", "dtype", "device", "framework", "common", "elements", "members")
"""What a list with a table has of the same without one."""


def moved(
    context: CudaContext, known: PlacedList, pointers: Sequence[int], stream: int
) -> PlacedList:
    """A list like one that has a table, but of arrays at other addresses."""
    each = (len(known.words) // len(pointers)) - 1
    words = known.words[:]
    words[0 : each * len(pointers) : each] = array("q", pointers)
    table = tables_of(context).table(words, stream)
    return replace(known, pointer=table.pointer, table=table, words=words)
