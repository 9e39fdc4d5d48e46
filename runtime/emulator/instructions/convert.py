"""cvt between every pair of integer and float types, packed and alternate formats (PTX 9.7.9)."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilec.runtime.emulator.numbers import rounding
from tilec.runtime.emulator.numbers.scalar_types import TYPES, ScalarType
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.writer import Writer

U32, F32 = TYPES["u32"], TYPES["f32"]
_FLOAT_ROUNDINGS = {"rn", "rz", "rm", "rp", "rna"}
_INTEGER_ROUNDINGS = {"rni", "rzi", "rmi", "rpi"}
_EIGHT_BIT = {
    "e4m3x2": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2x2": np.dtype(ml_dtypes.float8_e5m2),
}
_PAIRS = {"f16x2": np.dtype(np.float16), "bf16x2": np.dtype(ml_dtypes.bfloat16)}


def emit_cvt(instruction: Instruction, writer: Writer) -> None:
    """Dispatch on the destination and source types, the last two modifiers."""
    if len(instruction.modifiers) < 2:
        raise writer.unsupported("cvt without two types")
    *rest, to_name, from_name = instruction.modifiers
    if rest and rest[0] == "pack":
        return _emit_pack(instruction, writer)
    flags = set(rest)
    if flags - _FLOAT_ROUNDINGS - _INTEGER_ROUNDINGS - {"ftz", "sat", "relu", "satfinite"}:
        raise writer.unsupported(f"modifiers {'.'.join(rest)}")
    if to_name in _PAIRS and from_name == "f32":
        return _emit_to_pair(instruction, writer, flags, _PAIRS[to_name])
    if to_name in _EIGHT_BIT:
        return _emit_to_eight_bit(instruction, writer, flags, to_name, from_name)
    if from_name in _EIGHT_BIT and to_name in _PAIRS:
        return _emit_from_eight_bit(instruction, writer, flags, from_name, to_name)
    if to_name == "tf32" and from_name == "f32":
        return _emit_tf32(instruction, writer, flags)
    if to_name not in TYPES or from_name not in TYPES:
        raise writer.unsupported(f"cvt.{to_name}.{from_name}")
    return _emit_scalar(instruction, writer, flags, TYPES[to_name], TYPES[from_name])


def _emit_scalar(
    instruction: Instruction, writer: Writer, flags: set[str], to: ScalarType, source: ScalarType
) -> None:
    if to.kind in "px" or source.kind in "px":
        raise writer.unsupported(f"cvt.{to.name}.{source.name}")
    destination, operand = instruction.operands
    value = writer.read(operand, source)
    if "ftz" in flags and source.name == "f32":
        value = f"{writer.function(rounding.flush)}({value})"
    dtype = writer.constant(to.dtype)
    if source.kind == "f" and to.kind == "f":
        value = _float_to_float(writer, flags, to, source, value, dtype)
    elif source.kind == "f":
        mode = next(iter(flags & _INTEGER_ROUNDINGS), None)
        if mode is None:
            raise writer.unsupported("float to integer without .rni/.rzi/.rmi/.rpi")
        value = f"{writer.function(float_to_integer)}({value}, {dtype}, {mode!r})"
    elif to.kind == "f":
        mode = next(iter(flags & _FLOAT_ROUNDINGS), "rn")
        value = f"{writer.function(integer_to_float)}({value}, {dtype}, {mode!r})"
    elif "sat" in flags:
        value = f"{writer.function(saturate_integer)}({value}, {dtype})"
    else:
        value = f"{value}.astype({dtype})"
    if "sat" in flags and to.kind == "f":
        value = f"{writer.function(rounding.saturate)}({value})"
    if "relu" in flags:
        value = f"{writer.function(rounding.relu)}({value})"
    writer.assign(destination, to, value)


def _float_to_float(
    writer: Writer, flags: set[str], to: ScalarType, source: ScalarType, value: str, dtype: str
) -> str:
    integral = flags & _INTEGER_ROUNDINGS
    if integral:
        value = f"{writer.function(round_integral)}({value}, {next(iter(integral))!r})"
    mode = next(iter(flags & _FLOAT_ROUNDINGS), "rn")
    if to.name == source.name and not flags & _FLOAT_ROUNDINGS:
        return f"{value}.astype({dtype})"
    if "satfinite" in flags:
        return f"{writer.function(narrow_finite)}({value}, {dtype}, {mode!r})"
    result = f"{writer.function(narrow)}({value}, {dtype}, {mode!r})"
    if "ftz" in flags and to.name == "f32":
        if source.name == "f64":
            function = writer.function(rounding.flush_narrowed)
            return f"{function}({result}, {mode!r}, {value})"
        result = f"{writer.function(rounding.flush)}({result})"
    return result


def narrow(value: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """A float array rounded to another float type; rn, rz, rm, rp or rna."""
    value = np.asarray(value)
    if mode in ("rn", "rna") or dtype.itemsize > value.dtype.itemsize:
        if dtype == rounding.BF16 and value.dtype == np.float64:
            return rounding.odd_float32(value).astype(dtype)
        return value.astype(dtype)
    return _narrow_directed(value, dtype, mode)


def _narrow_directed(value: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """Step the nearest value back where it passed the exact one; works on the bits."""
    near = np.atleast_1d(value.astype(dtype))
    exact = np.atleast_1d(value).astype(np.float64)
    got = near.astype(np.float64)
    signed = near.view(f"i{dtype.itemsize}")
    too_big = np.abs(got) > np.abs(exact)
    too_small = np.abs(got) < np.abs(exact)
    negative = np.signbit(exact)
    outward = np.zeros(near.shape, bool)
    if mode == "rm":
        outward = negative
    elif mode == "rp":
        outward = ~negative
    step = np.where(too_big & ~outward, -1, 0) + np.where(too_small & outward, 1, 0)
    moved = (signed + step.astype(signed.dtype)).view(dtype)
    return np.where(np.isnan(exact), near, moved).reshape(value.shape)


def narrow_finite(value: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """Like `narrow`, but results beyond the largest finite value stay at it (.satfinite)."""
    largest = float(ml_dtypes.finfo(dtype).max)
    clipped = np.clip(value, -largest, largest)
    return narrow(np.where(np.isnan(value), value, clipped).astype(value.dtype), dtype, mode)


def round_integral(value: np.ndarray, mode: str) -> np.ndarray:
    function = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode]
    return function(value)


def float_to_integer(value: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """Round, then clamp to the integer's range.

    PTX ISA cvt: NaN gives zero if the source is not .f64 and the destination not .s64 or .u64,
    else 1 << (width of the destination - 1).
    """
    top_bit = 8 in (np.asarray(value).dtype.itemsize, dtype.itemsize)
    wide = round_integral(np.asarray(value).astype(np.float64), mode)
    limits = np.iinfo(dtype)
    nan = np.isnan(wide)
    low, high = float(limits.min), float(limits.max)
    inside = np.where(nan | (wide >= high) | (wide <= low), 0.0, wide)
    result = inside.astype(dtype)
    result = np.where(wide >= high, dtype.type(limits.max), result)
    result = np.where(wide <= low, dtype.type(limits.min), result)
    if top_bit:
        top = np.array(1 << (8 * dtype.itemsize - 1), f"u{dtype.itemsize}").view(dtype)
        return np.where(nan, top, result)
    return np.where(nan, dtype.type(0), result)


def integer_to_float(value: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """Nearest by NumPy where that rounds once; else step from the nearest value."""
    value = np.asarray(value)
    if mode == "rn" and dtype in (np.float32, np.float64):
        return value.astype(dtype)
    if value.dtype.itemsize < 8:
        return narrow(value.astype(np.float64), dtype, mode)
    if dtype.itemsize == 2:
        return narrow(_odd_float64(value), dtype, mode)
    near = value.astype(dtype)
    back = near.astype(np.longdouble) - value.astype(np.longdouble)
    toward = {"rm": back > 0, "rp": back < 0}.get(mode)
    if toward is None:
        toward = np.where(value < 0, back < 0, back > 0)
    target = np.array(np.inf if mode == "rp" else -np.inf, dtype)
    if mode == "rz":
        target = np.zeros((), dtype)
    return np.where(toward, np.nextafter(near, target), near)


def _odd_float64(value: np.ndarray) -> np.ndarray:
    """64-bit integers to float64, the bits that do not fit kept as one sticky bit."""
    negative = value < 0
    size = value.astype(np.uint64)
    size = np.where(negative, ~size + np.uint64(1), size)
    sticky = ((size & np.uint64(0x7FF)) != 0).astype(np.uint64)
    short = ((size >> np.uint64(11)) | sticky) << np.uint64(11)
    wide = np.where(size >> np.uint64(53) != 0, short, size).astype(np.float64)
    return np.where(negative, -wide, wide)


def saturate_integer(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits, own = np.iinfo(dtype), np.iinfo(value.dtype)
    low, high = max(limits.min, own.min), min(limits.max, own.max)
    return np.clip(value, value.dtype.type(low), value.dtype.type(high)).astype(dtype)


def _emit_to_pair(
    instruction: Instruction, writer: Writer, flags: set[str], dtype: np.dtype
) -> None:
    """cvt.{f16x2,bf16x2}.f32 d, a, b: a goes to the upper half."""
    destination, a, b = instruction.operands
    mode = next(iter(flags & _FLOAT_ROUNDINGS), "rn")
    if flags - {"rn", "rz", "relu", "satfinite"}:
        raise writer.unsupported("modifiers")
    options = f"{mode!r}, {'relu' in flags}, {'satfinite' in flags}"
    values = f"{writer.read(a, F32)}, {writer.read(b, F32)}"
    function = writer.function(floats_to_pair)
    writer.assign(destination, U32, f"{function}({values}, {writer.constant(dtype)}, {options})")


def floats_to_pair(
    high: np.ndarray, low: np.ndarray, dtype: np.dtype, mode: str, relu: bool, finite: bool
) -> np.ndarray:
    high, low = np.broadcast_arrays(high, low)
    both = np.empty((*low.shape, 2), dtype)
    convert = narrow_finite if finite else narrow
    both[..., 0] = convert(low, dtype, mode)
    both[..., 1] = convert(high, dtype, mode)
    return rounding.joined(rounding.relu(both) if relu else both)


def _emit_to_eight_bit(
    instruction: Instruction, writer: Writer, flags: set[str], to: str, source: str
) -> None:
    """cvt.rn.satfinite.{e4m3x2,e5m2x2}.{f32,f16x2,bf16x2}."""
    if not {"rn", "satfinite"} <= flags or flags - {"rn", "satfinite", "relu"}:
        raise writer.unsupported("modifiers")
    dtype, relu = writer.constant(_EIGHT_BIT[to]), "relu" in flags
    if source == "f32":
        destination, a, b = instruction.operands
        function = writer.function(floats_to_eight_bit)
        values = f"{writer.read(a, F32)}, {writer.read(b, F32)}"
        return writer.assign(destination, TYPES["u16"], f"{function}({values}, {dtype}, {relu})")
    if source not in _PAIRS:
        raise writer.unsupported(f"cvt.{to}.{source}")
    destination, a = instruction.operands
    function = writer.function(pair_to_eight_bit)
    value = f"{writer.read(a, U32)}, {writer.constant(_PAIRS[source])}"
    return writer.assign(destination, TYPES["u16"], f"{function}({value}, {dtype}, {relu})")


def floats_to_eight_bit(
    high: np.ndarray, low: np.ndarray, dtype: np.dtype, relu: bool
) -> np.ndarray:
    high, low = np.broadcast_arrays(high, low)
    return eight_bit(np.stack([low, high], -1), dtype, relu)


def pair_to_eight_bit(
    pair: np.ndarray, source: np.dtype, dtype: np.dtype, relu: bool
) -> np.ndarray:
    return eight_bit(rounding.halves(pair, source).astype(np.float32), dtype, relu)


def eight_bit(value: np.ndarray, dtype: np.dtype, relu: bool) -> np.ndarray:
    """(..., 2) float32 to packed 8-bit floats in uint16; out of range stays at the largest."""
    if relu:
        value = rounding.relu(value)
    largest = np.float32(ml_dtypes.finfo(dtype).max)
    bytes_ = np.where(np.isnan(value), value, np.clip(value, -largest, largest)).astype(dtype)
    raw = np.ascontiguousarray(bytes_).view(np.uint8)
    raw = np.where(np.isnan(value), np.uint8(0x7F), raw)
    return np.ascontiguousarray(raw).view(np.uint16).reshape(value.shape[:-1])


def _emit_from_eight_bit(
    instruction: Instruction, writer: Writer, flags: set[str], source: str, to: str
) -> None:
    if flags - {"rn", "relu"}:
        raise writer.unsupported("modifiers")
    destination, a = instruction.operands
    function = writer.function(eight_bit_to_pair)
    dtypes = f"{writer.constant(_EIGHT_BIT[source])}, {writer.constant(_PAIRS[to])}"
    value = writer.read(a, TYPES["u16"])
    writer.assign(destination, U32, f"{function}({value}, {dtypes}, {'relu' in flags})")


def eight_bit_to_pair(
    value: np.ndarray, source: np.dtype, dtype: np.dtype, relu: bool
) -> np.ndarray:
    raw = np.ascontiguousarray(value)
    wide = raw.reshape(*np.shape(value), 1).view(source).astype(dtype)
    return rounding.joined(rounding.relu(wide) if relu else wide)


def _emit_tf32(instruction: Instruction, writer: Writer, flags: set[str]) -> None:
    mode = next(iter(flags & _FLOAT_ROUNDINGS), None)
    if mode not in ("rna", "rn", "rz") or flags - {mode, "relu", "satfinite"}:
        raise writer.unsupported("modifiers")
    destination, a = instruction.operands
    options = f"{mode!r}, {'relu' in flags}, {'satfinite' in flags}"
    value = f"{writer.function(to_tf32)}({writer.read(a, F32)}, {options})"
    writer.assign(destination, U32, value)


def to_tf32(value: np.ndarray, mode: str, relu: bool, finite: bool) -> np.ndarray:
    """float32 bits with the mantissa rounded to 10 bits (rna: ties away from zero)."""
    bits = np.asarray(value).view(np.uint32)
    low = np.uint32(0x1FFF)
    if mode == "rna":
        rounded = bits + np.uint32(0x1000)
    elif mode == "rn":
        rounded = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    else:
        rounded = bits
    result = np.where(np.isfinite(value), rounded & ~low, bits)
    if finite:
        sign, size = result & np.uint32(0x80000000), result & np.uint32(0x7FFFFFFF)
        result = np.where(size == 0x7F800000, sign | np.uint32(0x7F7FE000), result)
    if relu:
        result = np.where(np.asarray(value) <= 0, np.uint32(0), result)
    return result


def _emit_pack(instruction: Instruction, writer: Writer) -> None:
    """cvt.pack.sat: two s32 saturated and packed to 16 or 8 bits, the latter above c."""
    modifiers = instruction.modifiers
    if modifiers[:2] != ("pack", "sat") or modifiers[2] not in ("s16", "u16", "s8", "u8"):
        raise writer.unsupported("modifiers")
    to = writer.constant(TYPES[modifiers[2]].dtype)
    destination, *values = instruction.operands
    arguments = ", ".join(writer.read(v, TYPES["s32"]) for v in values)
    writer.assign(destination, U32, f"{writer.function(pack_integers)}({to}, {arguments})")


def pack_integers(
    dtype: np.dtype, high: np.ndarray, low: np.ndarray, rest: np.ndarray | None = None
) -> np.ndarray:
    bits = 8 * dtype.itemsize
    unsigned = f"u{dtype.itemsize}"
    parts = [saturate_integer(v, dtype).view(unsigned).astype(np.uint32) for v in (low, high)]
    result = parts[0] | parts[1] << np.uint32(bits)
    if rest is not None:
        result = result | np.asarray(rest).view(np.uint32) << np.uint32(2 * bits)
    return result


RULES = {"cvt": emit_cvt}
