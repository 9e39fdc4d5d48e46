"""A machine that has only what runs kernels: what works there, and what is said of the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tilec
import tilec.language as tl
from tilec.compile import isolation
from tilec.runtime.artefact import save

WITHOUT = """
import importlib.util, sys
find, hidden = importlib.util.find_spec, ("mlir", "llvmlite")
importlib.util.find_spec = lambda name, *rest: None if name in hidden else find(name, *rest)
sys.modules["mlir"] = sys.modules["llvmlite"] = None
"""
"""Python without the packages that compile."""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def doubled(x, y, B: tl.const = 64):
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i, B) * 2.0)


def test_an_artefact_runs(tmp_path: Path) -> None:
    path = tmp_path / "doubled.tilec"
    save(path, [doubled.compile(["x:f32[?]", "y:f32[?]"], target="sm_80")])
    done = run(
        "import numpy as np, tilec\n"
        "x = np.arange(100, dtype=np.float32); y = np.zeros_like(x)\n"
        "tilec.load(sys.argv[1], device='emulator:check')(x, y)\n"
        "assert (y == 2 * x).all() and 'mlir.ir' not in sys.modules\n",
        str(path),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [
    ["compile", "tilec/examples/matmul.tile", "--target", "sm_90a", "-o", "none.ptx"],
    ["opt", "tilec/examples/matmul.tile", "--passes", "simplify"],
])  # fmt: skip
def test_commands_that_compile_say_what_is_missing(words: list[str], tmp_path: Path) -> None:
    done = run("from tilec.cli.command import main; sys.exit(main(sys.argv[1:]))", *words)
    assert done.returncode == 1
    assert "the compiler is not installed here: xtc-mlir-python-bindings, llvmlite" in done.stderr
    assert "tilec.load" in done.stderr


def test_a_call_that_compiles_says_it(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(
        "import numpy as np, tilec, tilec.language as tl\n"
        "@tilec.kernel(grid=1, device='emulator')\n"
        "def k(x):\n    tl.store(x, 0, tl.load(x, 0, 32))\n"
        "k(np.ones(32, np.float32))\n"
    )
    done = run(
        "import os, runpy; os.environ['TILEC_CACHE'] = '0'; runpy.run_path(sys.argv[1])", str(path)
    )
    assert "CompileError: error: the compiler is not installed here" in done.stderr


def test_on_windows_it_says_where_it_runs() -> None:
    done = run("sys.platform = 'win32'\nimport tilec")
    assert "ImportError: tilec does not run on Windows itself: use it in WSL 2" in done.stderr


def test_a_child_runs_where_no_system_call_ties_it_to_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "_prctl", None)
    assert isolation.run_program([sys.executable, "-c", "print(3)"], 60).stdout == "3\n"
    assert isolation.death_of(lambda: None, 60) is None
