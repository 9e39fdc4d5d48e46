"""Rules for ops that compute element by element: `arith`, `math`, and Triton's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from tilec.dialects.tile import InlinePtxOp
from tilec.passes.math.exponential import LOG2_E
from tilec.terms.dtypes import BY_MLIR, ELEMENT_BYTES, f32
from tilec.triton.build import Builder
from tilec.triton.grouped_quotients import GROUP
from tilec.triton.narrow_quotients import NARROW, UNSIGNED
from tilec.triton.program import Op, Type, Value

Rule = Callable[[Builder, Op, Any], None]

_PLAIN = (
    "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "ceildivsi", "floordivsi",
    "andi", "ori", "xori", "shli", "shrsi", "shrui", "minsi", "maxsi", "minui", "maxui",
    "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui", "extf", "truncf",
    "bitcast", "index_cast",
)  # fmt: skip
_EXTREMA = ("maximumf", "minimumf", "maxnumf", "minnumf", "remf")
_CONTRACTED = ("addf", "subf", "mulf", "negf")
"""What may become part of an fma, as Triton's default is, and as tilec's `+ - *` are."""
_MATH = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "sin", "cos",
    "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "erf", "erfc", "floor", "ceil", "trunc", "round", "roundeven", "absf", "absi", "fma", "powf",
    "copysign", "ctlz", "ctpop", "cttz",
)  # fmt: skip
_APPROXIMATED = ("exp2", "sqrt", "rsqrt")
"""Of f32 one approximate instruction each for Triton 3.6, which takes denormals for zeros."""
_INTEGERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOATS = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
"""Predicates in the order of MLIR's numbers for them."""


def _same(builder: Builder, op: Op, build: Any) -> None:
    _made(builder, op, op.name)


def _function(builder: Builder, op: Op, build: Any) -> None:
    _computed(builder, op, op.name)


def _contracted(builder: Builder, op: Op, build: Any) -> None:
    _computed(builder, op, op.name, fastmath=builder.contract)


def _approximated(builder: Builder, op: Op, build: Any) -> None:
    """What Triton's own compiler makes of f32 here: `ex2.approx.ftz` and its like."""
    flags = {"fastmath": builder.approximate} if op.result.type.element == "f32" else {}
    _computed(builder, op, op.name, **flags)


def _exponential(builder: Builder, op: Op, build: Any) -> None:
    """Of f32 2^(x log2(e)), the product rounded, as Triton's own compiler has it."""
    if op.result.type.element != "f32":
        _function(builder, op, build)
        return
    kind = builder.type(op.result.type)
    exponent = builder.op(
        "arith.mulf", kind, builder.get(op.operands[0]), builder.constant(LOG2_E, kind)
    )
    builder.set(op, builder.op("math.exp2", kind, exponent))


def _made(builder: Builder, op: Op, name: str, **attributes: Any) -> None:
    operands = [builder.get(operand) for operand in op.operands]
    builder.set(op, builder.op(name, builder.type(op.result.type), *operands, **attributes))


def _computed(builder: Builder, op: Op, name: str, **attributes: Any) -> None:
    """As `_made`; floats of 8 bits, which tilec does not compute with, go by way of f32."""
    operands = [_widened(builder, operand) for operand in op.operands]
    kind = op.result.type
    if not _is_narrow(kind):
        builder.set(op, builder.op(name, builder.type(kind), *operands, **attributes))
        return
    wide = builder.op(name, builder.typed(f32.in_ir, kind.shape), *operands, **attributes)
    builder.set(op, builder.op("arith.truncf", builder.type(kind), wide))


def _is_narrow(kind: Type) -> bool:
    return kind.element in BY_MLIR and BY_MLIR[kind.element].is_narrow


def _widened(builder: Builder, operand: Value) -> ir.Value:
    found, kind = builder.get(operand), operand.type
    if not _is_narrow(kind):
        return found
    return builder.op("arith.extf", builder.typed(f32.in_ir, kind.shape), found)


