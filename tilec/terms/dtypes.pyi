"""The dtypes as type checkers see them.

A dtype is a value, `tl.zeros((64,), tl.f32)`, and the annotation of a parameter, `n: tl.i32`. Only
a class is both: so each is a class here, which numbers of Python belong to, and `DType` is theirs.
"""

from collections.abc import Mapping
from typing import Protocol

from tilec.terms.numbers import Integer, Number

class Encoding:
    exponent_bits: int
    mantissa_bits: int
    infinity: int | None
    nan: int
    largest: float

class DType(type):
    name: str
    mlir: str
    kind: str
    bits: int
    element: str
    array: str
    typestr: str
    dlpack: tuple[int, int, int] | None
    elsewhere: tuple[str, ...]
    copied_as: str
    packed: str
    encoding: Encoding | None
    tolerance: float
    bytes: int
    in_ir: str
    limits: tuple[int, int]
    is_float: bool
    is_integer: bool
    is_unsigned: bool
    is_bool: bool
    is_code: bool
    is_pair: bool
    is_fp8: bool
    is_narrow: bool

class f64(Number, Protocol, metaclass=DType): ...
class f32(Number, Protocol, metaclass=DType): ...
class f16(Number, Protocol, metaclass=DType): ...
class bf16(Number, Protocol, metaclass=DType): ...
class f8e4m3(Number, Protocol, metaclass=DType): ...
class f8e5m2(Number, Protocol, metaclass=DType): ...
class f8e8m0(Number, Protocol, metaclass=DType): ...
class f6e2m3(Number, Protocol, metaclass=DType): ...
class f6e3m2(Number, Protocol, metaclass=DType): ...
class f4e2m1x2(Number, Protocol, metaclass=DType): ...
class i1(Integer, Protocol, metaclass=DType): ...
class i8(Integer, Protocol, metaclass=DType): ...
class i16(Integer, Protocol, metaclass=DType): ...
class i32(Integer, Protocol, metaclass=DType): ...
class i64(Integer, Protocol, metaclass=DType): ...
class u8(Integer, Protocol, metaclass=DType): ...
class u16(Integer, Protocol, metaclass=DType): ...
class u32(Integer, Protocol, metaclass=DType): ...
class u64(Integer, Protocol, metaclass=DType): ...
class index(Integer, Protocol, metaclass=DType): ...

DTYPES: tuple[DType, ...]
BY_MLIR: Mapping[str, DType]
BY_NAME: Mapping[str, DType]
BY_ARRAY: Mapping[str, DType]
ELEMENT_BYTES: Mapping[str, int]

__all__ = [
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
    "u8",
    "u16",
    "u32",
    "u64",
]
