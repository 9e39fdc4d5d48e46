"""Lowers copies by the tensor memory accelerator, each issued by one thread.

PTX ISA 9.0, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor": one instruction a box;
coordinates innermost first; the box starts at a multiple of 128 bytes of shared memory. Issued as
predicated text: a branch around it would cost more than the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.def_use import made_by, traced
from tilec.dialects.gpu_tile.tma import MakeIm2colMapOp, MakeTensorMapOp, TensorMapOp
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import shape, show
from tilec.hardware.layout import warp_boxes
from tilec.hardware.ptx_forms import FORMS
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.contract import show_location
from tilec.passes.copies.tensor_map_recipes import recipe_of, why_no_boxes
from tilec.passes.copies.tensor_map_rules import why_no_reduction
from tilec.passes.lower_to_nvvm.access import inline_asm, issue_once, vector_text
from tilec.passes.lower_to_nvvm.buffer import write_buffer
from tilec.passes.lower_to_nvvm.shared_address import (
    barrier_pointer,
    byte_pointer,
    plain_address,
    shared_base,
)
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.values import Buffer
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import create

CACHE_POLICIES = {"evict_first": 0x12F0000000000000, "evict_last": 0x14F0000000000000}
"""`createpolicy.fractional.L2` of everything, as constants (CUTLASS, cute/arch/copy_sm90_desc.hpp,
TMA::CacheHintSm90)."""


INTO_OWN_MEMORY = FORMS["cp.async.bulk.tensor"]["shared::cta.global"]
"""PTX version of copies to `.shared::cta`. Of those to `.shared::cluster` ptxas 13.0 and 13.5 make
calls for sm_120a, for whose sake they ignore `setmaxnreg` (C7506), and roles that compute spill."""


def prefetch_maps(state: Lowering) -> None:
    """Fetches the maps while the kernel sets up, else the first copy waits for its map."""
    for pointer in state.tensor_maps.values():
        issue_once("prefetch.tensormap [$0];", ["l"], [pointer], state)


def lower_make_tensor_map(op: TensorMapOp, state: Lowering) -> None:
    """The address of the parameter that the launcher encodes."""
    state.values[op.result] = state.tensor_maps[recipe_of(op)]


def lower_tma_load(op: gpu_tile.TensorMapLoad, state: Lowering) -> None:
    """Lowers to cp.async.bulk.tensor into shared memory, this CTA's or that of several. The
    mbarrier there, or in the even CTA of the pair, counts its bytes."""
    barrier, mask, group = barrier_pointer(op, state), None, ""
    if op.mask is not None:
        mask = create("arith.trunci", [state.values[op.mask]], ir.IntegerType.get_signless(16))
    if op.PAIRED:
        barrier, group = _even_barrier(barrier, state), ".cta_group::2"
    own = mask is None and not group and state.context.target.lowest_ptx >= INTO_OWN_MEMORY
    space = "shared::cta" if own else "shared::cluster"
    offsets = _offsets(op, state)
    mode = ".im2col" if offsets else ""
    for shared, at in _boxes(op, op.dst, state):
        operands = [shared, state.values[op.map], barrier, *at, *offsets]
        constraints = ["r", "l", "r", *("r" for _ in at), *("h" for _ in offsets)]
        everywhere = words = last = ""
        if offsets:
            last = f", {vector_text(3 + len(at), len(offsets))}"
        if mask is not None:
            operands.append(mask)
            constraints.append("h")
            everywhere, last = ".multicast::cluster", last + f", ${len(operands) - 1}"
        if op.cache != "normal":
            operands.append(
                state.constant(ir.IntegerType.get_signless(64), CACHE_POLICIES[op.cache])
            )
            constraints.append("l")
            words, last = ".L2::cache_hint", last + f", ${len(operands) - 1}"
        issue_once(
            f"cp.async.bulk.tensor.{len(at)}d.{space}.global{mode}"
            f".mbarrier::complete_tx::bytes{everywhere}{group}{words} "
            f"[$0], [$1, {vector_text(3, len(at))}], [$2]{last};",
            constraints,
            operands,
            state,
        )


def _offsets(op: gpu_tile.TensorMapLoad, state: Lowering) -> list[ir.Value]:
    """What an im2col copy adds to its positions, innermost first, as 16 bits; nothing of others."""
    if made_by(op.map, MakeIm2colMapOp) is None:
        return []
    i16, rank = ir.IntegerType.get_signless(16), len(shape(op.map.owner.array))
    return [
        create("arith.trunci", [state.values[offset]], i16)
        for offset in reversed(op.coordinates[rank:])
    ]


def _even_barrier(barrier: ir.Value, state: Lowering) -> ir.Value:
    rank = state.special("cluster.ctarank")
    even = state.arith("andi", rank, -2)
    (mapped,) = inline_asm(
        "mapa.shared::cluster.u32 $0, $1, $2;", ["=r", "r", "r"], [barrier, even], [state.i32]
    )
    return mapped


def lower_tma_store(op: gpu_tile.TmaStoreOp, state: Lowering) -> None:
    """Lowers to cp.async.bulk.tensor to global memory, or to cp.reduce where it is combined with
    what is there.

    CompileError where the hardware does not combine elements of this type so.
    """
    for shared, at in _boxes(op, op.src, state):
        name, operation = "cp.async", ""
        if op.combine != "none":
            reason = why_no_reduction(str(state.values[op.src].type.element), op.combine)
            if reason is not None:
                raise error_at(op.operation, reason)
            name, operation = "cp.reduce.async", f".{op.combine}"
        issue_once(
            f"{name}.bulk.tensor.{len(at)}d.global.shared::cta{operation}.bulk_group "
            f"[$1, {vector_text(2, len(at))}], [$0];",
            ["r", "l", *("r" for _ in at)],
            [shared, state.values[op.map], *at],
            state,
        )


def lower_warp_tma_store(op: gpu_tile.WarpTmaStoreOp, state: Lowering) -> None:
    """The stores to shared memory, ordered before the copies of one lane.

    That lane is elected, and where its copies begin is computed from the number of the warp: so
    ptxas keeps it in uniform registers, as the copy engine wants it. A lane's own number cost a
    loop of 15 instructions for each copy. All lanes wait and commit: without copies of their own
    there is nothing to wait for, and a branch would take longer.
    """
    made, buffer = made_by(op.map, MakeTensorMapOp), state.values[op.buffer]
    if made is None:
        raise InternalError(f"{show_location(op.operation)}: a tensor map of unknown origin")
    layout, sizes = layout_of(op.tile), shape(op.tile)
    boxes = warp_boxes(layout, sizes, made.box)
    if boxes is None:
        raise InternalError(f"{show_location(op.operation)}: a warp holds no whole boxes")
    inline_asm(f"cp.async.bulk.wait_group.read {op.pending};", [], [], [])
    inline_asm("bar.warp.sync 0xffffffff;", [], [], [])
    write_buffer(op.tile, op.buffer, state)
    inline_asm("fence.proxy.async.shared::cta;", [], [], [])
    inline_asm("bar.warp.sync 0xffffffff;", [], [], [])
    lead = state.elected()
    order, first = (
        recipe_of(made).dims,
        state.thread_coordinates(layout, len(sizes), first_lane=True),
    )
    for corner in boxes:
        at = [state.plus(f, c) for f, c in zip(first, corner, strict=True)]
        moved = dict(zip(made.dims, at, strict=True))
        coordinates = [
            state.arith("addi", state.values[op.coordinates[d]], moved[d])
            if d in moved
            else state.values[op.coordinates[d]]
            for d in order
        ]
        inside = [_sum(o, c, state) for o, c in zip(buffer.origin, at, strict=True)]
        pointer = byte_pointer(shared_base(state), plain_address(buffer, inside, state))
        inline_asm(
            f"cp.async.bulk.tensor.{len(order)}d.global.shared::cta.bulk_group "
            f"[$1, {vector_text(2, len(order))}], [$0];",
            ["r", "l", *("r" for _ in order)],
            [pointer, state.values[op.map], *coordinates],
            [],
            guard=lead,
        )
    inline_asm("cp.async.bulk.commit_group;", [], [], [])


def _sum(first: ir.Value, second: ir.Value, state: Lowering) -> ir.Value:
    return second if constant_of(first) == 0 else state.arith("addi", first, second)


def lower_tma_commit(op: gpu_tile.TmaCommitOp, state: Lowering) -> None:
    """Lowers to cp.async.bulk.commit_group; in the threads that stored nothing the group would be
    empty."""
    issue_once("cp.async.bulk.commit_group;", [], [], state)


def lower_tma_wait(op: gpu_tile.TmaWaitOp, state: Lowering) -> None:
    """Lowers to cp.async.bulk.wait_group, in every thread: any may have issued stores."""
    read = ".read" if op.read else ""
    inline_asm(f"cp.async.bulk.wait_group{read} {op.pending};", [], [], [])


def _boxes(
    op: gpu_tile.TensorMapLoad | gpu_tile.TmaStoreOp,
    value: ir.Value,
    state: Lowering,
) -> Iterator[tuple[ir.Value, list[ir.Value]]]:
    """Gives, for each box of a buffer, its shared pointer and its corner in the array, innermost
    first.

    CompileError for a buffer that is not made of the map's boxes.
    """
    made = made_by(op.map, TensorMapOp)
    if made is None:
        raise InternalError(f"{show_location(op.operation)}: a tensor map of unknown origin")
    buffer = state.values[value]
    reason = why_no_boxes(made, buffer.type) or _why_no_origin(value, made, state)
    if reason is not None:
        raise error_at(op.operation, reason)
    order = recipe_of(made).dims
    steps = [range(0, size, box) for size, box in zip(buffer.type.shape, made.box, strict=True)]
    for corner in product(*steps):
        moved = dict(zip(made.dims, corner, strict=True))
        coordinates = [state.values[op.coordinates[d]] for d in order]
        yield (
            _pointer(buffer, corner, state),
            [state.plus(c, moved.get(d, 0)) for d, c in zip(order, coordinates, strict=True)],
        )


def _pointer(buffer: Buffer, corner: Sequence[int], state: Lowering) -> ir.Value:
    """The place where a box starts, before the swizzle, which is the copy engine's."""
    origin = [constant_of(o) for o in buffer.origin]
    if None not in origin:
        at = [(o or 0) + c for o, c in zip(origin, corner, strict=True)]
        step = buffer.type.layout.offset(at) * buffer.type.element_bytes
        return byte_pointer(shared_base(state), state.plus(buffer.address, step))
    moved = [state.plus(o, c) for o, c in zip(buffer.origin, corner, strict=True)]
    return byte_pointer(shared_base(state), plain_address(buffer, moved, state))


