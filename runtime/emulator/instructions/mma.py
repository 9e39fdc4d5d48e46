"""mma.sync: matrix products of one warp (PTX ISA 9.7.14.5), all dense shapes from sm_80 to sm_89.

With block scaling: `scaled_mma.py`, whose rule hands all others to `emit_mma`.

Fragment layout, one formula for every type: with `per` elements in a 32-bit register, lane l,
g = l/4 and t = l%4, element s of register r of A is row g + 8*(r%2), column per*t + s +
4*per*(r/2); of B it is row per*t + s + 4*per*r, column g; C and D hold in register r (one f32 or
s32 each) row g + 8*(r/2), column 2*t + r%2. Shapes with M = 8 have no second row half.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import ml_dtypes
import numpy as np

from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Instruction, Operand, Register
from tilec.runtime.emulator.writing.writer import Writer, vector_elements

U32, F32, F64, S32 = TYPES["u32"], TYPES["f32"], TYPES["f64"], TYPES["s32"]

_BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f64": 64,
    "s4": 4, "u4": 4,
}  # fmt: skip
_SHAPES: dict[str, set[tuple[int, int, int]]] = {
    "f16": {(16, 8, 8), (16, 8, 16)},
    "bf16": {(16, 8, 8), (16, 8, 16)},
    "tf32": {(16, 8, 4), (16, 8, 8)},
    "s8": {(8, 8, 16), (16, 8, 16), (16, 8, 32)},
    "u8": {(8, 8, 16), (16, 8, 16), (16, 8, 32)},
    "s4": {(8, 8, 32), (16, 8, 32), (16, 8, 64)},
    "u4": {(8, 8, 32), (16, 8, 32), (16, 8, 64)},
    "e4m3": {(16, 8, 16), (16, 8, 32)},
    "e5m2": {(16, 8, 16), (16, 8, 32)},
    "f64": {(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)},
}
_FAMILIES = [{"f16"}, {"bf16"}, {"tf32"}, {"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"}, {"f64"}]
_ACCUMULATORS = {
    "f16": {"f16", "f32"}, "bf16": {"f32"}, "tf32": {"f32"}, "s8": {"s32"}, "u8": {"s32"},
    "s4": {"s32"}, "u4": {"s32"}, "e4m3": {"f32", "f16"}, "e5m2": {"f32", "f16"}, "f64": {"f64"},
}  # fmt: skip


@dataclass(frozen=True)
class MmaForm:
    """Shape, element types and options of one mma.sync."""

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    saturate: bool


def _parse(instruction: Instruction, writer: Writer) -> MmaForm:
    names = list(instruction.modifiers)
    if names[:2] != ["sync", "aligned"] or names[3:5] != ["row", "col"]:
        raise writer.unsupported("modifiers")
    rest = names[5:]
    rest = [name for name in rest if name != "rn"] if "f64" in rest else rest
    saturate = rest[:1] == ["satfinite"]
    rest = rest[1:] if saturate else rest
    if len(rest) != 4 or rest[1] not in _SHAPES:
        raise writer.unsupported("element types")
    d, a, b, c = rest
    m, n, k = (int(part) for part in names[2][1:].replace("n", " ").replace("k", " ").split())
    if (m, n, k) not in _SHAPES[a] or not any({a, b} <= family for family in _FAMILIES):
        raise writer.unsupported("shape or operand types")
    if c not in _ACCUMULATORS[a] or d not in _ACCUMULATORS[a]:
        raise writer.unsupported("accumulator type")
    return MmaForm(m, n, k, a, b, c, d, saturate)


def emit_mma(instruction: Instruction, writer: Writer) -> None:
    form = _parse(instruction, writer)
    d, a, b, c = (vector_elements(operand) for operand in instruction.operands)
    counts = (form.m * form.k, form.k * form.n)
    per = 1 if form.a == "f64" else 32 // _BITS[form.a]
    if (len(a), len(b)) != tuple(count // 32 // per for count in counts):
        raise writer.unsupported("fragment length")
    if len(c) != _accumulator_registers(form, form.c) or len(d) != _accumulator_registers(
        form, form.d
    ):
        raise writer.unsupported("accumulator length")
    writer.begin_warps()
    left, right, total = (writer.fresh() for _ in range(3))
    operand_type = F64 if form.a == "f64" else U32
    for name, registers, kind, rows in (
        (left, a, form.a, "A"),
        (right, b, form.b, "B"),
    ):
        values = ", ".join(writer.read_warps(register, operand_type) for register in registers)
        shape = f"{form.m}, {form.n}, {form.k}"
        function = writer.function(fragment)
        writer.line(f"{name} = {function}(({values},), {kind!r}, {rows!r}, {shape})")
        writer.reuse(name, (kind, rows, shape, registers), registers)
    if _in_blocks(writer, form, c, d):
        return _emit_block_sum(writer, form, (left, right), c, d)
    kind = {"f32": F32, "f16": U32, "s32": S32, "f64": F64}
    values = ", ".join(writer.read_warps(register, kind[form.c]) for register in c)
    options = writer.constant(form)
    function = writer.function(multiply_accumulate)
    writer.line(f"{total} = {function}({left}, {right}, ({values},), {options})")
    for position, register in enumerate(d):
        writer.assign_warps(register, kind[form.d], f"{total}[:, {position}]")
    return None


def _in_blocks(
    writer: Writer, form: MmaForm, c: tuple[Operand, ...], d: tuple[Operand, ...]
) -> bool:
    """Are C and D f32 in registers that follow one another, for a whole rectangle of lanes?"""
    if writer.lanes or writer.indent != "    " or (form.c, form.d) != ("f32", "f32"):
        return False
    for side in (c, d):
        rows = [r.index for r in side if isinstance(r, Register) and r.bits == 32]
        if rows != list(range(rows[0] if rows else 0, (rows[0] if rows else 0) + len(side))):
            return False
    return True


def _emit_block_sum(
    writer: Writer, form: MmaForm, factors: tuple[str, str], c: tuple[Operand, ...],
    d: tuple[Operand, ...],
) -> None:  # fmt: skip
    """D = A*B + C as one addition over all registers of the fragment."""
    first = [side[0].index for side in (c, d) if isinstance(side[0], Register)]
    count = len(d)
    old = writer.bind("c", lambda b: b.block(32, first[0], count, "f4"))
    new = writer.bind("d", lambda b: b.block(32, first[1], count, "f4"))
    order, _ = _accumulator_order(form.m, form.n)
    function, table = writer.function(ordered_product), writer.constant(order)
    product = f"{function}({factors[0]}, {factors[1]}, {table}, {count}).reshape({new}.shape)"
    writer.line(f"np.add({product}, {old}, out={new})")
    writer.written.update((32, first[1] + i) for i in range(count))


def ordered_product(a: np.ndarray, b: np.ndarray, order: np.ndarray, count: int) -> np.ndarray:
    """A @ B as (registers, warps * 32) in the order of D's fragment."""
    warps = a.shape[0]
    product = np.matmul(a, b).reshape(warps, -1).take(order, 1)
    return product.reshape(warps, count, 32).transpose(1, 0, 2)


