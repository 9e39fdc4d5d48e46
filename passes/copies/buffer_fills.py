"""Loads and gathers that only fill buffers: what becomes of the tile, and which cp.async would do
it."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.effects import is_fill, is_product
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferLoadOp,
    BufferStoreOp,
    CpAsyncGatherOp,
    CpAsyncOp,
    Tcgen05CopyOp,
    WgmmaOp,
)
from tilec.dialects.gpu_tile.types import BufferType, is_tensor_buffer, layout_attr, layout_of
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.sizes import VECTOR_BYTES, WARPGROUP_WARPS
from tilec.passes.analysis.async_readers import reads_for_products
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.vector_width import access_width, contiguous_dim, element_bytes
from tilec.passes.contract import PassContext
from tilec.passes.layouts.candidates import blocked_layout
from tilec.passes.layouts.runs import register_run, shared_width
from tilec.passes.rewriting.scalars import i1_constant
from tilec.passes.rewriting.walk import is_of, users_of, uses_behind
from tilec.records import dataclass

SMALLEST_COPY = 4
"""Bytes; PTX ISA 9.0, "cp.async": cp-size is 4, 8 or 16."""

Read = tile.LoadOp | tile.GatherOp
"""What brings a tile from an array, whose dimensions are those `along` it."""


@dataclass
class Fill:
    """A store of the loaded tile; `dims`: the dimension (`Read`) along each of the buffer's."""

    store: BufferStoreOp
    dims: tuple[int, ...]


@dataclass
class Uses:
    """What becomes of a loaded tile. `views`: those of its transposes that only fills use."""

    fills: list[Fill]
    in_registers: bool
    views: list[ir.Operation]


def uses_of(value: ir.Value, dims: tuple[int, ...]) -> Uses:
    """The uses of a loaded tile whose dimensions run along `dims` (`Read`)."""
    found = Uses([], False, [])
    for use in value.uses:
        user = use.owner.opview
        if isinstance(user, BufferStoreOp) and not is_tensor_buffer(user.dst):
            found.fills.append(Fill(user, tuple(dims)))
        elif isinstance(user, tile.TransposeOp):
            below = uses_of(user.result, tuple(dims[p] for p in user.permutation))
            found.fills += below.fills
            found.in_registers = found.in_registers or below.in_registers
            found.views += below.views
            if not below.in_registers:
                found.views.append(user.operation)
        else:
            found.in_registers = True
    return found


def copy_bytes(
    load: Read,
    targets: list[tuple[BufferType, tuple[int, ...]]],
    facts: Divisibility,
    context: PassContext,
) -> tuple[int, str]:
    """Bytes one copy may move to every target, and what limits them."""
    if isinstance(load, tile.GatherOp):
        dim, run = load.options.get("run", (0, 1))
        width, why = gcd(run, register_run(layout_of(load.result), dim)), "indices name no run"
    else:
        width, why = access_width(load, facts)
    for buffer, dims in targets:
        inside = _width_inside(load, buffer, dims, width, context)
        if inside < width:
            width, why = inside, "the buffer holds no longer run"
    return width * element_bytes(load.src), why


def _width_inside(
    load: Read, buffer: BufferType, dims: tuple[int, ...], width: int, context: PassContext
) -> int:
    """Elements of a vector of `width` that neighbour each other in the buffer, too."""
    sizes = buffer.shape
    if isinstance(load, tile.GatherOp):
        layout = layout_of(load.result).permute(dims)
    else:
        contiguous = contiguous_dim(load.src, dims)
        if contiguous is None:
            return 1
        layout = blocked_layout(sizes, contiguous, width, context.num_threads, narrow=False)
    return min(width, shared_width(buffer.layout, layout, len(sizes), buffer.element_bytes))


PAST_L1 = ("evict_first", "no_allocate")
"""Cache hints that copies past L1 meet, since they leave nothing there: of 16 bytes ("cg"), and
tensor copies."""


def why_no_copy(load: Read, uses: Uses, demanded: bool, bytes_: int, why: str) -> str | None:
    """The reason why a load cannot become copies of `bytes_` bytes each, which `why` limits; None
    if it can. `demanded`: use in registers is no reason."""
    block = load.operation.block
    if uses.in_registers and not demanded:
        return "the tile is also used in registers"
    for fill in uses.fills:
        alloc = fill.store.dst.owner
        if not is_of(alloc, AllocOp):
            return "it fills a part of a buffer"
        if sum(is_fill(use.owner.opview) for use in fill.store.dst.uses) > 1:
            return "something else fills its buffer, too"
        if fill.store.operation.block != block or alloc.operation.block != block:
            return "load and use stand in different blocks"
    if bytes_ < SMALLEST_COPY:
        return f"only {bytes_} bytes are provably aligned: {why}"
    padding = _padding(load)
    if padding is not None:
        return f"padding is {padding}; a copy fills with zeros"
    if bit_width(element(load.result)) < 8:
        return f"{element(load.result)} is not stored as whole bytes"
    return _refused_option(load, bytes_)


