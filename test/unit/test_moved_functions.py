"""Functions that do not stand where their code says, as after IPython's %autoreload."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from tilec.messages.diagnostics import CompileError

TEXT = """import tilec
import tilec.language as tl

def other(x):
    return x * 100.0

def scaled(x):
    return x * 2.0

@tilec.kernel(grid=1, device="emulator")
def k(x, y):
    tl.store(y, 0, scaled(tl.load(x, 0, 8)))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "moved_functions.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("moved_functions", None)
    return importlib.import_module("moved_functions")


def result(module: Any) -> float:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    module.k(x, y)
    return y[0]


def reloaded(module: Any, text: str) -> None:
    """The changed file, and the function's code as that of a file of its own, as IPython 9 does."""
    path = Path(module.__file__)
    path.write_text(path.read_text().replace("return x * 2.0", text))
    (found,) = [n for n in ast.parse(path.read_text()).body if getattr(n, "name", "") == "scaled"]
    made = compile(ast.unparse(found), str(path), "exec").co_consts[0]
    module.scaled.__code__ = made


def test_a_changed_function_is_found_by_its_name_and_code(module: Any) -> None:
    assert result(module) == 2.0
    reloaded(module, "return x * 3.0")
    assert module.scaled.__code__.co_firstlineno == 1
    assert result(module) == 3.0


def test_the_function_that_stands_there_is_not_taken(module: Any) -> None:
    code = module.scaled.__code__.replace(co_firstlineno=4)  # where `other` stands
    module.scaled = FunctionType(code, vars(module))
    assert result(module) == 2.0


def test_a_file_that_says_something_else_is_an_error(module: Any) -> None:
    reloaded(module, "return x * 3.0")
    path = Path(module.__file__)
    path.write_text(path.read_text().replace("x * 3.0", "x * 4.0"))
    with pytest.raises(CompileError, match=r"not where its code says.*\n(.*\n)*help: load the mod"):
        result(module)
