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

from collections.abc import Callable, Iterable, Iterator

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
    """Lowers tile.load."""
    place = _rectangle(op, op.src, op.result, op.offsets, state)
    hint = op.options.get("cache")
    bits = storage_bits(place.array.element, state)
    padding = _padding(op, bits, state)
    if op.options.get("wrapped"):
        word, _ = word_bits(bits, place.width)
        pads = padding if word == bits else _repeat(padding, word // bits, state)
        state.values[op.result] = load_wrapped(place, (padding, pads), hint, state)
        return

    def words(guard: Callable[[int], ir.Value | None], width: int) -> Iterator[Registers]:
        """Those of each vector of so many elements, loaded one by one."""
        word, count = word_bits(bits, width)
        pads = padding if word == bits else _repeat(padding, word // bits, state)
        for first in range(0, place.layout.num_values, width):
            yield load_words(place.pointer(first), word, count, guard(first), [pads] * count, hint)

    def unpacked(vectors: Iterable[Registers], width: int) -> Registers:
        return [r for v in vectors for r in unpack(v, place.array.element, width, state)]

    if place.width == 1 or place.whole_vectors:
        state.values[op.result] = unpacked(words(place.inside, place.width), place.width)
        return
    word, count = word_bits(bits, place.width)
    number = place.layout.num_values // place.width * count
    fast = branch(place.all_inside(), [ir.IntegerType.get_signless(word)] * number)
    whole, single = (region.blocks[0] for region in fast.regions)
    # Words leave the branches: narrower elements would be taken out of them behind each load, which
    # would wait for it before the next array's is issued.
    place.enter_branch()
    with ir.InsertionPoint(whole):
        loaded = [w for vector in words(lambda _: None, place.width) for w in vector]
        ir.Operation.create("scf.yield", operands=loaded)
    place.enter_branch()
    with ir.InsertionPoint(single):
        elements = unpacked(words(place.inside, 1), 1)
        groups = range(0, len(elements), place.width)
        vectors = [elements[first : first + place.width] for first in groups]
        packed = [w for vector in vectors for w in pack(vector, place.array.element, state)]
        ir.Operation.create("scf.yield", operands=packed)
    results = list(fast.results)
    together = [results[first : first + count] for first in range(0, number, count)]
    state.values[op.result] = unpacked(together, place.width)


def lower_store(op: tile.StoreOp, state: Lowering) -> None:
    """Lowers tile.store; of several copies of an element only the first is written."""
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
