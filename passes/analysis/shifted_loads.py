"""Which loads may be made of aligned vectors, though their tiles begin a known few elements behind
an aligned place, as those of a stencil's neighbours do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlir import ir

from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile import DotOp, LoadOp, StoreOp
from tilec.dialects.types import shape
from tilec.passes.analysis.divisibility import (
    Divisibility,
    base_and_constant,
    unbounded_dims,
    value_and_constant,
)
from tilec.passes.analysis.vector_width import contiguous_dim, provable_width
from tilec.passes.analysis.written_arrays import written_arrays
from tilec.passes.rewriting.op_tables import OpMap
from tilec.passes.rewriting.walk import find_ops, is_of
from tilec.records import dataclass


@dataclass(frozen=True)
class ShiftedLoad:
    """A tile's offset along rows is `base`, a multiple of `width` elements, plus `distance`, which
    is none."""

    base: ir.Value
    distance: int
    width: int

    @property
    def first(self) -> int:
        """The place in an aligned vector at which the tile begins, 1 to `width` - 1."""
        return self.distance % self.width


def find_shifted(function: ir.Operation, facts: Divisibility) -> OpMap[ShiftedLoad]:
    """The loads of a kernel that may bring whole vectors of which a part is theirs: of arrays that
    the kernel does not write, into registers."""
    found: OpMap[ShiftedLoad] = OpMap()
    if find_ops(function, DotOp):  # copies bring operands of products, from any place
        return found
    loads = [(op, shifted) for op in find_ops(function, LoadOp) if (shifted := _look(op, facts))]
    if loads:
        written = written_arrays(function)
        if all(array is not None for array in written):
            found.update((op, each) for op, each in loads if op.opview.src not in written)
    return found


def find_beside(ops: Iterable[ir.Operation]) -> OpMap[tuple[int, tuple[int, ...]]]:
    """The loads that others of their block are beside, in the same array and so many rows away: the
    tile's dimension across rows, and the rows of all from one of them, as of a filter's taps."""
    groups: dict[tuple[Any, ...], OpMap[int]] = {}
    for op in ops:
        view = op.opview
        if not isinstance(view, LoadOp) or "wrapped" in view.options:
            continue
        for dim, axis in enumerate(view.dims):
            places = [base_and_constant(offset) for offset in view.offsets]
            base, distance = places[axis]
            if dim != contiguous_dim(view.src, view.dims):
                others = (*places[:axis], *places[axis + 1 :])
                key = (op.block, view.src, dim, base, others, view.result.type, view.dims)
                groups.setdefault(key, OpMap())[op] = distance
    found: OpMap[tuple[int, tuple[int, ...]]] = OpMap()
    for (_, _, dim, *_), group in groups.items():
        distances = tuple(sorted(set(group.values())))
        if len(distances) > 1:
            found.update((op, (dim, distances)) for op in group)
    return found


def along_rows(load: LoadOp) -> int:
    """The dimension of a loaded tile along which its rows lie. ValueError where none does."""
    along = contiguous_dim(load.src, load.dims)
    if along is None:
        raise ValueError("no dimension of the tile lies along rows")
    return along


def row_offset(load: LoadOp) -> tuple[ir.Value, int]:
    """A tile's offset along rows as a value and a constant that is added to it."""
    return value_and_constant(load.offsets[load.dims[along_rows(load)]])


def _look(op: ir.Operation, facts: Divisibility) -> ShiftedLoad | None:
    load = op.opview
    along = contiguous_dim(load.src, load.dims)
    if along is None or "wrapped" in load.options:
        return None
    axis, offsets = load.dims[along], list(load.offsets)
    offsets[axis], distance = row_offset(load)
    width, _ = provable_width(facts, load.src, offsets, load.dims)
    while width > 1 and shape(load.result)[along] % width:
        width //= 2
    is_free = axis not in unbounded_dims(load.src) and _is_in_registers(load.result)
    if distance % width == 0 or not is_free:
        return None
    return ShiftedLoad(offsets[axis], distance, width)


def _is_in_registers(tile: ir.Value) -> bool:
    """Whether arithmetic and stores alone take a tile: whatever else does may want it elsewhere."""
    users = [use.owner.operation for use in tile.uses]
    return all(is_elementwise(op) or is_of(op, StoreOp) for op in users)
