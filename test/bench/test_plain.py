"""What a seed draws for `plain.py`: the same cases every time, of kernels that the frontend takes,
each with a formula."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import plain_kernels
from plain_cases import MAKERS, Plain, draw


def test_a_seed_draws_the_same_cases() -> None:
    first, again = draw(5, 2), draw(5, 2)
    assert first == again
    assert [case.label for case in first] != [case.label for case in draw(6, 2)]


def test_every_kernel_has_a_formula() -> None:
    tree = ast.parse(Path(__file__).with_name("plain_formulas.py").read_text())
    formulas = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(MAKERS) <= formulas


@pytest.mark.parametrize("case", draw(7, 1), ids=lambda case: case.kernel)
def test_a_kernel_is_one_of_the_language(case: Plain) -> None:
    kernel = getattr(plain_kernels, case.kernel)
    arrays = {
        name: f"{name}:{dtype}[{','.join('?' * len(shape))}]"
        for name, (dtype, shape) in case.arrays.items()
    }
    names = (parameter.name for parameter in kernel.parameters if parameter.kind != "const")
    specs = [arrays.get(name, f"{name}:f32") for name in names]
    assert "tile." in str(kernel.source_module(specs, case.constants, target="sm_90a"))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
