"""Lowers tile.load and tile.store: rectangular tiles of an array, vectorised, bounds respected.

The vector width is the longest run of neighbouring elements that one instruction may move: the
layout holds them in neighbouring registers, the array's stride is 1 there, and every address is a
proven multiple of the vector's bytes. Three shapes of code follow:

1. the array's size is a multiple of the width: each vector lies wholly inside or outside, so one
   predicate guards it;
2. otherwise a thread whose vectors all lie inside takes an unguarded path, the others go element by
   element;
3. width 1: a predicate an element.

Wrapped rows, whose addresses are looked at when they run, are the subject of `wrapped_row.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import element, shape
from tilec.passes.analysis.signs import is_never_negative
from tilec.passes.analysis.vector_width import vector_width
from tilec.passes.lower_to_nvvm.access import (
    load_words,
    pack,
    storage_bits,
    store_words,
    unpack,
    word_bits,
)
from tilec.passes.lower_to_nvvm.rectangle import Rectangle
from tilec.passes.lower_to_nvvm.scalar_ops import both, branch, create
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.lower_to_nvvm.wrapped_row import load_wrapped, store_wrapped


def lower_load(op: tile.LoadOp, state: Lowering) -> None:
    """tile.load."""
    place = _rectangle(op, op.src, op.result, op.offsets, state)
    hint = op.options.get("cache")
    bits = storage_bits(place.array.element, state)
    padding = _padding(op, bits, state)
    if op.options.get("wrapped"):
        word, _ = word_bits(bits, place.width)
        pads = padding if word == bits else _repeat(padding, word // bits, state)
        state.values[op.result] = load_wrapped(place, (padding, pads), hint, state)
        return

    def vectors(guard: Callable[[int], ir.Value | None], width: int) -> Registers:
        word, count = word_bits(bits, width)
        pads = padding if word == bits else _repeat(padding, word // bits, state)
        registers: Registers = []
        for first in range(0, place.layout.num_values, width):
            pointer = place.pointer(first)
            words = load_words(pointer, word, count, guard(first), [pads] * count, hint)
            registers += unpack(words, place.array.element, width, state)
        return registers

    if place.width == 1 or place.whole_vectors:
        state.values[op.result] = vectors(place.inside, place.width)
        return
    fast = branch(place.all_inside(), state.register_types(op.result))
    for block, guard, width in (
        (fast.regions[0].blocks[0], lambda _: None, place.width),
        (fast.regions[1].blocks[0], place.inside, 1),
    ):
        place.enter_branch()
        with ir.InsertionPoint(block):
            ir.Operation.create("scf.yield", operands=vectors(guard, width))
    state.values[op.result] = list(fast.results)


def lower_store(op: tile.StoreOp, state: Lowering) -> None:
    """tile.store: of several copies of an element only the first is written."""
    place = _rectangle(op, op.dst, op.value, op.offsets, state)
    hint = op.options.get("cache")
    registers = state.registers(op.value)
    mine = state.first_copy(place.layout)
    if op.options.get("wrapped"):
        store_wrapped(place, registers, mine, hint, state)
        return

    def vectors(guard: Callable[[int], ir.Value | None], width: int) -> None:
        for first in range(0, place.layout.num_values, width):
            words = pack(registers[first : first + width], place.array.element, state)
            store_words(place.pointer(first), words, guard(first), hint)

    def guarded(register: int) -> ir.Value | None:
        return both(mine, place.inside(register))

    if place.width == 1 or place.whole_vectors:
        vectors(guarded, place.width)
        return
    fast = branch(both(mine, place.all_inside()), [])
    for block, guard, width in (
        (fast.regions[0].blocks[0], lambda _: None, place.width),
        (fast.regions[1].blocks[0], guarded, 1),
    ):
        place.enter_branch()
        with ir.InsertionPoint(block):
            vectors(guard, width)
            ir.Operation.create("scf.yield")


def _rectangle(
    op: tile.LoadOp | tile.StoreOp,
    array: ir.Value,
    value: ir.Value,
    offsets: list[ir.Value],
    state: Lowering,
) -> Rectangle:
    layout = layout_of(value)
    sizes, wrapped = shape(value), op.options.get("wrapped", False)
    access = vector_width(
        state.divisibility, array, offsets, op.dims, layout, sizes, wrapped=wrapped
    )
    place = Rectangle(
        state,
        state.values[array],
        [state.values[offset] for offset in offsets],
        op.dims,
        layout,
        shape(value),
        access.width,
        access.dim,
        access.whole,
        tuple(map(is_never_negative, offsets)),
    )
    state.context.report.add(
        "memory access",
        op.operation,
        f"{access.bytes}-byte {'loads' if isinstance(op, tile.LoadOp) else 'stores'}",
        access.why,
        layout=str(layout),
        array=ir.BlockArgument(array).arg_number,
        bytes=access.bytes,
    )
    # Made here so that both branches of a ragged access may use them.
    _ = place.base, place.outside_dims, place.valid(0)
    return place


def _padding(op: tile.LoadOp, bits: int, state: Lowering) -> ir.Value:
    """The padding as an integer of the element's storage bits."""
    scalar = state.scalar_type(element(op.result))
    value = state.constant(scalar, op.padding)
    integer = ir.IntegerType.get_signless(bits)
    if value.type == integer:
        return value
    name = "arith.extui" if isinstance(scalar, ir.IntegerType) else "arith.bitcast"
    return create(name, [value], integer)


def _repeat(pattern: ir.Value, times: int, state: Lowering) -> ir.Value:
    """A word that holds a narrower pattern `times` times."""
    bits = pattern.type.width
    word = ir.IntegerType.get_signless(bits * times)
    factor = sum(1 << (bits * i) for i in range(times))
    wide = create("arith.extui", [pattern], word)
    if factor >= 1 << (word.width - 1):
        factor -= 1 << word.width
    return create("arith.muli", [wide, state.constant(word, factor)], word)


RULES = {tile.LoadOp: lower_load, tile.StoreOp: lower_store}
