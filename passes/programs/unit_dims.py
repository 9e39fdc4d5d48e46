"""Tiles of one row, slice or matrix of an array are loaded and stored without the dimensions of 1.

Before:   %t = "tile.load"(%a, %z, %m, %k) {dims = [0, 1, 2]} -> tensor<1x128x64xbf16>
          %x = "tile.reshape"(%t) -> tensor<128x64xbf16>
After:    %x = "tile.load"(%a, %z, %m, %k) {dims = [1, 2]} -> tensor<128x64xbf16>

and `tile.store` of what a reshape or broadcast gives dimensions of 1 likewise. Asynchronous copies
and products look for the load itself; reshapes move elements between threads.

Does not handle: what is one row without them, which has layouts of its own; tiles that are used
with their dimensions of 1, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.tile import LoadOp, StoreOp
from tilec.dialects.types import shape
from tilec.passes.rewriting.values import replace_op, retype
from tilec.passes.rewriting.walk import find_ops

_LEAST = 2
"""Dimensions that remain."""


def drop_unit_dims(function: ir.Operation) -> None:
    """Has loads give, and stores take, tiles without dimensions of 1 where the program does."""
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
