"""A process may fork, as data loaders do, while another thread of it is anywhere in a call."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.compile.isolation import death_of
from tilec.executable import python_ast
from tilec.executable.thread_lock import ThreadLock
from tilec.runtime.emulator_device import EmulatorDevice


@tilec.kernel(grid=lambda y: tl.cdiv(y.shape[0], 32))
def double(x: tl.array, y: tl.array):
    at = tl.program_id(0) * 32
    tl.store(y, (at,), tl.load(x, (at,), (32,)) * 2)


@contextmanager
def _elsewhere(*places: Any) -> Iterator[None]:
    """Another thread is inside these locks."""
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        for guard in places:
            guard.lock.acquire()
        inside.set()
        leave.wait()

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    inside.wait()
    yield
    leave.set()
    thread.join()
    for guard in places:
        guard.renew()


@pytest.mark.parametrize("place", ["kernel", "device", "parser"])
def test_a_forked_child_calls_kernels(place: str) -> None:
    """A lock that a call takes is another thread's at the time of the fork."""
    device = EmulatorDevice()
    kernel = tilec.kernel(double.fn, grid=double.grid, device=device)
    places = {"kernel": kernel._alone, "device": device._alone, "parser": python_ast._ALONE}
    x = np.arange(50, dtype=np.float32)

    def call() -> None:
        y = np.full_like(x, np.nan)
        kernel(x, y)
        if not np.array_equal(y, 2 * x):
            os._exit(1)

    with _elsewhere(places[place]):
        assert death_of(call, 20.0) is None


def test_one_thread_at_a_time() -> None:
    """Not all, as each would find the number that another has read."""
    guard, count = ThreadLock(), 0
    before = sys.getswitchinterval()

    def add() -> None:
        nonlocal count
        for _ in range(200):
            with guard.lock:
                read = count
                threading.Event().wait(0)
                count = read + 1

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert count == 600


def test_who_forks_inside_leaves_the_old_lock() -> None:
    guard = ThreadLock(threading.RLock)

    def inside_again() -> None:
        with guard.lock:
            pass

    def fork_inside() -> None:
        with guard.lock:
            assert death_of(inside_again, 5.0) is None
            guard.renew()

    fork_inside()
    inside_again()
