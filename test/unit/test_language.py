"""The language's stubs: all implemented, all documented, none needs the compiler to be imported."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilec.language as tl
from tilec.frontend.rules import RULES
from tilec.language.builtin import function

STUBS = {
    name: getattr(tl, name)
    for name in tl.__all__
    if hasattr(getattr(tl, name), "__tilec_builtin__")
}


@pytest.mark.parametrize("name", STUBS)
def test_a_stub_and_its_implementation_have_the_same_parameters(name: str) -> None:
    implementation = RULES.builtins[STUBS[name]]
    wanted = list(inspect.signature(STUBS[name].__tilec_builtin__).parameters.values())
    frame, *found = inspect.signature(implementation).parameters.values()
    if found[-1:] and found[-1].kind is inspect.Parameter.VAR_KEYWORD:  # any that the stub has
        found.pop()
        wanted = [p for p in wanted if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert frame.name == "frame"
    assert [p.name for p in found] == [p.name for p in wanted]


@pytest.mark.parametrize("name", tl.__all__)
def test_every_name_is_in_the_readme(name: str) -> None:
    text = (Path(tl.__file__).parent / "README.md").read_text()
    assert re.search(rf"\b{name}\b", text)


@pytest.mark.parametrize("name", [n for n in tl.__all__ if inspect.isfunction(getattr(tl, n))])
def test_every_function_is_documented(name: str) -> None:
    assert getattr(tl, name).__doc__


def test_a_stub_called_outside_a_kernel_says_so() -> None:
    with pytest.raises(TypeError, match=r"tl\.load can only be called inside a @tilec\.kernel"):
        tl.load(None, 0, 1)


def test_cdiv_works_outside_kernels() -> None:
    assert [tl.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_a_marked_function_still_runs() -> None:
    @function
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    assert add(2, 3) == 5
    assert add.__doc__ == "Adds."


def test_dtypes_print_as_they_are_written() -> None:
    assert repr(tl.bf16) == "tl.bf16"
    assert str(tl.f8e4m3) == "f8e4m3"
    assert (tl.f8e4m3.mlir, tl.f8e4m3.bits, tl.f8e4m3.is_fp8) == ("f8E4M3FN", 8, True)


def test_importing_the_language_and_defining_a_kernel_needs_no_mlir() -> None:
    code = (
        "import sys, tilec, tilec.language as tl\n"
        "from tilec.examples import matmul\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('mlir', 'llvmlite', 'torch')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
