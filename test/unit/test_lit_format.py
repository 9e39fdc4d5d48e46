"""The RUN lines of lit tests: what they mean, and that a failing command fails the test."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import TIMED_OUT, Command, run_command
from lit_format import parse_pipeline, run_line


def test_pipes_and_redirections() -> None:
    assert parse_pipeline("not tilec opt 'a b' < in 2>&1 | filecheck --x=y f > out 2> err") == [
        Command(["not", "tilec", "opt", "a b"], stdin="in", stderr="&1"),
        Command(["filecheck", "--x=y", "f"], stdout="out", stderr="err"),
    ]


@pytest.mark.parametrize("line", ["a && b", "a ; b", "a || b", "a >> b", "| a", "a |", "a & b"])
def test_unknown_shell_syntax_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"unknown shell syntax|a command is missing"):
        parse_pipeline(line)


def run(line: str, tmp_path: Path) -> int:
    return run_line(line, tmp_path / "test", {})[0]


def test_commands_read_what_the_one_before_wrote(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(f"echo one two | sed s/one/three/ > {out}", tmp_path) == 0
    assert out.read_text() == "three two\n"


def test_any_failing_command_fails_the_line(tmp_path: Path) -> None:
    assert run("false | cat", tmp_path) == 1
    assert run("tilec opt /nowhere | cat", tmp_path) == 1


def test_not_wants_a_failure_but_no_crash(tmp_path: Path) -> None:
    assert run("not false", tmp_path) == 0
    assert run("not true", tmp_path) == 1
    assert run("not not true", tmp_path) == 0
    assert run("not tilec opt /nowhere", tmp_path) == 0


def test_a_bug_is_not_what_not_wants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilec.cli.opt.run", lambda _: {}["bug"])
    assert run("not tilec opt", tmp_path) == 1


def test_filecheck_fails_where_the_text_differs(tmp_path: Path) -> None:
    checks = tmp_path / "checks"
    checks.write_text("CHECK: three\n")
    assert run(f"echo three | filecheck {checks}", tmp_path) == 0
    assert run(f"echo four | filecheck {checks}", tmp_path) != 0


def test_a_hanging_command_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forked.TIMEOUT_S", 0.3)
    streams = [str(tmp_path / name) for name in ("in", "out", "err")]
    Path(streams[0]).touch()
    assert run_command(Command(["sh", "-c", "sleep 60 & sleep 60"]), *streams, {}) == TIMED_OUT
