"""Python's operators on scalars and tiles."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mlir import ir

from tilec.frontend.builder import Builder
from tilec.frontend.conversion import (
    cast,
    common_shape,
    compare_values,
    dtype_of,
    materialize,
    wrap,
)
from tilec.frontend.promotion import arithmetic_dtype, float_dtype, promote, refuse_fp8
from tilec.frontend.values import Mistake, describe, is_number
from tilec.terms.dtypes import DType, f32, i1

_ADDITIVE = {"+": ("arith.addi", "arith.addf"), "-": ("arith.subi", "arith.subf")}
_PLAIN = {**_ADDITIVE, "*": ("arith.muli", "arith.mulf")}
_BITWISE = {"&": "arith.andi", "|": "arith.ori", "^": "arith.xori"}
_LARGEST_UNROLLED_POWER = 64
"""x ** n up to this n is at most 12 multiplications; beyond, floats over- or underflow but near
1."""

Shape = tuple[int, ...] | None


def binary(builder: Builder, symbol: str, lhs: Any, rhs: Any) -> Any:
    """Computes `lhs symbol rhs`, where at least one side is a run-time value."""
    if symbol in _PLAIN:
        return plain(builder, symbol, lhs, rhs)
    if symbol in _BITWISE:
        return _bitwise(builder, symbol, lhs, rhs)
    if symbol in ("<<", ">>"):
        return _shift(builder, symbol, lhs, rhs)
    if symbol == "**":
        return power(builder, lhs, rhs)
    if symbol == "/":
        return divide(builder, lhs, rhs)
    return _floor_division(builder, symbol, lhs, rhs)


def plain(builder: Builder, symbol: str, lhs: Any, rhs: Any) -> Any:
    """Computes `+ - *`; floating point may contract to fma."""
    dtype = arithmetic_dtype([lhs, rhs], f"'{symbol}'")
    shape = common_shape([lhs, rhs])
    a, b = materialize(builder, lhs, dtype, shape), materialize(builder, rhs, dtype, shape)
    return wrap(_plain_op(builder, symbol, a, b, dtype, shape), dtype, shape)


def _plain_op(
    builder: Builder, symbol: str, a: ir.Value, b: ir.Value, dtype: DType, shape: Shape
) -> ir.Value:
    integer, floating = _PLAIN[symbol]
    kind = builder.type(dtype, shape)
    if dtype.is_float:
        return builder.value(floating, kind, a, b, fastmath=builder.contract)
    return builder.value(integer, kind, a, b)


def divide(builder: Builder, lhs: Any, rhs: Any, rounding: str = "full") -> Any:
    """Divides; integers as f32.

    `rounding`: "full" (f32 within 2 ulp, all else exact), "exact" (correctly rounded) or "approx".
    """
    dtype = float_dtype([lhs, rhs], "'/'")
    shape = common_shape([lhs, rhs])
    a, b = materialize(builder, lhs, dtype, shape), materialize(builder, rhs, dtype, shape)
    flags = {"full": builder.arcp, "exact": builder.contract, "approx": builder.afn}[rounding]
    return wrap(
        builder.value("arith.divf", builder.type(dtype, shape), a, b, fastmath=flags), dtype, shape
    )


def _floor_division(builder: Builder, symbol: str, lhs: Any, rhs: Any) -> Any:
    """Computes `//` and `%` with Python's rounding toward minus infinity."""
    dtype = arithmetic_dtype([lhs, rhs], f"'{symbol}'")
    shape = common_shape([lhs, rhs])
    if not dtype.is_float:
        if is_number(rhs) and rhs == 0:
            raise Mistake("division by zero")
        if is_number(rhs) and rhs > 0 and rhs & (rhs - 1) == 0:
            return _by_power_of_two(builder, symbol, lhs, int(rhs), dtype, shape)
    a, b = materialize(builder, lhs, dtype, shape), materialize(builder, rhs, dtype, shape)
    if dtype.is_float:
        return _float_floor_division(builder, symbol, wrap(a, dtype, shape), wrap(b, dtype, shape))
    kind = builder.type(dtype, shape)
    if symbol == "//":
        name = "arith.divui" if dtype.is_unsigned else "arith.floordivsi"
        return wrap(builder.value(name, kind, a, b), dtype, shape)
    if dtype.is_unsigned:
        return wrap(builder.value("arith.remui", kind, a, b), dtype, shape)
    rest = builder.value("arith.remsi", kind, a, b)
    moved = builder.value("arith.addi", kind, rest, b)
    below = _signs_differ(builder, rest, b, dtype, shape)
    return wrap(builder.value("arith.select", kind, below, moved, rest), dtype, shape)


