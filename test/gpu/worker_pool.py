"""Jobs in processes of their own: a crash or a hang takes one job with it, not the rest."""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any


@dataclass(frozen=True)
class JobResult:
    """`value` is what the job returned, None where it failed; then `error` says why."""

    job: Any
    value: Any
    error: str | None
    seconds: float


@dataclass
class _Worker:
    process: Any
    connection: Connection

    def stop(self) -> None:
        """Ends the process; a hung kernel only leaves with a kill."""
        self.connection.close()
        self.process.join(2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(10)


def _never(value: Any) -> bool:
    return False


def run_jobs(
    function: Callable[[Any], Any],
    jobs: Sequence[Any],
    *,
    timeout: float,
    processes: int = 1,
    deadline: float | None = None,
    spent: Callable[[Any], bool] = _never,
) -> Iterator[JobResult]:
    """Yields a result a job, in the order they end. `function` must be importable by name.

    `timeout`: seconds a job may take, the start of its process apart. A process whose job raised,
    died or hung is replaced, because a CUDA context does not survive an error in a kernel.
    `deadline`: `time.monotonic()` after which jobs not begun are given up. `spent(value)`: whether
    the process is to be replaced although the job returned.
    """
    waiting: queue.Queue[Any] = queue.Queue()
    for job in jobs:
        waiting.put(job)
    done: queue.Queue[JobResult] = queue.Queue()
    threads = [
        threading.Thread(target=_serve, args=(function, waiting, done, timeout, deadline, spent))
        for _ in range(min(processes, len(jobs)))
    ]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for _ in jobs:
        yield done.get()
    for thread in threads:
        thread.join()


def _serve(
    function: Callable[[Any], Any],
    waiting: queue.Queue[Any],
    done: queue.Queue[JobResult],
    timeout: float,
    deadline: float | None,
    spent: Callable[[Any], bool],
) -> None:
    worker: _Worker | None = None
    while True:
        try:
            job = waiting.get_nowait()
        except queue.Empty:
            break
        if deadline is not None and time.monotonic() > deadline:
            done.put(JobResult(job, None, "not begun: the time of the run is used up", 0.0))
            continue
        try:
            worker = worker or _start(function)
            result = _run(worker, job, timeout)
        except Exception as error:  # whatever it is: the next job has its turn
            result = JobResult(job, None, f"{type(error).__name__}: {error}", 0.0)
        if worker is not None and (result.error is not None or spent(result.value)):
            worker.stop()
            worker = None
        done.put(result)
    if worker is not None:
        worker.stop()


def _start(function: Callable[[Any], Any]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(function, theirs), daemon=True)
    process.start()
    theirs.close()
    if not ours.poll(120):
        process.kill()
        raise TimeoutError("a worker process did not start within 120 s")
    ours.recv()
    return _Worker(process, ours)


def _run(worker: _Worker, job: Any, timeout: float) -> JobResult:
    start = time.monotonic()
    worker.connection.send(job)
    if not worker.connection.poll(timeout):
        worker.process.kill()
        return JobResult(job, None, f"killed after {timeout:.0f} s", time.monotonic() - start)
    try:
        value, error = worker.connection.recv()
    except EOFError:
        worker.process.join(10)
        value, error = None, f"the process died (exit code {worker.process.exitcode})"
    return JobResult(job, value, error, time.monotonic() - start)


def _work(function: Callable[[Any], Any], connection: Connection) -> None:
    """The worker process: answers every job with (value, error) until the pipe closes."""
    connection.send("ready")
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        try:
            answer = (function(job), None)
        except BaseException as error:
            lines = "".join(traceback.format_exception(error, limit=-6))
            answer = (None, f"{type(error).__name__}: {error}\n{lines}")
        connection.send(answer)
