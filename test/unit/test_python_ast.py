"""Python text is parsed by one thread at a time."""

from __future__ import annotations

import ast
import re
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

import tilec
from tilec.executable import python_ast

ROOT = Path(__file__).resolve().parents[2]


def test_no_two_threads_parse_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits inside the parser for the other: they meet there, or nobody ever does."""
    meeting, parse, met = threading.Barrier(2, timeout=0.3), ast.parse, []

    def slow(text: str, mode: str) -> ast.AST:
        with suppress(threading.BrokenBarrierError):
            meeting.wait()
            met.append(text)
        return parse(text, mode=mode)

    monkeypatch.setattr(python_ast, "ast", SimpleNamespace(parse=slow))
    threads = [threading.Thread(target=python_ast.parse_python, args=("x",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []


def test_nobody_parses_beside_it() -> None:
    folders = (Path(tilec.__file__).parent, *(ROOT / name for name in ("dialects", "passes")))
    found = [
        path.name
        for folder in folders
        for path in folder.rglob("*.py")
        if re.search(r"\bast\.parse\(", path.read_text())
    ]
    assert found == ["python_ast.py"]
