"""Elementwise ops on NumPy arrays: the tables behind `tile_reference`.

Floats are computed in f64 and rounded by the caller, integers in 64 bits and wrapped by `wrap`.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir

DTYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
"""NumPy's dtype of each element type; `index` never lies in memory."""


def is_float(type_: ir.Type) -> bool:
    """Whether an element type is a floating-point type."""
    return isinstance(type_, ir.FloatType)


def element(type_: ir.Type) -> ir.Type:
    """The element type of a tile type, a scalar type itself."""
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def dtype(type_: ir.Type) -> Any:
    """NumPy's dtype of a tile or scalar type."""
    return DTYPES[str(element(type_))]


def bits(type_: ir.Type) -> int:
    """Bits of an element; an index has 64."""
    scalar = element(type_)
    return 64 if isinstance(scalar, ir.IndexType) else scalar.width


def wrap(values: np.ndarray, type_: ir.Type) -> np.ndarray:
    """Integers (int64) brought into an integer type, the excess bits dropped."""
    if bits(type_) == 1:
        return (values & 1).astype(np.bool_)
    return values.astype(dtype(type_))


def signed(values: np.ndarray) -> np.ndarray:
    """As int64; a true i1 reads as -1."""
    return -values.astype(np.int64) if values.dtype == np.bool_ else values.astype(np.int64)


def unsigned(values: np.ndarray) -> np.ndarray:
    """As uint64."""
    width = 1 if values.dtype == np.bool_ else 8 * values.dtype.itemsize
    wide = values.astype(np.int64).view(np.uint64)
    return wide & np.uint64((1 << width) - 1) if width < 64 else wide


def _truncating_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


FLOAT: dict[str, Any] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.log": np.log,
    "math.sqrt": np.sqrt,
    "math.tanh": np.tanh,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.fma": lambda a, b, c: a * b + c,
}
SIGNED: dict[str, Any] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.divsi": _truncating_divide,
    "arith.remsi": np.fmod,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "math.absi": np.abs,
}
UNSIGNED: dict[str, Any] = {
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
    "arith.divui": np.floor_divide,
    "arith.remui": np.fmod,
    "arith.shrui": np.right_shift,
}
_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
INTEGER_PREDICATES = [(f, signed) for f in _COMPARISONS]
INTEGER_PREDICATES += [(f, unsigned) for f in _COMPARISONS[2:]]
_ORDERED = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)


def compare_floats(predicate: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """arith.cmpf by the number of its predicate."""
    nan = np.isnan(a) | np.isnan(b)
    if predicate in (0, 15):
        return np.full(nan.shape, predicate == 15)
    if predicate in (7, 14):
        return ~nan if predicate == 7 else nan
    ordered = predicate < 7
    result = _ORDERED[(predicate - (1 if ordered else 8))](a, b)
    return result & ~nan if ordered else result | nan
