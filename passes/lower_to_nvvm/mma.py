"""Lowers gpu_tile.mma and mma_scaled: one mma.sync per instruction tile, or one fma per element.

PTX ISA 9.0, "Warp-level matrix instructions: mma"; LLVM names each shape as an intrinsic, which it
may schedule freely, unlike inline assembly. tf32 operands go in as they are: the instruction reads
their upper 19 bits. Rounding them (cvt.rna.tf32.f32) takes two instructions an element, 23 % of an
f32 product's time on an H200, and warpgroup instructions, which read shared memory, cut off, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import element, shape
from tilec.hardware.fragments import instruction_registers
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.scale_fragments import WORD_SCALES, scale_place
from tilec.passes.lower_to_nvvm.access import call_intrinsic, elements_of, inline_asm, pack
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.rewriting.scalars import create


def lower_mma(op: gpu_tile.MmaOp, state: Lowering) -> None:
    """Issues all instruction tiles, k outermost so that neighbouring instructions are independent,
    each in the neighbourhood of the one before."""
    row = find_instruction(op.instruction)
    scales = _Scales(op, row, state) if isinstance(op, gpu_tile.MmaScaledOp) else None
    rank = len(shape(op.acc))
    batch = rank - 2
    acc_tiles = instruction_registers(layout_of(op.acc), row.acc_layout, rank)
    lhs = _Operand(op.lhs, 0, row, state)
    rhs = _Operand(op.rhs, 1, row, state)
    registers = list(state.registers(op.acc))
    path = _serpentine(acc_tiles)
    for k in sorted({at[-1] for at in lhs.tiles}):
        for at in path:
            left = lhs.fragment((*at[: batch + 1], k))
            right = rhs.fragment((*at[:batch], k, at[-1]))
            numbers = acc_tiles[at]
            given = [*left, *right], [registers[n] for n in numbers]
            more = scales.of(at, k) if scales else ()
            for n, value in zip(numbers, _multiply(row, *given, more, state), strict=True):
                registers[n] = value
    state.values[op.result] = registers


def _serpentine(tiles: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Goes down one column of the accumulator and up the next, so that each instruction shares an
    operand with the one before: the reuse cache then saves a read of the register file, whose banks
    hardly feed the units (a bf16 product gains 5 % on an H200)."""
    columns: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for at in sorted(tiles):
        columns.setdefault((*at[:-2], at[-1]), []).append(at)
    path: list[tuple[int, ...]] = []
    for number, column in enumerate(columns[key] for key in sorted(columns)):
        path += reversed(column) if number % 2 else column
    return path


_PADDED_FORMATS = ("e2m3", "e3m2")
_SIX_BITS = 0x3F3F3F3F
"""The numbers of six bits in a register; what stands above each in its byte is no part of it."""


_CONVERTED = ("f8E4M3FN", "f8E5M2")
"""Numbers that ptxas converts to f16, for a target whose mma.sync has them in PTX only."""


def _has_constants(members: Registers) -> bool:
    return any(defining_op(member, "arith.constant") is not None for member in members)


def _hidden_zero(state: Lowering) -> ir.Value:
    """A 0 that ptxas does not know: a grid has less than 2^31 CTAs along x.

    Where a register turns out to be constant late, ptxas (13.0) takes another number for
    its upper half in that conversion (`F2FP.F16.E4M3.UNPACK_B R58, 0x17c`, of which 384 comes, for
    a 0), and products of tiles that fill no instruction were wrong on an H200.
    """
    ctas = state.special("nctaid.x")
    return inline_asm("shr.u32 $0, $1, 31;", ["=r", "r"], [ctas], [state.i32], pure=True)[0]


