"""The command line as a whole: exit codes, one diagnostic whatever happens, start-up."""

from __future__ import annotations

import faulthandler
import importlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

import tilec.cli
import tilec.examples
from tilec.cli.child import run_in_child
from tilec.cli.command import COMMANDS
from tilec.cli.parser import AT_FAULT, BUG, USAGE
from tilec.passes.contract import Level, tile_pass

Value = TypeVar("Value")

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


@tile_pass(requires=Level.TILE, keeps=True)
def fall_over(*_: object) -> None:
    """Ends as MLIR does."""
    faulthandler.disable()
    os.write(2, b"x.cpp:1: f(): Assertion `n > 0' failed.\nStack dump:\n")
    os.abort()


@pytest.fixture
def deadly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline that ends the process."""
    monkeypatch.setattr("tilec.compile.compiler.passes_from", lambda *_, **__: (fall_over,))


@pytest.mark.usefixtures("deadly")
def test_death_over_a_text_is_the_text_s_mistake(tilec_command) -> None:
    done = tilec_command("compile", "-", stdin=f"\n  {GOOD}")
    assert (done.code, done.output) == (AT_FAULT, "")
    assert done.errors.splitlines() == [
        "<stdin>:2:3: error: 'fall-over' cannot take this program: the compiler died of SIGABRT",
        "note: it says: Assertion `n > 0' failed",
        "note: if the program is right, this is a bug in tilec; please report it",
    ]


@pytest.mark.usefixtures("deadly")
def test_death_over_a_kernel_of_python_s_is_a_bug(tilec_command) -> None:
    file = str(Path(tilec.examples.__file__).parent / "softmax.py")
    words = [word for spec in ("x:f32[?,?]", "y:f32[?,?]") for word in ("--arg", spec)]
    done = tilec_command("compile", f"{file}:softmax", *words)
    assert done.code == BUG
    assert "tilec died of SIGABRT in 'fall-over', of the kernel at" in done.errors
    assert re.search(r"softmax\.py:\d+:1; it says: Assertion `n > 0' failed", done.errors)


ODD_ROWS = """
import tilec
import tilec.language as tl

@tilec.kernel(grid=(1,))
def copy(x: tl.array, y: tl.array):
    tl.store(y, (0, 0), tl.load(x, (0, 0), (16, 64)))
"""
FAULTS = {
    "full": (">/dev/full", "No space left on device"),
    "closed": (">&-", "Bad file descriptor"),
}


@pytest.mark.parametrize(
    ("command", "fault"),
    [("compile", "full"), ("opt", "closed"), ("--version", "full"), ("--help", "closed")],
)
def test_output_that_cannot_be_written_is_an_error(
    command: str, fault: str, tmp_path: Path
) -> None:
    (tmp_path / "k.tile").write_text(GOOD)
    words = f"{command} {tmp_path}/k.tile" if command in ("compile", "opt") else command
    where, why = FAULTS[fault]
    done = _in_shell(f"{sys.executable} -m tilec {words} {where}")
    assert done.stderr.splitlines()[-1] == f"error: cannot write standard output: {why}"
    assert done.returncode == AT_FAULT


def test_a_script_whose_output_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('hello', flush=True)\n")
    done = _in_shell(f"{sys.executable} -m tilec run {tmp_path}/script.py >/dev/full")
    assert done.stderr.splitlines()[-1].startswith("error: cannot write standard output: No space")
    assert "Traceback" not in done.stderr
    assert done.returncode == AT_FAULT


def test_streams_that_are_closed(tmp_path: Path) -> None:
    (tmp_path / "k.tile").write_text(GOOD)
    (tmp_path / "wrong.tile").write_text("wrong")
    tilec_ = f"{sys.executable} -m tilec"
    done = _in_shell(f"{tilec_} opt - <&-")
    assert (done.returncode, done.stderr) == (1, "error: cannot read -: Bad file descriptor\n")
    done = _in_shell(f"{tilec_} opt {tmp_path}/wrong.tile 2>&-; echo $?")
    assert (done.stdout, done.stderr) == ("1\n", "")
    done = _in_shell(f"{tilec_} compile {tmp_path}/k.tile -o {tmp_path}/k.ptx <&- >&- 2>&-")
    assert done.returncode == 0
    assert (tmp_path / "k.ptx").read_text().startswith("//")


@pytest.mark.parametrize(
    ("words", "code"),
    [("compile k.tile -o k.ptx", 0), ("opt wrong.tile", 1), ("opt k.tile > k.mlir", 0)],
)
def test_a_full_disk_is_none_of_the_business_of_who_writes_nothing_there(
    words: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "k.tile").write_text(GOOD)
    (tmp_path / "wrong.tile").write_text("wrong")
    for full in ("2>/dev/full", *([">/dev/full", ">/dev/full 2>&1"] if "-o" in words else ())):
        done = _in_shell(f"cd {tmp_path} && {sys.executable} -m tilec {words} {full}")
        assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_what_is_not_said_on_a_full_disk_stops_nobody(tmp_path: Path) -> None:
    """A warning of the compiler's, and the word that there is no GPU."""
    (tmp_path / "k.py").write_text(ODD_ROWS)
    line = f"cd {tmp_path} && {sys.executable} -m tilec compile k.py:copy --arg 'x:f16[?,?]' --arg "
    assert "2-byte" in _in_shell(f"{line} 'y:f16[?,?]' -o k.ptx").stderr
    assert _in_shell(f"{line} 'y:f16[?,?]' -o k.ptx 2>/dev/full").returncode == 0
    says = "import tilec.runtime.device as d; print(d._default_name())"
    command = f"TILEC_DEVICE= CUDA_VISIBLE_DEVICES= {sys.executable} -c '{says}' 2>/dev/full"
    assert _in_shell(command).stdout == "emulator\n"


def _in_shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )


def _descendants(root: int) -> set[int]:
    """The living processes below one."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            parents[int(stat.parent.name)] = int(parent) if state != "Z" else 0
    found = {root}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_command_that_is_ended(number: int, tmp_path: Path) -> None:
    (tmp_path / "k.tile").write_text(GOOD)
    os.mkfifo(
        tmp_path / "out.ptx"
    )  # which nobody reads: the child waits there, with LLVM's process
    words = [str(tmp_path / "k.tile"), "-o", str(tmp_path / "out.ptx")]
    command = subprocess.Popen([sys.executable, "-m", "tilec", "compile", *words])
    begun = _wait_for(lambda: len(found := _descendants(command.pid)) == 2 and found)
    command.send_signal(number)
    assert command.wait(10) == -number
    assert _wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in begun))


def test_ctrl_c_as_a_command_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when the child has ended and nobody knows yet how."""
    wait = os.waitpid

    def interrupted(*words: int) -> tuple[int, int]:
        found = wait(*words)
        signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(os, "waitpid", interrupted)
    assert run_in_child(lambda: AT_FAULT) == AT_FAULT


def test_ctrl_c_as_a_command_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert tilec.cli.main(["--version"]) == 128 + signal.SIGINT


def _wait_for(condition: Callable[[], Value]) -> Value:
    """What a condition gives as soon as it holds, or after 20 s."""
    end = time.monotonic() + 20
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


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
