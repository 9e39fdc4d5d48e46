"""What follows from the sizes of arrays, as expressions that a launch evaluates
(`tilec.executable.grid`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.types import is_index, is_list
from tilec.passes.analysis.divisibility import constant_of

_FORMULAS: Mapping[str, str] = {
    "arith.addi": "({} + {})",
    "arith.subi": "({} - {})",
    "arith.muli": "({} * {})",
    "arith.floordivsi": "({} // {})",
    "arith.ceildivsi": "cdiv({}, {})",
    "arith.minsi": "min({}, {})",
    "arith.maxsi": "max({}, {})",
}
"""Operations that mean the same at a launch."""
_SHIFTS = {"arith.shli": "*", "arith.shrsi": "//"}
_LONGEST = 500
"""Characters of an expression: the language has a limit on how deep it nests (`MAX_DEPTH` of
`executable/grid.py`)."""


def text_of(value: ir.Value) -> str | None:
    """An index as an expression over the sizes of arrays; None for one that is more."""
    op = defining_op(value)
    return None if op is None else described(op, text_of)


def described(op: ir.Operation, known: Callable[[ir.Value], str | None]) -> str | None:
    """The index that an op gives as such an expression, where its operands are `known` to be
    some."""
    if not is_index(op.results[0]):
        return None
    if op.name == "arith.constant":
        return str(op.attributes["value"].value)
    if op.name == "memref.dim":
        axis, name = constant_of(op.operands[1]), name_of(op.operands[0])
        if axis is None or name is None:
            return None
        return f"len({name})" if is_list(op.operands[0]) else f"{name}.shape[{axis}]"
    if op.name in _SHIFTS:
        shift, text = constant_of(op.operands[1]), known(op.operands[0])
        if shift is None or text is None or not 0 <= shift < 63:
            return None
        return f"({text} {_SHIFTS[op.name]} {1 << shift})"
    if op.name not in _FORMULAS:
        return None
    parts = [known(operand) for operand in op.operands]
    text = None if None in parts else _FORMULAS[op.name].format(*parts)
    return None if text is None or len(text) > _LONGEST else text


def name_of(array: ir.Value) -> str | None:
    """A kernel parameter's name."""
    if defining_op(array) is not None:
        return None
    function, number = array.owner.owner, ir.BlockArgument(array).arg_number
    written = list(function.attributes.get("arg_attrs", []))
    known = written[number] if number < len(written) else {}
    return known["tile.name"].value if "tile.name" in known else f"arg{number}"