def _refused_option(load: Read, bytes_: int) -> str | None:
    """Says which of a load's options copies of `bytes_` bytes do not have."""
    if load.options.get("cache") not in (None, *(PAST_L1 if bytes_ == VECTOR_BYTES else ())):
        return "the load has a cache hint"
    return "its row is wrapped" if "wrapped" in load.options else None


def _padding(load: Read) -> str | None:
    """The value of elements that lie outside of the array; None where that is zero."""
    padding = load.outside
    if padding is None:
        return "computed"
    # -0.0 has a bit that a zero fill would lose.
    return None if padding.value == 0 and not str(padding).startswith("-") else str(padding)


def emit_cp_async(
    load: Read,
    buffer: ir.Value,
    dims: tuple[int, ...],
    bytes_: int,
    mask: ir.Value | None = None,
) -> None:
    """Copies what `load` loads into `buffer`, whose dimensions run along `dims` (`Read`); where
    there is a `mask`, an i1, and it does not hold, nothing."""
    mask = i1_constant(True) if mask is None else mask
    how = {"bytes": bytes_, "cache": "cg" if bytes_ == 16 else "ca"}
    if isinstance(load, tile.LoadOp):
        CpAsyncOp.build(load.src, buffer, mask, load.offsets, dims=dims, **how)
        return
    elements, *indices = (_transposed(named, dims) for named in (load.mask, *load.indices))
    CpAsyncGatherOp.build(load.src, buffer, mask, elements, indices, **how)


def _transposed(value: ir.Value, dims: tuple[int, ...]) -> ir.Value:
    """A tile whose dimension i is dimension dims[i] of `value`."""
    if dims == tuple(range(len(dims))):
        return value
    sizes = [shape(value)[d] for d in dims]
    kind = tile_type(sizes, element(value), layout_attr(layout_of(value).permute(dims)))
    return tile.TransposeOp.build(value, permutation=dims, results=[kind])


def feeds_products(fill: Fill) -> bool:
    """Whether a matrix instruction reads what the store fills, from there."""
    return any(map(is_product, readers(fill.store.dst)))


def copies_fragments(context: PassContext, *, beside: bool = False) -> bool:
    """Whether tensor copies bring what warps read as fragments: where no instruction reads buffers
    itself, or `beside` products by one that does, and whole warpgroups leave room for one that
    loads ahead."""
    room = context.target.max_threads // context.target.warp_size - WARPGROUP_WARPS
    whole = context.num_warps % WARPGROUP_WARPS == 0 and context.num_warps <= room
    return (context.target.copies_fragments or beside) and whole


def feeds_tensor_cores(fill: Fill, context: PassContext) -> bool:
    """Whether an instruction that takes its operand from a buffer reads what the store fills, or a
    warpgroup's reads what is computed from it; or warps' own, where there are no others."""
    fragments = copies_fragments(context)
    return any(
        reads_for_products(reader)
        or any(is_of(p, WgmmaOp) or fragments for p in products_of(reader))
        for reader in readers(fill.store.dst)
    )


def readers(buffer: ir.Value) -> list[ir.OpView]:
    """The users of a buffer, of its views, and of what is copied of it to tensor memory."""
    found: list[ir.OpView] = []
    for user in users_of(buffer):
        view = user.opview
        found.append(view)
        if isinstance(view, Tcgen05CopyOp) and not is_tensor_buffer(buffer):
            found += readers(view.dst)
    return found


def products_of(op: ir.OpView) -> list[ir.Operation]:
    """The matrix instructions whose registers follow, element by element, from those that an op
    loads from a buffer; none of another op."""
    if not isinstance(op, BufferLoadOp):
        return []

    def passed_on(use: ir.OpOperand) -> Iterable[ir.Value]:
        user = use.owner
        passes = is_elementwise(user.operation) or is_of(user, tile.TransposeOp)
        return filter(is_tile, user.results) if passes else ()

    uses = uses_behind(op.result, passed_on)
    return [use.owner.operation for use in uses if is_product(use.owner.opview)]
