"""lit's test format for tilec: RUN lines as for a shell, run in forked children of the lit worker.

A worker imports MLIR and tilec once; each command of a RUN line is a fork that calls the command's
Python function, so a test takes milliseconds and a crash costs one test. The lines stay portable:
lit's own ShTest runs them too. Understood: `a | b`, `>`, `2>`, `2>&1`, `<`, and `not`.
"""

from __future__ import annotations

import importlib
import os
import re
import runpy
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lit.formats
import lit.Test
import lit.TestRunner

from tilec.isolation import read_until_closed

PRELOADED = ("tilec.cli", "tilec.cli_opt", "tilec.cli_compile", "filecheck.main")
"""Imported in the lit worker, before any fork."""

TIMEOUT_S = 60.0
_BUG = 3
"""tilec's exit code for a bug of its own: never what a test wants."""


@dataclass
class Command:
    """One command of a pipeline: its words and where its streams go."""

    words: list[str] = field(default_factory=list)
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None


def parse_pipeline(line: str) -> list[Command]:
    """The commands of `a x < in | b > out 2>&1`. ValueError for shell syntax it does not know."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands = [Command()]
    words = iter(lexer)
    for word in words:
        now = commands[-1]
        if word == "|":
            commands.append(Command())
        elif word == ">":
            is_stderr = now.words[-1:] == ["2"]
            target = next(words, "")
            if is_stderr:
                now.words.pop()
                now.stderr = target
            else:
                now.stdout = target
        elif word == ">&" and now.words[-1:] == ["2"] and next(words, "") == "1":
            now.words.pop()
            now.stderr = "&1"
        elif word == "<":
            now.stdin = next(words, "")
        elif set(word) <= set("|<>&;"):
            raise ValueError(f"unknown shell syntax {word!r} in: {line}")
        else:
            now.words.append(word)
    if not all(command.words for command in commands):
        raise ValueError(f"a command is missing in: {line}")
    return commands


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
        return 0 if code not in (0, _BUG) and code < 128 else 1
    run = IN_PROCESS.get(words[0])
    if run is None:
        sys.stdout.flush()
        os.execvp(words[0], words)
    try:
        return run(words[1:])
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def _child(command: Command, stdin: str, stdout: str, stderr: str, environment: dict) -> None:
    """The forked process: redirects its streams, runs the command, ends."""
    code = 127
    try:
        os.setpgid(0, 0)
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(command.stdin or stdin, os.O_RDONLY), 0)
        os.dup2(os.open(command.stdout or stdout, append, 0o644), 1)
        target = command.stderr or stderr
        os.dup2(1 if target == "&1" else os.open(target, append, 0o644), 2)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, closefd=False, encoding="utf-8")  # noqa: SIM115 - until the end
            for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        os.environ.update(environment)
        code = _become(command.words)
    except BaseException:
        importlib.import_module("traceback").print_exc()
        code = 126
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(command: Command, stdin: str, stdout: str, stderr: str, environment: dict) -> int:
    """Exit code of a command run in a child; 128 + signal where it died, 124 on a timeout."""
    alive_read, alive_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.set_inheritable(alive_write, True)
        _child(command, stdin, stdout, stderr, environment)
    os.close(alive_write)
    in_time = read_until_closed(alive_read, TIMEOUT_S) is not None
    os.close(alive_read)
    if not in_time:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return 124
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def run_line(line: str, base: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Runs one RUN line; the first failing exit code (0 if none) and the transcript.

    `base`: prefix of the files that hold the streams.
    """
    transcript = [f"$ {line}"]
    failed = 0
    stdin = os.devnull
    for number, command in enumerate(parse_pipeline(line)):
        stdout, stderr = f"{base}.{number}.out", f"{base}.{number}.err"
        for path in (stdout, stderr, command.stdout):
            if path:
                Path(path).unlink(missing_ok=True)
                Path(path).touch()
        code = _run(command, stdin, stdout, stderr, environment)
        said = Path(stderr).read_text(errors="replace")
        if code or said:
            transcript += [f"# {command.words[0]}: exit code {code}", said]
        if code and not command.stdout:
            transcript.append(Path(stdout).read_text(errors="replace")[:8000])
        failed = failed or code
        stdin = stdout
    return failed, "\n".join(transcript)


class ForkedTest(lit.formats.FileBasedTest):
    """Runs the RUN lines of a file; fails at the first line that fails."""

    def getTestsForPath(self, suite, path, lit_config, local_config):
        """lit's entry point: Python files without a RUN line are pytest's, or modules."""
        source = Path(suite.getSourcePath(path))
        if source.suffix == ".py" and "# RUN:" not in source.read_text():
            return
        yield from super().getTestsForPath(suite, path, lit_config, local_config)

    def execute(self, test, lit_config):
        """lit's entry point."""
        script = lit.TestRunner.parseIntegratedTestScript(test)
        if isinstance(script, lit.Test.Result):
            return script
        directory, base = map(Path, lit.TestRunner.getTempPaths(test))
        directory.mkdir(parents=True, exist_ok=True)
        substitutions = lit.TestRunner.getDefaultSubstitutions(test, str(directory), str(base))
        lines = lit.TestRunner.applySubstitutions(script, substitutions, recursion_limit=3)
        for name in PRELOADED:
            importlib.import_module(name)
        transcript = ""
        for line in lines:
            line = re.sub(r"^%dbg\([^)]*\)\s*", "", line)
            code, transcript = run_line(line, base, test.config.environment)
            if code:
                kind = lit.Test.TIMEOUT if code == 124 else lit.Test.FAIL
                return lit.Test.Result(kind, transcript)
        return lit.Test.Result(lit.Test.PASS, transcript)
