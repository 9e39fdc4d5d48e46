"""Integer arithmetic, with and without carry (PTX ISA 9.7.1, 9.7.2)."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.numbers.scalar_types import TYPES, ScalarType
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.writer import Writer

U32, S32 = TYPES["u32"], TYPES["s32"]


def only_type(instruction: Instruction, writer: Writer, *allowed: str) -> ScalarType:
    """The single type modifier; UnsupportedInstruction when there are others around it."""
    if len(instruction.modifiers) != 1 or instruction.modifiers[0] not in TYPES:
        raise writer.unsupported(f"modifiers {'.'.join(instruction.modifiers)}")
    scalar = TYPES[instruction.modifiers[0]]
    if allowed and scalar.name not in allowed:
        raise writer.unsupported(f"type .{scalar.name}")
    return scalar


def split_modifiers(
    instruction: Instruction, writer: Writer, known: set[str], types: int = 1
) -> tuple[set[str], list[ScalarType]]:
    """Known modifiers and the trailing `types` types; anything else is unsupported."""
    names = instruction.modifiers
    if len(names) < types:
        raise writer.unsupported("missing type")
    tail, rest = names[len(names) - types :], names[: len(names) - types]
    for name in tail:
        if name not in TYPES:
            raise writer.unsupported(f"type .{name}")
    for name in rest:
        if name not in known:
            raise writer.unsupported(f"modifier .{name}")
    return set(rest), [TYPES[name] for name in tail]


def is_integer(instruction: Instruction) -> bool:
    """Does the last type say integer arithmetic? (floats share the opcodes add, mul, min ...)"""
    return (
        bool(instruction.modifiers)
        and instruction.modifiers[-1][0] in "usb"
        and (not instruction.modifiers[-1].startswith("bf"))
    )


def emit_add_sub(instruction: Instruction, writer: Writer) -> None:
    flags, (scalar,) = split_modifiers(instruction, writer, {"sat", "cc"})
    destination, a, b = instruction.operands
    if scalar.name in ("u16x2", "s16x2"):
        return _emit_halves(instruction, writer)
    if "cc" in flags:
        return _emit_carry(instruction, writer, scalar, carry_in=False, carry_out=True)
    x, y = writer.read(a, scalar), writer.read(b, scalar)
    name = {"add": "add", "sub": "subtract"}[instruction.opcode]
    if "sat" in flags:
        exact = f"np.{name}({x}, {y}, dtype=np.int64)"
        writer.assign(destination, scalar, f"{exact}.clip(-2**31, 2**31 - 1).astype(np.int32)")
        return None
    writer.apply(name, destination, scalar, x, y)
    return None


def _emit_halves(instruction: Instruction, writer: Writer) -> None:
    """add/min/max on two 16-bit halves of a register."""
    code = "int16" if instruction.modifiers[-1] == "s16x2" else "uint16"
    name = {"add": "add", "min": "minimum", "max": "maximum"}.get(instruction.opcode)
    if name is None or len(instruction.modifiers) != 1:
        raise writer.unsupported("16x2 form")
    x, y = (
        f"np.ascontiguousarray({writer.broadcast(writer.read(operand, U32), operand)})"
        for operand in instruction.operands[1:]
    )
    value = f"np.{name}({x}.view(np.{code}), {y}.view(np.{code})).view(np.uint32)"
    writer.assign(instruction.operands[0], U32, value)


def emit_addc_subc(instruction: Instruction, writer: Writer) -> None:
    flags, (scalar,) = split_modifiers(instruction, writer, {"cc"})
    _emit_carry(instruction, writer, scalar, carry_in=True, carry_out="cc" in flags)


def _emit_carry(
    instruction: Instruction, writer: Writer, scalar: ScalarType, carry_in: bool, carry_out: bool
) -> None:
    """Extended-precision add and subtract; the carry flag of a lane lives beside its registers."""
    unsigned = TYPES[f"u{scalar.bits}"]
    destination, a, b = instruction.operands
    x, y = writer.read(a, unsigned), writer.read(b, unsigned)
    subtract = instruction.opcode.startswith("sub")
    carry = writer.flag_row()
    total, out = writer.fresh(), writer.fresh()
    function = writer.function(subtract_with_borrow if subtract else add_with_carry)
    incoming = carry if carry_in else "False"
    writer.line(f"{total}, {out} = {function}({x}, {y}, {incoming})")
    writer.assign(destination, unsigned, total)
    if carry_out:
        writer.assign_flag(out)


def add_with_carry(a: np.ndarray, b: np.ndarray, carry: np.ndarray | bool) -> tuple:
    first = a + b
    total = first + np.asarray(carry).astype(first.dtype)
    return total, (first < a) | (total < first)


def subtract_with_borrow(a: np.ndarray, b: np.ndarray, borrow: np.ndarray | bool) -> tuple:
    first = a - b
    total = first - np.asarray(borrow).astype(first.dtype)
    return total, (first > a) | (total > first)


def emit_mul(instruction: Instruction, writer: Writer) -> None:
    """mul and mad: .lo, .hi, .wide; mul24/mad24 .lo, .hi."""
    flags, (scalar,) = split_modifiers(instruction, writer, {"lo", "hi", "wide", "cc"})
    if instruction.opcode == "madc" or "cc" in flags:
        _emit_multiply_carry(instruction, writer, flags, scalar)
        return None
    if len(flags) != 1:
        raise writer.unsupported(f"modifiers {sorted(flags)}")
    destination, a, b, *c = instruction.operands
    x, y = writer.read(a, scalar), writer.read(b, scalar)
    if instruction.opcode.endswith("24"):
        x, y = _low24(writer, x, scalar), _low24(writer, y, scalar)
    if flags == {"wide"}:
        wide = TYPES[f"{scalar.kind if scalar.kind != 'b' else 'u'}{2 * scalar.bits}"]
        value = f"np.multiply({x}, {y}, dtype=np.{wide.dtype.name})"
        scalar = wide
    elif instruction.opcode.endswith("24") and flags == {"hi"}:
        value = f"(np.multiply({x}, {y}, dtype=np.int64) >> 16).astype(np.{scalar.dtype.name})"
    elif flags == {"hi"}:
        value = f"{writer.function(multiply_high)}({x}, {y})"
    elif not c:
        return writer.apply("multiply", destination, scalar, x, y)
    else:
        value = f"np.multiply({x}, {y})"
    if c:
        return writer.apply("add", destination, scalar, value, writer.read(c[0], scalar))
    writer.assign(destination, scalar, value)
    return None


def _emit_multiply_carry(
    instruction: Instruction, writer: Writer, flags: set[str], scalar: ScalarType
) -> None:
    """mad.{lo,hi}.cc and madc: a product added with the carry flag."""
    mode = flags - {"cc"}
    if mode not in ({"lo"}, {"hi"}) or len(instruction.operands) != 4:
        raise writer.unsupported("modifiers")
    destination, a, b, c = instruction.operands
    x, y = writer.read(a, scalar), writer.read(b, scalar)
    unsigned = TYPES[f"u{scalar.bits}"]
    product = f"np.multiply({x}, {y})"
    if mode == {"hi"}:
        product = f"{writer.function(multiply_high)}({x}, {y})"
    incoming = writer.flag_row() if instruction.opcode == "madc" else "False"
    total, out = writer.fresh(), writer.fresh()
    arguments = f"{product}.view(np.{unsigned.dtype.name}), {writer.read(c, unsigned)}, {incoming}"
    writer.line(f"{total}, {out} = {writer.function(add_with_carry)}({arguments})")
    writer.assign(destination, unsigned, total)
    if "cc" in flags:
        writer.assign_flag(out)


def _low24(writer: Writer, value: str, scalar: ScalarType) -> str:
    if scalar.kind == "s":
        return f"(({value} << 8) >> 8)"
    return f"({value} & np.uint32(0xFFFFFF))"


def multiply_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of the product of two integers of the same dtype."""
    dtype = a.dtype
    if dtype.itemsize < 8:
        wide = np.int64 if dtype.kind == "i" else np.uint64
        product = np.multiply(a, b, dtype=wide)
        return (product >> wide(8 * dtype.itemsize)).astype(dtype)
    high = _multiply_high_unsigned(a.astype(np.uint64), np.asarray(b).astype(np.uint64))
    if dtype.kind == "i":  # signed from unsigned: subtract the other where one is negative
        high = high - np.where(a < 0, b, 0).astype(np.uint64)
        high = high - np.where(b < 0, a, 0).astype(np.uint64)
    return high.astype(dtype)