class _Operand:
    """A fragment operand, packed for the instruction once per instruction tile."""

    def __init__(self, value: ir.Value, axis: int, row: MmaInstruction, state: Lowering) -> None:
        fragment = (row.lhs_layout, row.rhs_layout)[axis]
        self.tiles = instruction_registers(layout_of(value), fragment, len(shape(value)))
        self._registers = state.registers(value)
        self._element = element(value)
        self._row = row
        self._is_padded = row.formats[axis] in _PADDED_FORMATS
        sides = ((row.m, row.depth), (row.depth, row.n))[axis]
        self._is_short = any(n % side for n, side in zip(shape(value)[-2:], sides, strict=True))
        self._state = state
        self._packed: dict[tuple[int, ...], Registers] = {}

    def fragment(self, at: tuple[int, ...]) -> Registers:
        """The instruction's registers of the tile that starts at `at`."""
        if at not in self._packed:
            members = [self._registers[n] for n in self.tiles[at]]
            self._packed[at] = self._pack(members)
        return self._packed[at]

    def _pack(self, members: Registers) -> Registers:
        state, row = self._state, self._row
        if not row.intrinsic or str(self._element) == "f64":
            return members
        if row.tf32:
            return [create("arith.bitcast", [m], state.i32) for m in members]
        words = pack(members, self._element, state)
        if self._is_padded:
            words = [state.arith("andi", word, _SIX_BITS) for word in words]
        if str(self._element) in _CONVERTED and (self._is_short or _has_constants(members)):
            words = [state.arith("ori", word, _hidden_zero(state)) for word in words]
        return _as_halves(words) if str(self._element) == "f16" else words


def _as_halves(words: Registers) -> Registers:
    vector = ir.VectorType.get([2], ir.F16Type.get())
    return [create("llvm.bitcast", [w], vector) for w in words]


def _multiply(
    row: MmaInstruction,
    fragments: Registers,
    acc: Registers,
    scales: Sequence[ir.Value],
    state: Lowering,
) -> Registers:
    """Issues one instruction. `fragments`: of both operands; `scales`: what `_Scales.of` gives, or
    nothing."""
    if not row.intrinsic:
        contract = ir.Attribute.parse("#arith.fastmath<contract>")
        return [create("math.fma", [*fragments, acc[0]], acc[0].type, fastmath=contract)]
    halves = row.acc == "f16"
    inputs = _as_halves(pack(acc, acc[0].type, state)) if halves else acc
    given = [*fragments, *inputs, *scales]
    results = call_intrinsic(row.intrinsic, given, [v.type for v in inputs])
    if not halves:
        return results
    return [half for pair in results for half in elements_of(pair, state)]


class _Scales:
    """The scales of both sides, in words of up to four, each packed once."""

    def __init__(self, op: gpu_tile.MmaScaledOp, row: MmaInstruction, state: Lowering) -> None:
        self._op, self._row, self._state = op, row, state
        self._words: dict[tuple[int, ...], ir.Value] = {}

    def of(self, at: Sequence[int], k: int) -> list[ir.Value]:
        """Gives the scales for the instruction at `at` of the accumulator and element `k`: of each
        side a register, which byte of it is the first, and which lanes' it is."""
        return [*self._given(0, at, k), *self._given(1, at, k)]

    def _given(self, axis: int, at: Sequence[int], k: int) -> list[ir.Value]:
        op, row, state = self._op, self._row, self._state
        value = op.rhs_scale if axis else op.lhs_scale
        block = op.block + k * row.pack // row.scale_block
        place = scale_place(row, layout_of(op.acc), layout_of(value), (at[axis], block), axis)
        key = (axis, *place.registers)
        if key not in self._words:
            held = state.registers(value)
            self._words[key] = self._word([held[n] for n in place.registers], element(value))
        i16 = ir.IntegerType.get_signless(16)
        numbers = [state.constant(i16, number) for number in (place.byte, place.thread)]
        return [self._words[key], *numbers]

    def _word(self, members: Registers, kind: ir.Type) -> ir.Value:
        """Packs up to four scales into a register's bytes; nobody reads those that are missing."""
        missing = [members[-1]] * (WORD_SCALES - len(members))
        return pack([*members, *missing], kind, self._state)[0]


RULES = {gpu_tile.MmaOp: lower_mma, gpu_tile.MmaScaledOp: lower_mma}
