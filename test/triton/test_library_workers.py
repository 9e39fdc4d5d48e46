"""Processes that make calls (`library_workers.py`)."""

from __future__ import annotations

import os
import time
from typing import Any

from library_workers import done


def make(task: str) -> tuple[Any, bool]:
    """As the task says."""
    if task == "dies":
        os._exit(7)
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


def test_a_process_that_dies_or_takes_too_long_ends_its_call_alone() -> None:
    assert [found is None for _, found in results(["dies", "a"])] == [True, False]
    start = time.monotonic()
    assert [found is None for _, found in results(["sleeps", "a"], seconds=0.7)] == [True, False]
    assert time.monotonic() - start < 15


def test_what_is_not_done_in_time_is_left_out() -> None:
    assert results(["sleeps", "a"], whole=0.3) == []
