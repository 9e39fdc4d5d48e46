"""How insert-async-copies uses the tensor memory accelerator.

Before:   %t = "tile.load"(%a, %m, %k) ...   "gpu_tile.buffer_store"(%t, %s)
After:    %map = "gpu_tile.make_tensor_map"(%a)   %ring = "gpu_tile.make_ring"() ...    (in front)
          %slot = "gpu_tile.ring_slot"(%ring, %count)
          "gpu_tile.ring_announce"(%ring, %slot) {bytes = ...}
          "gpu_tile.tma_load"(%map, %s, %ring, %slot, %m, %k)
          "gpu_tile.ring_wait"(%ring, %count)

Neighbouring copies share a ring of one slot, whose turns a counter carried through the loops
counts. specialize-warps makes the ring longer.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import of_kind
from tilec.dialects.effects import is_product
from tilec.dialects.gpu_tile import (
    BufferStoreOp,
    MakeIm2colMapOp,
    MakeTensorMapOp,
    MmaOp,
    RingAnnounceOp,
    RingSlotOp,
    RingWaitOp,
    TmaLoadOp,
)
from tilec.dialects.gpu_tile.tma import SWIZZLE_BYTES
from tilec.dialects.gpu_tile.types import BOX_ALIGNMENT, BufferType, buffer_of
from tilec.dialects.types import element, is_tile, shape
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.sizes import MOST_BOX, VECTOR_BYTES
from tilec.passes.analysis.coordinates import as_copy_coordinate
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.vector_width import contiguous_dim, element_bytes
from tilec.passes.contract import PassContext
from tilec.passes.copies.buffer_fills import Read, products_of, readers
from tilec.passes.copies.im2col_walks import Im2colWalk, im2col_walk
from tilec.passes.copies.tensor_map_rules import why_no_tensor_map
from tilec.passes.demands.kernels import limit_sizes
from tilec.passes.layouts.panels import operand_layout, swizzle_bytes
from tilec.passes.rewriting.loops import add_counter, top_level, why_no_counter
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.refusals import Refusal, attempt, refuse
from tilec.passes.rewriting.rings import make_ring
from tilec.passes.rewriting.walk import kernel_of
from tilec.records import dataclass


@dataclass
class TensorCopy:
    """One buffer to fill from `load`; `dims`: the array dimension along each of the buffer's.
    `walk`: of a gather, how the copy engine finds its rows."""

    load: Read
    store: BufferStoreOp
    dims: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str
    walk: Im2colWalk | None = None

    @property
    def bytes(self) -> int:
        """The bytes that one copy makes arrive at the slot."""
        buffer = buffer_of(self.store.dst)
        total = buffer.element_bytes
        for size in buffer.shape:
            total *= size
        return total


def plan_tensor_copy(
    load: Read,
    store: BufferStoreOp,
    dims: tuple[int, ...],
    facts: Divisibility,
    context: PassContext,
) -> TensorCopy:
    """The copy that does what load and store do."""
    if isinstance(load, tile.GatherOp):
        return _planned_gather(load, store, dims, facts, context)
    buffer = buffer_of(store.dst)
    return TensorCopy(
        load, store, dims, *_planned_map(load, buffer, dims, facts, context, load.offsets)
    )


def _planned_gather(
    gather: tile.GatherOp,
    store: BufferStoreOp,
    tile_dims: tuple[int, ...],
    facts: Divisibility,
    context: PassContext,
) -> TensorCopy:
    """The copy in im2col mode that does what gather and store do."""
    walk, buffer = im2col_walk(gather), buffer_of(store.dst)
    dims = walk.dims(tile_dims)
    box, swizzle = _planned_map(gather, buffer, dims, facts, context, ())
    rows = tile_dims.index(walk.rows)
    if box[rows] != buffer.shape[rows]:
        raise Refusal("a copy in im2col mode fills its buffer with one box of rows")
    unit, (scalars, number) = VECTOR_BYTES // element_bytes(gather.src), walk.channel
    if number % unit or any(facts.of(scalar) % unit for scalar in scalars):
        raise Refusal(f"its channels are not known to begin at a multiple of {VECTOR_BYTES} bytes")
    return TensorCopy(gather, store, dims, box, swizzle, walk)


def panels_for(load: tile.LoadOp) -> BufferType | None:
    """A buffer that holds a loaded tile as the copy engine writes it, its rows those of the array;
    None where they fill no swizzle."""
    sizes, run = shape(load.result), contiguous_dim(load.src, load.dims)
    if len(sizes) != 2 or run is None or not swizzle_bytes(sizes[run], element(load.result)):
        return None
    return BufferType.of(load.result, operand_layout(sizes, element(load.result), run))


def why_no_tensor_copy(
    load: tile.LoadOp,
    buffer: BufferType,
    dims: Sequence[int],
    facts: Divisibility,
    context: PassContext,
) -> str | None:
    """Says why a load cannot become a tensor copy into such a buffer; None if it can."""
    _, why = attempt(_planned_map, load, buffer, dims, facts, context, load.offsets)
    return why or None


def _planned_map(
    load: Read,
    buffer: BufferType,
    dims: Sequence[int],
    facts: Divisibility,
    context: PassContext,
    offsets: Sequence[ir.Value],
) -> tuple[tuple[int, ...], str]:
    """Box and swizzle of a map for such copies."""
    refuse(why_no_counter(load.operation))
    refuse(read_ahead_hazard(kernel_of(load.operation), [load.src], "the kernel"))
    box, swizzle = box_of(buffer)
    row = next(d for d, parts in enumerate(buffer.layout.dims) if parts[0][1] == 1)
    if contiguous_dim(load.src, dims) != row:
        raise Refusal("its buffer is contiguous along another dimension than the array")
    refuse(why_no_tensor_map(load.src, dims, box, facts, context.target, offsets=offsets))
    return box, swizzle


def box_of(buffer: BufferType) -> tuple[tuple[int, ...], str]:
    """The box and swizzle whose copies fill a buffer densely."""
    swizzle = _swizzle_name(buffer.layout)
    if swizzle is None:
        raise Refusal("its buffer has a swizzle that the copy engine does not")
    rows = [d for d, parts in enumerate(buffer.layout.dims) if parts[0][1] == 1]
    if len(rows) != 1:
        raise Refusal("its buffer has no contiguous dimension")
    (row,) = rows
    pitch = buffer.layout.dims[row][0][0]
    span = SWIZZLE_BYTES[swizzle]
    if (span and pitch * buffer.element_bytes != span) or pitch > MOST_BOX:
        raise Refusal("the rows of its buffer are no rows of a box")
    panels = [step for count, step in buffer.layout.dims[row][1:] if count > 1]
    if any(step * buffer.element_bytes % BOX_ALIGNMENT for step in panels):  # of one short row each
        raise Refusal(f"panels of its buffer begin inside of {BOX_ALIGNMENT} bytes")
    box, step = [pitch if d == row else 0 for d in range(len(buffer.shape))], pitch
    # Of two dimensions with one stride the first has one element.
    for d in sorted(range(len(buffer.shape)), key=lambda d: buffer.layout.dims[d][0][::-1]):
        if d == row:
            continue
        parts = buffer.layout.dims[d]
        if len(parts) != 1 or parts[0][1] != step:
            raise Refusal("its buffer is padded")
        step *= parts[0][0]
        box[d] = next(n for n in range(min(parts[0][0], MOST_BOX), 0, -1) if parts[0][0] % n == 0)
    return tuple(box), swizzle


def _swizzle_name(layout: SharedLayout) -> str | None:
    if layout.swizzle is None:
        return "none"
    bits, base, shift = layout.swizzle
    if (base, shift) != (4, 3):
        return None
    return next((n for n, span in SWIZZLE_BYTES.items() if span == 16 << bits and bits), None)


def refused_tensor_copies(context: PassContext) -> list[str]:
    """Makes notes for an error of the reasons, reported by insert-async-copies, for which loads are
    no tensor copies."""
    return [
        f"the load at {entry['at']} is no tensor copy: {entry['why']}"
        for entry in context.report.decisions
        if entry["about"] == "tensor map"
    ]


def emit_tensor_copies(copies: Sequence[TensorCopy]) -> None:
    """Replaces the stores of one block of a loop; the loads are left to the caller. A launch checks
    what im2col maps can hold (`tile.limits`)."""
    first = copies[0].load.operation
    limits = [limit for copy in copies if copy.walk for limit in copy.walk.limits]
    limit_sizes(kernel_of(first), limits)
    count = add_counter(first)
    for run in _runs(copies):
        _emit_group(run, make_ring(first, fills=1), count)


def _runs(copies: Sequence[TensorCopy]) -> list[list[TensorCopy]]:
    """Copies for the same instruction with nothing but pure scalar code and each other's loads and
    stores between."""
    own = OpSet(op for copy in copies for op in (copy.load, copy.store))
    by_load: OpMap[list[TensorCopy]] = OpMap()
    for copy in copies:
        by_load.setdefault(copy.load, []).append(copy)
    number = 0
    found: dict[tuple[int, int | None], list[TensorCopy]] = {}
    for view in copies[0].load.operation.block.operations:
        op = view.operation
        if op in by_load:
            for copy in by_load[op]:
                found.setdefault((number, _first_product(copy)), []).append(copy)
        elif op not in own and not _is_between(op):
            number += 1
    return list(found.values())


def _first_product(copy: TensorCopy) -> int | None:
    """The number in the load's block of the first matrix instruction that reads what a copy
    brings."""
    found = readers(copy.store.dst)
    products = [op for reader in found for op in products_of(reader)]
    fragments = [view.operation for view in of_kind(products, MmaOp)]
    reading = [*(reader.operation for reader in found), *fragments]
    return next(
        (
            number
            for number, view in enumerate(copy.load.operation.block.operations)
            if is_product(view) and view.operation in reading
        ),
        None,
    )


def _is_between(op: ir.Operation) -> bool:
    scalar = op.name.startswith("arith.") and not is_tile(op.results[0])
    return scalar or op.name in ("gpu_tile.alloc", "memref.dim", "tile.transpose")


def _emit_group(run: Sequence[TensorCopy], ring: ir.Value, count: ir.Value) -> None:
    last = run[-1].load
    with ir.InsertionPoint(last.operation), last.operation.location:
        slot = RingSlotOp.build(ring, count)
        RingAnnounceOp.build(ring, slot, bytes=sum(copy.bytes for copy in run))
        for copy in run:
            copy.store.dst.owner.operation.move_before(slot.owner)
            with copy.load.operation.location:
                TmaLoadOp.build(_map(copy), copy.store.dst, ring, slot, _at(copy))
        RingWaitOp.build(ring, count)


def _map(copy: TensorCopy) -> ir.Value:
    described = {"box": copy.box, "dims": copy.dims, "swizzle": copy.swizzle}
    with ir.InsertionPoint(top_level(copy.load.operation)):
        if copy.walk is None:
            return MakeTensorMapOp.build(copy.load.src, **described)
        walk = {name: getattr(copy.walk, name) for name in ("extents", "lower", "steps")}
        return MakeIm2colMapOp.build(copy.load.src, **described, **walk)


def _at(copy: TensorCopy) -> list[ir.Value]:
    if isinstance(copy.load, tile.GatherOp):
        assert copy.walk is not None
        places = copy.walk.coordinates(copy.load)
    else:
        places = copy.load.offsets
    return [as_copy_coordinate(place) for place in places]
