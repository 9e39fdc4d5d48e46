"""Times launches on a stream with CUDA events, with a cold L2 cache before each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.driver import check


class Stopwatch:
    """`measure` times work on `stream` of a GPU; use it as a context, which frees what it takes.

    `flush_bytes`: that much memory is written before each measurement. At least twice the L2 cache
    empties it, and takes longer than the CPU needs to queue the launch, so that the launch itself
    is not in the time.
    """

    def __init__(self, context: CudaContext, stream: int, flush_bytes: int) -> None:
        self._context = context
        self._stream = stream
        self._words = -(-flush_bytes // 4)
        self._memory = 0
        self._events: list[Any] = []

    def __enter__(self) -> Stopwatch:
        driver = self._context.driver
        with self._context.entered():
            doing = f"allocating {4 * self._words} bytes to empty the L2 cache with"
            self._memory = int(check(driver.cuMemAlloc(4 * self._words), doing))
            try:
                for _ in range(2):
                    self._events.append(check(driver.cuEventCreate(0), "creating an event"))
            except BaseException:
                self._free()
                raise
        return self

    def __exit__(self, *error: object) -> None:
        with self._context.entered():
            self._free()

    def measure(self, launch: Callable[[], Any]) -> float:
        """Microseconds that what `launch` queues takes on the GPU; waits for it.

        CudaError if it fails there.
        """
        driver, (start, end) = self._context.driver, self._events
        with self._context.entered():
            check(
                driver.cuMemsetD32Async(self._memory, 0, self._words, self._stream),
                "emptying the L2 cache",
            )
            check(driver.cuEventRecord(start, self._stream), "recording an event")
            launch()
            check(driver.cuEventRecord(end, self._stream), "recording an event")
            check(driver.cuEventSynchronize(end), "waiting for a measured launch")
            return 1000.0 * float(check(driver.cuEventElapsedTime(start, end), "reading a time"))

    def _free(self) -> None:
        driver = self._context.driver
        for event in self._events:
            driver.cuEventDestroy(event)
        driver.cuMemFree(self._memory)


def is_captured(context: CudaContext, stream: int) -> bool:
    """Whether work put on `stream` is recorded into a graph instead of being done, or is forbidden
    because another stream is captured."""
    driver = context.driver
    with context.entered():
        result, status = driver.cuStreamIsCapturing(stream)
    if result == driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
        return True
    return int(check((result, status), "asking whether a stream is captured")) != 0
