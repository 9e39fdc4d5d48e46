"""PTX scalar types: how wide each is and which NumPy dtype holds its values."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class ScalarType:
    """A PTX type. `code` is the short name used in generated code, `kind` one of u s b f p x.

    Kind "x" marks packed or alternate formats that live in plain bit registers (f16x2, e4m3x2).
    """

    name: str
    bits: int
    kind: str
    code: str

    @property
    def dtype(self) -> np.dtype:
        return DTYPES[self.code]

    @property
    def size(self) -> int:
        return max(self.bits // 8, 1)


DTYPES: dict[str, np.dtype] = {
    "u1": np.dtype(np.uint8),
    "u2": np.dtype(np.uint16),
    "u4": np.dtype(np.uint32),
    "u8": np.dtype(np.uint64),
    "i1": np.dtype(np.int8),
    "i2": np.dtype(np.int16),
    "i4": np.dtype(np.int32),
    "i8": np.dtype(np.int64),
    "f2": np.dtype(np.float16),
    "f4": np.dtype(np.float32),
    "f8": np.dtype(np.float64),
    "bf": np.dtype(ml_dtypes.bfloat16),
    "p": np.dtype(np.bool_),
}

_BYTES = {8: 1, 16: 2, 32: 4, 64: 8}

TYPES: dict[str, ScalarType] = {}
for _bits, _size in _BYTES.items():
    TYPES[f"u{_bits}"] = ScalarType(f"u{_bits}", _bits, "u", f"u{_size}")
    TYPES[f"b{_bits}"] = ScalarType(f"b{_bits}", _bits, "b", f"u{_size}")
    TYPES[f"s{_bits}"] = ScalarType(f"s{_bits}", _bits, "s", f"i{_size}")
TYPES["f16"] = ScalarType("f16", 16, "f", "f2")
TYPES["bf16"] = ScalarType("bf16", 16, "f", "bf")
TYPES["f32"] = ScalarType("f32", 32, "f", "f4")
TYPES["f64"] = ScalarType("f64", 64, "f", "f8")
TYPES["pred"] = ScalarType("pred", 1, "p", "p")
TYPES["tf32"] = ScalarType("tf32", 32, "x", "u4")
for _name in ("f16x2", "bf16x2", "u16x2", "s16x2"):
    TYPES[_name] = ScalarType(_name, 32, "x", "u4")
for _name in ("f32x2",):
    TYPES[_name] = ScalarType(_name, 64, "x", "u8")
for _name in ("e4m3x2", "e5m2x2"):
    TYPES[_name] = ScalarType(_name, 16, "x", "u2")

INTEGER_CODE = {8: "u1", 16: "u2", 32: "u4", 64: "u8"}
SIGNED_CODE = {8: "i1", 16: "i2", 32: "i4", 64: "i8"}


def register_bits(type_name: str) -> int | None:
    """Width of the register file that holds `.reg .<type_name>`; None for unknown types.

    8-bit registers live in the 16-bit file (PTX ISA 5.2.2: they are only load/store/cvt operands).
    """
    scalar = TYPES.get(type_name)
    if scalar is None:
        return 128 if type_name == "b128" else None
    return 16 if scalar.bits == 8 else scalar.bits
