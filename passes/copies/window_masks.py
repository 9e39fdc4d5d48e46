"""Which elements of a tile lie inside a window, as tests of the whole tile and as masks.

Tiles of kernels written by hand have layouts: what is computed beside one has its layout. Others
get theirs later, and a row that is compared once is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir

from tilec.dialects.tile import BroadcastOp, IotaOp
from tilec.dialects.types import encoding, shape, tile, with_element
from tilec.passes.analysis.signs import Signs
from tilec.passes.copies.window_places import Place
from tilec.passes.rewriting.scalars import as_type, binary, compare, constant, create, less


def tests_of(places: Sequence[Place], signs: Signs) -> list[ir.Value]:
    """Whether all of a tile lies inside each edge, as far as it is not known; written here."""
    return [test for place in places for test in _tests(place, signs)]


def masks_of(places: Sequence[Place], beside: ir.Value, signs: Signs) -> list[ir.Value]:
    """Which elements of the tile `beside` lie inside each edge, as far as it is not known; written
    here."""
    return [mask for place in places for mask in _masks(place, beside, signs)]


def all_of(flags: Sequence[ir.Value]) -> ir.Value:
    """Whether all truth values are true, of tiles element by element."""
    return reduce(lambda one, other: binary("arith.andi", one, other), flags)


def numbers_from(first: ir.Value, axis: int | None, beside: ir.Value) -> ir.Value:
    """A tile, like `beside`, of indices from `first` on along an axis; None: the same ones
    everywhere."""
    if axis is None:
        return filled(first, beside)
    counted = as_index(_count(axis, beside))
    start = create("tensor.splat", [first], counted.type)
    return _spread(binary("arith.addi", start, counted), axis, beside)


def filled(number: ir.Value, beside: ir.Value) -> ir.Value:
    """A tile like `beside`, full of a number."""
    return create("tensor.splat", [number], with_element(beside, number.type))


def as_index(numbers: ir.Value) -> ir.Value:
    """A tile of integers as indices."""
    return as_type(numbers, with_element(numbers, ir.IndexType.get()))


def _tests(place: Place, signs: Signs) -> list[ir.Value]:
    tests = []
    if not place.begins_inside(signs):
        first = place.first()
        tests.append(compare("sge", first, 0))
    if not place.ends_inside():
        tests.append(compare("sge", place.edge.size, place.end()))
    return tests


def _masks(place: Place, beside: ir.Value, signs: Signs) -> list[ir.Value]:
    if place.axis is None:
        return [filled(test, beside) for test in _tests(place, signs)]
    masks, numbers = [], _count(place.axis, beside)
    if not place.begins_inside(signs):
        masks.append(compare("sge", numbers, filled(_in_front(place), numbers)))
    if not place.ends_inside():
        masks.append(less(numbers, filled(_up_to_end(place), numbers)))
    return [_spread(mask, place.axis, beside) for mask in masks]


def _in_front(place: Place) -> ir.Value:
    """How many elements of a tile lie in front of an edge, as i32. No step wraps, wherever the tile
    lies."""
    first = place.first()
    nearest = binary("arith.maxsi", first, -place.extent)
    zero = constant(first.type, 0)
    return _as_i32(binary("arith.subi", zero, binary("arith.minsi", nearest, zero)))


def _up_to_end(place: Place) -> ir.Value:
    """How many elements of a tile lie in front of an edge's end, as i32. No step wraps, however
    large the size is."""
    first = place.first()
    end = binary("arith.minsi", place.edge.size, place.end())
    return _as_i32(binary("arith.subi", binary("arith.maxsi", end, first), first))


def _as_i32(count: ir.Value) -> ir.Value:
    """Converts an index that is no larger than a tile's side, and so fits, to i32."""
    return as_type(count, ir.IntegerType.get_signless(32))


def _count(axis: int, beside: ir.Value) -> ir.Value:
    """The numbers from 0 on along an axis, in i32: a row of them, or a tile with a layout."""
    i32 = ir.IntegerType.get_signless(32)
    if encoding(beside) is not None:
        return IotaOp.build(results=[with_element(beside, i32)], axis=axis)
    return IotaOp.build(results=[tile((shape(beside)[axis],), i32)], axis=0)


def _spread(numbers: ir.Value, axis: int, beside: ir.Value) -> ir.Value:
    """What `_count` numbers, over the whole tile."""
    if shape(numbers) == shape(beside):
        return numbers
    result = tile(shape(beside), numbers.type.element_type)
    return BroadcastOp.build(numbers, results=[result], dims=(axis,))
