"""dissolve-windows: accesses of windows become accesses of the whole array.

Before:   %w = "tile.window"(%a, %first, %rows) {dim = 0 : i32} ...
          %x = "tile.load"(%w, %m, %k) {dims = [0, 1], padding = 0.0} : ... -> tensor<128x64xbf16>
          %v = "tile.window"(%c, %first, %rows) {dim = 0 : i32} ...
          "tile.store"(%y, %v, %m, %n) {dims = [0, 1]} ...
After:    %at = arith.addi %first, %m
          %x = "tile.load"(%a, %at, %k) ...                   (nobody needs the rows behind)
          %end = arith.addi %m, 128
          %all = arith.cmpi sge, %rows, %end
          scf.if %all { "tile.store"(%y, %c, %at, %n) ... }
          else        { "tile.scatter"(%y, %c, %inside, %numbers, %columns) ... }

1. A window of a window, along one dimension or several, is one of the array, with an edge for each:
   at which coordinates of the access it begins and ends.
2. What a load has beyond an edge becomes `padding`, by a select, unless only stores read it that
   leave out the same elements (`analysis/needed_elements.py`), or the tile is known to lie inside.
   So rows that a program only computes with rows need no mask, and stay what tensor copies and
   warpgroup instructions take.
3. A store that lies inside is one; one that hangs over writes its elements where a mask says so.
4. So does a load of an array that the kernel writes: a gather, since another program may be writing
   what lies beyond the edge.
5. Indices of a gather, a scatter or an atomic grow by the window's beginning, and its mask says
   which lie inside.

Does not handle: ops of `gpu_tile` that take arrays, which are refused; a tile that hangs over along
the axis that a product sums along is masked in each iteration, not in the last one alone.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.dialects.effects import whole_of
from tilec.dialects.tile import ArrayOp, GatherOp, Indexed, LoadOp, ScatterOp, StoreOp, WindowOp
from tilec.passes.analysis.coordinates import clamped
from tilec.passes.analysis.needed_elements import are_needless
from tilec.passes.analysis.signs import Signs
from tilec.passes.analysis.written_arrays import written_arrays
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.window_masks import (
    all_of,
    as_index,
    filled,
    masks_of,
    numbers_from,
    tests_of,
)
from tilec.passes.copies.window_places import Place, View, places_of, total, view_of
from tilec.passes.demands.kernels import has_narrow_indices
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.op_tables import OpMap
from tilec.passes.rewriting.scalars import binary, compare, less, select
from tilec.passes.rewriting.walk import find_ops, is_of, kernel_of


@kernel_pass(requires=Level.TILE, keeps=True)
def dissolve_windows(function: ir.Operation, context: PassContext) -> None:
    """Replaces windows by coordinates of the arrays that they are of."""
    windows = find_ops(function, WindowOp)
    if windows:
        _dissolve(function, windows, context)


def _dissolve(function: ir.Operation, windows: list[ir.Operation], context: PassContext) -> None:
    views: dict[ir.Value, View] = {}
    for op in windows:
        views[op.opview.result] = view_of(op.opview, views)
    signs = Signs()
    accesses = [op for op in find_ops(function, ArrayOp) if op.opview.array in views]
    placed = OpMap((op, places_of(op.opview, views[op.opview.array])) for op in accesses)
    loads = [op for op in accesses if is_of(op, LoadOp)]
    needed = OpMap((op, _needed(op.opview, placed)) for op in loads)
    written = written_arrays(function)
    for op in accesses:
        access, view = op.opview, views[op.opview.array]
        with ir.InsertionPoint(op), op.location:
            if access.rectangle is None:
                _index(access, view, signs)
            elif not access.is_load:
                _store(access, view, placed[op], signs)
            elif whole_of(view.array) in written:
                _load_inside(access, view, placed[op], signs)
            else:
                _load(access, view, needed[op], signs, context)
    for op in reversed(windows):
        for use in op.opview.result.uses:
            raise error_at(use.owner, f"'{use.owner.name}' takes a whole array, no window")
        op.erase()


def _needed(load: LoadOp, placed: OpMap[list[Place]]) -> list[Place]:
    """The edges beyond which somebody needs the padding of a load."""

    def leaves_out(place: Place) -> Callable[[StoreOp, int], bool]:
        def by_store(store: StoreOp, axis: int) -> bool:
            stored = [each for each in placed.get(store.operation) or () if each.axis == axis]
            return any(place.leaves_out_as(each) for each in stored)

        return by_store

    return [
        place
        for place in placed[load.operation]
        if place.axis is None
        or not are_needless(load.result, place.axis, place.indices(), leaves_out(place))
    ]


# -- accesses of the array ------------------------------------------------------------------------


def _load(
    load: LoadOp, view: View, needed: list[Place], signs: Signs, context: PassContext
) -> None:
    """Loads from the array; `padding` takes the place of what lies beyond an edge."""
    masks = masks_of(needed, load.result, signs)
    _move(load, view)
    if not masks:
        return
    why = "more than stores that leave it out reads what lies beyond the window"
    context.report.add("window", load.operation, "masked behind the load", why)
    with ir.InsertionPoint.after(load.operation), load.operation.location:
        kept = select(all_of(masks), load.result, _padding(load))
    load.result.replace_all_uses_except(kept, kept.owner.operation)


def _load_inside(load: LoadOp, view: View, places: list[Place], signs: Signs) -> None:
    """Loads from the array what lies inside all edges, and nothing else."""
    inside = tests_of(places, signs)
    if not inside:
        _move(load, view)
        return
    types = [load.result.type]
    branch = ir.Operation.create("scf.if", results=types, operands=[all_of(inside)], regions=2)
    load.result.replace_all_uses_with(branch.results[0])
    with ir.InsertionPoint(branch.regions[1].blocks.append()):
        padding = _padding(load)
        mask = all_of(masks_of(places, load.result, signs))
        numbers = _indices(load, view)
        found = GatherOp.build(view.array, mask, padding, numbers, options=load.options)
        ir.Operation.create("scf.yield", operands=[found])
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        end = ir.Operation.create("scf.yield", operands=[load.result])
    load.operation.move_before(end)
    with ir.InsertionPoint(load.operation):
        _move(load, view)


def _padding(load: LoadOp) -> ir.Value:
    filled = ir.DenseElementsAttr.get_splat(load.result.type, load.operation.attributes["padding"])
    given = {"value": filled}
    return ir.Operation.create(
        "arith.constant", results=[load.result.type], attributes=given
    ).results[0]


def _store(store: StoreOp, view: View, places: list[Place], signs: Signs) -> None:
    """Stores into the array: at once where the tile lies inside, else element by element."""
    inside = tests_of(places, signs)
    if not inside:
        _move(store, view)
        return
    branch = ir.Operation.create("scf.if", operands=[all_of(inside)], regions=2)
    if any(place.axis is not None for place in places):
        with ir.InsertionPoint(branch.regions[1].blocks.append()):
            _scatter(store, view, places, signs)
            ir.Operation.create("scf.yield")
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        end = ir.Operation.create("scf.yield")
    store.operation.move_before(end)
    with ir.InsertionPoint(store.operation):
        _move(store, view)


def _scatter(store: StoreOp, view: View, places: list[Place], signs: Signs) -> None:
    """Writes the elements of a tile that lie inside all edges."""
    mask = all_of(masks_of(places, store.value, signs))
    numbers = _indices(store, view)
    ScatterOp.build(store.value, view.array, mask, numbers, options=store.options)


def _indices(access: LoadOp | StoreOp, view: View) -> list[ir.Value]:
    """The indices of a tile's elements in the array. Far outside stays outside, as for a load."""
    narrow = has_narrow_indices(kernel_of(access.operation))
    indices = []
    for dim, (offset, start) in enumerate(zip(access.offsets, view.starts, strict=True)):
        first = offset if start is None else binary("arith.addi", offset, start)
        if narrow and start is not None:
            first = clamped(first)
        along = access.dims.index(dim) if dim in access.dims else None
        indices.append(numbers_from(first, along, access.tile))
    return indices


