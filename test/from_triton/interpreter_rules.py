"""What ops without regions do, for `interpreter.py`: a function of the op and NumPy values each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from tilec.triton.program import Op, Type

_DTYPES: Mapping[str, Any] = {
    "i1": np.bool_,
    **{f"i{bits}": np.dtype(f"i{bits // 8}").type for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}").type for bits in (16, 32, 64)},
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


def numpy_of(kind: Type) -> Any:
    """NumPy's scalar type of a type's elements."""
    return _DTYPES[kind.element]


class Race(Exception):
    """Programs of which one needs an order that nobody has given them."""


class Watch:
    """Who read and who wrote the elements of an array: NOBODY, a program, or MANY of them."""

    NOBODY, MANY = -1, -2

    def __init__(self, array: Any) -> None:
        self.program = 0
        self.readers, self.writers = (np.full(array.size, self.NOBODY) for _ in range(2))

    def read(self, places: Any) -> None:
        """Race where another program wrote there."""
        if not np.isin(self.writers[places], (self.NOBODY, self.program)).all():
            raise Race
        others = ~np.isin(self.readers[places], (self.NOBODY, self.program))
        self.readers[places] = np.where(others, self.MANY, self.program)

    def written(self, places: Any) -> None:
        """Race where another program read or wrote there, or two lanes write."""
        mine = (self.NOBODY, self.program)
        if not (np.isin(self.writers[places], mine) & np.isin(self.readers[places], mine)).all():
            raise Race
        if np.unique(places).size < np.size(places):
            raise Race
        self.writers[places] = self.program


class Pointer:
    """Elements of a flat array: `at` is a number, or a tile of them. `watch`: of the array."""

    def __init__(self, array: Any, at: Any, watch: Watch | None = None) -> None:
        self.array, self.at, self.watch = array, np.asarray(at, np.int64), watch

    def moved(self, at: Any) -> Pointer:
        """To other elements of the array."""
        return Pointer(self.array, at, self.watch)


def _constant(op: Op) -> Any:
    kind = op.result.type
    text = op.text.partition(" : ")[0].strip().removeprefix("dense<").removesuffix(">").strip()
    dtype = np.dtype(numpy_of(kind))
    if text in ("true", "false"):
        number = np.asarray(text == "true")
    elif text.startswith(("0x", '"0x')):  # bits of a float
        bits = int(text.strip('"'), 16)
        number = np.asarray(bits, f"u{dtype.itemsize}").view(dtype)
    elif kind.is_integer:
        number = np.asarray(int(text))
    else:
        number = np.asarray(float(text))
    number = number.astype(dtype)[()]
    return number if kind.shape is None else np.full(kind.shape, number)


def _poison(op: Op) -> Any:
    """What nobody reads."""
    kind = op.result.type
    return np.zeros(kind.shape or (), np.int64 if kind.pointee else numpy_of(kind))[()]


def _range(op: Op) -> Any:
    return np.arange(op.number("start"), op.number("end"), dtype=np.int32)


def _shaped(change: Callable[[Op, Any], Any]) -> Callable[..., Any]:
    """Of pointers and of values alike."""

    def rule(op: Op, value: Any) -> Any:
        if isinstance(value, Pointer):
            return value.moved(change(op, value.at))
        return change(op, np.asarray(value))

    return rule


def _order(op: Op) -> list[int]:
    return [int(n) for n in re.findall(r"\b\d+\b", op.attributes["order"].partition(":")[2])]


def _unsigned(value: Any) -> Any:
    value = np.asarray(value)
    return value.view(f"u{value.dtype.itemsize}") if value.dtype.kind == "i" else value


def _of_unsigned(change: Callable[..., Any]) -> Callable[..., Any]:
    def rule(op: Op, *values: Any) -> Any:
        found = change(*map(_unsigned, values))
        return np.asarray(found).astype(numpy_of(op.result.type))[()]

    return rule


def _compared(op: Op, one: Any, two: Any) -> Any:
    word = next(iter(op.words))
    if word in ("eq", "ne"):
        return _COMPARED[word](one, two)
    if word.startswith("u"):
        one, two = _unsigned(one), _unsigned(two)
    return _COMPARED[word[1:]](one, two)


def _compared_floats(op: Op, one: Any, two: Any) -> Any:
    word = next(iter(op.words))
    nan = np.isnan(one) | np.isnan(two)
    if word in ("ord", "uno"):
        return nan if word == "uno" else ~nan
    found = _COMPARED[word[1:]](one, two)
    return found | nan if word.startswith("u") else found & ~nan


_COMPARED = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def _checked_divisor(two: Any) -> Any:
    """IndexError for a division by 0, of which nothing is said."""
    if not np.all(two):
        raise IndexError("division by 0")
    return two


def _remainder(op: Op, one: Any, two: Any) -> Any:
    return np.fmod(one, _checked_divisor(two))


def _quotient(op: Op, one: Any, two: Any) -> Any:
    rest = np.fmod(one, _checked_divisor(two))
    return ((one - rest) // two).astype(np.asarray(one).dtype)[()]


def _converted(op: Op, value: Any) -> Any:
    dtype = numpy_of(op.result.type)
    value = np.asarray(value)
    if dtype is not np.bool_ and value.dtype == np.bool_ and op.name == "arith.extsi":
        return (-value.astype(dtype))[()]
    if op.name == "arith.trunci" and dtype is np.bool_:
        return (value & 1).astype(dtype)[()]
    return value.astype(dtype)[()]


def _of_unsigned_source(op: Op, value: Any) -> Any:
    return _unsigned(value).astype(numpy_of(op.result.type))[()]


def _in_f32(change: Callable[..., Any]) -> Callable[..., Any]:
    """A function of floats; narrow ones are computed in f32."""

    def rule(op: Op, *values: Any) -> Any:
        dtype = numpy_of(op.result.type)
        wide = np.float64 if dtype is np.float64 else np.float32
        return np.asarray(change(*(np.asarray(v).astype(wide) for v in values))).astype(dtype)[()]

    return rule


def _bits(op: Op, value: Any) -> Any:
    if isinstance(value, Pointer):
        dtype = _DTYPES[op.result.type.pointee or ""]
        if np.dtype(dtype).itemsize != value.array.itemsize:
            at = value.at * value.array.itemsize // np.dtype(dtype).itemsize
            return Pointer(value.array.view(dtype), at)
        return Pointer(value.array.view(dtype), value.at, value.watch)
    return np.asarray(value).view(numpy_of(op.result.type))[()]


def load_elements(op: Op, pointer: Pointer, mask: Any = True, other: Any = 0) -> Any:
    places = _checked(pointer, mask)
    if pointer.watch is not None:
        pointer.watch.read(places[np.broadcast_to(mask, places.shape)])
    return np.where(mask, pointer.array[places], np.asarray(other, pointer.array.dtype))[()]


def store_elements(op: Op, pointer: Pointer, value: Any, mask: Any = True) -> None:
    places = np.broadcast_to(_checked(pointer, mask), np.shape(pointer.at))
    chosen = np.broadcast_to(mask, np.shape(pointer.at))
    if pointer.watch is not None:
        pointer.watch.written(places[chosen])
    pointer.array[places[chosen]] = np.broadcast_to(value, places.shape)[chosen]


def _checked(pointer: Pointer, mask: Any) -> Any:
    """Element numbers, 0 where the mask is false. IndexError for one outside the array."""
    places = np.where(mask, pointer.at, 0)
    if places.size and not 0 <= places.min() <= places.max() < pointer.array.size:
        raise IndexError(f"elements {places.min()} to {places.max()} of {pointer.array.size}")
    return places


def _updated(op: Op, pointer: Pointer, value: Any, mask: Any = True) -> Any:
    change = next(rule for word, rule in _UPDATES.items() if word in op.words)
    places = np.atleast_1d(_checked(pointer, mask))
    values, flags = (np.broadcast_to(v, places.shape) for v in (value, mask))
    old = np.zeros(places.shape, pointer.array.dtype)
    for number in np.ndindex(places.shape):
        if flags[number]:
            old[number] = pointer.array[places[number]]
            pointer.array[places[number]] = change(old[number], values[number])
    return old.reshape(np.shape(pointer.at))[()]


def _without_sign(change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, two: change(_unsigned(one), _unsigned(two)).astype(one.dtype)


_UPDATES: Mapping[str, Callable[[Any, Any], Any]] = {
    "fadd": lambda one, two: one + two,
    "add": lambda one, two: one + two,
    "max": np.maximum,
    "min": np.minimum,
    "umax": _without_sign(np.maximum),
    "umin": _without_sign(np.minimum),
    "and": lambda one, two: one & two,
    "or": lambda one, two: one | two,
    "xor": lambda one, two: one ^ two,
    "exch": lambda one, two: two,
    "fmax": np.fmax,
    "fmin": np.fmin,
}


def _dot(op: Op, one: Any, two: Any, total: Any) -> Any:
    """In f64: what a product may differ by depends on the order of its sums."""
    wide = np.matmul(one.astype(np.float64), two.astype(np.float64)) + total
    return wide.astype(total.dtype)


def _high(op: Op, one: Any, two: Any) -> Any:
    wide = _unsigned(one).astype(np.uint64) * _unsigned(two).astype(np.uint64)
    return (wide >> np.uint64(32)).astype(np.uint32).view(np.int32)[()]


def _counted(op: Op, values: Any, mask: Any = True) -> Any:
    (bins,) = op.result.type.shape or (0,)
    kept = values[np.broadcast_to(mask, values.shape) & (values >= 0) & (values < bins)]
    return np.bincount(kept, minlength=bins).astype(np.int32)


def _library(op: Op, *values: Any) -> Any:
    """KeyError for a function that NumPy does not have."""
    name = op.attributes["symbol"].strip('"').removeprefix("__nv_")
    name = name.removesuffix("f") if values[0].dtype == np.float32 else name
    if op.result.type.is_integer:
        return _WHOLE[name](values[0]).astype(numpy_of(op.result.type))
    return _in_f32(_LIBRARY[name])(op, *values)


def _asserted(op: Op, flags: Any) -> list[Any]:
    """IndexError for what does not hold: such a launch says nothing."""
    if not np.all(flags):
        raise IndexError("an assertion")
    return []


_WHOLE: Mapping[str, Callable[..., Any]] = {
    "llrint": np.rint,
    "finite": np.isfinite,
    "isfinited": np.isfinite,
}
"""Functions of floats that give integers."""
_LIBRARY: Mapping[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in ("exp", "exp2", "log", "log2", "sqrt", "tanh", "floor", "ceil", "rint")
    },
    "fabs": np.abs,
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "asin": np.arcsin,
    "pow": np.power,
}
_FUNCTIONS = (
    "exp", "exp2", "log", "log2", "log1p", "expm1", "sin", "cos", "sqrt", "floor", "ceil", "tanh",
)  # fmt: skip

RULES: Mapping[str, Callable[..., Any]] = {
    "arith.constant": _constant,
    "ub.poison": _poison,
    "llvm.intr.assume": lambda op, *values: [],
    "gpu.barrier": lambda op: [],
    "tt.assert": _asserted,
    "tt.make_range": _range,
    "tt.splat": _shaped(lambda op, value: np.full(op.result.type.shape, value)),
    "tt.unsplat": _shaped(lambda op, value: value.reshape(())[()]),
    "tt.broadcast": _shaped(lambda op, value: np.broadcast_to(value, op.result.type.shape)),
    "tt.expand_dims": _shaped(lambda op, value: np.expand_dims(value, op.number("axis"))),
    "tt.reshape": _shaped(lambda op, value: value.reshape(op.result.type.shape)),
    "tt.trans": _shaped(lambda op, value: value.transpose(_order(op))),
    "tt.join": lambda op, one, two: np.stack([one, two], -1),
    "tt.split": lambda op, value: [value[..., 0], value[..., 1]],
    "tt.gather": lambda op, v, at: np.take_along_axis(v, at.astype(np.int64), op.number("axis")),
    "tt.addptr": lambda op, pointer, by: pointer.moved(pointer.at + by),
    "tt.bitcast": _bits,
    "arith.bitcast": _bits,
    "tt.atomic_rmw": _updated,
    "tt.dot": _dot,
    "tt.histogram": _counted,
    "tt.cat": lambda op, one, two: np.concatenate([one, two]),
    "tt.extern_elementwise": _library,
    "tt.mulhiui": _high,
    "tt.clampf": _in_f32(lambda value, low, high: np.fmin(np.fmax(value, low), high)),
    "tt.fp_to_fp": _converted,
    "arith.addi": lambda op, one, two: one + two,
    "arith.subi": lambda op, one, two: one - two,
    "arith.muli": lambda op, one, two: one * two,
    "arith.andi": lambda op, one, two: one & two,
    "arith.ori": lambda op, one, two: one | two,
    "arith.xori": lambda op, one, two: one ^ two,
    "arith.shli": lambda op, one, two: one << two,
    "arith.shrsi": lambda op, one, two: one >> two,
    "arith.shrui": _of_unsigned(lambda one, two: one >> two),
    "arith.divui": _of_unsigned(lambda one, two: one // _checked_divisor(two)),
    "arith.remui": _of_unsigned(lambda one, two: one % _checked_divisor(two)),
    "arith.minsi": lambda op, one, two: np.minimum(one, two),
    "arith.maxsi": lambda op, one, two: np.maximum(one, two),
    "arith.divsi": _quotient,
    "arith.remsi": _remainder,
    "arith.cmpi": _compared,
    "arith.cmpf": _compared_floats,
    "arith.select": lambda op, mask, one, two: _chosen(mask, one, two),
    **{
        f"arith.{name}": _converted
        for name in (
            "extsi", "trunci", "sitofp", "extf", "truncf", "index_cast", "fptosi",
        )
    },
    "arith.extui": _of_unsigned_source,
    "arith.uitofp": _of_unsigned_source,
    "arith.addf": _in_f32(np.add),
    "arith.subf": _in_f32(np.subtract),
    "arith.mulf": _in_f32(np.multiply),
    "arith.divf": _in_f32(np.divide),
    "tt.precise_divf": _in_f32(np.divide),
    "arith.negf": _in_f32(np.negative),
    "arith.maxnumf": _in_f32(np.fmax),
    "arith.minnumf": _in_f32(np.fmin),
    "arith.maximumf": _in_f32(np.maximum),
    "arith.minimumf": _in_f32(np.minimum),
    "math.absf": _in_f32(np.abs),
    "math.rsqrt": _in_f32(lambda value: 1 / np.sqrt(value)),
    "math.erf": _in_f32(np.vectorize(math.erf, otypes=[np.float64])),
    "tt.precise_sqrt": _in_f32(np.sqrt),
    **{f"math.{name}": _in_f32(getattr(np, name)) for name in _FUNCTIONS},
}  # fmt: skip


def _chosen(mask: Any, one: Any, two: Any) -> Any:
    if isinstance(one, Pointer):
        return one.moved(np.where(mask, one.at, two.at))
    return np.where(mask, one, two)[()]
