"""Runs what might kill the process in a forked child first.

MLIR's parser overflows the stack or fails an assertion on some texts. A child that tries the text
costs a few milliseconds and turns the death of the process into a value.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import os
import resource
import select
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

from tilec.records import dataclass

TIMEOUT_S = 600.0
"""Longest LLVM or ptxas may take for one module before it counts as hanging: far above what any
kernel takes, and a build does not stand still for ever."""
_PR_SET_PDEATHSIG = 1
"""Of prctl (Linux, sys/prctl.h)."""
_prctl = getattr(ctypes.CDLL(None), "prctl", None)
"""Looked up here: a forked child takes no locks of the loader's. None on macOS."""


@dataclass(frozen=True)
class Death:
    """The end of a child: `reason` ("died of SIGSEGV"), and its last `words` on standard error.

    `is_late`: it took longer than it was given.
    """

    reason: str
    words: str
    is_late: bool = False


def death_of(action: Callable[[], object], timeout_s: float) -> Death | None:
    """Says how `action` kills the process, None if it ends by itself. What it raises does not
    count.

    The child has nothing but this thread: `action` must not wait for another one.
    """
    read_end, write_end = os.pipe()
    parent = os.getpid()
    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside other threads: the child takes none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _act(action, write_end, parent)
    os.close(write_end)
    words = None
    try:
        words = read_until_closed(read_end, timeout_s)
    finally:
        os.close(read_end)
        if words is None:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if words is None:
        return Death(f"did not finish within {timeout_s:g} s", "", is_late=True)
    if os.WIFSIGNALED(status):
        return Death(f"died of {signal.Signals(os.WTERMSIG(status)).name}", words)
    if os.WEXITSTATUS(status):
        return Death(f"ended with exit code {os.WEXITSTATUS(status)}", words)
    return None


def end_with_parent(parent: int) -> None:
    """Lets Linux end this child as soon as the thread that forked it, of the process `parent`,
    ends, by whatever. It must be a thread that waits for the child.

    Other systems cannot: there a child outlives a process that is killed, until it is done.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended in between
        os._exit(1)


def run_program(command: Sequence[str | Path], timeout_s: float) -> CompletedProcess[str]:
    """Runs a program as `subprocess.run` does, one that ends with this process, however that ends.

    OSError where it cannot be started, TimeoutExpired where it takes longer.
    """
    with warnings.catch_warnings():
        # Python 3.12 warns as of forks: the child calls one function of the C library.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            preexec_fn=functools.partial(end_with_parent, os.getpid()),
        )


def _act(action: Callable[[], object], log: int, parent: int) -> None:
    """Runs the child's action, then ends the process, whatever happens."""
    try:
        end_with_parent(parent)
        faulthandler.disable()  # a death that is expected is no report to the author
        os.dup2(log, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        action()
    except Exception:
        os._exit(0)
    except BaseException:
        os._exit(1)
    os._exit(0)


def read_until_closed(descriptor: int, timeout_s: float) -> str | None:
    """Reads everything written until the other end closes, None if that takes too long."""
    deadline = time.monotonic() + timeout_s
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    parts = []
    while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        part = os.read(descriptor, 65536)
        if not part:
            return b"".join(parts).decode(errors="replace").strip()
        parts.append(part)
    return None
