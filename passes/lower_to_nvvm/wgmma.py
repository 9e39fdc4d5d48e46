"""Lowers warpgroup multiplications: wgmma.mma_async, its fence, groups and waits.

PTX ISA 9.0, "Asynchronous warpgroup level matrix instructions". All instructions of one op are one
piece of inline assembly with the accumulators tied in and out, so nothing comes between them. The
wait right behind is part of it: LLVM might move registers in between. Elsewhere it is another, so
nothing reads a register before it. A pending tile's registers are 32-bit
words in the order of its layout, f16 in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import constant_attribute, made_by
from tilec.dialects.gpu_tile.types import buffer_of, is_buffer, is_pending, layout_of, tile_of
from tilec.dialects.gpu_tile.wgmma import WgmmaFenceOp, WgmmaMeanwhileOp, WgmmaOp, WgmmaWaitOp
from tilec.dialects.types import bit_width, element
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.warpgroup_tiles import WarpgroupTiles, warpgroup_tiles
from tilec.passes.lower_to_nvvm.access import inline_asm, pack, unpack
from tilec.passes.lower_to_nvvm.matrix_origin import Descriptors, check_origin
from tilec.passes.lower_to_nvvm.shared_address import own_base, plain_address
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.lower_to_nvvm.values import Buffer
from tilec.passes.rewriting.scalars import create, is_zero
from tilec.passes.rewriting.walk import is_of

_PTX_TYPES = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "i8": "s8", "i32": "s32"}


def lower_fence(op: WgmmaFenceOp, state: Lowering) -> None:
    """The registers as words, whatever computes them kept in front; the instruction itself stands
    before each multiplication.

    A constant that a loop carries on gets registers of its own, too: LLVM would share its register
    with the loop's other values that start there, and copy sums behind the loop that are in flight.
    """
    words = _words(state.registers(op.acc), element(op.acc), state)
    carried = any(not is_of(use.owner, WgmmaOp) for use in op.result.uses)
    if carried or constant_attribute(op.acc) is None:
        words = _tied("", words)
    state.values[op.result] = words


def lower_wait(op: WgmmaWaitOp, state: Lowering) -> None:
    """Lowers to wgmma.wait_group; a tile that is there afterwards is read only after it."""
    words = state.registers(op.acc)
    text = f"wgmma.wait_group.sync.aligned {op.pending};"
    if is_pending(op.result):
        inline_asm(text, [], [], [])
        state.values[op.result] = words
        return
    tile = tile_of(op.acc)
    count = layout_of(tile).num_values
    words = words if _is_finished(op.acc) else _tied(text, words)
    state.values[op.result] = unpack(words, element(tile), count, state)


def _is_finished(pending: ir.Value) -> bool:
    """Whether the op right behind a multiplication waits for it, and for all before it."""
    if made_by(pending, WgmmaOp) is None:
        return False
    views = list(pending.owner.operation.block.operations)
    at = next(i for i, view in enumerate(views) if view.operation == pending.owner.operation)
    wait = views[at + 1]
    whole = isinstance(wait, WgmmaWaitOp) and wait.acc == pending and not wait.pending
    return whole and not is_pending(wait.result)


def lower_meanwhile(op: WgmmaMeanwhileOp, state: Lowering) -> None:
    """Lowers to pmevent, an event for performance monitors: an issue slot, across which ptxas
    schedules nothing. A branch or a store would do the same."""
    inline_asm("pmevent 0;", [], [], [])


def _words(registers: Registers, element_type: ir.Type, state: Lowering) -> Registers:
    """32-bit words of an accumulator: floats and integers as they are, f16 in pairs."""
    return registers if bit_width(element_type) == 32 else pack(registers, element_type, state)


def _letter(word: ir.Value) -> str:
    return "f" if isinstance(word.type, ir.F32Type) else "r"


def _tied(text: str, words: Registers) -> Registers:
    """Writes `text` with words in and out of it, the same registers."""
    constraints = ["=" + _letter(w) for w in words] + [str(i) for i in range(len(words))]
    return inline_asm(text, constraints, words, [w.type for w in words])


def _is_untouched(acc: ir.Value) -> bool:
    """Whether a pending tile is an untouched zero: the first instruction then only writes."""
    fence = made_by(acc, WgmmaFenceOp)
    return fence is not None and is_zero(fence.acc)


def lower_wgmma(op: WgmmaOp, state: Lowering) -> None:
    """Writes the fence, every instruction, and the commit; k outermost, so that neighbours are
    independent."""
    row = find_instruction(op.instruction)
    parts = op.parts(row)
    text = _Text(state.registers(op.acc), overwrites=_is_untouched(op.acc))
    lhs = (
        _Matrix(op, "lhs", row, parts, state)
        if is_buffer(op.lhs)
        else _Fragments(op.lhs, row, state)
    )
    rhs = _Matrix(op, "rhs", row, parts, state)
    for k in range(0, buffer_of(op.rhs).shape[0], row.k):
        for at, numbers in parts.registers.items():
            left = lhs.operand(at[0], k, text)
            right = rhs.operand(at[1], k, text)
            text.multiply(row, numbers, (left, right), first=k == 0, major=(lhs.major, rhs.major))
    state.values[op.result] = text.emit(waits=_is_finished(op.result))


class _Text:
    """The assembly of one op: its operands and instructions."""

    def __init__(self, words: Registers, *, overwrites: bool) -> None:
        self._words = words
        self._overwrites = overwrites
        self._inputs: Registers = [] if overwrites else list(words)
        self._letters = [] if overwrites else [str(i) for i in range(len(words))]
        self._numbers: dict[ir.Value, int] = {}
        self._lines = ["wgmma.fence.sync.aligned;"]

    def input(self, value: ir.Value, letter: str) -> str:
        """Spells `$n` of an operand that is read."""
        if value not in self._numbers:
            self._numbers[value] = len(self._words) + len(self._inputs)
            self._inputs.append(value)
            self._letters.append(letter)
        return f"${self._numbers[value]}"

    def multiply(
        self,
        row: MmaInstruction,
        numbers: Sequence[int],
        operands: tuple[str, str],
        *,
        first: bool,
        major: tuple[int | None, int | None],
    ) -> None:
        """Writes one instruction. `major`: per operand 1 for MN-major, None where that cannot be
        said."""
        halves = row.acc == "f16"
        words = [n // 2 for n in numbers[::2]] if halves else numbers
        types = ["tf32"] * 2 if row.tf32 else [_PTX_TYPES.get(t, t) for t in (row.lhs, row.rhs)]
        shape_ = f"m{row.m}n{row.n}k{row.k}"
        kind = ".".join([shape_, _PTX_TYPES.get(row.acc, row.acc), *types])
        registers = ", ".join(f"${w}" for w in words)
        flags = ["0" if first and self._overwrites else "1"]
        if row.acc != "i32":
            flags += ["1", "1"]
        if row.lhs in ("f16", "bf16"):
            flags += [str(m) for m in major if m is not None]
        self._lines.append(
            f"wgmma.mma_async.sync.aligned.{kind} {{{registers}}}, "
            f"{', '.join([*operands, *flags])};"
        )

    def emit(self, *, waits: bool) -> Registers:
        """The accumulator's words afterwards; finished where it `waits`, else pending."""
        lines = [*self._lines, "wgmma.commit_group.sync.aligned;"]
        lines += ["wgmma.wait_group.sync.aligned 0;"] if waits else []
        constraints = ["=&" + _letter(w) for w in self._words] + self._letters
        results = [w.type for w in self._words]
        return inline_asm("\n\t".join(lines), constraints, self._inputs, results)


