"""Which ops are scalar integer arithmetic: no effects, no more than a register or two."""

from __future__ import annotations

from mlir import ir

_ARITHMETIC = frozenset(
    f"arith.{name}"
    for name in (
        *("addi", "subi", "muli", "shli", "shrui", "shrsi", "andi", "ori", "xori", "cmpi"),
        *("minui", "maxui", "minsi", "maxsi"),
        *("extui", "extsi", "trunci", "select", "index_cast"),
    )
)
_DIVISIONS = frozenset(
    f"arith.{name}"
    for name in ("divui", "remui", "divsi", "remsi", "floordivsi", "ceildivsi", "ceildivui")
)


def is_integer_op(op: ir.Operation) -> bool:
    """Whether an op is scalar integer arithmetic; divisions apart, which zero forbids."""
    return op.name in _ARITHMETIC and has_integers_alone(op)


def is_division(op: ir.Operation) -> bool:
    """Whether an op divides integers."""
    return op.name in _DIVISIONS and has_integers_alone(op)


def has_integers_alone(op: ir.Operation) -> bool:
    """Whether no operand or result of an op is a float or a vector."""
    values = (*op.operands, *op.results)
    return not any(isinstance(value.type, (ir.FloatType, ir.VectorType)) for value in values)
