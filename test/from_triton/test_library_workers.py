"""Processes that make calls (`library_workers.py`)."""

from __future__ import annotations

import faulthandler
import os
import resource
import time
from typing import Any

from library_workers import Lost, done


def make(task: str) -> tuple[Any, bool]:
    """As the task says."""
    if task == "dies":
        os._exit(7)
    if task == "aborts":
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.abort()
    if task == "sleeps":
        time.sleep(60)
    return (task, os.getpid()), task != "last"


def results(tasks: list[str], **limits: float) -> list[tuple[str, Any]]:
    """By one process at a time."""
    given = {"seconds": 20.0, "whole": 20.0, **limits}
    return list(done(tasks, make, [], jobs=1, **given))


def test_one_process_makes_all_until_it_is_of_no_use() -> None:
    found = [(task, pid) for task, (_, pid) in results(["a", "last", "b"])]
    assert [task for task, _ in found] == ["a", "last", "b"]
    assert found[0][1] == found[1][1] != found[2][1]


def test_a_process_that_dies_ends_its_call_alone() -> None:
    (_, dead), (_, aborted), (_, after) = results(["dies", "aborts", "a"])
    assert dead == Lost("the process ended with exit code 7")
    assert aborted == Lost("the process died of SIGABRT")
    assert after[0] == "a"


def test_a_process_that_takes_too_long_ends_its_call_alone() -> None:
    start = time.monotonic()
    (_, late), (_, after) = results(["sleeps", "a"], seconds=0.7)
    assert late == Lost("took longer than 0.7 s")
    assert after[0] == "a"
    assert time.monotonic() - start < 15


def test_what_is_not_done_in_time_is_said() -> None:
    lost = Lost("not done when the 0.3 s for all were over")
    assert results(["sleeps", "a"], whole=0.3) == [("sleeps", lost), ("a", lost)]