class _Matrix:
    """An operand in shared memory."""

    def __init__(
        self, op: WgmmaOp, side: str, row: MmaInstruction, parts: WarpgroupTiles, state: Lowering
    ) -> None:
        value = op.lhs if side == "lhs" else op.rhs
        self._buffer: Buffer = state.values[value]
        self._own = 0 if side == "lhs" else 1
        self._state = state
        check_origin(op.operation, value, self._buffer, state)
        self._operand = op.shared(side, row)
        descriptor = self._operand.descriptor
        self.major = 0 if descriptor.k_contiguous else 1
        words = descriptor.high_bits, descriptor.low_bits
        self._matrices = Descriptors(self._buffer, self._first(parts), *words, state)

    def _first(self, parts: WarpgroupTiles) -> ir.Value:
        """The address of this warpgroup's first matrix (i32)."""
        state = self._state
        address = state.arith(
            "addi", own_base(state), plain_address(self._buffer, self._buffer.origin, state)
        )
        below = 1
        for mode, step in zip(parts.groups, self._operand.group_bytes, strict=True):
            if step:
                digit = state.arith("shrui", state.warpgroup(), below.bit_length() - 1)
                if not mode.size & (mode.size - 1):  # three parts are the slowest: nothing above
                    digit = state.arith("andi", digit, mode.size - 1)
                term = state.arith("muli", digit, step)
                address = state.arith("addi", address, term)
            below *= mode.size
        return address

    def operand(self, at: int, k: int, text: _Text) -> str:
        """The descriptor of the matrix that begins at `at` along M or N and at `k`."""
        return text.input(self._matrices.at((at, k) if self._own == 0 else (k, at)), "l")


class _Fragments:
    """An lhs in registers, packed into the words of each instruction once."""

    def __init__(self, value: ir.Value, row: MmaInstruction, state: Lowering) -> None:
        self.major: int | None = None
        self._tiles = warpgroup_tiles(layout_of(value), row.lhs_layout).registers
        self._registers = state.registers(value)
        self._element = element(value)
        self._row = row
        self._state = state
        self._packed: dict[tuple[int, int], Registers] = {}

    def operand(self, at: int, k: int, text: _Text) -> str:
        """The fragment that begins at row `at` and at `k`."""
        if (at, k) not in self._packed:
            members = [self._registers[n] for n in self._tiles[at, k]]
            self._packed[at, k] = self._pack(members)
        return f"{{{', '.join(text.input(w, 'r') for w in self._packed[at, k])}}}"

    def _pack(self, members: Registers) -> Registers:
        state = self._state
        if self._row.tf32:  # cut off by the instruction, like what it reads from shared memory
            return [create("arith.bitcast", [m], state.i32) for m in members]
        return pack(members, self._element, state)


RULES = {
    WgmmaFenceOp: lower_fence,
    WgmmaOp: lower_wgmma,
    WgmmaMeanwhileOp: lower_meanwhile,
    WgmmaWaitOp: lower_wait,
}
