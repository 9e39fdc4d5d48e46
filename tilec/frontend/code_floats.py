"""Casts and constants of the dtypes that IR has as bytes: scales, floats of 6 bits, pairs of 4."""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp
from typing import Any

from mlir import ir

from tilec.frontend.values import Mistake
from tilec.passes.dots.code_floats import E8M0, decode
from tilec.terms.dtypes import DType, f4e2m1x2, f6e2m3, f6e3m2, f8e8m0

FORMATS: Mapping[DType, str] = {
    f8e8m0: E8M0,
    f6e2m3: "e2m3",
    f6e3m2: "e3m2",
    f4e2m1x2: "e2m1",
}
"""What the passes call them."""


def code_to_bf16(value: ir.Value, source: DType) -> ir.Value:
    """The numbers that bytes of `source` stand for; bf16 has all of them."""
    if source.is_pair:
        raise Mistake(f"{source} is two numbers a byte", "help: tl.unpack(x, axis) gives each")
    return decode(value, FORMATS[source])


def code_number(value: Any, dtype: DType) -> int:
    """The byte of a constant: 0, of scales any power of two. Mistake for others."""
    if dtype == f8e8m0 and value > 0:
        fraction, exponent = frexp(value)
        if fraction == 0.5 and 0 <= exponent + 126 <= 254:
            code = exponent + 126
            return code - 256 if code > 127 else code
        raise Mistake(f"{value} is no {dtype}: a power of two from 2**-127 to 2**127")
    if value == 0:
        return 0
    raise Mistake(f"the constant {value} of {dtype} has no spelling; 0 has")


def refuse_narrowing(dtype: DType) -> None:
    """Raises the Mistake that nothing is rounded to these formats here."""
    raise Mistake(
        f"nothing converts to {dtype}",
        "help: quantise in front of the kernel; tl.bitcast(x, ...) makes one of bytes (i8)",
    )