def _accumulator_registers(form: MmaForm, kind: str) -> int:
    return form.m * form.n // 32 // (2 if kind == "f16" else 1)


def fragment(
    registers: tuple[np.ndarray, ...], kind: str, operand: str, m: int, n: int, k: int
) -> np.ndarray:
    """Registers (each (warps, 32)) as matrices: A (warps, m, k) or B (warps, k, n)."""
    warps = registers[0].shape[0]
    stacked = np.empty((warps, len(registers), 32), registers[0].dtype)
    for position, register in enumerate(registers):
        stacked[:, position] = register
    return place_fragment(elements(stacked, kind), operand, m, n, k)


def place_fragment(values: np.ndarray, operand: str, m: int, n: int, k: int) -> np.ndarray:
    """Numbers (warps, registers, 32, per register) as matrices."""
    warps, registers, _, per = values.shape
    shape = (m, k) if operand == "A" else (k, n)
    order = _order(operand, shape, registers, per)
    return values.reshape(warps, -1).take(order, 1).reshape(warps, *shape)


def elements(words: np.ndarray, kind: str) -> np.ndarray:
    """32-bit words to (..., per) numbers, float32 (float64 for f64) holding them exactly."""
    if kind == "f64":
        return words[..., None]
    if kind == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32)[..., None]
    if kind == "bf16":
        wide = np.empty((*words.shape, 2), np.uint32)
        np.left_shift(words, np.uint32(16), out=wide[..., 0])
        np.bitwise_and(words, np.uint32(0xFFFF0000), out=wide[..., 1])
        return wide.view(np.float32)
    if kind in ("s4", "u4"):
        nibbles = words[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & np.uint32(15)
        value = nibbles.astype(np.float32)
        return value - 16 * (value > 7) if kind == "s4" else value
    dtype = _DTYPES[kind]
    return words[..., None].view(dtype).astype(np.float32)


_DTYPES = {
    "f16": np.dtype(np.float16),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


@lru_cache(maxsize=256)
def _order(operand: str, shape: tuple[int, int], registers: int, per: int) -> np.ndarray:
    """For each matrix element, where it stands in [register][lane][element of register]."""
    r, lane, s = np.meshgrid(np.arange(registers), np.arange(32), np.arange(per), indexing="ij")
    g, t = lane // 4, lane % 4
    if operand == "A":
        halves = 2 if shape[0] == 16 else 1
        row, column = g + 8 * (r % halves), per * t + s + 4 * per * (r // halves)
    else:
        row, column = per * t + s + 4 * per * r, g
    order = np.empty(shape, np.int64)
    order[row, column] = np.arange(row.size).reshape(row.shape)
    return order.reshape(-1)


@lru_cache(maxsize=16)
def _accumulator_order(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrix element of [register][lane], and the inverse."""
    r, lane = np.meshgrid(np.arange(m * n // 32), np.arange(32), indexing="ij")
    row, column = lane // 4 + 8 * (r // 2), 2 * (lane % 4) + r % 2
    forward = (row * n + column).reshape(-1)
    return forward, np.argsort(forward)


def multiply_accumulate(
    a: np.ndarray, b: np.ndarray, c: tuple[np.ndarray, ...], form: MmaForm
) -> np.ndarray:
    """Registers of D: (warps, registers, 32), in the type of D."""
    forward, _ = _accumulator_order(form.m, form.n)
    product = np.matmul(a, b).reshape(a.shape[0], -1).take(forward, 1)
    product = product.reshape(a.shape[0], -1, 32)
    total = _add_accumulator(product, c, form)
    if form.d == "f16":
        pairs = total.astype(np.float16).reshape(total.shape[0], -1, 2, 32)
        raw = np.ascontiguousarray(pairs.transpose(0, 1, 3, 2))
        return raw.view(np.uint32).reshape(total.shape[0], -1, 32)
    return total


def _add_accumulator(product: np.ndarray, c: tuple[np.ndarray, ...], form: MmaForm) -> np.ndarray:
    if form.c == "f16":
        for position, register in enumerate(c):
            pair = np.ascontiguousarray(register)[..., None].view(np.float16)
            product[:, 2 * position] += pair[..., 0]
            product[:, 2 * position + 1] += pair[..., 1]
        return product
    if form.c == "s32":
        wide = product.astype(np.int64)
        for position, register in enumerate(c):
            wide[:, position] += register
        if form.saturate:
            wide = wide.clip(-(2**31), 2**31 - 1)
        return wide.astype(np.int32)
    for position, register in enumerate(c):
        product[:, position] += register
    return product
