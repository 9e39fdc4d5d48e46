"""What ops of Triton's IR say of themselves: constants, and where they put axes."""

from __future__ import annotations

from collections.abc import Callable

from tilec.terms.dtypes import ELEMENT_BYTES
from tilec.triton.program import Op


def constant_integer(op: Op) -> int | None:
    """The integer that an arith.constant holds everywhere."""
    text = op.text.rpartition(" : ")[0] if " : " in op.text else op.text
    text = text.strip().removeprefix("dense<").removesuffix(">").strip()
    if text in ("true", "false"):
        return int(text == "true")
    return int(text) if text.lstrip("-").isdigit() else None


def moved_axes_of(op: Op) -> list[int]:
    """The permutation of a `tt.trans`: the source's axis of each of the result's."""
    return [int(n) for n in op.attributes["order"].partition(":")[2].strip("> ").split(",")]


def moved_axes(op: Op) -> Callable[[int], int]:
    """Where an op that moves axes (trans, expand_dims) puts each."""
    if op.name == "tt.trans":
        return moved_axes_of(op).index
    axis = op.number("axis")
    return lambda found: found + (found >= axis)


def keeps_size(op: Op) -> bool:
    """Whether a cast of pointers is between elements of one size."""
    before, after = (ELEMENT_BYTES.get(v.type.pointee or "") for v in (op.operands[0], op.result))
    return before == after