def _multiply_high_unsigned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half)


def emit_div_rem(instruction: Instruction, writer: Writer) -> None:
    scalar = only_type(instruction, writer, "u16", "s16", "u32", "s32", "u64", "s64")
    destination, a, b = instruction.operands
    function = writer.function(divide if instruction.opcode == "div" else remainder)
    value = f"{function}({writer.read(a, scalar)}, {writer.read(b, scalar)})"
    writer.assign(destination, scalar, value)


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Division that truncates; by zero gives all ones, as NVIDIA hardware does."""
    a, b = np.broadcast_arrays(a, b)
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    quotient = a // safe
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * safe != a)).astype(a.dtype)
    return np.where(zero, np.array(-1).astype(a.dtype), quotient)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The remainder with the sign of the dividend; modulo zero gives the dividend."""
    a, b = np.broadcast_arrays(a, b)
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def emit_min_max(instruction: Instruction, writer: Writer) -> None:
    flags, (scalar,) = split_modifiers(instruction, writer, {"relu"})
    if scalar.name in ("u16x2", "s16x2") and not flags:
        return _emit_halves(instruction, writer)
    destination, a, b = instruction.operands
    name = "minimum" if instruction.opcode == "min" else "maximum"
    value = f"np.{name}({writer.read(a, scalar)}, {writer.read(b, scalar)})"
    if flags:
        value = f"np.maximum({value}, 0)"
    writer.assign(destination, scalar, value)
    return None


