"""Lowers arrays out of lists: what the launcher wrote of them is read from a table in memory.

The table's form is that of `tilec.executable.kernel`: a row an array, of words of 8 bytes, and
behind all rows how many elements lie in front of each array.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.types import element
from tilec.executable.kernel import WORD_BYTES, row_words
from tilec.passes.analysis.divisibility import static_sizes, static_strides, unbounded_dims
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.values import Array, moved_pointer
from tilec.passes.rewriting.control import while_loop
from tilec.passes.rewriting.scalars import compare, create, resized, select


def lower_array_at(op: tile.ArrayAtOp, state: Lowering) -> None:
    """Reads a row of the table: pointer, sizes and strides."""
    sizes, strides = _dimensions(op.src)
    words = row_words(sizes, strides)
    arrays, position = state.values[op.src], state.values[op.position]
    if not op.options.get("inside"):
        is_there = compare("ult", position, arrays.sizes[0])
        position = select(is_there, position, state.index_constant(0))
    i64 = ir.IntegerType.get_signless(64)
    first = state.arith("muli", resized(position, i64, signed=False), words)
    row = _step(arrays.pointer, first)
    numbers = (state.constant(i64, number) for number in range(words))
    loaded = iter([_load(_step(row, number), i64, WORD_BYTES) for number in numbers])
    pointer = create("llvm.inttoptr", [next(loaded)], arrays.pointer.type)

    def told(known: list[int | None]) -> tuple[ir.Value, ...]:
        return tuple(
            resized(next(loaded), state.index) if value is None else state.index_constant(value)
            for value in known
        )

    state.values[op.result] = Array(
        op.src,
        pointer,
        told(sizes),
        told(strides),
        tuple(strides),
        element(op.result),
        unbounded_dims(op.result),
    )


def lower_find_part(op: tile.FindPartOp, state: Lowering) -> None:
    """Searches for the last array whose first part is not behind this one; each step halves what is
    left. Parts are counted in 64 bits, since all elements of a list may be more than an index."""
    arrays, index = state.values[op.src], state.index
    words = row_words(*_dimensions(op.src))
    i64 = ir.IntegerType.get_signless(64)
    rows = state.arith("muli", resized(arrays.sizes[0], i64, signed=False), words)
    before = _step(arrays.pointer, rows)
    part, one = resized(state.values[op.part], i64, signed=False), state.index_constant(1)

    def first_part(position: ir.Value) -> ir.Value:
        wide = resized(position, i64, signed=False)
        elements = _load(_step(before, wide), i64, WORD_BYTES)
        whole = state.arith("divui", elements, op.elements)
        return state.arith("addi", whole, wide)

    around = [state.index_constant(0), arrays.sizes[0]]
    search, condition, body = while_loop(around, [index, index])
    with ir.InsertionPoint(condition):
        low, high = condition.arguments
        left = state.arith("subi", high, low)
        more = compare("ult", one, left)
        ir.Operation.create("scf.condition", operands=[more, low, high])
    with ir.InsertionPoint(body):
        low, high = body.arguments
        middle = state.arith("shrui", state.arith("addi", low, high), one)
        begun = compare("ule", first_part(middle), part)
        ends = [select(begun, middle, low), select(begun, high, middle)]
        ir.Operation.create("scf.yield", operands=ends)
    position = search.results[0]
    own = state.arith("subi", part, first_part(position))
    start = state.arith("muli", own, op.elements)
    state.values[op.position] = position
    state.values[op.start] = resized(start, state.index)


def _dimensions(array_list: ir.Value) -> tuple[list[int | None], list[int | None]]:
    """The sizes and strides of a list's arrays, None where the table has them."""
    one = array_list.type.element_type
    return static_sizes(one), static_strides(one)


def _load(pointer: ir.Value, type_: ir.Type, alignment: int) -> ir.Value:
    """A load of what no launch changes while it runs."""
    aligned = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), alignment)
    return create("llvm.load", [pointer], type_, alignment=aligned, invariant=ir.UnitAttr.get())


def _step(pointer: ir.Value, words: ir.Value) -> ir.Value:
    """The pointer so many words on."""
    return moved_pointer(pointer, words, 8 * WORD_BYTES)


RULES = {tile.ArrayAtOp: lower_array_at, tile.FindPartOp: lower_find_part}