def _why_no_origin(value: ir.Value, made: TensorMapOp, state: Lowering) -> str | None:
    """Says why a view does not start at a box of its buffer, or None."""
    views, value = traced(value, gpu_tile.ViewOp)
    for view in views:
        for box, offset in zip(made.box, view.offsets, strict=True):
            if constant_of(offset) != 0 and state.divisibility.of(offset) % box:
                return f"the view does not start at a whole box of {show(made.box)}"
    if made_by(value, gpu_tile.TransposeViewOp) is not None:
        return "a copy fills or reads a buffer or a part of it, not a transposed view"
    return None


RULES = {
    MakeTensorMapOp: lower_make_tensor_map,
    MakeIm2colMapOp: lower_make_tensor_map,
    gpu_tile.TmaLoadOp: lower_tma_load,
    gpu_tile.TmaMulticastOp: lower_tma_load,
    gpu_tile.TmaPairLoadOp: lower_tma_load,
    gpu_tile.TmaPairMulticastOp: lower_tma_load,
    gpu_tile.TmaStoreOp: lower_tma_store,
    gpu_tile.WarpTmaStoreOp: lower_warp_tma_store,
    gpu_tile.TmaCommitOp: lower_tma_commit,
    gpu_tile.TmaWaitOp: lower_tma_wait,
}
