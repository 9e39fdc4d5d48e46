"""Kernels loaded from Python files, as the command line does."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilec.examples
from tilec.call.kernel_file import load_kernel
from tilec.messages.diagnostics import CompileError

EXAMPLES = Path(tilec.examples.__file__).parent

TWO = """
import tilec
import tilec.language as tl
from tilec.examples.vector_add import vector_add
from sibling import SIZE

@tilec.kernel
def first(x: tl.array):
    tl.store(x, 0, tl.load(x, 0, SIZE))

@tilec.kernel
def second(x: tl.array):
    pass
"""


@pytest.fixture
def two(tmp_path: Path) -> str:
    (tmp_path / "sibling.py").write_text("SIZE = 8\n")
    path = tmp_path / "two.py"
    path.write_text(TWO)
    return str(path)


def test_by_name(two: str) -> None:
    kernel = load_kernel(two, "first")
    assert "tensor<8xf32>" in str(kernel.source_module(["x:f32[?]"]))


def test_the_only_kernel_needs_no_name() -> None:
    assert load_kernel(str(EXAMPLES / "matmul.py")).name == "matmul"


def test_imported_kernels_do_not_count(two: str) -> None:
    with pytest.raises(CompileError, match=r"say which kernel, .* found: first, second$"):
        load_kernel(two)


def test_a_wrong_name(two: str) -> None:
    with pytest.raises(CompileError, match="has no kernel 'secnd'") as caught:
        load_kernel(two, "secnd")
    assert "did you mean 'second'?" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("x = 1\ny = (\n", "syntax error: '(' was never closed", (2, 5)),
        ("def f():\n    return 1 / 0\nx = f()\n", "ZeroDivisionError", (2, None)),
        ("import no_such_module\n", "No module named 'no_such_module'", (1, None)),
        ("import tilec\n@tilec.kernel\ndef k(*x): pass\n", "'*x' parameters", (2, None)),
    ],
)
def test_a_file_that_does_not_run(
    text: str, message: str, place: tuple[int, int | None], tmp_path: Path
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(text)
    with pytest.raises(CompileError) as caught:
        load_kernel(str(path))
    assert message in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.line == place[0]
    assert place[1] in (None, caught.value.location.column)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="no such file"):
        load_kernel(str(tmp_path / "nothing.py"))
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(CompileError, match="expected a Python file"):
        load_kernel(str(tmp_path / "text.txt"))
