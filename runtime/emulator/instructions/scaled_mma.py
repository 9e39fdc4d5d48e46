"""mma.sync with block scaling (PTX ISA 9.7.14.3, 9.7.14.5.14): kinds mxf8f6f4, mxf4 and mxf4nvf4.

D = (A scale_A) (B scale_B) + C. Elements lie as in the dense shapes: of mxf8f6f4 one in a byte (6
bits in bits 0 to 5, 4 bits in 2 to 5), of the others eight e2m1 in a register. Scale factors come
in one 32-bit register of some lanes of each quad. Of A: thread-id-a picks the first or the second
pair of lanes; its even lane holds those of row lane/4, its odd lane those of row lane/4 + 8. Of B:
thread-id-b picks the lane, with those of column lane/4. byte-id says which byte is the first of 1
(any), 2 (0 or 2) or 4 (0), each for an equal part of K in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.runtime.emulator.instructions.mma import (
    MmaForm,
    emit_mma,
    fragment,
    multiply_accumulate,
    place_fragment,
)
from tilec.runtime.emulator.numbers import narrow_floats
from tilec.runtime.emulator.numbers.scalar_types import TYPES, ScalarType
from tilec.runtime.emulator.reading.instruction import Instruction, Operand
from tilec.runtime.emulator.writing.writer import Writer, vector_elements

U16, U32, F32 = TYPES["u16"], TYPES["u32"], TYPES["f32"]
_NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
_SHAPES = {"mxf8f6f4": (16, 8, 32), "mxf4": (16, 8, 64), "mxf4nvf4": (16, 8, 64)}
_VECTORS = {
    ("mxf8f6f4", "ue8m0"): {None: 1, "scale_vec::1X": 1},
    ("mxf4", "ue8m0"): {None: 2, "scale_vec::2X": 2},
    ("mxf4nvf4", "ue8m0"): {"scale_vec::2X": 2, "scale_vec::4X": 4},
    ("mxf4nvf4", "ue4m3"): {"scale_vec::4X": 4},
}
"""Scale factors of a row's K by kind, their type, and the modifier (PTX ISA, table "Valid
combinations of .scale_vec_size and .kind qualifier")."""


@dataclass(frozen=True)
class ScaledForm:
    """Shape, types of elements and scale factors, and how many of these a row has."""

    dense: MmaForm
    kind: str
    scale: str
    factors: int


def _parse(instruction: Instruction, writer: Writer) -> ScaledForm:
    names = list(instruction.modifiers)
    kind = names[5].removeprefix("kind::") if len(names) > 6 else ""
    if names[:2] != ["sync", "aligned"] or names[3:5] != ["row", "col"] or kind not in _SHAPES:
        raise writer.unsupported("modifiers")
    rest = names[7:]
    vector = rest.pop(0) if rest and rest[0].startswith("scale_vec") else None
    if names[6] != "block_scale" or len(rest) != 5 or (rest[0], rest[3]) != ("f32", "f32"):
        raise writer.unsupported("modifiers")
    _, a, b, _, scale = rest
    allowed = _NARROW if kind == "mxf8f6f4" else ("e2m1",)
    m, n, k = _SHAPES[kind]
    if names[2] != f"m{m}n{n}k{k}" or a not in allowed or b not in allowed:
        raise writer.unsupported("shape or operand types")
    factors = _VECTORS.get((kind, scale), {}).get(vector)
    if factors is None:
        raise writer.unsupported("scale vector")
    return ScaledForm(MmaForm(m, n, k, a, b, "f32", "f32", False), kind, scale, factors)


def emit(instruction: Instruction, writer: Writer) -> None:
    """Any mma."""
    if "block_scale" not in instruction.modifiers:
        return emit_mma(instruction, writer)
    return _emit_scaled(instruction, writer)


def _emit_scaled(instruction: Instruction, writer: Writer) -> None:
    form = _parse(instruction, writer)
    d, a, b, c, scale_a, select_a, scale_b, select_b = instruction.operands
    if [len(vector_elements(v)) for v in (d, a, b, c, select_a, select_b)] != [4, 4, 2, 4, 2, 2]:
        raise writer.unsupported("fragment length")
    writer.begin_warps()

    def read(operand: Operand, kind: ScalarType) -> str:
        values = (writer.read_warps(one, kind) for one in vector_elements(operand))
        return f"({', '.join(values)},)"

    words = ", ".join(read(operand, U32) for operand in (a, b, scale_a, scale_b))
    selectors = ", ".join(read(operand, U16) for operand in (select_a, select_b))
    total, function = writer.fresh(), writer.function(scaled_product)
    options = writer.constant(form)
    writer.line(f"{total} = {function}({words}, {selectors}, {read(c, F32)}, {options})")
    for position, register in enumerate(vector_elements(d)):
        writer.assign_warps(register, F32, f"{total}[:, {position}]")


Words = tuple[np.ndarray, ...]


def scaled_product(
    a: Words,
    b: Words,
    scale_a: Words,
    scale_b: Words,
    select_a: Words,
    select_b: Words,
    c: Words,
    form: ScaledForm,
) -> np.ndarray:
    """Registers of D: (warps, 4, 32); all arguments registers, (warps, 32) each."""
    left = _matrix(a, form.dense.a, "A", form)
    right = _matrix(b, form.dense.b, "B", form)
    part, row = form.dense.k // form.factors, np.arange(16)
    of_rows = 4 * (row % 8) + row // 8, 2 * select_a[1].astype(int)[:, :1]
    of_columns = 4 * np.arange(8), select_b[1].astype(int)[:, :1]
    factors = [
        _factors(scale[0], lanes + pick, select[0], form)
        for scale, (lanes, pick), select in (
            (scale_a, of_rows, select_a),
            (scale_b, of_columns, select_b),
        )
    ]
    left = left * np.repeat(factors[0], part, 2)
    right = right * np.repeat(factors[1], part, 2).transpose(0, 2, 1)
    return multiply_accumulate(left, right, c, form.dense)


def _matrix(registers: Words, kind: str, operand: str, form: ScaledForm) -> np.ndarray:
    m, n, k = form.dense.m, form.dense.n, form.dense.k
    if kind in ("e4m3", "e5m2"):
        return fragment(registers, kind, operand, m, n, k)
    stacked = np.stack([np.ascontiguousarray(register) for register in registers], 1)
    raw = stacked[..., None].view(np.uint8)
    if form.kind == "mxf8f6f4":
        values = narrow_floats.container_values(raw, kind)
    else:
        values = narrow_floats.dense_values(raw)
    return place_fragment(values, operand, m, n, k)


def _factors(
    words: np.ndarray, lanes: np.ndarray, byte: np.ndarray, form: ScaledForm
) -> np.ndarray:
    """(warps, rows, factors): those that `lanes`, (warps, rows), hold from a byte on."""
    held = np.take_along_axis(words, lanes, 1)
    first = byte.astype(int)[:, :1, None] + np.arange(form.factors)
    codes = held[..., None].astype(np.int64) >> 8 * (first % 4) & 0xFF
    return narrow_floats.scale_values(codes.astype(np.uint8), form.scale)


RULES = {"mma": emit}
