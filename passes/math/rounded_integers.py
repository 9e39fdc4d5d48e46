"""Floats that are rounded and become integers: by one conversion, which rounds by itself.

Before:   %r = llvm.intr.roundeven(%x) : f32
          %l = arith.maximumf %r, %c-127     %h = arith.minimumf %l, %c127
          %i = arith.fptosi %h : f32 to i8
After:    %l = arith.maximumf %x, %c-127     %h = arith.minimumf %l, %c127
          %w = llvm.call_intrinsic "llvm.nvvm.f2i.rn"(%h) : (f32) -> i32
          %i = arith.trunci %w : i32 to i8

Both are conversions to the hardware, 16 lanes a clock where others have 64 (CUDA C++ Programming
Guide, "Arithmetic instructions"), and what quantises to 8 bits has two an element.

Bounds that are integers may stand behind rounding or in front of it: rounding keeps order, and
integers as they are. A NaN becomes 0 either way. Without bounds numbers that 32 bits hold saturate
alike; fewer bits take what is within them alone, as PTX converts to 16 bits first.
Does not handle: f64, integers of 64 bits, what somebody else has rounded, too.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.def_use import constant_attribute, defining_op, only_use
from tilec.dialects.types import bit_width
from tilec.hardware.sizes import WORD_BITS
from tilec.passes.math.kinds import I32, Vocabulary
from tilec.passes.math.scalar_builder import ScalarBuilder
from tilec.passes.rewriting.scalars import create
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import ops_named

_MODES = {"llvm.intr.roundeven": "rn", "llvm.intr.floor": "rm", "llvm.intr.ceil": "rp"}
_LEAST = ("arith.maximumf", "arith.maxnumf")
_MOST = ("arith.minimumf", "arith.minnumf")
_SIGNED = "arith.fptosi"


def round_by_conversion(module: ir.Module, vocabulary: Vocabulary) -> None:
    """Lets conversions round what they convert."""
    for op in ops_named(module.operation, (_SIGNED, "arith.fptoui")):
        source, result = op.operands[0], op.results[0].type
        if not isinstance(source.type, ir.F32Type) or bit_width(result) > WORD_BITS:
            continue
        bounds, value = _bounded(source)
        rounded = defining_op(value, *_MODES)
        if rounded is None or only_use(value) is None or not _fits(bounds, op):
            continue
        with ir.InsertionPoint(op), op.location:
            made = rounded.operands[0]
            for bound in reversed(bounds):
                made = create(bound.name, [made, bound.operands[1]], made.type)
            b = ScalarBuilder(vocabulary, op.location, ir.InsertionPoint(op))
            kind = "f2i" if op.name == _SIGNED else "f2ui"
            name = f"llvm.nvvm.{kind}.{_MODES[rounded.name]}"
            made = b.intrinsic(name, (b.wrap(made),), I32).value
            if bit_width(result) < WORD_BITS:
                made = create("arith.trunci", [made], result)
        replace_op(op, made)
        for dead in (*bounds, rounded):
            dead.erase()


def _bounded(value: ir.Value) -> tuple[list[ir.Operation], ir.Value]:
    """The ops that bound a number by integers, the last one first, and what they bound."""
    found: list[ir.Operation] = []
    while (op := defining_op(value, *_LEAST, *_MOST)) and only_use(value) is not None:
        if _number(op) is None:
            break
        found.append(op)
        value = op.operands[0]
    return found, value


def _number(bound: ir.Operation) -> float | None:
    """The integer that a number is compared with."""
    known: Any = constant_attribute(bound.operands[1])
    number = None if known is None else float(known.value)
    return number if number is not None and number.is_integer() else None


def _fits(bounds: list[ir.Operation], op: ir.Operation) -> bool:
    """Whether integers of so few bits hold all that comes, or there are as many as in a word."""
    bits, signed = bit_width(op.results[0].type), op.name == _SIGNED
    if bits == WORD_BITS:
        return True
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    least, most = (
        [number for one in bounds if one.name in names and (number := _number(one)) is not None]
        for names in (_LEAST, _MOST)
    )
    return bool(least and most) and low <= max(least) <= min(most) <= high
