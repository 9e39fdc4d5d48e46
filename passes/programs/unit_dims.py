"""Tiles of one row, slice or matrix of an array are loaded and stored without the dimensions of 1.

Before:   %t = "tile.load"(%a, %z, %m, %k) {dims = [0, 1, 2]} -> tensor<1x128x64xbf16>
          %x = "tile.reshape"(%t) -> tensor<128x64xbf16>
After:    %x = "tile.load"(%a, %z, %m, %k) {dims = [1, 2]} -> tensor<128x64xbf16>

and `tile.store` of what a reshape or broadcast gives dimensions of 1 likewise. Asynchronous copies
and products look for the load itself; reshapes move elements between threads, and tie no layouts:
what is computed of loaded tiles, element by element, in front of a reshape loses them as well.

Before:   %v = arith.mulf %t, %f : tensor<1x128x64xf32>     (%f: a broadcast, or loaded)
          %x = "tile.reshape"(%v) -> tensor<128x64xf32>
After:    %x = arith.mulf %t, %f : tensor<128x64xf32>

Does not handle: what is one row without them, which has layouts of its own; tiles that are used
with their dimensions of 1, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile import BroadcastOp, LoadOp, ReshapeOp, StoreOp
from tilec.dialects.types import encoding, is_tile, shape, with_shape
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.values import again, replace_op, retype
from tilec.passes.rewriting.walk import find_ops

_LEAST = 2
"""Dimensions that remain."""


def drop_unit_dims(function: ir.Operation) -> None:
    """Has loads give, and stores take, tiles without dimensions of 1 where the program does."""
    reshapes = find_ops(function, ReshapeOp)
    while reshapes:
        reshapes += _compute_without(reshapes.pop().opview)
    for load in find_ops(function, LoadOp):
        _load_without(load.opview)
    for store in find_ops(function, StoreOp):
        _store_without(store.opview)


def _load_without(load: LoadOp) -> None:
    users = [use.owner.operation for use in load.result.uses]
    types = {user.results[0].type for user in users if user.name == "tile.reshape"}
    if len(types) != 1 or any(user.name != "tile.reshape" for user in users):
        return
    (type_,) = types
    kept = _kept(shape(load.result), shape(type_))
    if kept is None:
        return
    load.operation.attributes["dims"] = _dims(load, kept)
    retype(load.result, type_)
    for user in users:
        replace_op(user, load.result)


def _compute_without(reshape: ReshapeOp) -> list[ir.Operation]:
    """Has what a reshape is computed of lose the dimensions, if all of it comes of loads and what
    can be made without them, nobody else has it with them, and no layouts are chosen. Gives the
    reshapes of what is broadcast to it."""
    kept = _kept(shape(reshape.src), shape(reshape.result))
    behind = _computed(reshape)
    if kept is None or behind is None or encoding(reshape.src) is not None:
        return []
    sizes, reshapes = shape(reshape.result), []
    for op in behind:
        for number, operand in enumerate(op.operands):
            made = defining_op(operand, *_MADE)
            if made is not None and is_tile(operand):
                with ir.InsertionPoint(op), op.location:
                    op.operands[number] = _made_without(made, kept, sizes, reshapes)
                if not list(made.results[0].uses):
                    made.erase()
    for op in behind:
        if op.name == LoadOp.OPERATION_NAME:
            op.attributes["dims"] = _dims(op.opview, kept)
        retype(op.results[0], with_shape(op.results[0], sizes))
    replace_op(reshape, reshape.src)
    return reshapes


_MADE = ("arith.constant", "tensor.splat", "tile.broadcast")
"""Ops that are made again without the dimensions."""


def _computed(reshape: ReshapeOp) -> list[ir.Operation] | None:
    """The loads and elementwise ops, one at least, that a reshape's source comes of; None where
    something else has a part in it, or in which someone else has a part."""
    found, ends = OpSet([reshape.operation]), [reshape.src]
    while ends:
        value = ends.pop()
        op = defining_op(value)
        if op is None or not (is_elementwise(op) or op.name == LoadOp.OPERATION_NAME):
            return None
        if op in found:
            continue
        found.add(op)
        if is_elementwise(op):
            ends += [v for v in op.operands if is_tile(v) and defining_op(v, *_MADE) is None]
    behind = [op for op in found if op != reshape.operation]
    mine = all(use.owner.operation in found for op in behind for use in op.results[0].uses)
    return behind if mine and any(map(is_elementwise, behind)) else None


def _made_without(
    made: ir.Operation, kept: Sequence[int], sizes: Sequence[int], reshapes: list[ir.Operation]
) -> ir.Value:
    """A constant, splat or broadcast without the dimensions of 1; `reshapes` gets that of what is
    broadcast, if there has to be one."""
    result = with_shape(made.results[0], sizes)
    if made.name != "tile.broadcast":
        return again(made, made.operands, result)
    (source,), dims = made.operands, list(made.attributes["dims"])
    left = [number for number, dim in enumerate(dims) if dim in kept]
    if len(left) < len(dims):
        narrow = with_shape(source, [shape(source)[number] for number in left])
        source = ReshapeOp.build(source, results=[narrow])
        reshapes.append(source.owner.operation)
    places = [kept.index(dims[number]) for number in left]
    return BroadcastOp.build(source, results=[result], dims=places)


def _store_without(store: StoreOp) -> None:
    made = defining_op(store.value, "tile.reshape", "tile.broadcast")
    if made is None:
        return
    (source,) = made.operands
    wide, narrow = shape(store.value), shape(source)
    if made.name == "tile.reshape":
        kept = _kept(wide, narrow)
    else:
        kept = list(made.attributes["dims"])
        rest = [size for dim, size in enumerate(wide) if dim not in kept]
        if [wide[dim] for dim in kept] != [*narrow] or any(size != 1 for size in rest):
            kept = None
    if kept is None or not _LEAST <= len(kept) < len(wide):
        return
    store.operation.attributes["dims"] = _dims(store, kept)
    number = list(store.operation.operands).index(store.value)
    store.operation.operands[number] = source


def _kept(wide: Sequence[int], narrow: Sequence[int]) -> list[int] | None:
    """The dimensions of one shape that are those of another, all others being 1; None where that
    is not so."""
    kept = []
    for dim, size in enumerate(wide):
        if len(kept) < len(narrow) and narrow[len(kept)] == size:
            kept.append(dim)
        elif size != 1:
            return None
    return kept if len(kept) == len(narrow) and _LEAST <= len(kept) < len(wide) else None


def _dims(op: LoadOp | StoreOp, kept: Sequence[int]) -> ir.Attribute:
    """The dimensions of the array that the kept dimensions of the tile run along."""
    old = list(op.dims)
    return ir.DenseI32ArrayAttr.get([old[dim] for dim in kept])
