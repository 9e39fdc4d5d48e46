"""lit's test format for tilec: RUN lines as for a shell, run in forked children of the lit worker.

A worker imports MLIR and tilec once; each command of a RUN line is a fork that calls the command's
Python function, so a test takes milliseconds and a crash costs one test. The lines stay portable:
lit's own ShTest runs them too. Understood: `a | b`, `>`, `2>`, `2>&1`, `<`, and `not`.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import lit.formats
import lit.Test
import lit.TestRunner
from forked import TIMED_OUT, Command, run_command


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
        code = run_command(command, stdin, stdout, stderr, environment)
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
        transcript = ""
        for line in lines:
            line = re.sub(r"^%dbg\([^)]*\)\s*", "", line)
            code, transcript = run_line(line, base, test.config.environment)
            if code:
                kind = lit.Test.TIMEOUT if code == TIMED_OUT else lit.Test.FAIL
                return lit.Test.Result(kind, transcript)
        return lit.Test.Result(lit.Test.PASS, transcript)