def _constant(builder: Builder, op: Op, build: Any) -> None:
    builder.set(op, builder.constant_of(op))


def _selected(builder: Builder, op: Op, build: Any) -> None:
    if op.result.type.pointee is None:
        _made(builder, op, op.name)


def _quotient(builder: Builder, op: Op, build: Any) -> None:
    """Of integers: of 32 bits, where those hold it (`narrow_quotients.py`)."""
    builder.set(op, _division(builder, op, *map(builder.get, op.operands)))


def _remainder(builder: Builder, op: Op, build: Any) -> None:
    """By groups, where neighbours stay neighbours (`grouped_quotients.py`)."""
    if GROUP not in op.attributes:
        _quotient(builder, op, build)
        return
    bits, kind = op.number(GROUP), builder.type(op.result.type)
    value, divisor = map(builder.get, op.operands)
    shift, last = builder.constant(bits, kind), builder.constant((1 << bits) - 1, kind)
    group, groups = (builder.op("arith.shrsi", kind, v, shift) for v in (value, divisor))
    group = _division(builder, op, group, groups)
    start = builder.op("arith.muli", kind, group, builder.constant(1 << bits, kind))
    place = builder.op("arith.andi", kind, value, last)
    builder.set(op, builder.op("arith.addi", kind, start, place))


def _division(builder: Builder, op: Op, value: ir.Value, divisor: ir.Value) -> ir.Value:
    """What `op` is for these operands. Of a narrow one the dividend's lower 31 bits count: where
    anybody needs it, it has no others."""
    kind = builder.type(op.result.type)
    if NARROW not in op.attributes:
        return builder.op(op.name, kind, value, divisor)
    small = builder.typed("i32", op.result.type.shape)
    value, divisor = (builder.op("arith.trunci", small, v) for v in (value, divisor))
    value = builder.op("arith.andi", small, value, builder.constant((1 << 31) - 1, small))
    name = _UNSIGNED[op.name] if op.attributes[NARROW] == UNSIGNED else op.name
    return builder.op("arith.extsi", kind, builder.op(name, small, value, divisor))


_UNSIGNED = {"arith.divsi": "arith.divui", "arith.remsi": "arith.remui"}


def _compared(builder: Builder, op: Op, build: Any) -> None:
    names = _INTEGERS if op.name == "arith.cmpi" else _FLOATS
    (predicate,) = (number for number, word in enumerate(names) if word in op.words)
    i64 = ir.IntegerType.get_signless(64)
    _computed(builder, op, op.name, predicate=ir.IntegerAttr.get(i64, predicate))


def _divided(builder: Builder, op: Op, build: Any) -> None:
    """Triton's `/` is rounded as tilec's: a little more freely than IEEE 754 has it."""
    flags = "contract" if op.name == "tt.precise_divf" else "arcp,contract"
    _computed(builder, op, "arith.divf", fastmath=ir.Attribute.parse(f"#arith.fastmath<{flags}>"))


def _bit_cast(builder: Builder, op: Op, build: Any) -> None:
    if op.result.type.pointee is not None:
        return  # built where it is read
    if op.result.type == op.operands[0].type:
        builder.set(op, builder.get(op.operands[0]))
    else:
        _made(builder, op, "arith.bitcast")


_CUT = {
    ("f64", "f32"): ("cvt.rz.f32.f64 $0, $1;", "=f,d"),
    ("f32", "f16"): ("cvt.rz.f16.f32 $0, $1;", "=h,f"),
    ("f32", "bf16"): ("cvt.rz.bf16.f32 $0, $1;", "=h,f"),
}
"""Conversions that round towards zero (PTX ISA 9.7.9, cvt)."""


