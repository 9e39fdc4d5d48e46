"""The element types: one row each, with what every layer calls it. No MLIR, no NumPy.

A dtype has one home: all but instructions (products, conversions, the emulator's) reads this table,
and dtypes.pyi repeats its names for type checkers, to whom a dtype is a class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilec.records import dataclass


@dataclass(frozen=True)
class Encoding:
    """A binary floating-point format: a sign, `exponent_bits` and `mantissa_bits` that are stored.

    `infinity`, `nan`: their bits without the sign; None where the format has no infinity.
    """

    exponent_bits: int
    mantissa_bits: int
    infinity: int | None
    nan: int
    largest: float


@dataclass(frozen=True, eq=False)
class DType:
    """An element type, of which there is one object each.

    `name`: the language's (`tl.<name>`), also in specs of the command line. `mlir`: MLIR's, by
    which kernels, launches and artefacts know it. `kind`: "float", "int" (signed), "uint", "bool"
    or "pair" (two numbers a byte). `bits`: of an element in memory, 1 for `i1`, which takes a byte;
    of `index` 64, the widest it may become: the compiler narrows coordinates to 32 bits where the
    arguments allow it.

    `element`: its type in IR, where that is not `mlir`: of the formats that only products and casts
    know (`is_code`) IR has the bytes, and integers have no sign there, as MLIR's arith wants it:
    the op says which (divsi, divui).

    `array`: its name in NumPy, ml_dtypes, torch, JAX and CuPy, empty where no array has it.
    `typestr`: in the array interfaces, empty where they, and so NumPy itself, have none. `dlpack`:
    type code, bits and lanes of a DLDataType (dlpack.h), None where it has no code. `elsewhere`:
    more names in other languages, for messages. `copied_as`: the member of CUtensorMapDataType as
    which the copy engine combines elements; others it only moves. `packed`: the character of the
    `struct` module for a scalar argument, empty where it comes in arrays only. `encoding`: how a
    number becomes its bits, where `struct` does not know that. `tolerance`: the largest difference
    of two results, relative to the largest value: candidates of tuning may add up in different
    orders, and round intermediate results differently; 0 where they must be equal.
    """

    name: str
    mlir: str
    kind: str
    bits: int
    element: str = ""
    array: str = ""
    typestr: str = ""
    dlpack: tuple[int, int, int] | None = None
    elsewhere: tuple[str, ...] = ()
    copied_as: str = "UINT8"
    packed: str = ""
    encoding: Encoding | None = None
    tolerance: float = 0.0

    @property
    def bytes(self) -> int:
        """Bytes that an element takes in memory."""
        return max(1, self.bits // 8)

    @property
    def in_ir(self) -> str:
        """The type of an element in IR."""
        return self.element or self.mlir

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest value of an integer or bool."""
        if self.is_bool or self.is_unsigned:
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1

    @property
    def is_float(self) -> bool:
        """Whether this is any floating-point type, fp8 included."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer or `index`; `i1` is a bool, not an integer."""
        return self.kind in ("int", "uint")

    @property
    def is_unsigned(self) -> bool:
        """Whether this is an integer without negative numbers."""
        return self.kind == "uint"

    @property
    def is_bool(self) -> bool:
        """Whether this is `i1`."""
        return self.kind == "bool"

    @property
    def is_code(self) -> bool:
        """Whether IR has its bytes only: what they mean stands in the op that reads them."""
        return bool(self.element) and not self.is_unsigned

    @property
    def is_pair(self) -> bool:
        """Whether an element is two numbers, the first in the low half of its byte."""
        return self.kind == "pair"

    @property
    def is_fp8(self) -> bool:
        """Whether this is an 8-bit float: no arithmetic, only casts, moves, selects and `dot`."""
        return self.is_float and self.bits == 8 and not self.is_code

    @property
    def is_narrow(self) -> bool:
        """Whether there is no arithmetic: casts, moves, selects and products only."""
        return self.is_fp8 or self.is_code

    def __reduce__(self) -> str:
        return self.name  # pickle and copy look it up: there stays one object

    def __repr__(self) -> str:
        return f"tl.{self.name}"

    def __str__(self) -> str:
        return self.name


