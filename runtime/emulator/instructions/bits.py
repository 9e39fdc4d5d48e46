"""Logic, shift, bit-field and bit-counting instructions (PTX ISA 9.7.1, 9.7.8)."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.instructions.integer import only_type, split_modifiers
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction, Pair
from tilec.runtime.emulator.writing.writer import Writer

U32, PRED = TYPES["u32"], TYPES["pred"]


def emit_logic(instruction: Instruction, writer: Writer) -> None:
    scalar = only_type(instruction, writer, "pred", "b16", "b32", "b64")
    name = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "invert"}
    values = [writer.read(operand, scalar) for operand in instruction.operands[1:]]
    writer.apply(name[instruction.opcode], instruction.operands[0], scalar, *values)


def emit_cnot(instruction: Instruction, writer: Writer) -> None:
    scalar = only_type(instruction, writer, "b16", "b32", "b64")
    value = f"({writer.read(instruction.operands[1], scalar)} == 0).astype(np.{scalar.dtype.name})"
    writer.assign(instruction.operands[0], scalar, value)


def emit_shift(instruction: Instruction, writer: Writer) -> None:
    """shl and shr; amounts are clamped to the width (PTX ISA shl, shr)."""
    scalar = only_type(instruction, writer)
    destination, a, b = instruction.operands
    x, dtype = writer.read(a, scalar), scalar.dtype.name
    name = "left_shift" if instruction.opcode == "shl" else "right_shift"
    if isinstance(b, Immediate):
        amount = int(b.value) & 0xFFFFFFFF
        if amount < scalar.bits:
            amount_name = writer.constant(scalar.dtype.type(amount))
            return writer.apply(name, destination, scalar, x, amount_name)
    function = writer.function(shift_left if instruction.opcode == "shl" else shift_right)
    writer.assign(destination, scalar, f"{function}({x}, {writer.read(b, U32)}, np.{dtype})")
    return None


def shift_left(a: np.ndarray, amount: np.ndarray, dtype: type) -> np.ndarray:
    bits = np.dtype(dtype).itemsize * 8
    inside = np.minimum(amount, bits - 1).astype(dtype)
    return np.where(amount < bits, a << inside, dtype(0))


def shift_right(a: np.ndarray, amount: np.ndarray, dtype: type) -> np.ndarray:
    bits = np.dtype(dtype).itemsize * 8
    value = a >> np.minimum(amount, bits - 1).astype(dtype)
    if np.dtype(dtype).kind == "i":
        return value
    return np.where(amount < bits, value, dtype(0))


def emit_shf(instruction: Instruction, writer: Writer) -> None:
    direction, mode, kind = (*instruction.modifiers, "", "", "")[:3]
    if direction not in ("l", "r") or mode not in ("wrap", "clamp") or kind != "b32":
        raise writer.unsupported("modifiers")
    low, high, amount = (writer.read(operand, U32) for operand in instruction.operands[1:])
    function = writer.function(funnel_shift)
    value = f"{function}({low}, {high}, {amount}, {direction == 'l'}, {mode == 'wrap'})"
    writer.assign(instruction.operands[0], U32, value)


def funnel_shift(
    low: np.ndarray, high: np.ndarray, amount: np.ndarray, left: bool, wrap: bool
) -> np.ndarray:
    """Shift the 64-bit value high:low; left gives the upper word, right the lower one."""
    both = np.asarray(high).astype(np.uint64) << np.uint64(32) | np.asarray(low).astype(np.uint64)
    count = amount & np.uint32(31) if wrap else np.minimum(amount, np.uint32(32))
    count = np.asarray(count).astype(np.uint64)
    shifted = (both << count) >> np.uint64(32) if left else both >> count
    return shifted.astype(np.uint32)


def emit_bfe(instruction: Instruction, writer: Writer) -> None:
    scalar = only_type(instruction, writer, "u32", "s32", "u64", "s64")
    destination, a, position, length = instruction.operands
    function = writer.function(extract_field)
    value = (
        f"{function}({writer.read(a, scalar)}, {writer.read(position, U32)}, "
        f"{writer.read(length, U32)})"
    )
    writer.assign(destination, scalar, value)


def extract_field(a: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """bfe: bits [pos, pos+len) of a; signed types fill with the field's (or a's top) bit."""
    dtype = a.dtype
    bits = 8 * dtype.itemsize
    start = np.asarray(position).astype(np.int64) & 255
    count = np.asarray(length).astype(np.int64) & 255
    raw = a.astype(np.uint64) if dtype.kind == "u" else a.view(f"u{dtype.itemsize}").astype("u8")
    shifted = np.where(start < bits, raw >> np.minimum(start, 63).astype(np.uint64), 0)
    kept = _mask(np.minimum(count, bits))
    field = shifted.astype(np.uint64) & kept
    if dtype.kind == "i":
        top = np.minimum(start + count - 1, bits - 1).clip(0)
        negative = ((raw >> top.astype(np.uint64)) & np.uint64(1)).astype(bool) & (count > 0)
        present = _mask(np.clip(np.minimum(count, bits - start), 0, 64))
        field = np.where(negative, field & present | ~present, field)
    return np.asarray(field).astype(f"u{dtype.itemsize}").view(dtype)


def _mask(count: np.ndarray) -> np.ndarray:
    """The lowest `count` (0..64) bits set, as uint64."""
    count = np.asarray(count)
    ones = (np.uint64(1) << np.minimum(count, 63).astype(np.uint64)) - np.uint64(1)
    return np.where(count >= 64, np.uint64(0xFFFFFFFFFFFFFFFF), ones)


def emit_bfi(instruction: Instruction, writer: Writer) -> None:
    scalar = only_type(instruction, writer, "b32", "b64")
    destination, a, b, position, length = instruction.operands
    values = ", ".join(writer.read(operand, scalar) for operand in (a, b))
    where = ", ".join(writer.read(operand, U32) for operand in (position, length))
    function = writer.function(insert_field)
    writer.assign(destination, scalar, f"{function}({values}, {where}, np.{scalar.dtype.name})")


def insert_field(
    a: np.ndarray, b: np.ndarray, position: np.ndarray, length: np.ndarray, dtype: type
) -> np.ndarray:
    """bfi: b with bits [pos, pos+len) replaced by the low bits of a."""
    start = np.asarray(position).astype(np.int64) & 255
    count = np.asarray(length).astype(np.int64) & 255
    shift = np.minimum(start, 63).astype(np.uint64)
    kept = np.where(start < 64, _mask(np.minimum(count, 64)) << shift, np.uint64(0))
    field = np.asarray(a).astype(np.uint64) << shift
    return ((np.asarray(b).astype(np.uint64) & ~kept) | (field & kept)).astype(dtype)


def emit_prmt(instruction: Instruction, writer: Writer) -> None:
    mode = instruction.modifiers[1] if len(instruction.modifiers) > 1 else ""
    if instruction.modifiers[:1] != ("b32",) or mode not in _PRMT_MODES:
        raise writer.unsupported("modifiers")
    values = ", ".join(writer.read(operand, U32) for operand in instruction.operands[1:])
    function = writer.function(permute_bytes)
    writer.assign(instruction.operands[0], U32, f"{function}({values}, {mode!r})")


_PRMT_MODES = {
    "": None,
    "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
    "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
    "rc8": [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]],
    "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
    "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}


def permute_bytes(a: np.ndarray, b: np.ndarray, selector: np.ndarray, mode: str) -> np.ndarray:
    """prmt: four bytes picked from b:a; bit 3 of a nibble replicates the sign."""
    a, b, selector = np.broadcast_arrays(a, b, selector)
    source = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
    result = np.zeros(source.shape, np.uint32)
    for byte in range(4):
        if mode:
            table = np.array(_PRMT_MODES[mode])[:, byte]
            pick, sign = table[selector & np.uint32(3)], np.zeros(source.shape, bool)
        else:
            nibble = selector >> np.uint32(4 * byte)
            pick, sign = nibble & np.uint32(7), (nibble & np.uint32(8)) != 0
        value = (source >> (pick.astype(np.uint64) * np.uint64(8))) & np.uint64(0xFF)
        value = np.where(sign, np.where(value & np.uint64(0x80), 0xFF, 0), value)
        result |= value.astype(np.uint32) << np.uint32(8 * byte)
    return result


def emit_lop3(instruction: Instruction, writer: Writer) -> None:
    modifiers = list(instruction.modifiers)
    combine = modifiers.pop(0) if modifiers and modifiers[0] in ("and", "or") else None
    if modifiers != ["b32"]:
        raise writer.unsupported("modifiers")
    destination, a, b, c, table, *extra = instruction.operands
    if not isinstance(table, Immediate):
        raise writer.unsupported("a look-up table that is not a literal")
    values = ", ".join(writer.read(operand, U32) for operand in (a, b, c))
    result = f"{writer.function(look_up)}({values}, {int(table.value) & 255})"
    if not isinstance(destination, Pair):
        return writer.assign(destination, U32, result)
    name = writer.fresh()
    writer.line(f"{name} = {result}")
    predicate = f"np.logical_{combine}({name} != 0, {writer.read(extra[0], PRED)})"
    writer.assign(destination.second, PRED, predicate)
    return writer.assign(destination.first, U32, name)


def look_up(a: np.ndarray, b: np.ndarray, c: np.ndarray, table: int) -> np.ndarray:
    """lop3: bit i of `table` is the result for (a, b, c) = the bits of i."""
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
    for row in range(8):
        if table >> row & 1:
            term = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
            result |= term
    return result


def emit_bits(instruction: Instruction, writer: Writer) -> None:
    """popc, clz, brev: the result of popc and clz is .u32."""
    scalar = only_type(instruction, writer, "b32", "b64")
    wide = TYPES[f"u{scalar.bits}"]
    function = {"popc": count_ones, "clz": leading_zeros, "brev": reverse_bits}[instruction.opcode]
    value = f"{writer.function(function)}({writer.read(instruction.operands[1], wide)})"
    result = scalar if instruction.opcode == "brev" else U32
    writer.assign(instruction.operands[0], result, value)


def count_ones(a: np.ndarray) -> np.ndarray:
    raw = np.ascontiguousarray(a)
    bits = np.unpackbits(raw.reshape(-1).view(np.uint8)).reshape(*raw.shape, -1)
    return bits.sum(-1, dtype=np.uint32)


def leading_zeros(a: np.ndarray) -> np.ndarray:
    a = np.asarray(a)
    bits = 8 * a.dtype.itemsize
    result = np.full(a.shape, bits, np.uint32)
    left = a.copy()
    for step in (32, 16, 8, 4, 2, 1):
        if step >= bits:
            continue
        big = (left >> a.dtype.type(step)) != 0
        result = np.where(big, result - np.uint32(step), result)
        left = np.where(big, left >> a.dtype.type(step), left)
    return np.where(left != 0, result - np.uint32(1), result)


def reverse_bits(a: np.ndarray) -> np.ndarray:
    raw = np.ascontiguousarray(a)
    dtype = raw.dtype
    bits = np.unpackbits(raw.reshape(-1).view(np.uint8), bitorder="little")
    turned = bits.reshape(raw.size, -1)[:, ::-1]
    return np.packbits(turned, bitorder="little").view(dtype).reshape(raw.shape)


def emit_bfind(instruction: Instruction, writer: Writer) -> None:
    flags, (scalar,) = split_modifiers(instruction, writer, {"shiftamt"})
    value = writer.read(instruction.operands[1], scalar)
    function = writer.function(find_leading_bit)
    writer.assign(instruction.operands[0], U32, f"{function}({value}, {'shiftamt' in flags})")


def find_leading_bit(a: np.ndarray, shift_amount: bool) -> np.ndarray:
    """Position of the leading one (signed: of the leading non-sign bit), all ones if none."""
    bits = 8 * a.dtype.itemsize
    raw = a.view(f"u{a.dtype.itemsize}")
    if a.dtype.kind == "i":
        raw = np.where(a < 0, ~raw, raw)
    leading = leading_zeros(raw)
    position = leading if shift_amount else np.uint32(bits - 1) - leading
    return np.where(leading == bits, np.uint32(0xFFFFFFFF), position)


RULES = {
    "and": emit_logic,
    "or": emit_logic,
    "xor": emit_logic,
    "not": emit_logic,
    "cnot": emit_cnot,
    "shl": emit_shift,
    "shr": emit_shift,
    "shf": emit_shf,
    "bfe": emit_bfe,
    "bfi": emit_bfi,
    "prmt": emit_prmt,
    "lop3": emit_lop3,
    "popc": emit_bits,
    "clz": emit_bits,
    "brev": emit_bits,
    "bfind": emit_bfind,
}
