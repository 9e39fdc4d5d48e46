"""convert-floats: 8-bit floats become i8, conversions LLVM cannot do right are written out.

LLVM has no 8-bit float type, so no value of one may reach it.

Before:   %0 = arith.truncf %x : f32 to f8E4M3FN
          %1 = arith.truncf %y : f32 to f8E4M3FN
          %2 = arith.bitcast %0 : f8E4M3FN to i8
          %3 = arith.extf %1 : f8E4M3FN to f32
After:    %p = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%y, %x) : (f32, f32) -> i16
          %2 = arith.trunci %p : i16 to i8                 // the code of %0
          %h = arith.shrui %p, %c8 : i16
          %1 = arith.trunci %h : i16 to i8
          ... "llvm.nvvm.e4m3x2.to.f16x2.rn", extractelement, arith.extf to f32 ...

Conversions that stand side by side in a block share one instruction, which converts two numbers.
Targets without FP8_CONVERT get integer arithmetic with the same results, from f8 on two at once.
To f8 means: to nearest even, once (from f64 and integers too), saturating to the largest finite
number, NaN to 0x7f.

Also rewritten: i32 and i64 to bf16 on targets without BF16_ARITHMETIC, where LLVM rounds twice, and
what is rounded and becomes an integer, in one conversion (`math/rounded_integers.py`).

Does not handle: arithmetic and comparisons of 8-bit floats, constant vectors of different ones,
other 8-bit formats (all CompileErrors). Left to LLVM, which selects them well: f32 to bf16 and f16
(cvt.rn.bf16.f32; cvt.rn.bf16x2.f32 where two results go into one vector), f64 to f16 and bf16 (one
rounding on every target), f16 and bf16 to wider types and to integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.types import is_vector
from tilec.hardware.target import Feature
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.math.float8 import (
    Float8,
    decode_pair,
    decode_pair_by_integers,
    encode,
    encode_pair,
    round_integer_to_odd,
    round_to_odd,
    widen,
)
from tilec.passes.math.float8_types import Conversion, Float8Types
from tilec.passes.math.kinds import BF16, F32, F64, Kind, Vocabulary
from tilec.passes.math.rounded_integers import round_by_conversion
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder
from tilec.passes.rewriting.walk import ops_named


@tile_pass(requires=Level.NVVM)
def convert_floats(module: ir.Module, context: PassContext) -> None:
    """Turns 8-bit floats into i8 and writes out their conversions."""
    vocabulary = Vocabulary(module.context)
    round_by_conversion(module, vocabulary)
    if not context.target.supports(Feature.BF16_ARITHMETIC):
        _convert_integers_to_bf16(module, vocabulary)
    conversions = Float8Types(module.context).retype(module)
    by_instruction = context.target.supports(Feature.FP8_CONVERT)
    for group in _side_by_side(conversions, by_instruction):
        _write(group, vocabulary, by_instruction)


def _convert_integers_to_bf16(module: ir.Module, vocabulary: Vocabulary) -> None:
    for op in ops_named(module.operation, ["arith.sitofp", "arith.uitofp"]):
        source = vocabulary.kinds.get(_element_type(op.operands[0]))
        target = vocabulary.kinds.get(_element_type(op.results[0]))
        # Up to 16 bits f32 holds every integer, and LLVM's way over f32 rounds once.
        if target != BF16 or source is None or source.bits not in (32, 64):
            continue
        b = ScalarBuilder(vocabulary, op.location, ir.InsertionPoint(op))
        unsigned = op.name == "arith.uitofp"
        odd = [round_integer_to_odd(b, x, unsigned=unsigned) for x in _elements(b, op)]
        _replace(b, op, [b.convert(x, BF16) for x in odd])


def _element_type(value: ir.Value) -> ir.Type:
    found = value.type
    return found.element_type if is_vector(found) else found


def _elements(b: ScalarBuilder, op: ir.Operation) -> list[Scalar]:
    """The operand of `op`, or its elements if it is a vector."""
    operand = op.operands[0]
    return b.elements(operand) if is_vector(operand) else [b.wrap(operand)]


def _replace(b: ScalarBuilder, op: ir.Operation, values: Sequence[Scalar]) -> None:
    result = op.results[0]
    result.replace_all_uses_with(b.vector(values) if is_vector(result) else values[0].value)
    op.erase()


def _side_by_side(
    conversions: Sequence[Conversion], by_instruction: bool
) -> Iterator[tuple[list[Conversion], ir.Operation]]:
    """Groups of one or two conversions, each with the op before which it is written."""
    index = 0
    while index < len(conversions):
        first = conversions[index]
        following = conversions[index + 1] if index + 1 < len(conversions) else None
        in_pairs = by_instruction or not first.narrows
        place = _common_place(first, following) if in_pairs and following else None
        if following and place is not None:
            yield [first, following], place
            index += 2
        else:
            yield [first], first.op
            index += 1


def _common_place(first: Conversion, second: Conversion) -> ir.Operation | None:
    """The op in front of which both scalar conversions may be written at once, None if there is
    none."""
    if first.form is not second.form or first.narrows != second.narrows:
        return None
    if first.op.block != second.op.block:
        return None
    if any(is_vector(each.op.operands[0]) for each in (first, second)):
        return None
    if _is_known_at(second.op.operands[0], first.op):
        return first.op
    users = (use.owner for use in first.op.results[0].uses)
    if any(_ancestor_beside(user, second.op).is_before_in_block(second.op) for user in users):
        return None
    return second.op


def _is_known_at(value: ir.Value, place: ir.Operation) -> bool:
    """Whether `value`, used in the block of `place`, is defined before `place`."""
    op = defining_op(value)
    return op is None or op.block != place.block or op.is_before_in_block(place)


def _ancestor_beside(user: ir.OpView | ir.Operation, place: ir.Operation) -> ir.Operation:
    """The op around `user` in the block of `place`; `place` if `user` is in a later block."""
    op = user.operation
    while op.block != place.block:
        parent = op.parent
        if parent is None or parent.operation.name == "builtin.module":
            return place
        op = parent.operation
    return op


def _write(
    group: tuple[list[Conversion], ir.Operation], vocabulary: Vocabulary, by_instruction: bool
) -> None:
    conversions, place = group
    first = conversions[0]
    b = ScalarBuilder(vocabulary, first.op.location, ir.InsertionPoint(place))
    operands = [_elements(b, conversion.op) for conversion in conversions]
    flat = [operand for each in operands for operand in each]
    if first.narrows:
        unsigned = first.op.name == "arith.uitofp"
        codes = [_as_f32(b, x, unsigned) for x in flat]
        values = _encode_all(b, first.form, codes, by_instruction)
    else:
        values = _decode_all(b, first.form, flat, by_instruction)
    parts = []
    for conversion, own in zip(conversions, operands, strict=True):
        part, values = values[: len(own)], values[len(own) :]
        if not conversion.narrows:
            kind = vocabulary.kinds[_element_type(conversion.op.results[0])]
            part = [_from_f16(b, x, kind, conversion.op.name) for x in part]
        parts.append(part)
    # Only now: `place` is one of the ops that vanish.
    for conversion, part in zip(conversions, parts, strict=True):
        _replace(b, conversion.op, part)


def _as_f32(b: ScalarBuilder, x: Scalar, unsigned: bool) -> Scalar:
    """`x` as an f32 that rounds to the same 8-bit float."""
    if x.kind == F64:
        return round_to_odd(b, x)
    # An integer that f32 rounds is far above the largest 8-bit float.
    return b.convert(x, F32, unsigned=unsigned)


def _from_f16(b: ScalarBuilder, x: Scalar, kind: Kind, op_name: str) -> Scalar:
    if kind.is_float:
        return widen(b, x, kind)
    return b.convert(x, kind, unsigned=op_name == "arith.fptoui")


def _encode_all(
    b: ScalarBuilder, form: Float8, values: Sequence[Scalar], by_instruction: bool
) -> list[Scalar]:
    if not by_instruction:
        return [encode(b, form, value) for value in values]
    padded = [*values, b.constant(F32, 0.0)] if len(values) % 2 else list(values)
    codes: list[Scalar] = []
    for low, high in zip(padded[::2], padded[1::2], strict=True):
        codes += encode_pair(b, form, low, high)
    return codes[: len(values)]


def _decode_all(
    b: ScalarBuilder, form: Float8, codes: Sequence[Scalar], by_instruction: bool
) -> list[Scalar]:
    decode = decode_pair if by_instruction else decode_pair_by_integers
    padded = [*codes, b.constant(codes[0].kind, 0)] if len(codes) % 2 else list(codes)
    values: list[Scalar] = []
    for low, high in zip(padded[::2], padded[1::2], strict=True):
        values += decode(b, form, low, high)
    return values[: len(codes)]
