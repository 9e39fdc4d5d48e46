"""Memory that launches give their kernels by themselves, where CTAs that sum parts of one loop meet
(`tilec.executable.kernel.Workspace`).

Launches of one stream follow one another, and each leaves flags at 0, so a stream has one memory
for all, which grows. Launches on other streams may run beside it, and a graph may be replayed
beside anything: what is captured on a stream in one capture has memory of its own, which stays for
good, since nobody says when a graph is gone. (A graph that is instantiated twice, and launched so
at one time, writes its results twice at a time as well.)

The memory is the driver's: a framework's allocator would serve a graph's pool, and must be asked at
every launch.
"""

from __future__ import annotations

import itertools
import threading
from functools import cache, cached_property
from typing import Any

from tilec.executable.kernel import CompiledKernel, Grid
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import ALLOCATION_BYTES
from tilec.records import dataclass
from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.driver import check, relaxed_capture

LEAST_BYTES = 64 << 10
"""Of a memory, so that it seldom grows: what 132 parts of 64 sums each leave, twice."""
PER_THREAD = 2
"""The handle that stands for another stream in each thread (CUDA driver API, CU_STREAM_PER_THREAD);
others stand for one stream at a time."""
_OF_CONTEXT = (0, 1)
"""Handles of the legacy default stream, which is never gone."""


@dataclass
class Memory:
    """`bytes` at `pointer`, of the stream with this `number`, which no other has or had."""

    number: int
    pointer: int = 0
    bytes: int = 0


class Workspaces:
    """The memories of one GPU. Safe to use from several threads."""

    def __init__(self, context: CudaContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._memories: dict[tuple[Any, bool], Memory] = {}
        self._fresh = itertools.count()
        states = context.driver.CUstreamCaptureStatus
        self._not_captured = states.CU_STREAM_CAPTURE_STATUS_NONE

    def pointers(self, kernel: CompiledKernel, launched: Grid, stream: int) -> list[int]:
        """Addresses for a launch of so many CTAs on a stream, one a workspace of the kernel."""
        with self._lock, self._context.entered():
            owner, number = self._owner(stream)
            return self._places(kernel, launched, owner, number)

    def identity(self, stream: int) -> tuple[bool, int]:
        """Whether launches on a stream are recorded now (or forbidden, which they say themselves),
        and the stream's number, which no other has or had. Asked of the driver at each launch."""
        driver = self._context.driver
        result, *status = driver.cuStreamIsCapturing(stream)
        if int(result) or status[0] != self._not_captured:
            return True, 0
        if stream in _OF_CONTEXT:
            return False, stream
        return False, int(check(driver.cuStreamGetId(stream), "asking for a stream's number"))

    def own_pointers(self, kernel: CompiledKernel, launched: Grid) -> list[int]:
        """Addresses that no other launch gets, for launches that follow one another."""
        with self._lock, self._context.entered():
            return self._places(kernel, launched, ("own", next(self._fresh)), 0)

    def _places(self, kernel: CompiledKernel, launched: Grid, owner: Any, number: int) -> list[int]:
        sizes = kernel.workspace_bytes(launched)
        ends = {True: 0, False: 0}  # of what is 0, and of what is anything
        starts: list[int] = []
        for workspace, size in zip(kernel.workspaces, sizes, strict=True):
            starts.append(ends[workspace.is_zero])
            ends[workspace.is_zero] += _round_up(size)
        found = {
            kind: self._memory((owner, kind), number, end) for kind, end in ends.items() if end
        }
        each = zip(kernel.workspaces, starts, strict=True)
        return [found[workspace.is_zero].pointer + start for workspace, start in each]

    def _owner(self, stream: int) -> tuple[Any, int]:
        """Whose memory launches on a stream use now, and the number of that stream."""
        is_captured, number = self.identity(stream)
        if is_captured:
            result, *told = self._context.driver.cuStreamGetCaptureInfo(stream)
            # Of a capture that the driver does not tell about each launch has its own.
            capture = ("unknown", next(self._fresh)) if int(result) else int(told[1])
            return ("capture", capture, stream), 0
        return (number if stream == PER_THREAD else stream), number

    def _memory(self, key: tuple[Any, bool], number: int, size: int) -> Memory:
        """The memory of an owner, of at least this size. What was smaller may still be used, and
        stays: all such together are no larger."""
        found = self._memories.setdefault(key, Memory(number))
        if found.number != number:  # of a stream that is gone, whose launches may be under way
            with relaxed_capture(self._context.driver):
                check(self._context.driver.cuCtxSynchronize(), "waiting for a stream that is gone")
            found.number = number
        if found.bytes < size:
            found.bytes = power_above(max(size, LEAST_BYTES))
            found.pointer = self._allocated(found.bytes)
        return found

    @cached_property
    def _stream(self) -> Any:
        """The stream that clears new memory."""
        flags = self._context.driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        return check(self._context.driver.cuStreamCreate(flags), "creating a stream")

    def _allocated(self, size: int) -> int:
        """New memory, which is 0. It is no part of a capture that goes on meanwhile."""
        driver = self._context.driver
        with relaxed_capture(driver):
            what = f"allocating {size} bytes where CTAs leave sums for each other"
            pointer = int(check(driver.cuMemAlloc(size), what))
            check(driver.cuMemsetD8Async(pointer, 0, size, self._stream), "clearing memory")
            check(driver.cuStreamSynchronize(self._stream), "clearing memory")
        return pointer


@cache
def workspaces_of(context: CudaContext) -> Workspaces:
    """The memories of a GPU."""
    return Workspaces(context)


def _round_up(size: int) -> int:
    return -(-size // ALLOCATION_BYTES) * ALLOCATION_BYTES
