"""Locks that processes share by a file, where `filelock` is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Keeps other processes out of what `path` is about, by a file beside it.

    Waits at most so long. OSError where the wait was too long, or the file system has no locks;
    without `filelock` there is none.
    """
    try:
        filelock = importlib.import_module("filelock")
    except ImportError:
        yield
        return
    lock = filelock.FileLock(f"{path}.lock", timeout=seconds)
    try:
        lock.acquire()
    except (filelock.Timeout, NotImplementedError) as error:
        raise OSError(f"{error}") from None
    try:
        yield
    finally:
        lock.release()