def _converted(builder: Builder, op: Op, build: Any) -> None:
    """fp_to_fp: to a wider float, or rounded to a narrower one."""
    value, before, after = builder.get(op.operands[0]), op.operands[0].type, op.result.type
    rounding = op.words.get("rounding", "rtne")
    if rounding == "rtz":
        builder.set(op, _cut(builder, op, value))
    elif rounding != "rtne":
        raise op.error(f"rounding {rounding}; tilec has rtne and rtz")
    elif ELEMENT_BYTES[after.element] == ELEMENT_BYTES[before.element]:
        wide = builder.op("arith.extf", builder.typed(f32.in_ir, after.shape), value)
        builder.set(op, builder.op("arith.truncf", builder.type(after), wide))
    else:
        narrower = ELEMENT_BYTES[after.element] < ELEMENT_BYTES[before.element]
        _made(builder, op, "arith.truncf" if narrower else "arith.extf")


def _cut(builder: Builder, op: Op, value: ir.Value) -> ir.Value:
    """Rounded towards zero. f8E5M2 is the upper half of an f16, of which a NaN has the first bits
    set when it comes out of a conversion."""
    before, after = op.operands[0].type.element, op.result.type
    to = "f16" if after.element == "f8E5M2" else after.element
    if before in ("f16", "bf16") and to == "f16":
        value = builder.op("arith.extf", builder.typed(f32.in_ir, after.shape), value)
        before = f32.in_ir
    if (before, to) not in _CUT:
        raise op.error(f"rounding rtz from {before} to {after.element}")
    text, constraints = _CUT[before, to]
    made = builder.typed(to, after.shape)
    (value,) = InlinePtxOp.build(
        [value], results=[made], text=text, constraints=constraints, pure=True
    )
    if to == after.element:
        return value
    i16, i8 = (builder.typed(f"i{bits}", after.shape) for bits in (16, 8))
    bits = builder.op("arith.bitcast", i16, value)
    high = builder.op("arith.shrui", i16, bits, builder.constant(8, i16))
    return builder.op("arith.bitcast", builder.type(after), builder.op("arith.trunci", i8, high))


def _clamped(builder: Builder, op: Op, build: Any) -> None:
    kind = "num" if op.words.get("propagateNan", "none") == "none" else "imum"
    value, low, high = (builder.get(operand) for operand in op.operands)
    made = builder.type(op.result.type)
    value = builder.op(f"arith.max{kind}f", made, value, low)
    builder.set(op, builder.op(f"arith.min{kind}f", made, value, high))


def _high_product(builder: Builder, op: Op, build: Any) -> None:
    """The upper half of an unsigned product of 32 bits."""
    kind = op.result.type
    if kind.element != "i32":
        raise op.error(f"of {kind.element}; tilec has it for i32")
    wide = builder.typed("i64", kind.shape)
    one, two = (builder.op("arith.extui", wide, builder.get(v)) for v in op.operands)
    product = builder.op("arith.muli", wide, one, two)
    high = builder.op("arith.shrui", wide, product, builder.constant(32, wide))
    builder.set(op, builder.op("arith.trunci", builder.type(kind), high))


def _poison(builder: Builder, op: Op, build: Any) -> None:
    """Any value will do, as nobody reads it: zeros."""
    if op.result.type.pointee is None:
        builder.set(op, builder.constant(0, builder.type(op.result.type)))


RULES: dict[str, Rule] = {
    **{f"arith.{name}": _same for name in _PLAIN},
    **{f"arith.{name}": _contracted for name in _CONTRACTED},
    **{f"arith.{name}": _function for name in _EXTREMA},
    **{f"math.{name}": _function for name in _MATH},
    **{f"math.{name}": _approximated for name in _APPROXIMATED},
    "math.exp": _exponential,
    "arith.constant": _constant,
    "arith.select": _selected,
    "arith.cmpi": _compared,
    "arith.cmpf": _compared,
    "arith.divf": _divided,
    "arith.divsi": _quotient,
    "arith.remsi": _remainder,
    "tt.precise_divf": _divided,
    "tt.precise_sqrt": lambda builder, op, build: _made(builder, op, "math.sqrt"),
    "tt.bitcast": _bit_cast,
    "tt.fp_to_fp": _converted,
    "tt.clampf": _clamped,
    "tt.mulhiui": _high_product,
    "ub.poison": _poison,
}