def _float_floor_division(builder: Builder, symbol: str, lhs: Any, rhs: Any) -> Any:
    """`//` and `%` of two floats of one dtype and shape as NumPy's, narrow ones computed in f32.

    They follow from the truncating remainder, which is exact: a rounded `a / b` may be the next
    whole number (1 // 0.1 is 9). `a // 0` is `a / 0`.
    """
    given, shape = lhs.dtype, common_shape([lhs])
    dtype = f32 if given.bits < f32.bits else given
    kind = builder.type(dtype, shape)
    a, b = (materialize(builder, x, dtype, shape) for x in (lhs, rhs))
    rest = builder.value("arith.remf", kind, a, b)
    below = _signs_differ(builder, rest, b, dtype, shape)
    if symbol == "%":
        moved = builder.value("arith.addf", kind, rest, b)
        signed = builder.value("math.copysign", kind, rest, b)  # of a zero
        result = builder.value("arith.select", kind, below, moved, signed)
        return cast(builder, wrap(result, dtype, shape), given)
    multiple = builder.value("arith.subf", kind, a, rest)
    count = builder.value("math.roundeven", kind, builder.value("arith.divf", kind, multiple, b))
    less = builder.value("arith.subf", kind, count, builder.constant(1, dtype, shape))
    count = builder.value("arith.select", kind, below, less, count)
    ratio = builder.value("arith.divf", kind, a, b)
    count = builder.value("math.copysign", kind, count, ratio)
    by_zero = compare_values(builder, "==", b, builder.constant(0, dtype, shape), dtype, shape)
    result = builder.value("arith.select", kind, by_zero, ratio, count)
    return cast(builder, wrap(result, dtype, shape), given)


def _signs_differ(
    builder: Builder, rest: ir.Value, b: ir.Value, dtype: DType, shape: Shape
) -> ir.Value:
    """Whether a truncating remainder is not 0 and has not the divisor's sign."""
    flag, zero = builder.type(i1, shape), builder.constant(0, dtype, shape)
    below = compare_values(builder, "<", rest, zero, dtype, shape)
    negative = compare_values(builder, "<", b, zero, dtype, shape)
    differs = builder.value("arith.xori", flag, below, negative)
    some = compare_values(builder, "!=", rest, zero, dtype, shape)
    return builder.value("arith.andi", flag, differs, some)


def _by_power_of_two(
    builder: Builder, symbol: str, lhs: Any, divisor: int, dtype: DType, shape: Shape
) -> Any:
    """A shift rounds down, a mask gives the matching non-negative remainder."""
    name = _shift_op(">>", dtype) if symbol == "//" else "arith.andi"
    amount = divisor.bit_length() - 1 if symbol == "//" else divisor - 1
    a, b = materialize(builder, lhs, dtype, shape), builder.constant(amount, dtype, shape)
    return wrap(builder.value(name, builder.type(dtype, shape), a, b), dtype, shape)


def ceil_divide(builder: Builder, lhs: Any, rhs: Any) -> Any:
    """`tl.cdiv` of integers."""
    dtype = arithmetic_dtype([lhs, rhs], "cdiv")
    if dtype.is_float:
        raise Mistake(f"cdiv is for integers, found {dtype}")
    if is_number(rhs) and rhs <= 0:
        raise Mistake(f"cdiv needs a positive divisor, found {rhs}")
    shape = common_shape([lhs, rhs])
    a, b = materialize(builder, lhs, dtype, shape), materialize(builder, rhs, dtype, shape)
    name = "arith.ceildivui" if dtype.is_unsigned else "arith.ceildivsi"
    return wrap(builder.value(name, builder.type(dtype, shape), a, b), dtype, shape)


def _bitwise(builder: Builder, symbol: str, lhs: Any, rhs: Any) -> Any:
    dtype = promote([lhs, rhs])
    if dtype.is_float:
        raise Mistake(
            f"'{symbol}' is for integers and booleans, found {describe(lhs)} and {describe(rhs)}",
            "help: comparisons need parentheses: (a < b) & (c < d)",
        )
    shape = common_shape([lhs, rhs])
    a, b = materialize(builder, lhs, dtype, shape), materialize(builder, rhs, dtype, shape)
    return wrap(builder.value(_BITWISE[symbol], builder.type(dtype, shape), a, b), dtype, shape)


def _shift(builder: Builder, symbol: str, lhs: Any, rhs: Any) -> Any:
    """The result has the left side's dtype; shifting by its width or more is unspecified."""
    dtype = arithmetic_dtype([lhs] if dtype_of(lhs) else [lhs, rhs], f"'{symbol}'")
    amount = promote([rhs])
    if dtype.is_float or amount.is_float:
        raise Mistake(f"'{symbol}' is for integers, found {describe(lhs)} and {describe(rhs)}")
    if is_number(rhs) and not 0 <= rhs < dtype.bits:
        raise Mistake(f"shift amount {rhs} is not in 0..{dtype.bits - 1}, the bits of {dtype}")
    shape = common_shape([lhs, rhs])
    a, b = materialize(builder, lhs, dtype, shape), materialize(builder, rhs, dtype, shape)
    name = _shift_op(symbol, dtype)
    return wrap(builder.value(name, builder.type(dtype, shape), a, b), dtype, shape)


def _shift_op(symbol: str, dtype: DType) -> str:
    """Names the op that shifts; to the right, zeros follow in unsigned integers, the sign in
    others."""
    if symbol == "<<":
        return "arith.shli"
    return "arith.shrui" if dtype.is_unsigned else "arith.shrsi"


