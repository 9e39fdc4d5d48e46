"""Wrong kernels: one error, at the right place, with the right words. `@@` marks the place."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from frontend_cases import PRELUDE_LINES, build
from frontend_mistakes import CASES

from tilec.messages.diagnostics import CompileError

SPECS = ("x:f32[?,?]", "v:f32[?]", "h:f16[?]", "q:i32[?]", "e:f8e4m3[?,?]", "n:i32", "f:f32")
CONSTANTS = {"BM": 16, "BN": 32, "NAME": "abc"}
HEADER = "def k(x, v, h, q, e, n, f, BM, BN, NAME):\n"


MODULE = """
LIST = [1, 2]

def helper(a, b):
    return a + b

def recursive(a):
    return @recursive(a)

def star(*values):
    return 1

@tilec.kernel
def other(x: tl.array):
    pass

"""


def marked(body: str) -> tuple[str, int, int]:
    """The module's text without the mark, and the mark's line and column."""
    text = MODULE.replace("@recursive", "recursive") + HEADER + textwrap.indent(body, "    ")
    before, _, after = text.partition("@@")
    line = PRELUDE_LINES + before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return before + after, line, column


@pytest.mark.parametrize("name", CASES)
def test_error(name: str, tmp_path: Path) -> None:
    body, message = CASES[name]
    text, line, column = marked(body)
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, SPECS, CONSTANTS)
    error = caught.value
    assert message in str(error)
    assert len(error.errors) == 1
    assert error.location is not None
    found = (error.location.line, error.location.column)
    if name not in ("recursion", "helper_star"):  # these point into the function called
        assert found == (line, column), str(error)
    assert "Traceback" not in str(error)


def test_error_in_a_helper_names_the_call(tmp_path: Path) -> None:
    text = """
        def helper(a):
            return a + tl.arange(3)

        def k(v):
            y = helper(tl.load(v, 0, 4))
    """
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, ["v:i32[?]"])
    shown = str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.line == PRELUDE_LINES + 3
    assert f":{PRELUDE_LINES + 6}:9: note: in 'helper', called here" in shown
    assert "        y = helper(tl.load(v, 0, 4))" in shown.replace("    y =", "        y =")


def test_error_in_the_library_points_to_the_author(tmp_path: Path) -> None:
    text = """
        def k(e):
            y = tl.softmax(tl.load(e, 0, 4))
    """
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, ["e:f8e4m3[?]"])
    error = caught.value
    assert error.location is not None
    assert (error.location.line, error.location.column) == (PRELUDE_LINES + 3, 9)
    assert "in tl.softmax" in str(error)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("lambda y: y.shape[0]", "takes 'y', which is no parameter"),
        ("lambda x: x.shape[0] / 2", "use // or tl.cdiv"),
        ("lambda x: x.shape[5]", "tuple index out of range"),
        ("lambda x: 1 if x.shape[0] > 3 else 2", "use min and max"),
        ("lambda x: 1.5", "a grid size is an integer"),
        ("lambda x: x", "found the array 'x'; its sizes are x.shape[0], ..."),
        ("lambda x: (1, 2, 3, 4)", "gives 4 sizes"),
        ("lambda x: 1 // 0", "ZeroDivisionError"),
        ("'abc'", "a grid size is an integer"),
    ],
)
def test_wrong_grid(grid: str, message: str, tmp_path: Path) -> None:
    text = f"""
        @tilec.kernel(grid={grid})
        def k(x: tl.array):
            pass
    """
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, ["x:f32[?]"])
    assert message in str(caught.value)
    assert caught.value.location is not None
