"""The examples in the ops' documentation, as whole programs."""

from __future__ import annotations

import re
from functools import cache

from tilec.dialects import gpu_tile, tile
from tilec.dialects.op import TileOp

ALL_OPS: tuple[type[TileOp], ...] = (*tile.Op.ALL, *gpu_tile.Op.ALL)


def example(op: type[TileOp]) -> str:
    """The example text of an op, without its indentation."""
    _, found, text = (op.__doc__ or "").partition("Example:\n")
    assert found, f"{op.OPERATION_NAME} has no example"
    lines = text.rstrip().split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines)


@cache
def program(op: type[TileOp]) -> str:
    """The example in a function whose arguments are the example's operands."""
    text = example(op)
    names = re.search(rf'"{re.escape(op.OPERATION_NAME)}"\(([^)]*)\)', text)
    assert names, f"{op.OPERATION_NAME}: the example does not show it"
    types = _split(text[text.rindex(" : (") + 4 :])
    operands = [name.strip() for name in names[1].split(",") if name.strip()]
    arguments = dict(zip(operands, types, strict=True))
    shown = ", ".join(f"{name}: {type_}" for name, type_ in arguments.items())
    return f"func.func @example({shown}) {{\n{text}\nreturn\n}}\n"


def _split(text: str) -> list[str]:
    """The types up to the parenthesis that closes a list whose opening one is already read."""
    parts, depth, is_string = [""], 0, False
    for character in text:
        is_string ^= character == '"'
        if not is_string and depth == 0 and character == ")":
            return [part.strip() for part in parts if part.strip()]
        if not is_string:
            depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0 and not is_string:
            parts.append("")
        else:
            parts[-1] += character
    raise ValueError(f"no end of the types in {text!r}")
