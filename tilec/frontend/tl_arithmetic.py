"""`tl` functions computed element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import tilec.language as tl
from tilec.frontend.conversion import check_numeric, common_shape, compare_values, materialize, wrap
from tilec.frontend.frame import Frame
from tilec.frontend.operators import ceil_divide, divide, fold, power
from tilec.frontend.promotion import arithmetic_dtype, float_dtype, promote, refuse_fp8
from tilec.frontend.values import Mistake, describe, is_number
from tilec.terms.dtypes import DType, i1

Implementation = Callable[..., Any]


def _approximate(approx: Any) -> bool:
    if not isinstance(approx, bool):
        raise Mistake(f"approx must be True or False, found {describe(approx)}", argument="approx")
    return approx


def _floating(frame: Frame, op: str, name: str, values: list[Any], approx: bool) -> Any:
    """A `math` op on floating-point values; integers become f32."""
    for value in values:
        check_numeric(value)
    dtype = float_dtype(values, name)
    shape = common_shape(values)
    operands = [materialize(frame.builder, value, dtype, shape) for value in values]
    flags = {"fastmath": frame.builder.afn} if approx else {}
    kind = frame.builder.type(dtype, shape)
    return wrap(frame.builder.value(op, kind, *operands, **flags), dtype, shape)


def _function(name: str, op: str, fold_with: Callable[[float], float] | None) -> Implementation:
    """Makes the implementation of a one-argument function with `approx`; constants are computed by
    Python where it can."""

    def implementation(frame: Frame, x: Any, approx: Any) -> Any:
        approximate = _approximate(approx)
        if is_number(x) and fold_with is not None:
            try:
                return fold_with(x)
            except (ArithmeticError, ValueError) as error:
                raise Mistake(f"{name}({x}): {error}", argument="x") from None
        return _floating(frame, op, name, [x], approximate)

    return implementation


def _rounding(name: str, op: str, fold_with: Callable[[float], float]) -> Implementation:
    """Makes the implementation of floor, ceil, round or trunc: integers stay as they are."""

    def implementation(frame: Frame, x: Any) -> Any:
        check_numeric(x, "x")
        if is_number(x):
            if isinstance(x, float) and not math.isfinite(x):
                return x
            return float(fold_with(x)) if isinstance(x, float) else x
        if not promote([x]).is_float:
            return x
        return _floating(frame, op, name, [x], False)

    return implementation


def _extremum(name: str, floating: str, integer: str, unsigned: str) -> Implementation:
    """Makes the implementation of maximum or minimum: NaN wins; i1 compares as False < True."""

    def implementation(frame: Frame, x: Any, y: Any) -> Any:
        check_numeric(x, "x")
        check_numeric(y, "y")
        if is_number(x) and is_number(y):
            if x != x or y != y:
                return math.nan
            return max(x, y) if name == "maximum" else min(x, y)
        dtype = promote([x, y])
        refuse_fp8(dtype, name)
        shape = common_shape([x, y])
        op = unsigned if dtype.is_bool or dtype.is_unsigned else integer
        op = floating if dtype.is_float else op
        a, b = (materialize(frame.builder, value, dtype, shape) for value in (x, y))
        return wrap(frame.builder.value(op, frame.builder.type(dtype, shape), a, b), dtype, shape)

    return implementation


maximum = _extremum("maximum", "arith.maximumf", "arith.maxsi", "arith.maxui")
minimum = _extremum("minimum", "arith.minimumf", "arith.minsi", "arith.minui")


def clamp(frame: Frame, x: Any, low: Any, high: Any) -> Any:
    """`tl.clamp`."""
    return minimum(frame, maximum(frame, x, low), high)


def absolute(frame: Frame, x: Any) -> Any:
    """`tl.abs`."""
    check_numeric(x, "x")
    if is_number(x):
        return abs(x)
    dtype = arithmetic_dtype([x], "abs")
    if dtype.is_unsigned:
        return x
    shape = common_shape([x])
    op = "math.absf" if dtype.is_float else "math.absi"
    operand = materialize(frame.builder, x, dtype, shape)
    return wrap(frame.builder.value(op, frame.builder.type(dtype, shape), operand), dtype, shape)


def fma(frame: Frame, x: Any, y: Any, z: Any) -> Any:
    """`tl.fma`."""
    return _floating(frame, "math.fma", "fma", [x, y, z], False)


def quotient(frame: Frame, x: Any, y: Any, approx: Any) -> Any:
    """`tl.div`."""
    approximate = _approximate(approx)
    check_numeric(x, "x")
    check_numeric(y, "y")
    if is_number(x) and is_number(y):
        return fold("/", x, y)
    return divide(frame.builder, x, y, "approx" if approximate else "exact")


def power_of(frame: Frame, x: Any, y: Any, approx: Any) -> Any:
    """`tl.pow`."""
    approximate = _approximate(approx)
    check_numeric(x, "x")
    check_numeric(y, "y")
    if is_number(x) and is_number(y):
        return fold("**", x, y)
    return power(frame.builder, x, y, approximate)


def atan2(frame: Frame, y: Any, x: Any, approx: Any) -> Any:
    """`tl.atan2`."""
    approximate = _approximate(approx)
    if is_number(x) and is_number(y):
        return math.atan2(y, x)
    return _floating(frame, "math.atan2", "atan2", [y, x], approximate)


def isnan(frame: Frame, x: Any) -> Any:
    """`tl.isnan`."""
    check_numeric(x, "x")
    if is_number(x):
        return x != x
    dtype: DType = promote([x])
    refuse_fp8(dtype, "isnan")
    shape = common_shape([x])
    if not dtype.is_float:
        return wrap(frame.builder.constant(False, i1, shape), i1, shape)
    value = materialize(frame.builder, x, dtype, shape)
    return wrap(compare_values(frame.builder, "!=", value, value, dtype, shape), i1, shape)


def cdiv(frame: Frame, x: Any, y: Any) -> Any:
    """`tl.cdiv`: constants by Python, else one op."""
    check_numeric(x, "x")
    check_numeric(y, "y")
    if not is_number(x) or not is_number(y):
        return ceil_divide(frame.builder, x, y)
    if isinstance(x, float) or isinstance(y, float):
        raise Mistake("cdiv is for integers")
    return -fold("//", -x, y)


def _rsqrt(x: float) -> float:
    return 1.0 / math.sqrt(x)


_FUNCTIONS: Mapping[Any, tuple[str, Callable[[float], float] | None]] = {
    tl.exp: ("math.exp", math.exp),
    tl.exp2: ("math.exp2", lambda x: 2.0**x),
    tl.expm1: ("math.expm1", math.expm1),
    tl.log: ("math.log", math.log),
    tl.log2: ("math.log2", math.log2),
    tl.log10: ("math.log10", math.log10),
    tl.log1p: ("math.log1p", math.log1p),
    tl.sqrt: ("math.sqrt", math.sqrt),
    tl.rsqrt: ("math.rsqrt", _rsqrt),
    tl.cbrt: ("math.cbrt", None),
    tl.sin: ("math.sin", math.sin),
    tl.cos: ("math.cos", math.cos),
    tl.tan: ("math.tan", math.tan),
    tl.asin: ("math.asin", math.asin),
    tl.acos: ("math.acos", math.acos),
    tl.atan: ("math.atan", math.atan),
    tl.sinh: ("math.sinh", math.sinh),
    tl.cosh: ("math.cosh", math.cosh),
    tl.tanh: ("math.tanh", math.tanh),
    tl.asinh: ("math.asinh", math.asinh),
    tl.acosh: ("math.acosh", math.acosh),
    tl.atanh: ("math.atanh", math.atanh),
    tl.erf: ("math.erf", math.erf),
    tl.erfc: ("math.erfc", math.erfc),
}

BUILTINS: Mapping[Any, Implementation] = {
    **{
        stub: _function(stub.__name__, op, fold_with)
        for stub, (op, fold_with) in _FUNCTIONS.items()
    },
    tl.floor: _rounding("floor", "math.floor", math.floor),
    tl.ceil: _rounding("ceil", "math.ceil", math.ceil),
    tl.round: _rounding("round", "math.roundeven", round),
    tl.trunc: _rounding("trunc", "math.trunc", math.trunc),
    tl.maximum: maximum,
    tl.minimum: minimum,
    tl.clamp: clamp,
    tl.abs: absolute,
    tl.fma: fma,
    tl.div: quotient,
    tl.pow: power_of,
    tl.atan2: atan2,
    tl.isnan: isnan,
    tl.cdiv: cdiv,
}
