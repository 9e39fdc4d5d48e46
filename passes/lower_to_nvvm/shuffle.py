"""Moves values between the lanes of a warp: `shfl.sync`, narrow values sharing a 32-bit word.

PTX ISA 9.0, "shfl.sync": 32 bits a lane; every lane of the mask takes part, so only code that all
lanes of a program reach together may shuffle. tile programs branch on values all threads share; one
that has a part of a warp is a segment of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.lower_to_nvvm.access import elements_of, pack, storage_bits, unpack, vector_of
from tilec.passes.lower_to_nvvm.combination import Item
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.rewriting.scalars import create

_CLAMP = {"bfly": 31, "down": 31, "idx": 31, "up": 0}
"""Highest lane a shuffle reads, lowest for `up`, in its segment."""
_SEGMENT_SHIFT = 8
"""Where that operand says which bits of a lane's number are its segment's."""


def shuffle_items(kind: str, items: Sequence[Item], lane: ir.Value, state: Lowering) -> list[Item]:
    """Gives each item as another lane holds it, its flag included."""
    flat = [value for item in items for value in item.values]
    flags = [item.counts for item in items if item.counts is not None]
    moved = iter(shuffle(kind, flat, lane, state))
    moved_flags = iter(shuffle(kind, flags, lane, state))
    return [
        Item(
            tuple(next(moved) for _ in item.values),
            None if item.counts is None else next(moved_flags),
        )
        for item in items
    ]


def shuffle(kind: str, values: Sequence[ir.Value], lane: ir.Value, state: Lowering) -> Registers:
    """Gives `values` as another lane holds them.

    `lane` (i32) is a lane number for "idx", a distance for "up" (from a lower lane) and "down", a
    mask for "bfly".
    """
    by_type: dict[ir.Type, list[int]] = {}
    for number, value in enumerate(values):
        by_type.setdefault(value.type, []).append(number)
    moved: dict[int, ir.Value] = {}
    for type_, numbers in by_type.items():
        for group in _groups(numbers, max(1, 32 // storage_bits(type_, state))):
            received = _shuffle_word(kind, [values[n] for n in group], lane, state)
            moved.update(zip(group, received, strict=True))
    return [moved[number] for number in range(len(values))]


def _groups(numbers: list[int], most: int) -> list[list[int]]:
    """Cuts a list into groups of `most`, the rest into smaller powers of two."""
    groups, at = [], 0
    while at < len(numbers):
        while most > len(numbers) - at:
            most //= 2
        groups.append(numbers[at : at + most])
        at += most
    return groups


def _shuffle_word(
    kind: str, values: Sequence[ir.Value], lane: ir.Value, state: Lowering
) -> Registers:
    type_ = values[0].type
    (word,) = pack(values, type_, state)
    width = word.type.width
    if width == 64:
        halves = [_shfl(kind, h, lane, state) for h in _halves(word, state)]
        received = create(
            "llvm.bitcast", [vector_of(halves, state)], ir.IntegerType.get_signless(64)
        )
    elif width == 32:
        received = _shfl(kind, word, lane, state)
    else:
        wide = create("arith.extui", [word], state.i32)
        received = create("arith.trunci", [_shfl(kind, wide, lane, state)], word.type)
    return unpack([received], type_, len(values), state)


def _halves(word: ir.Value, state: Lowering) -> Registers:
    pair = create("llvm.bitcast", [word], ir.VectorType.get([2], state.i32))
    return elements_of(pair, state)


def _shfl(kind: str, word: ir.Value, lane: ir.Value, state: Lowering) -> ir.Value:
    segment = (WARP_SIZE - state.lanes) << _SEGMENT_SHIFT
    operands = [state.members(), word, lane, state.i32_constant(_CLAMP[kind] | segment)]
    attribute = ir.Attribute.parse(f"#nvvm<shfl_kind {kind}>")
    return create("nvvm.shfl.sync", operands, state.i32, kind=attribute)
