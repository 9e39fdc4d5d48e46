"""Predicates of comparisons (`arith.cmpi`, `arith.cmpf`) by the names they print with."""

from __future__ import annotations

import operator

from mlir import ir

_INTEGERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOATS = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
"""In the order of MLIR's numbers (enums CmpIPredicate and CmpFPredicate of the arith dialect)."""

COMPARISONS = {
    **{"eq": operator.eq, "ne": operator.ne},
    **{"slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge},
    **{"ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge},
}
"""What `arith.cmpi` asks of Python's numbers; unsigned ones must not be negative."""


def predicate_of(op: ir.Operation) -> str:
    """The name of the predicate of a comparison."""
    names = _INTEGERS if op.name == "arith.cmpi" else _FLOATS
    return names[op.attributes["predicate"].value]


def predicate_number(op_name: str, predicate: str) -> int:
    """MLIR's number of a predicate of `arith.cmpi` or `arith.cmpf`; ValueError if it has none such."""
    return (_INTEGERS if op_name == "arith.cmpi" else _FLOATS).index(predicate)


def predicate_attribute(op_name: str, predicate: str) -> ir.Attribute:
    """What a comparison of that predicate has as its attribute `predicate`."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.IntegerAttr.get(i64, predicate_number(op_name, predicate))
