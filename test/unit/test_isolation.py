"""Trying in a forked child what might kill the process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from tilec.compile.isolation import death_of


def test_what_survives_is_no_death() -> None:
    assert death_of(lambda: None, 10) is None


def test_an_exception_is_no_death() -> None:
    assert death_of(lambda: 1 / 0, 10) is None


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_signal_is_named(number: signal.Signals) -> None:
    death = death_of(lambda: os.kill(os.getpid(), number), 10)
    assert death is not None
    assert death.reason == f"died of {number.name}"


def test_an_exit_is_a_death() -> None:
    death = death_of(lambda: os._exit(3), 10)
    assert death is not None
    assert death.reason == "ended with exit code 3"
    assert death_of(lambda: sys.exit(0), 10) is not None


def test_last_words_are_kept() -> None:
    def shout() -> None:
        os.write(2, b"Assertion `x' failed.\n")
        ctypes.CDLL(None).abort()

    death = death_of(shout, 10)
    assert death is not None
    assert death.words.startswith("Assertion `x' failed.")


def test_what_never_ends_is_ended() -> None:
    start = time.monotonic()
    death = death_of(lambda: time.sleep(60), 0.2)
    assert death is not None
    assert death.reason == "did not finish within 0.2 s"
    assert time.monotonic() - start < 10


def children(of: int) -> set[str]:
    """The process numbers of a process's children, dead ones not waited for included."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == of:
            found.add(stat.parent.name)
    return found


def test_no_child_is_left() -> None:
    before = children(os.getpid())
    death_of(lambda: None, 10)
    death_of(lambda: time.sleep(60), 0.05)
    assert children(os.getpid()) <= before


def test_many_open_files_do_no_harm() -> None:
    files = []
    try:
        while not files or files[-1] < 1100:
            files.append(os.dup(0))
    except OSError:
        pytest.skip("the limit on open files is below 1100")
    finally:
        for number in files:
            os.close(number)
    assert death_of(lambda: None, 10) is None


def test_threads_bring_no_warning() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert death_of(lambda: None, 10) is None
    finally:
        stop.set()
        thread.join()


ORPHANS = {
    "a trial": "death_of(lambda: time.sleep(60), 60)",
    "a program": "run_program(['sleep', '60'], 60)",
    "a thread's": "threading.Thread(target=run_program, args=(['sleep', '60'], 60)).start()",
}


@pytest.mark.parametrize("name", ORPHANS)
def test_a_child_ends_with_its_parent(name: str) -> None:
    program = f"""
import threading, time
from tilec.compile.isolation import death_of, run_program
{ORPHANS[name]}
"""
    parent = subprocess.Popen([sys.executable, "-c", program])
    while not (child := children(parent.pid)):
        assert parent.poll() is None
        time.sleep(0.01)
    time.sleep(0.1)  # until it has asked for its end
    parent.kill()
    parent.wait()
    end = time.monotonic() + 10
    while any(is_alive(number) for number in child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(is_alive(number) for number in child)


def is_alive(number: str) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
