"""What `arith`'s ops on integers come to, in Python's numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from mlir import ir

from tilec.dialects.predicates import COMPARISONS, predicate_of

INDEX_BITS = 64
"""Of `index` on a GPU (the data layout of LLVM's NVPTX)."""


def function_of(op: ir.Operation) -> Callable[..., int] | None:
    """What an op makes of its operands' numbers, None for one that is not in these tables.

    Numbers have no width but where an op reads them as unsigned; the result of a comparison is 0 or
    1. The function raises ZeroDivisionError and, for shifts to the wrong side, ValueError.
    """
    if op.name == "arith.cmpi":
        compare = COMPARISONS[predicate_of(op)]
        return lambda a, b: int(compare(a, b))
    unsigned = _UNSIGNED.get(op.name)
    if unsigned is None:
        return _FUNCTIONS.get(op.name)
    kind = op.operands[0].type
    numbers = 1 << (kind.width if isinstance(kind, ir.IntegerType) else INDEX_BITS)
    return lambda *given: unsigned(*(number % numbers for number in given))


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shiftable(number: int, bits: int) -> int:
    if not 0 <= bits < INDEX_BITS:
        raise ValueError(f"no integer is shifted by {bits} bits")
    return number


def _same(number: int, *_: int) -> int:
    return number


_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _truncated,
    "arith.floordivsi": operator.floordiv,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.remsi": lambda a, b: a - b * _truncated(a, b),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.shli": lambda a, b: _shiftable(a, b) << b,
    "arith.shrsi": operator.rshift,
    "arith.select": lambda condition, a, b: a if condition else b,
    **dict.fromkeys(("arith.index_cast", "arith.extsi", "arith.trunci", "tile.assume"), _same),
}
_UNSIGNED: Mapping[str, Callable[..., int]] = {
    "arith.divui": operator.floordiv,
    "arith.remui": operator.mod,
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.minui": min,
    "arith.maxui": max,
    "arith.shrui": operator.rshift,
    **dict.fromkeys(("arith.index_castui", "arith.extui"), _same),
}
