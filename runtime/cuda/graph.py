"""Launches recorded once and repeated by the GPU alone, so that no launch by the CPU is timed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.driver import CudaError, check


class Graph:
    """What `record` puts on `stream`, which is not the legacy default one; use it as a context,
    which frees it. Everything launched must be loaded already. `record` is kept, and with it the
    arrays whose addresses the graph has."""

    def __init__(self, context: CudaContext, stream: int, record: Callable[[], Any]) -> None:
        self._context = context
        self._stream = stream
        self._record = record
        driver = context.driver
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        with context.entered():
            check(driver.cuStreamBeginCapture(stream, relaxed), "recording a graph")
            try:
                record()
            except BaseException:
                with suppress(CudaError):  # that of `record` is the one to be seen
                    check(driver.cuStreamEndCapture(stream), "ending a graph")
                raise
            graph = check(driver.cuStreamEndCapture(stream), "ending a graph")
            self._made = check(driver.cuGraphInstantiate(graph, 0), "making a graph ready")
            check(driver.cuGraphDestroy(graph), "freeing a graph")

    def launch(self) -> None:
        """Puts all of it on the stream again."""
        with self._context.entered():
            launched = self._context.driver.cuGraphLaunch(self._made, self._stream)
            check(launched, "launching a graph")

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *error: object) -> None:
        with self._context.entered():
            self._context.driver.cuGraphExecDestroy(self._made)
