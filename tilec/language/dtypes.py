"""The element types a kernel may name. No MLIR: these are importable on any machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilec.compiled_kernel import CODES


@dataclass(frozen=True)
class DType:
    """An element type: `name` is the language's (`tl.<name>`), `mlir` the spelling in IR.

    Of the formats that only products and casts know (`is_code`) IR has the bytes, as i8.

    `kind` is "float", "int" or "bool"; integers are signed. `bits` of `index` is 64, the widest it
    may become: the compiler narrows coordinates to 32 bits where the arguments allow it.
    """

    name: str
    mlir: str
    kind: str
    bits: int

    @property
    def is_float(self) -> bool:
        """Whether this is any floating-point type, fp8 included."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed integer or `index`; `i1` is a bool, not an integer."""
        return self.kind == "int"

    @property
    def is_bool(self) -> bool:
        """Whether this is `i1`."""
        return self.kind == "bool"

    @property
    def is_code(self) -> bool:
        """Whether IR has its bytes only: what they mean stands in the op that reads them."""
        return self.mlir in CODES

    @property
    def is_pair(self) -> bool:
        """Whether an element is two numbers, the first in the low half of its byte."""
        return self.kind == "pair"

    @property
    def is_fp8(self) -> bool:
        """Whether this is an 8-bit float: no arithmetic, only casts, moves, selects and `dot`."""
        return self.mlir in ("f8E4M3FN", "f8E5M2")

    @property
    def is_narrow(self) -> bool:
        """Whether there is no arithmetic: casts, moves, selects and products only."""
        return self.is_fp8 or self.is_code

    def __repr__(self) -> str:
        return f"tl.{self.name}"

    def __str__(self) -> str:
        return self.name


i1 = DType("i1", "i1", "bool", 1)
i8 = DType("i8", "i8", "int", 8)
i16 = DType("i16", "i16", "int", 16)
i32 = DType("i32", "i32", "int", 32)
i64 = DType("i64", "i64", "int", 64)
index = DType("index", "index", "int", 64)
f8e4m3 = DType("f8e4m3", "f8E4M3FN", "float", 8)
f8e5m2 = DType("f8e5m2", "f8E5M2", "float", 8)
f8e8m0 = DType("f8e8m0", "f8E8M0FNU", "float", 8)
f6e2m3 = DType("f6e2m3", "f6E2M3FN", "float", 8)
f6e3m2 = DType("f6e3m2", "f6E3M2FN", "float", 8)
f4e2m1x2 = DType("f4e2m1x2", "f4E2M1FNx2", "pair", 8)
f16 = DType("f16", "f16", "float", 16)
bf16 = DType("bf16", "bf16", "float", 16)
f32 = DType("f32", "f32", "float", 32)
f64 = DType("f64", "f64", "float", 64)

DTYPES: tuple[DType, ...] = (
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    f8e4m3,
    f8e5m2,
    f8e8m0,
    f6e2m3,
    f6e3m2,
    f4e2m1x2,
    f16,
    bf16,
    f32,
    f64,
)
"""Every dtype of the language."""

BY_MLIR: Mapping[str, DType] = {dtype.mlir: dtype for dtype in DTYPES}
"""The dtypes by their spelling in MLIR text (`f8E4M3FN`)."""

BY_NAME: Mapping[str, DType] = {**BY_MLIR, **{dtype.name: dtype for dtype in DTYPES}}
"""The dtypes by either spelling."""

__all__ = [
    "BY_MLIR",
    "BY_NAME",
    "DTYPES",
    "DType",
    "bf16",
    "f4e2m1x2",
    "f6e2m3",
    "f6e3m2",
    "f8e4m3",
    "f8e5m2",
    "f8e8m0",
    "f16",
    "f32",
    "f64",
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "index",
]
