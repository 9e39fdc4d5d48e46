"""The example in the docstring of each op is a program: it parses, verifies and shows that op."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.context import make_context
from tilec.dialects.op import TileOp
from tilec.passes.verify_ops import verify_ops

OPS = [*tile.Op.ALL, *gpu_tile.Op.ALL]


def between_commas(text: str) -> Iterator[str]:
    """The parts of `a<b, c>, (d, e)` that stand outside brackets."""
    depth, start = 0, 0
    for at, (before, letter) in enumerate(zip(" " + text, text, strict=False)):
        depth += (letter in "<([{") - (letter in ")]}" or (letter == ">" and before != "-"))
        if letter == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def operand_types(example: str) -> list[str]:
    """The types in `... : (types) -> results`, which ends an example."""
    types = example[example.rindex(" : (") + 4 :]
    depth = 1
    for at, letter in enumerate(types):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return list(between_commas(types[:at]))
    raise AssertionError(f"no types: {example}")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.OPERATION_NAME)
def test_example_verifies(op: type[TileOp]) -> None:
    example = (inspect.getdoc(op) or "").partition("Example:\n")[2]
    match = re.search(rf'"{re.escape(op.OPERATION_NAME)}"\((.*?)\)', example)
    assert match, "no example"
    names = [name.strip() for name in match[1].split(",") if name.strip()]
    parameters = dict(zip(names, operand_types(example), strict=True))
    signature = ", ".join(f"{name}: {type_}" for name, type_ in parameters.items())
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @k({signature}) {{\n{example}\nreturn\n}}")
        verify_ops(module)