def _index(access: Indexed, view: View, signs: Signs) -> None:
    """Moves the indices of an access, whose mask says which of them lie inside the window."""
    kind, op = type(access), access.operation
    as_indices = [as_index(each) for each in access.indices]
    masks = [access.mask]
    for edge in view.edges:
        number = as_indices[edge.dim]
        if edge.shift is not None:
            number = binary("arith.addi", number, filled(edge.shift, access.mask))
        if not signs.is_never_negative(number):
            masks.append(compare("sge", number, 0))
        if edge.size is not None:
            masks.append(less(number, filled(edge.size, access.mask)))
    for dim, (number, start) in enumerate(zip(as_indices, view.starts, strict=True)):
        moved = (
            number if start is None else binary("arith.addi", number, filled(start, access.mask))
        )
        op.operands[kind.indices.index + dim] = moved
    op.operands[kind.mask.index] = all_of(masks)
    op.operands[_array_operand(access)] = view.array


def _move(access: LoadOp | StoreOp, view: View) -> None:
    """Makes an access that of the array, at the same place; sums are written here."""
    op, first = access.operation, type(access).offsets.index
    for dim, start in enumerate(view.starts):
        moved = total(access.offsets[dim], start)
        if moved is not None:  # else both are 0
            op.operands[first + dim] = moved
    op.operands[_array_operand(access)] = view.array


def _array_operand(access: ArrayOp) -> int:
    kind = type(access)
    return (kind.src if access.is_load else kind.dst).index
