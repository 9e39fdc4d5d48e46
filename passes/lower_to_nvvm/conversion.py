"""Lowers layout conversions inside a thread and inside a warp.

Inside a thread: the same registers in another order. Inside a warp: shuffles and selects of words,
as `passes.layouts.lane_moves` describes. What moves between warps went through buffers
(`passes.split_conversions`).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import element, shape
from tilec.messages.diagnostics import InternalError
from tilec.passes.layouts.lane_moves import LaneMove, lane_move, sums
from tilec.passes.layouts.maps import register_permutation
from tilec.passes.lower_to_nvvm.access import pack, storage_bits, unpack
from tilec.passes.lower_to_nvvm.shuffle import shuffle
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.rewriting.scalars import compare, create, select

Words = dict[int, ir.Value]
"""Words by the element bits (a mask) of their registers, without those inside a word."""


def lower_convert_layout(op: gpu_tile.ConvertLayoutOp, state: Lowering) -> None:
    """A permutation (with repeats) of the thread's registers, or a move between lanes."""
    source, result, sizes = layout_of(op.src), layout_of(op.result), shape(op.src)
    registers = state.registers(op.src)
    permutation = register_permutation(source, result, sizes)
    if permutation is not None:
        state.values[op.result] = [registers[i] for i in permutation]
        return
    move = lane_move(source, result, sizes)
    if isinstance(move, str):
        raise InternalError(f"a conversion that shuffles cannot do ({move}): {op}")
    state.values[op.result] = _move(move, registers, element(op.src), state)


def _move(move: LaneMove, registers: Registers, kind: ir.Type, state: Lowering) -> Registers:
    inside = sums(move.packed(storage_bits(kind, state)))
    held = dict(zip(move.source, registers, strict=True))
    words = {
        key: pack([held[key | member] for member in inside], kind, state)[0]
        for key in held
        if not key & inside[-1]
    }
    for pair in move.exchanges:
        words = _swapped(words, pair.leaving, _bit_is_set(pair.sender, state))
    for mask, bit in move.picked:
        words = _picked(words, mask, _bit_is_set(bit, state))
    words = _shuffled(move, words, state)
    for pair in move.exchanges:
        words = _swapped(words, pair.entering, _bit_is_set(pair.receiver, state))
    made: dict[int, ir.Value] = {}
    for key, word in words.items():
        members = unpack([word], kind, len(inside), state)
        made.update(zip((key | member for member in inside), members, strict=True))
    return [made[key] for key in move.result]


def _swapped(words: Words, mask: int, condition: ir.Value) -> Words:
    """Words that differ in `mask` change places where the condition holds."""
    return {key: select(condition, words[key ^ mask], word) for key, word in words.items()}


def _picked(words: Words, mask: int, condition: ir.Value) -> Words:
    """Picks, of each two words whose keys differ in `mask`, the one whose key has it where the
    condition holds, else the other."""
    return {
        key: select(condition, words[key | mask], word)
        for key, word in words.items()
        if not key & mask
    }


def _shuffled(move: LaneMove, words: Words, state: Lowering) -> Words:
    """Does all rounds: the bits that leave are in no word's mask any more, those that enter are."""
    steps = [(pair.leaving, pair.entering, 1 << pair.sender) for pair in move.exchanges]
    steps += [(0, mask, 1 << sender) for mask, sender in move.entering]
    every = sum(leaving for leaving, _, _ in steps)
    base = None if move.is_in_place else _sending_lane(move, state)
    received: Words = {}
    for chosen in range(1 << len(steps)):
        taken = [step for n, step in enumerate(steps) if chosen >> n & 1]
        left, entered, lanes = (sum(masks) for masks in zip((0, 0, 0), *taken, strict=True))
        keys = [key for key in words if key & every == left]
        sent = [words[key] for key in keys]
        moved = sent if base is None and not lanes else _sent(sent, base, lanes, state)
        received.update(zip((key & ~left | entered for key in keys), moved, strict=True))
    return received


def _sent(words: Registers, base: ir.Value | None, lanes: int, state: Lowering) -> Registers:
    """Does one round: each lane reads from the one that differs from `base`, or from itself, in
    bits `lanes`."""
    mask = state.i32_constant(lanes)
    if base is None:
        return shuffle("bfly", words, mask, state)
    lane = state.arith("xori", base, mask) if lanes else base
    return shuffle("idx", words, lane, state)


def _sending_lane(move: LaneMove, state: Lowering) -> ir.Value:
    """The lane (i32) that this one gets from in the first round: its own bits in other places."""
    by_distance: dict[int, int] = {}
    for to, at in enumerate(move.lanes):
        if at is not None:
            by_distance[to - at] = by_distance.get(to - at, 0) | 1 << at
    lane = state.i32_constant(0)
    for distance, mask in by_distance.items():
        bits = state.arith("andi", state.thread(), mask)
        if distance:
            name = "arith.shli" if distance > 0 else "arith.shrui"
            bits = create(name, [bits, state.i32_constant(abs(distance))], state.i32)
        lane = state.arith("ori", lane, bits)
    return lane


def _bit_is_set(bit: int, state: Lowering) -> ir.Value:
    """Whether a bit of this thread's number is 1 (i1)."""
    masked = state.arith("andi", state.thread(), 1 << bit)
    return compare("ne", masked, state.i32_constant(0))


RULES = {gpu_tile.ConvertLayoutOp: lower_convert_layout}
