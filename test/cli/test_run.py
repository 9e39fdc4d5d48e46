"""`tilec run`: scripts and functions on the emulator, its modes, and whose fault a failure is."""

from __future__ import annotations

from pathlib import Path

import pytest

SCRIPT = """
import sys
import numpy as np
import tilec
import tilec.language as tl

@tilec.kernel(grid=lambda x: (tl.cdiv(x.shape[0], 64),))
def add_one(x: tl.array):
    i = tl.program_id(0) * 64
    tl.store(x, (i,), tl.load(x, (i,), (64,)) + 1)

def once():
    x = np.zeros(100, np.float32)
    add_one(x)
    print("sum", x.sum(), tilec.device().name)

def wrong_argument():
    add_one("text")

def from_the_author():
    {}["missing"]

if __name__ == "__main__":
    print("arguments", sys.argv[1:])
    once()
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_runs_a_script_with_its_arguments(tilec_command, script: str) -> None:
    done = tilec_command("run", "--device", "emulator", script, "--flag", "3")
    assert done.code == 0, done.errors
    assert done.output == "arguments ['--flag', '3']\nsum 100.0 emulator\n"


def test_calls_a_function(tilec_command, script: str) -> None:
    done = tilec_command("run", "--device", "emulator", f"{script}:once")
    assert done.output == "sum 100.0 emulator\n"


@pytest.mark.parametrize(
    ("words", "name"),
    [(("--check",), "emulator:check"), (("--mode", "late"), "emulator:late")],
)
def test_modes_of_the_emulator(tilec_command, script: str, words: tuple, name: str) -> None:
    done = tilec_command("run", *words, f"{script}:once")
    assert done.output == f"sum 100.0 {name}\n"


@pytest.mark.parametrize(
    ("words", "name", "own"),
    [
        (("--device", "emulator", "--check", "3"), "emulator:check", ["3"]),
        (("--flag", "--mode=late"), "emulator:late", ["--flag"]),
        (("--check", "--", "--check", "--", "x"), "emulator:check", ["--check", "--", "x"]),
    ],
)
def test_options_may_follow_the_file(
    tilec_command, script: str, words: tuple, name: str, own: list
) -> None:
    done = tilec_command("run", script, *words)
    assert done.output == f"arguments {own}\nsum 100.0 {name}\n", done.errors


def test_a_wrong_call_is_diagnosed_at_the_script_s_line(tilec_command, script: str) -> None:
    done = tilec_command("run", "--device", "emulator", f"{script}:wrong_argument")
    assert done.code == 1
    assert done.errors.startswith("error: ")
    assert f"note: raised at {script}:18" in done.errors
    assert "Traceback" not in done.errors


def test_the_author_s_own_exception_shows_the_author_s_frames(tilec_command, script: str) -> None:
    done = tilec_command("run", "--device", "emulator", f"{script}:from_the_author")
    assert done.code == 1
    assert "KeyError: 'missing'" in done.errors
    assert "runpy" not in done.errors
    assert "cli/run" not in done.errors


@pytest.mark.parametrize("text", [b"def f(:\n", b"a\0b", b"// a tile's\n"])
def test_what_is_no_python_is_a_message(tilec_command, tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "script.py"
    path.write_bytes(text)
    done = tilec_command("run", "--device", "emulator", str(path))
    assert (done.code, "Traceback" in done.errors) == (1, False)
    assert f"{path}:1:" in done.errors
    assert "error: syntax error: " in done.errors
    path.write_text("exec('def f(:')\n")
    assert f'File "{path}", line 1' in tilec_command("run", str(path)).errors


@pytest.mark.parametrize(
    ("name", "instead"),
    [("k.tilec", "tilec.load(FILE)"), ("k.ptx", "tilec check"), ("k.tile", "tilec compile")],
)
def test_files_that_hold_kernels_are_no_scripts(
    tilec_command, tmp_path: Path, name: str, instead: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"PK")
    done = tilec_command("run", "--device", "emulator", str(path))
    assert (done.code, "Traceback" in done.errors) == (1, False)
    assert f"{path} is no Python script\nhelp: " in done.errors
    assert instead in done.errors


def test_a_script_that_exits_gives_its_code(tilec_command, tmp_path: Path) -> None:
    path = tmp_path / "exits.py"
    path.write_text("raise SystemExit(7)")
    assert tilec_command("run", "--device", "emulator", str(path)).code == 7


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--device", "tpu"), 1, "unknown device 'tpu'"),
        (("--device", "cuda", "--check"), 2, "--check and --mode are for the emulator"),
        (("--check", "--mode", "late"), 2, "--check and --mode exclude each other"),
        (("--mode", "lazy"), 2, "invalid choice: 'lazy'"),
    ],
)
def test_wrong_devices(tilec_command, script: str, words: tuple, code: int, message: str) -> None:
    for line in ((*words, script), (script, *words)):
        done = tilec_command("run", *line)
        assert done.code == code
        assert message in done.errors


def test_missing_files_and_functions(tilec_command, script: str) -> None:
    missing = tilec_command("run", "--device", "emulator", "/nowhere/x.py")
    assert (missing.code, missing.errors) == (1, "error: cannot read /nowhere/x.py: no such file\n")
    unknown = tilec_command("run", "--device", "emulator", f"{script}:twice")
    assert unknown.code == 1
    assert "has no function 'twice'" in unknown.errors
