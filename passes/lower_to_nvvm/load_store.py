"""Lowers tile.load and tile.store: rectangular tiles of an array, vectorised, bounds respected.

The vector width is the longest run of neighbouring elements that one instruction may move: the
layout holds them in neighbouring registers, the array's stride is 1 there, and every address is a
proven multiple of the vector's bytes. Three shapes of code follow:

1. the array's size is a multiple of the width: each vector lies wholly inside or outside, so one
   predicate guards it;
2. otherwise a thread whose vectors all lie inside takes an unguarded path, the others go element by
   element; tiles in one place of several arrays do so together;
3. width 1: a predicate an element.

Wrapped rows, whose addresses are looked at when they run, are the subject of `wrapped_row.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.effects import whole_of
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import element, shape
from tilec.passes.analysis.divisibility import base_and_constant
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
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.lower_to_nvvm.wrapped_row import load_wrapped, store_wrapped
from tilec.passes.rewriting.control import branch
from tilec.passes.rewriting.free_ops import is_scalar, stays_in_thread
from tilec.passes.rewriting.scalars import as_signed, both, create
from tilec.passes.rewriting.walk import is_pure
from tilec.records import dataclass

TOGETHER = 32
"""Words of a thread that loads of one place bring together, at most: eight vectors, an eighth of
the registers that a thread may have."""

SHARED = 64
"""Words of a thread that loads have in common, at most: a thread holds them from the first load to
the last reader. Filters of four taps share 11 vectors of four words where they loaded 32."""

Element = tuple[tuple[tuple[ir.Value, ...], int], ...]
"""Of an array, for each thread: a value and a constant for each dimension."""
Vectors = dict[Element, Registers]
"""The words of vectors by their first element."""


@dataclass(frozen=True)
class _Load:
    """A load, where its tile lies, and an element of its padding as an integer of its `bits`."""

    op: tile.LoadOp
    place: Rectangle
    bits: int
    padding: ir.Value

    def words(
        self,
        guard: Callable[[int], ir.Value | None],
        width: int,
        state: Lowering,
        known: Vectors | None = None,
    ) -> Iterator[Registers]:
        """Those of each vector of so many elements, loaded one by one but for what is `known`,
        which gets them."""
        pads, (word, count) = self.pads(width, state), word_bits(self.bits, width)
        hint, known = self.op.options.get("cache"), {} if known is None else known
        for first in range(0, self.place.layout.num_values, width):
            at = self._element(first)
            if at not in known:
                pointer = self.place.pointer(first)
                known[at] = load_words(pointer, word, count, guard(first), [pads] * count, hint)
            yield known[at]

    def _element(self, register: int) -> Element:
        """Where a thread's register lies in the array, less what the thread says."""
        places = [base_and_constant(offset) for offset in self.op.offsets]
        beyond = dict(zip(self.op.dims, self.place.coordinates[register], strict=True))
        return tuple((base, more + beyond.get(d, 0)) for d, (base, more) in enumerate(places))

    def pads(self, width: int, state: Lowering) -> ir.Value:
        """A word of its padding."""
        word, _ = word_bits(self.bits, width)
        return (
            self.padding if word == self.bits else _repeat(self.padding, word // self.bits, state)
        )

    def elements(self, vectors: Iterable[Registers], width: int, state: Lowering) -> Registers:
        """Those of vectors of so many elements."""
        kind = self.place.array.element
        return [r for v in vectors for r in unpack(v, kind, width, state)]


def lower_load(op: tile.LoadOp, state: Lowering) -> None:
    """Lowers tile.load."""
    if op.result in state.values:  # it came with one in front of it
        return
    load = _look(op, state)
    place = load.place
    if op.options.get("wrapped"):
        pads = load.padding, load.pads(place.width, state)
        state.values[op.result] = load_wrapped(place, pads, op.options, state)
    elif place.width == 1 or place.whole_vectors:
        words = load.words(place.inside, place.width, state, _in_front(op, place, state))
        state.values[op.result] = load.elements(words, place.width, state)
    else:
        _load_ragged([load, *(_look(other, state) for other in _alike(op, state))], state)


def _in_front(op: tile.LoadOp, place: Rectangle, state: Lowering) -> Vectors:
    """The vectors that loads of the same array in front of one have brought to the same threads, if
    nothing between writes, as of rows above each other, which a filter or a stencil takes; behind
    it those of this one, too. Few, which a thread holds as long: what is loaded again at the same
    place is loaded to spare registers."""
    if place.valid(0) is not None:
        return {}
    room = SHARED * 32 // (place.width * storage_bits(element(op.src), state))
    before = [view.operation for view in op.operation.block.operations]
    for other in reversed(before[: before.index(op.operation)]):
        view = other.opview
        if isinstance(view, tile.LoadOp):
            known = state.vectors.get(view.result, {})
            is_elsewhere = list(view.offsets) != list(op.offsets)
            if known and _kind(view, state) == _kind(op, state) and is_elsewhere:
                if len(known) < room:
                    state.vectors[op.result] = known
                break
        elif not (is_scalar(other) or stays_in_thread(other) or is_pure(other)):
            break
    return state.vectors.setdefault(op.result, {})


def _kind(op: tile.LoadOp, state: Lowering) -> tuple[Any, ...]:
    """What loads have in common whose threads have vectors in common."""
    attributes = op.operation.attributes
    width, threads = vector_width(op, state.divisibility).width, layout_of(op.result).threads
    return op.src, tuple(op.dims), threads, width, attributes["options"], attributes["padding"]


def _look(op: tile.LoadOp, state: Lowering) -> _Load:
    place = _rectangle(op, state)
    bits = storage_bits(place.array.element, state)
    return _Load(op, place, bits, _padding(op, bits, state))


def _load_ragged(loads: list[_Load], state: Lowering) -> None:
    """Loads tiles of one place whose vectors may straddle the ends of arrays. All in one branch:
    what goes element by element is put together behind it, which waits for the loads, and would
    for those of each array in turn."""
    inside = None
    types: list[ir.Type] = []
    for load in loads:
        inside = both(inside, load.place.all_inside())
        word, count = word_bits(load.bits, load.place.width)
        number = load.place.layout.num_values // load.place.width * count
        types += [ir.IntegerType.get_signless(word)] * number
    fast = branch(inside, types)
    whole, single = (region.blocks[0] for region in fast.regions)
    # Words leave the branches: narrower elements would be taken out of them behind each load, which
    # would wait for it before the next is issued.
    for load in loads:
        load.place.enter_branch()
    with ir.InsertionPoint(whole):
        vectors = [w for load in loads for w in load.words(lambda _: None, load.place.width, state)]
        ir.Operation.create("scf.yield", operands=[w for vector in vectors for w in vector])
    for load in loads:
        load.place.enter_branch()
    with ir.InsertionPoint(single):
        single_ones = [list(load.words(load.place.inside, 1, state)) for load in loads]
        packed: list[ir.Value] = []
        for load, words in zip(loads, single_ones, strict=True):
            elements, width = load.elements(words, 1, state), load.place.width
            for first in range(0, len(elements), width):
                vector = elements[first : first + width]
                packed += pack(vector, load.place.array.element, state)
        ir.Operation.create("scf.yield", operands=packed)
    left = iter(fast.results)
    for load in loads:
        _, count = word_bits(load.bits, load.place.width)
        vectors_of = range(0, load.place.layout.num_values, load.place.width)
        together = [list(islice(left, count)) for _ in vectors_of]
        state.values[load.op.result] = load.elements(together, load.place.width, state)


def _alike(op: tile.LoadOp, state: Lowering) -> list[tile.LoadOp]:
    """The loads behind one in its block that may come with it, as nothing between writes: of tiles
    in the same place of other arrays, whose vectors may straddle their ends, too."""
    block = op.operation.block
    behind = [view.operation for view in block.operations]
    room = TOGETHER - _words(op, state)
    found: list[tile.LoadOp] = []
    for other in behind[behind.index(op.operation) + 1 :]:
        view = other.opview
        if isinstance(view, tile.LoadOp):
            if _is_alike(view, op, state) and _words(view, state) <= room:
                room -= _words(view, state)
                found.append(view)
        elif not (is_scalar(other) or stays_in_thread(other) or is_pure(other)):
            break
    return found


def _is_alike(load: tile.LoadOp, first: tile.LoadOp, state: Lowering) -> bool:
    same = list(load.offsets) == list(first.offsets) and load.dims == first.dims
    if not same or load.options.get("wrapped") or load.result in state.values:
        return False
    if load.src not in state.values:  # an array of a list that is looked up behind the first load
        return False
    one, other = load.result, first.result
    if shape(one) != shape(other) or layout_of(one) != layout_of(other):
        return False
    access = vector_width(load, state.divisibility)
    return access.width > 1 and not access.whole and not load.options.get("inside")


def _words(load: tile.LoadOp, state: Lowering) -> int:
    """Words of 32 bits of a thread that a load brings."""
    bits = storage_bits(element(load.src), state)
    return -(-layout_of(load.result).num_values * bits // 32)


def lower_store(op: tile.StoreOp, state: Lowering) -> None:
    """Lowers tile.store; of several copies of an element only the first is written."""
    place = _rectangle(op, state)
    hint = op.options.get("cache")
    registers = state.registers(op.value)
    mine = state.first_copy(place.layout)
    if op.options.get("wrapped"):
        store_wrapped(place, registers, mine, op.options, state)
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


def _rectangle(op: tile.LoadOp | tile.StoreOp, state: Lowering) -> Rectangle:
    layout, access = layout_of(op.tile), vector_width(op, state.divisibility)
    is_inside = bool(op.options.get("inside"))
    place = Rectangle(
        state,
        state.values[op.array],
        [state.values[offset] for offset in op.offsets],
        op.dims,
        layout,
        shape(op.tile),
        access.width,
        access.dim,
        access.whole or is_inside,
        tuple(map(is_never_negative, op.offsets)),
        is_inside,
    )
    if not is_inside:  # there it has a twin for the edges, which says the same
        state.context.report.add(
            "memory access",
            op.operation,
            f"{access.bytes}-byte {'loads' if op.is_load else 'stores'}",
            access.why,
            layout=str(layout),
            array=ir.BlockArgument(whole_of(op.array)).arg_number,
            bytes=access.bytes,
        )
    # Made here so that both branches of a ragged access may use them.
    _ = place.anchor, place.outside_dims, place.valid(0)
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
    factor = as_signed(sum(1 << (bits * i) for i in range(times)), word.width)
    return state.arith("muli", create("arith.extui", [pattern], word), factor)


RULES = {tile.LoadOp: lower_load, tile.StoreOp: lower_store}