f64 = DType(
    *("f64", "f64", "float", 64),
    array="float64",
    typestr="<f8",
    dlpack=(2, 64, 1),
    copied_as="FLOAT64",
    packed="d",
    tolerance=1e-10,
)
f32 = DType(
    *("f32", "f32", "float", 32),
    array="float32",
    typestr="<f4",
    dlpack=(2, 32, 1),
    copied_as="FLOAT32",
    packed="f",
    tolerance=1e-4,
)
f16 = DType(
    *("f16", "f16", "float", 16),
    array="float16",
    typestr="<f2",
    dlpack=(2, 16, 1),
    copied_as="FLOAT16",
    packed="e",
    tolerance=5e-3,
)
bf16 = DType(
    *("bf16", "bf16", "float", 16),
    array="bfloat16",
    dlpack=(4, 16, 1),
    copied_as="BFLOAT16",
    packed="H",
    encoding=Encoding(8, 7, 0x7F80, 0x7FC0, math.ldexp(255 / 128, 127)),
    tolerance=2e-2,
)
f8e4m3 = DType(
    *("f8e4m3", "f8E4M3FN", "float", 8),
    array="float8_e4m3fn",
    dlpack=(10, 8, 1),
    elsewhere=("float8e4nv",),
    packed="B",
    encoding=Encoding(4, 3, None, 0x7F, 448.0),
    tolerance=0.15,
)
f8e5m2 = DType(
    *("f8e5m2", "f8E5M2", "float", 8),
    array="float8_e5m2",
    dlpack=(12, 8, 1),
    elsewhere=("float8e5",),
    packed="B",
    encoding=Encoding(5, 2, 0x7C, 0x7E, 57344.0),
    tolerance=0.3,
)
f8e8m0 = DType(
    *("f8e8m0", "f8E8M0FNU", "float", 8),
    element="i8",
    array="float8_e8m0fnu",
    dlpack=(14, 8, 1),
)
f6e2m3 = DType("f6e2m3", "f6E2M3FN", "float", 8, element="i8", array="float6_e2m3fn")
f6e3m2 = DType("f6e3m2", "f6E3M2FN", "float", 8, element="i8", array="float6_e3m2fn")
f4e2m1x2 = DType(
    *("f4e2m1x2", "f4E2M1FNx2", "pair", 8),
    element="i8",
    array="float4_e2m1fn_x2",
    dlpack=(17, 4, 2),
)
i1 = DType(
    *("i1", "i1", "bool", 1),
    array="bool",
    typestr="|b1",
    dlpack=(6, 8, 1),
    elsewhere=("int1", "bool_"),
    packed="B",
)
i8 = DType(
    *("i8", "i8", "int", 8),
    array="int8",
    typestr="|i1",
    dlpack=(0, 8, 1),
    packed="b",
)
i16 = DType(
    *("i16", "i16", "int", 16),
    array="int16",
    typestr="<i2",
    dlpack=(0, 16, 1),
    copied_as="UINT16",
    packed="h",
)
i32 = DType(
    *("i32", "i32", "int", 32),
    array="int32",
    typestr="<i4",
    dlpack=(0, 32, 1),
    copied_as="INT32",
    packed="i",
)
i64 = DType(
    *("i64", "i64", "int", 64),
    array="int64",
    typestr="<i8",
    dlpack=(0, 64, 1),
    copied_as="INT64",
    packed="q",
)
u8 = DType(
    *("u8", "ui8", "uint", 8),
    element="i8",
    array="uint8",
    typestr="|u1",
    dlpack=(1, 8, 1),
    packed="B",
)
u16 = DType(
    *("u16", "ui16", "uint", 16),
    element="i16",
    array="uint16",
    typestr="<u2",
    dlpack=(1, 16, 1),
    copied_as="UINT16",
    packed="H",
)
u32 = DType(
    *("u32", "ui32", "uint", 32),
    element="i32",
    array="uint32",
    typestr="<u4",
    dlpack=(1, 32, 1),
    copied_as="UINT32",
    packed="I",
)
u64 = DType(
    *("u64", "ui64", "uint", 64),
    element="i64",
    array="uint64",
    typestr="<u8",
    dlpack=(1, 64, 1),
    copied_as="UINT64",
    packed="Q",
)
index = DType("index", "index", "int", 64)

DTYPES: tuple[DType, ...] = tuple(x for x in globals().values() if isinstance(x, DType))
"""Every dtype of the language, in the order of the rows."""

BY_MLIR: Mapping[str, DType] = {dtype.mlir: dtype for dtype in DTYPES}
"""The dtypes by their spelling in MLIR (`f8E4M3FN`)."""

BY_NAME: Mapping[str, DType] = {**BY_MLIR, **{dtype.name: dtype for dtype in DTYPES}}
"""The dtypes by the language's name, or MLIR's."""

BY_ARRAY: Mapping[str, DType] = {dtype.array: dtype for dtype in DTYPES if dtype.array}
"""The dtypes that arrays have, by the frameworks' name of them."""

ELEMENT_BYTES: Mapping[str, int] = {dtype.mlir: dtype.bytes for dtype in BY_ARRAY.values()}
"""Bytes that one element of an array takes in memory, by MLIR's name."""

# Type checkers read the stub's.
__all__ = ["DType", *(d.name for d in DTYPES)]  # pyright: ignore[reportUnsupportedDunderAll]
