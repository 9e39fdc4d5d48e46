"""The command line as a whole: exit codes, one diagnostic whatever happens, start-up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import tilec
from tilec.cli.command import COMMANDS
from tilec.cli.parser import AT_FAULT, BUG, USAGE

GOOD = "func.func @k() attributes {tile.kernel} { return }"


def test_version(tilec_command) -> None:
    assert tilec_command("--version").output == f"tilec {tilec.__version__}\n"


def test_help_names_every_command(tilec_command) -> None:
    done = tilec_command("--help")
    assert done.code == 0
    assert all(name in done.output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(tilec_command, name: str) -> None:
    done = tilec_command(name, "--help")
    assert (done.code, done.errors) == (0, "")
    assert f"usage: tilec {name}" in done.output


@pytest.mark.parametrize("words", [(), ("frobnicate",), ("opt", "--frob"), ("opt", "a", "b")])
def test_wrong_usage_is_exit_code_2(tilec_command, words: tuple[str, ...]) -> None:
    done = tilec_command(*words)
    assert done.code == USAGE
    assert "--help` explains" in done.errors or done.errors.startswith("usage: tilec")
    assert len(done.errors.splitlines()) == 2 or not words
    assert done.output == ""


def test_a_wrong_program_is_exit_code_1(tilec_command) -> None:
    done = tilec_command("opt", "-", stdin="func.func @k() { foo }")
    assert done.code == AT_FAULT
    assert done.errors.startswith("<stdin>:1:18: error: custom op 'foo' is unknown")
    assert "Traceback" not in done.errors


class Broken(Exception):
    """What nobody expects."""


def _raise(*_: object) -> int:
    raise Broken("two\nlines")


def test_an_unexpected_exception_is_one_internal_error(
    tilec_command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilec.cli.opt.run", _raise)
    done = tilec_command("opt", "-", stdin=GOOD)
    assert done.code == BUG
    first, *_ = done.errors.splitlines()
    assert first.startswith("internal error: Broken at test_cli.py:")
    assert first.endswith(": two lines")
    assert "bug in tilec" in done.errors
    assert "Traceback" not in done.errors


def test_debugging_shows_the_traceback(tilec_command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilec.cli.opt.run", _raise)
    done = tilec_command("opt", "-", stdin=GOOD, TILEC_DEBUG="1")
    assert done.code == BUG
    assert "Traceback" in done.errors
    assert "internal error: Broken" in done.errors


def test_death_of_the_process_is_one_internal_error(
    tilec_command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilec.cli.opt.run", lambda _: os.kill(os.getpid(), signal.SIGKILL))
    done = tilec_command("opt", "-", stdin=GOOD)
    assert done.code == BUG
    assert done.errors.startswith("internal error: tilec died of SIGKILL\n")


def _closed_pipe(_: object) -> int:
    raise BrokenPipeError


def test_a_closed_pipe_is_no_error_message(tilec_command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilec.cli.opt.run", _closed_pipe)
    done = tilec_command("opt", "-", stdin=GOOD)
    assert (done.code, done.output, done.errors) == (AT_FAULT, "", "")


def test_the_entry_point_imports_neither_mlir_nor_numpy() -> None:
    program = (
        "import sys, tilec.cli; "
        "print(sorted({'mlir', 'numpy', 'llvmlite', 'cuda'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
