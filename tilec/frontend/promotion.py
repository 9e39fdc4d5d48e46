"""The promotion rules: which dtype an operation of two dtypes computes in.

They are written down for authors in tilec/language/README.md; this file is their only code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilec.frontend.builder import constant_dtype
from tilec.frontend.conversion import check_numeric, dtype_of
from tilec.frontend.values import Mistake
from tilec.terms.dtypes import DType, f32, i1, i32, index


def _width(dtype: DType) -> tuple[int, bool]:
    """Ranks integers: `index` may be 32 or 64 bits, so it stands between."""
    return dtype.bits, dtype != index


def join(a: DType, b: DType) -> DType:
    """The dtype two run-time values meet in. Mistake where an fp8 meets another dtype."""
    if a == b:
        return a
    if a.is_narrow or b.is_narrow:
        what = "fp8 values" if a.is_fp8 or b.is_fp8 else "they"
        raise Mistake(
            f"{a} and {b} do not mix: {what} do not promote",
            "help: cast first, e.g. x.to(tl.f32)",
        )
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    if a.is_float and b.is_float:
        if a.bits == b.bits:
            return f32  # f16 with bf16: neither holds the other
        return a if a.bits > b.bits else b
    if a.is_float or b.is_float:
        return a if a.is_float else b
    if a.is_unsigned != b.is_unsigned:
        return _signed_of(a, b)
    return max(a, b, key=_width)


def _signed_of(a: DType, b: DType) -> DType:
    """Gives the signed one of a signed and an unsigned dtype, where it has all numbers of the
    other.

    Where it has not, C and NumPy disagree on what to compute in (u32, i64 or f64), so that the
    author says it.
    """
    unsigned, signed = (a, b) if a.is_unsigned else (b, a)
    if (32 if signed == index else signed.bits) > unsigned.bits:
        return signed
    raise Mistake(
        f"{a} and {b} do not mix: neither has all numbers of the other",
        f"help: cast one first, e.g. x.to(tl.{unsigned}), or both to a wider dtype",
    )


def promote(values: Sequence[Any]) -> DType:
    """The dtype of numbers, scalars and tiles together; constants adapt to the run-time values."""
    for value in values:
        check_numeric(value)
    strong = [dtype for dtype in map(dtype_of, values) if dtype is not None]
    constants = [value for value in values if dtype_of(value) is None]
    if not strong:
        result = constant_dtype(constants[0])
        for value in constants[1:]:
            result = join(result, constant_dtype(value))
        return result
    result = strong[0]
    for dtype in strong[1:]:
        result = join(result, dtype)
    for value in constants:
        if isinstance(value, float) and not result.is_float:
            result = f32
        elif isinstance(value, int) and not isinstance(value, bool) and result.is_bool:
            result = i32
    return result


def refuse_fp8(dtype: DType, what: str) -> None:
    """Mistake for an fp8 dtype: the hardware has no fp8 arithmetic."""
    if dtype.is_narrow:
        raise Mistake(
            f"{what} is not defined for {dtype}",
            f"help: {'fp8' if dtype.is_fp8 else dtype} values are loaded, stored, moved, selected "
            "and multiplied by tl.dot only; cast first, e.g. x.to(tl.f32)",
        )


def arithmetic_dtype(values: Sequence[Any], what: str) -> DType:
    """Promotes for + - * and the like: no fp8, and i1 counts as i32."""
    dtype = promote(values)
    refuse_fp8(dtype, what)
    return i32 if dtype == i1 else dtype


def float_dtype(values: Sequence[Any], what: str) -> DType:
    """Promotes for floating-point functions: integers become f32."""
    dtype = promote(values)
    refuse_fp8(dtype, what)
    return dtype if dtype.is_float else f32
