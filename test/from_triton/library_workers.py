"""Processes that make calls of libraries, one after another: a wild access ends one alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from tilec.compile.isolation import end_with_parent

Task = Any
"""What `make` takes; it is pickled."""


@dataclass(frozen=True)
class Lost:
    """What became of a task that was not done: `why`."""

    why: str


@dataclass
class Worker:
    """A process, and since when it has been at what. `is_late`: it was ended for that."""

    process: Any
    end: Connection
    task: Task
    since: float
    is_late: bool = False


def done(
    tasks: list[Task], make: Callable[[Task], Any], preload: list[str], *, jobs: int,
    seconds: float, whole: float,
) -> Iterator[tuple[Task, Any]]:  # fmt: skip
    """Each task and `make` of it, `jobs` at a time, as they are done: `Lost` where the process died
    or took longer than `seconds`, and what is not done after `whole` seconds.

    `make`: of a module, like those in `preload`, which are imported once. Its second result says
    whether its process is of further use.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(preload)
    waiting, at_work, free = list(tasks), [], []
    stop = time.monotonic() + whole
    while (waiting or at_work) and time.monotonic() < stop:
        while waiting and len(at_work) < jobs:
            worker = free.pop() if free else _started(context, make)
            worker.task, worker.since = waiting.pop(0), time.monotonic()
            worker.end.send(worker.task)
            at_work.append(worker)
        for worker in _heard(at_work, seconds):
            at_work.remove(worker)
            try:
                found, is_of_use = worker.end.recv()
            except (EOFError, ConnectionResetError):
                found, is_of_use = Lost(_why_it_ended(worker, seconds)), False
            if is_of_use and not worker.is_late:
                free.append(worker)
            else:
                worker.process.kill()
            yield worker.task, found
    for worker in (*at_work, *free):
        worker.process.kill()
    for task in (*(worker.task for worker in at_work), *waiting):
        yield task, Lost(f"not done when the {whole:g} s for all were over")


def _why_it_ended(worker: Worker, seconds: float) -> str:
    worker.process.join()
    code = worker.process.exitcode
    if worker.is_late:
        return f"took longer than {seconds:g} s"
    if code < 0:
        return f"the process died of {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"


def _started(context: Any, make: Callable[[Task], Any]) -> Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(make, theirs), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours, None, 0.0)


def _heard(workers: list[Worker], seconds: float) -> list[Worker]:
    """Those that have answered or died, within a second; those that take too long are ended."""
    for worker in workers:
        if time.monotonic() - worker.since > seconds:
            worker.is_late = True
            worker.process.kill()
    ready = wait([worker.end for worker in workers], timeout=1)
    return [worker for worker in workers if worker.end in ready]


def _work(make: Callable[[Task], Any], end: Connection) -> None:
    """The process."""
    end_with_parent(os.getppid())
    warnings.simplefilter("ignore")
    while True:
        found, is_of_use = make(end.recv())
        end.send((found, is_of_use))
        if not is_of_use:
            return