def power(builder: Builder, base: Any, exponent: Any, approx: bool = False) -> Any:
    """Computes `**`: a small constant whole exponent multiplies, all else is `math.powf`."""
    if isinstance(exponent, int) and abs(exponent) <= _LARGEST_UNROLLED_POWER:
        positive = _repeated_product(builder, base, abs(int(exponent)))
        return positive if exponent >= 0 else divide(builder, 1.0, positive)
    dtype = float_dtype([base, exponent], "'**'")
    shape = common_shape([base, exponent])
    a = materialize(builder, base, dtype, shape)
    b = materialize(builder, exponent, dtype, shape)
    flags = builder.afn if approx else builder.contract
    kind = builder.type(dtype, shape)
    return wrap(builder.value("math.powf", kind, a, b, fastmath=flags), dtype, shape)


def _repeated_product(builder: Builder, base: Any, exponent: int) -> Any:
    dtype = arithmetic_dtype([base], "'**'")
    if exponent == 0:
        shape = common_shape([base])
        return wrap(builder.constant(1, dtype, shape), dtype, shape)
    result, square = None, base
    while True:
        if exponent & 1:
            result = square if result is None else plain(builder, "*", result, square)
        exponent >>= 1
        if not exponent:
            return result
        square = plain(builder, "*", square, square)


def compare(builder: Builder, symbol: str, lhs: Any, rhs: Any) -> Any:
    """A comparison of one dtype; gives i1. Comparing with NaN is false but for `!=`."""
    dtype = promote([lhs, rhs])
    refuse_fp8(dtype, f"'{symbol}'")
    shape = common_shape([lhs, rhs])
    a, b = materialize(builder, lhs, dtype, shape), materialize(builder, rhs, dtype, shape)
    return wrap(compare_values(builder, symbol, a, b, dtype, shape), i1, shape)


def negate(builder: Builder, x: Any) -> Any:
    """Computes unary minus."""
    dtype = arithmetic_dtype([x], "unary '-'")
    shape = common_shape([x])
    a = materialize(builder, x, dtype, shape)
    if dtype.is_float:
        kind = builder.type(dtype, shape)
        return wrap(builder.value("arith.negf", kind, a, fastmath=builder.contract), dtype, shape)
    zero = builder.constant(0, dtype, shape)
    return wrap(_plain_op(builder, "-", zero, a, dtype, shape), dtype, shape)


def invert(builder: Builder, x: Any) -> Any:
    """Computes `~`: not of i1, all bits of integers."""
    dtype = promote([x])
    if dtype.is_float:
        raise Mistake(f"'~' is for integers and booleans, found {describe(x)}")
    # A whole number would make an i32 of an i1 (rule 6 of promotion).
    ones = True if dtype.is_bool else dtype.limits[1] if dtype.is_unsigned else -1
    return binary(builder, "^", x, ones)


CHOOSE = "help: choose per element with tl.where(condition, x, y), or reduce with tl.any or tl.all"
"""For a tile where a scalar condition is wanted."""


def truth(builder: Builder, value: Any, note: str = CHOOSE) -> Any:
    """Gives `value` as a condition, an i1 scalar. Mistake with `note` for a tile of rank above
    0."""
    if common_shape([value]) is not None:
        raise Mistake(f"a condition must be a scalar, found {describe(value)}", note)
    dtype = promote([value])
    if dtype.is_narrow:
        value, dtype = cast(builder, value, f32), f32
    return wrap(materialize(builder, value, i1, None), i1, None)


FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
_MOST_BITS = 1024
"""Of a constant integer: the widest number a program has takes 64; more is a mistake that would
take memory and time."""
_LONGEST = 65536
"""Characters or elements of a constant: beyond, a mistake has doubled it again and again."""


def fold(symbol: str, lhs: Any, rhs: Any) -> Any:
    """Computes `lhs symbol rhs` of two compile-time constants, by Python. Mistake where Python
    raises."""
    if symbol in ("**", "<<") and isinstance(rhs, int) and isinstance(lhs, int):
        size = abs(rhs) * max(abs(lhs).bit_length(), 1) if symbol == "**" else rhs
        if size > _MOST_BITS:
            raise Mistake(f"the constant {lhs} {symbol} {rhs} is too large")
    lengths = [len(v) for v in (lhs, rhs) if isinstance(v, (str, tuple))]
    if symbol == "*" and lengths:
        raise Mistake(f"'*' of {describe(lhs)} and {describe(rhs)} is not supported")
    if symbol == "%" and isinstance(lhs, str):
        raise Mistake("formatting with % is not supported; use an f-string")
    if sum(lengths) > _LONGEST:
        raise Mistake("the constant is too long")
    try:
        result = FOLDED[symbol](lhs, rhs)
    except ZeroDivisionError:
        raise Mistake("division by zero") from None
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Mistake(str(error)) from None
    if isinstance(result, complex):
        raise Mistake(f"{lhs} {symbol} {rhs} is a complex number")
    if isinstance(result, int) and result.bit_length() > _MOST_BITS:
        raise Mistake("the constant is too large")
    return result