def emit_neg_abs(instruction: Instruction, writer: Writer) -> None:
    scalar = only_type(instruction, writer, "s16", "s32", "s64")
    name = "negative" if instruction.opcode == "neg" else "absolute"
    writer.apply(
        name, instruction.operands[0], scalar, writer.read(instruction.operands[1], scalar)
    )


def emit_sad(instruction: Instruction, writer: Writer) -> None:
    scalar = only_type(instruction, writer, "u16", "s16", "u32", "s32", "u64", "s64")
    a, b, c = (writer.read(operand, scalar) for operand in instruction.operands[1:])
    value = f"({c} + np.where({a} > {b}, {a} - {b}, {b} - {a}))"
    writer.assign(instruction.operands[0], scalar, value)


def emit_dot_product(instruction: Instruction, writer: Writer) -> None:
    """dp4a: four bytes each; dp2a: two halves of a, two bytes (.lo or .hi) of b."""
    modifiers = list(instruction.modifiers)
    pair = instruction.opcode == "dp2a"
    half = modifiers.pop(0) if pair else "lo"
    if len(modifiers) != 2 or not set(modifiers) <= {"u32", "s32"} or half not in ("lo", "hi"):
        raise writer.unsupported("modifiers")
    a, b, c = instruction.operands[1:]
    signs = [name == "s32" for name in modifiers]
    values = ", ".join((writer.read(a, U32), writer.read(b, U32), writer.read(c, S32)))
    function = writer.function(dot_product)
    value = f"{function}({values}, {signs[0]}, {signs[1]}, {2 if pair else 4}, {half == 'hi'})"
    writer.assign(instruction.operands[0], S32, value)


def dot_product(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, a_signed: bool, b_signed: bool, count: int,
    upper: bool,
) -> np.ndarray:  # fmt: skip
    total = np.asarray(c).astype(np.int64)
    width = 32 // count
    for k in range(count):
        x = _piece(a, k * width, width, a_signed)
        y = _piece(b, (k + (2 if upper else 0)) * 8, 8, b_signed)
        total = total + x * y
    return total.astype(np.int32)


def _piece(a: np.ndarray, start: int, width: int, signed: bool) -> np.ndarray:
    value = (np.asarray(a).astype(np.int64) >> start) & ((1 << width) - 1)
    return np.where(value >> (width - 1), value - (1 << width), value) if signed else value


RULES = {
    "addc": emit_addc_subc,
    "subc": emit_addc_subc,
    "madc": emit_mul,
    "mul24": emit_mul,
    "mad24": emit_mul,
    "rem": emit_div_rem,
    "sad": emit_sad,
    "dp4a": emit_dot_product,
    "dp2a": emit_dot_product,
}
# Opcodes whose integer and floating forms share the name: chosen by the type.
SHARED_RULES = {
    "add": emit_add_sub,
    "sub": emit_add_sub,
    "mul": emit_mul,
    "mad": emit_mul,
    "div": emit_div_rem,
    "min": emit_min_max,
    "max": emit_min_max,
    "neg": emit_neg_abs,
    "abs": emit_neg_abs,
}
