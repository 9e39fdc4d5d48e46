"""Runs the programs of a command line in forked children of this process, which has them imported.

A command is a fork that calls the command's Python function on redirected streams: milliseconds
instead of a process start, and a crash of MLIR ends the child alone.
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import importlib
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilec.compile.isolation import read_until_closed

PRELOADED = (
    "tilec.cli",
    "tilec.cli.opt",
    "tilec.cli.compile",
    "tilec.cli.python_input",
    "tilec.call.auto_tiles",
    "tilec.call.jit",
    "tilec.frontend",
    "filecheck.main",
    "op_rules",
)
"""Imported before any fork; with the last what tests ask of tables of ops."""

TIMEOUT_S = 60.0
TIMED_OUT = 124
"""Exit code of a command that took longer."""

BUG = 3
"""tilec's exit code for a bug of its own: never what a test wants."""


@dataclass
class Command:
    """One command of a pipeline: its words and where its streams go."""

    words: list[str] = field(default_factory=list)
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None


def _tilec(arguments: Sequence[str]) -> int:
    return importlib.import_module("tilec.cli").main(arguments)


def _filecheck(arguments: Sequence[str]) -> int:
    importlib.import_module("filecheck.main").main(["filecheck", *arguments])
    return 0


def _python(arguments: Sequence[str]) -> int:
    sys.argv = list(arguments)
    sys.path.insert(0, str(Path(arguments[0]).parent))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


IN_PROCESS: dict[str, Callable[[Sequence[str]], int]] = {
    "tilec": _tilec,
    "filecheck": _filecheck,
    sys.executable: _python,
}


def _become(words: list[str]) -> int:
    """Runs a command in this (forked) process; its exit code."""
    if words[0] == "not":
        code = _become(words[1:])
        return 0 if code not in (0, BUG) and code < 128 else 1
    run = IN_PROCESS.get(words[0])
    if run is None:
        sys.stdout.flush()
        return subprocess.run(words, check=False).returncode
    try:
        return run(words[1:])
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def _run_here(command: Command, stdin: str, stdout: str, stderr: str) -> int:
    """Redirects this (forked) process's streams and runs the command; its exit code."""
    code = 127
    try:
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        _redirect(os.open(command.stdin or stdin, os.O_RDONLY), 0)
        _redirect(os.open(command.stdout or stdout, append, 0o644), 1)
        target = command.stderr or stderr
        if target == "&1":
            os.dup2(1, 2)
        else:
            _redirect(os.open(target, append, 0o644), 2)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, closefd=False, encoding="utf-8")  # noqa: SIM115 - until the end
            for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        code = _become(command.words)
    except BaseException:
        importlib.import_module("traceback").print_exc()
        code = 126
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _redirect(opened: int, number: int) -> None:
    os.dup2(opened, number)
    os.close(opened)


def run_command(command: Command, stdin: str, stdout: str, stderr: str, environment: dict) -> int:
    """Exit code of a command run in a child; 128 + signal where it died, 124 on a timeout."""

    def run() -> int:
        os.environ.update(environment)
        return _run_here(command, stdin, stdout, stderr)

    return _in_a_child(run)


def run_batch(words: Sequence[str], streams: Sequence[Sequence[str]], codes: str) -> bool:
    """Runs a command on several inputs, one after the other in one child; False if that died.

    `streams`: the names of each run's three streams; `codes`: a file for the exit codes, a line
    each. The commands run in this child themselves (TILEC_DEBUG), without one of their own, and
    MLIR parses without a trial: on what it does not survive this child dies.
    """

    def run() -> int:
        os.environ["TILEC_DEBUG"] = "1"
        source = importlib.import_module("tilec.compile.source")
        source.__dict__["_check_survives"] = lambda *_: None
        with open(codes, "w", encoding="utf-8") as file:
            for names in streams:
                file.write(f"{_run_here(Command(list(words)), *names)}\n")
                file.flush()
        return 0

    return _in_a_child(run) == 0


@functools.cache
def _preload() -> None:
    """Loads, once a process, what each child would load: modules, and with the first context of
    MLIR the bindings of its dialects, which take as long as three commands."""
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("tilec.dialects.context").make_context()
    gc.collect()
    gc.freeze()


def _in_a_child(run: Callable[[], int]) -> int:
    """What `run` gives in a forked child; 128 + signal where it died, 124 on a timeout."""
    _preload()
    alive_read, alive_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.set_inheritable(alive_write, True)
        code = 126
        try:
            os.setpgid(0, 0)
            faulthandler.disable()  # whoever asked is told how it died
            code = run()
        finally:
            os._exit(code)
    os.close(alive_write)
    in_time = read_until_closed(alive_read, TIMEOUT_S) is not None
    os.close(alive_read)
    if not in_time:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return TIMED_OUT
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
