"""Parts of tensor copies: what a CTA of a cluster loads of a tile that several of them need."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import made_by
from tilec.dialects.gpu_tile import MakeTensorMapOp, RingAcquireOp, TmaLoadOp, TmaPairLoadOp
from tilec.dialects.gpu_tile.types import BOX_ALIGNMENT, buffer_of
from tilec.passes.rewriting.buffers import view_part
from tilec.passes.rewriting.scalars import binary, i32_constant
from tilec.records import dataclass


@dataclass(frozen=True)
class Part:
    """One of the equal parts of a buffer along `dim`, `size` elements of it, made of `box`es."""

    dim: int
    size: int
    box: tuple[int, ...]


def acquired_by(load: TmaLoadOp | TmaPairLoadOp) -> RingAcquireOp | None:
    """The op that acquired the slot which a copy fills."""
    return made_by(load.slot, RingAcquireOp)


def part_of(load: TmaLoadOp | TmaPairLoadOp, parts: int) -> Part | None:
    """A dimension that falls into `parts` of whole boxes: each begins as its buffer does."""
    made = made_by(load.map, MakeTensorMapOp)
    if made is None:
        return None
    buffer = buffer_of(load.dst)
    alignment = max(buffer.alignment_bytes, BOX_ALIGNMENT)
    for dim in sorted(range(len(buffer.shape)), key=lambda d: buffer.layout.dims[d][-1][1])[::-1]:
        size = buffer.shape[dim] // parts
        if buffer.shape[dim] % parts:
            continue
        corner = [size if d == dim else 0 for d in range(len(buffer.shape))]
        if buffer.layout.offset(corner) * buffer.element_bytes % alignment:
            continue
        old = made.box[dim]
        if size % old and old % size:
            continue
        box = tuple(min(old, size) if d == dim else b for d, b in enumerate(made.box))
        return Part(dim, size, box)
    return None


def load_part(
    load: TmaLoadOp | TmaPairLoadOp, part: Part, place: ir.Value, mask: ir.Value, kind: type
) -> None:
    """A multicast (`kind`) of part number `place` instead of a copy of the whole."""
    made = load.map.owner
    tensor_map = load.map
    if part.box != tuple(made.box):
        with ir.InsertionPoint(made.operation), made.operation.location:
            tensor_map = MakeTensorMapOp.build(
                made.array, box=part.box, dims=made.dims, swizzle=made.swizzle
            )
    whole = buffer_of(load.dst)
    sizes = tuple(part.size if d == part.dim else n for d, n in enumerate(whole.shape))
    with ir.InsertionPoint(load.operation), load.operation.location:
        step = binary("arith.muli", place, part.size)
        origin = [step if d == part.dim else i32_constant(0) for d in range(len(sizes))]
        at = list(load.coordinates)
        axis = made.dims[part.dim]
        at[axis] = binary("arith.addi", at[axis], step)
        view = view_part(load.dst, origin, sizes)
        kind.build(tensor_map, view, load.barrier, load.slot, mask, at, cache=load.cache)
    load.operation.erase()
    if not list(made.result.uses):
        made.operation.erase()
