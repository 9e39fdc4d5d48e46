"""`.ci/run` runs tests, style and types, fails with each, and says what it did not run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / ".ci" / "run"


@pytest.mark.parametrize(
    ("failing", "said", "status"),
    [
        ("", ["test: passed", "check: passed", "types: passed"], 0),
        ("test", ["test: FAILED", "check: passed", "types: passed"], 1),
        ("check", ["test: passed", "check: FAILED", "types: passed"], 1),
        ("types", ["test: passed", "check: passed", "types: FAILED"], 1),
        ("tools", ["test: passed", "check: NOT RUN, types: NOT RUN"], 0),
        ("test tools", ["test: FAILED", "check: NOT RUN, types: NOT RUN"], 1),
    ],
)
def test_what_it_says(failing: str, said: list[str], status: int, tmp_path: Path) -> None:
    (tmp_path / "make").write_text(f'#!/bin/sh\ncase " {failing} " in *" $1 "*) exit 1;; esac\n')
    (tmp_path / "make").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [RUN], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    lines = done.stdout.splitlines()
    assert [line.partition(" (")[0] for line in lines] == said
    assert done.returncode == status
