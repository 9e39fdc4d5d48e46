"""`.ci/run` runs tests, style and types, fails with each, and says what it did not run; `make test`
runs lit whatever pytest says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / ".ci" / "run"


_MAKE = """#!/bin/sh
if [ "$1" = test ]; then echo tests; fi
case " {failing} " in *" $1 "*) exit 1;; esac
"""


@pytest.mark.parametrize(
    ("failing", "said", "status"),
    [
        ("", ["check: passed", "types: passed", "tests"], 0),
        ("test", ["check: passed", "types: passed", "tests"], 1),
        ("check", ["check: FAILED", "types: passed", "tests"], 1),
        ("types", ["check: passed", "types: FAILED", "tests"], 1),
        ("tools", ["check: NOT RUN, types: NOT RUN", "tests"], 0),
        ("test tools", ["check: NOT RUN, types: NOT RUN", "tests"], 1),
    ],
)
def test_what_it_says(failing: str, said: list[str], status: int, tmp_path: Path) -> None:
    (tmp_path / "make").write_text(_MAKE.format(failing=failing))
    (tmp_path / "make").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [RUN], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    lines = [line.partition(" (")[0] for line in done.stdout.splitlines() if line]
    assert sorted(lines) == sorted(said)  # style and types run beside the tests
    assert done.returncode == status


@pytest.mark.parametrize("failing", ["", "python", "lit", "python lit"])
def test_lit_runs_whatever_pytest_says(failing: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / ".installed").touch()
    for tool in ("python", "lit"):
        (tmp_path / "bin" / tool).write_text(f"#!/bin/sh\nexit {int(tool in failing.split())}\n")
        (tmp_path / "bin" / tool).chmod(0o755)
    words = ["make", "-C", str(RUN.parents[1]), "test", f"VENV={tmp_path}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    said = ["FAILED" if tool in failing.split() else "passed" for tool in ("python", "lit")]
    assert f"pytest: {said[0]}, lit: {said[1]}" in done.stdout.splitlines()
    assert bool(done.returncode) == bool(failing)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_job_runs_every_test_that_needs_a_framework(framework: str, tmp_path: Path) -> None:
    root = RUN.parents[1]
    workflow = (root / ".github/workflows/test.yml").read_text()
    (jobs,) = re.findall(r"framework: \[(.*)\]", workflow)
    assert framework in jobs.split(", ")
    assert "make test-${{ matrix.framework }}" in workflow
    (tmp_path / "bin").mkdir()
    (tmp_path / ".installed").touch()
    (tmp_path / "bin" / "python").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    words = ["make", "-C", str(root), f"test-{framework}", f"VENV={tmp_path}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    installed, tested = (line.split() for line in done.stdout.splitlines() if line[0] == "-")
    assert installed[-1] == framework
    needed = re.compile(rf'importorskip\("{framework}"\)')
    files = [p for p in (root / "test").rglob("test_*.py") if needed.search(p.read_text())]
    assert {str(p.relative_to(root)) for p in files} <= set(tested)
    assert len(files) > 3
    assert "-n" in tested
