"""Runs a command in a forked child: whatever ends that, there is one diagnostic.

The child ends with its parent. What C++ code prints as it dies is kept back and becomes notes.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import IO

from tilec.cli.parser import AT_FAULT, BUG
from tilec.cli.streams import complain, pass_on
from tilec.compile import progress
from tilec.compile.collection import SELDOM
from tilec.compile.isolation import end_with_parent
from tilec.messages.diagnostics import CompileError, InternalError

_SAID = re.compile(r"Assertion `.*' failed|LLVM ERROR: .*|^.*\nUNREACHABLE executed", re.MULTILINE)


def run_in_child(run: Callable[[], int]) -> int:
    """The exit code of `run` in a child, or, if that dies, of what is said about it."""
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile(prefix="tilec-") as log, progress.shared():
        parent, child = os.getpid(), os.fork()
        if child == 0:
            _be_child(run, parent, log)
        status = _wait(child)
        log.seek(0)
        words = log.read().decode(errors="replace")
        begun = progress.last()
    if not os.WIFSIGNALED(status):
        pass_on(words)
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    if number == signal.SIGINT:
        return 128 + number
    return _show_death(signal.Signals(number), words, begun)


def _be_child(run: Callable[[], int], parent: int, log: IO[bytes]) -> None:
    """Runs the command in the child, then ends the process without tearing MLIR down, which would
    only take time."""
    code = BUG
    try:
        end_with_parent(parent)
        gc.set_threshold(SELDOM)
        _keep_back(log)
        code = run()
    finally:
        os._exit(code)


def _keep_back(log: IO[bytes]) -> None:
    """Sends all that is written to standard error to the log, but for what Python writes, which
    goes on to standard error."""
    kept = os.dup(2)
    os.dup2(log.fileno(), 2)
    before = sys.stderr
    sys.stderr = open(  # noqa: SIM115 - until the process ends
        kept, "w", buffering=1, encoding=before.encoding, errors=before.errors
    )


def _wait(child: int) -> int:
    """The status of a child that has ended. Ctrl-C is for the child, which got it, too: here it
    could come between the child's end and what is known of it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return os.waitpid(child, 0)[1]
    finally:
        signal.signal(signal.SIGINT, before)


def _show_death(number: signal.Signals, words: str, begun: progress.Progress | None) -> int:
    """Prints the error for a child that died. Text can be anything, and what MLIR does not survive
    is refused; a kernel of the frontend's can not: there it is a bug."""
    notes = [f"it says: {' '.join(said[0].split())}" for said in _SAID.finditer(words)][:2]
    if begun is None or begun.place is None or not begun.is_text:
        where = "" if begun is None else f" in {begun.doing}"
        at = "" if begun is None or begun.place is None else f", of the kernel at {begun.place}"
        said = "".join(f"; {note}" for note in notes)
        complain(InternalError(f"tilec died of {number.name}{where}{at}{said}"))
        return BUG
    notes.append("if the program is right, this is a bug in tilec; please report it")
    message = f"{begun.doing} cannot take this program: the compiler died of {number.name}"
    complain(CompileError(message, begun.place, notes))
    return AT_FAULT
