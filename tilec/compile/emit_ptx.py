"""LLVM IR to PTX, in a process of its own: nothing LLVM does can end the author's process.

Workers (`llvm_worker`) are started once, kept, and used by one thread at a time, so concurrent
compilations run in parallel. Against a fork per compilation: no import of llvmlite (70 ms) in this
process, since a worker that was started early loads while the frontend runs, and no fork of a
process that may hold threads, locks and a CUDA context.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import inspect
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tilec.compile import llvm_worker
from tilec.compile.isolation import TIMEOUT_S
from tilec.compile.unwritten_registers import write_all
from tilec.hardware.ptx_version import NEWEST, check_needed, needed, shown
from tilec.hardware.target import Target, check_ptx_version
from tilec.messages.diagnostics import InternalError


class LLVMError(InternalError):
    """Raised where LLVM refuses a module, dies of it, or does not come to an end."""


def emit_ptx(
    llvm_ir: str, target: Target, ptx_version: int | None = None, *, timeout_s: float = TIMEOUT_S
) -> str:
    """The PTX of an LLVM module (text) for `target`.

    In PTX version `ptx_version` / 10: CompileError where an instruction needs a later one,
    ValueError where the target does. None is the lowest that the code needs, of code for the
    newest. LLVMError with LLVM's words where LLVM refuses the module or dies of it.
    """
    if ptx_version is None:
        ptx = _print(llvm_ir, target, NEWEST, timeout_s)
        lowest = shown(needed(ptx, target).version)
        return re.sub(r"^\.version \S+", f".version {lowest}", ptx, count=1, flags=re.MULTILINE)
    check_ptx_version(target, ptx_version)
    ptx = _print(llvm_ir, target, ptx_version, timeout_s)
    check_needed(ptx, target, ptx_version)
    return ptx


def _print(llvm_ir: str, target: Target, ptx_version: int, timeout_s: float) -> str:
    request = {"llvm_ir": llvm_ir, "cpu": target.name, "features": f"+ptx{ptx_version}"}
    worker = _workers.take()
    try:
        answer = worker.ask(request, timeout_s)
    except BaseException:
        _workers.stop_busy(worker)
        raise
    _workers.give_back(worker)
    if "error" in answer:
        raise LLVMError(f"LLVM refuses the module for {target.name}: {answer['error']}")
    return write_all(answer["ptx"])


def start_worker() -> None:
    """Starts a worker now if none is idle: it loads LLVM while the caller does something else."""
    _workers.give_back(_workers.take())


class _Worker:
    """A process that runs `llvm_worker`."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._read_to = 0
        # Isolated and without site: it starts faster, and no file beside the author's script can
        # stand in for a module of the standard library.
        self._process = subprocess.Popen(
            [_interpreter(), "-I", "-S", *_worker_program(), _llvmlite_directory()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # an interrupt at the terminal is for the asker, not for LLVM
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def ask(self, request: dict[str, str], timeout_s: float) -> dict[str, str]:
        """The answer to a request. LLVMError if the process dies, stays silent or complains."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            llvm_worker.write_message(self._process.stdin, request)
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        if not poll.poll(timeout_s * 1000):
            raise LLVMError(f"LLVM did not finish within {timeout_s:g} s")
        answer = llvm_worker.read_message(self._process.stdout)
        words = self._new_words()
        if answer is None:
            raise LLVMError(f"LLVM {_how_it_ended(self._process.wait())}: {words or 'no message'}")
        if words and "error" not in answer:
            # LLVM only warns where it falls back to another chip or PTX version than asked for.
            raise LLVMError(f"LLVM warns: {words}")
        return answer

    def _new_words(self) -> str:
        """Gives what the process wrote on standard error since the last call, without a stack
        dump."""
        self._log.seek(self._read_to)
        text = self._log.read().decode(errors="replace")
        self._read_to = self._log.tell()
        return text.partition("PLEASE submit a bug report")[0].strip()

    def stop(self) -> None:
        """Ends the process."""
        self._process.kill()
        self.forget()
        self._process.wait()

    def abandon(self) -> None:
        """Gives the process up in a forked child. The number of the pipe stays taken, in case
        somebody of the parent's was about to use it, but this process no longer keeps the asker's
        end of it open."""
        assert self._process.stdin is not None
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._process.stdin.fileno())
        os.close(nowhere)

    def forget(self) -> None:
        """Closes this process's ends of the pipes; an idle worker ends with its last asker."""
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class _Workers:
    """The idle workers of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()

    def take(self) -> _Worker:
        """An idle worker, else a new one."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:
                    break
                worker.stop()
            else:
                worker = _Worker()
            self._busy.add(worker)
        return worker

    def give_back(self, worker: _Worker) -> None:
        """Makes a worker available to the next taker."""
        with self._lock:
            self._busy.discard(worker)
            self._idle.append(worker)

    def stop_busy(self, worker: _Worker) -> None:
        """Ends a worker whose taker has no more use for it."""
        with self._lock:
            self._busy.discard(worker)
        worker.stop()

    def after_fork(self) -> None:
        """Forgets, in a forked child, the workers, which are the parent's: two askers would mix
        their answers."""
        for worker in self._idle:
            worker.forget()
        for worker in self._busy:
            worker.abandon()
        self._lock = threading.Lock()
        self._idle = []

    def stop(self) -> None:
        """Ends the idle workers."""
        while self._idle:
            self._idle.pop().stop()


_workers = _Workers()
atexit.register(_workers.stop)
os.register_at_fork(after_in_child=_workers.after_fork)


def _worker_program() -> list[str]:
    """Tells Python what to run: the file, or its text where it lies in an archive."""
    if os.path.isfile(llvm_worker.__file__):
        return [llvm_worker.__file__]
    return ["-c", inspect.getsource(llvm_worker)]


def _interpreter() -> str:
    if not sys.executable:
        raise InternalError(
            "sys.executable is empty: tilec needs it to run LLVM in its own process"
        )
    return sys.executable


def _llvmlite_directory() -> str:
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise InternalError("llvmlite is not installed; pip install llvmlite==0.50.0")
    return str(Path(spec.origin).parent.parent)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"died of {signal.Signals(-code).name}"
