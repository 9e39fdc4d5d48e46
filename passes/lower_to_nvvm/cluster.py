"""Lowers what a CTA asks of its cluster: where it is, who is like it, and meeting the others.

A persistent launch has one dimension, and so have its clusters: ranks follow one another there.
PTX ISA 9.0, "%cluster_ctarank", "barrier.cluster".
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.cluster import ctas_alike
from tilec.dialects.gpu_tile.types import buffer_of, layout_of
from tilec.dialects.types import element, shape
from tilec.passes.lower_to_nvvm.access import inline_asm, pack, store_words
from tilec.passes.lower_to_nvvm.buffer import stores_of_stripes
from tilec.passes.lower_to_nvvm.shared_address import buffer_address, shared_base
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import compare, create


def lower_position(op: gpu_tile.ClusterPositionOp, state: Lowering) -> None:
    """Takes one digit of the CTA's rank; the sizes are powers of two."""
    state.values[op.result] = _position(op.axis, state)


def lower_mask(op: gpu_tile.ClusterMaskOp, state: Lowering) -> None:
    """The group that the first CTA is in, moved to where this one is along the other axes."""
    mask = state.i32_constant(sum(1 << rank for rank in ctas_alike(state.cluster, op.axes)))
    for axis in range(3):
        if axis in op.axes or state.cluster[axis] == 1:
            continue
        shift = state.arith("muli", _position(axis, state), prod(state.cluster[:axis]))
        mask = state.arith("shli", mask, shift)
    state.values[op.result] = mask


def lower_sync(op: gpu_tile.ClusterSyncOp, state: Lowering) -> None:
    """Lowers to barrier.cluster, whose arrival releases unless it is relaxed. Lanes may come apart
    there: one of a warp may still issue copies."""
    relaxed = ".relaxed" if op.order == "relaxed" else ""
    ir.Operation.create(f"nvvm.cluster.arrive{relaxed}")
    ir.Operation.create("nvvm.cluster.wait")


def lower_cluster_store(op: gpu_tile.ClusterStoreOp, state: Lowering) -> None:
    """Lets thread n write to the CTA of rank n (PTX ISA 9.0, "mapa", "st"). CompileError if the
    buffer has not an element for each."""
    ctas, (room,) = prod(state.cluster), buffer_of(op.dst).shape
    if room != ctas:
        raise error_at(op.operation, f"the buffer has {room} elements for the {ctas} of a cluster")
    rank = state.special("cluster.ctarank")
    offset = buffer_address(state.values[op.dst], [rank], state)
    base = create("llvm.ptrtoint", [shared_base(state)], state.i32)
    own = state.arith("addi", base, offset)
    to = state.arith("andi", state.thread(), ctas - 1)
    remote = _mapped(own, to, state)
    mine = compare("ult", state.thread(), state.i32_constant(ctas))
    words = pack(state.registers(op.value), element(op.value), state)
    store_words(remote, words, mine, None, space="shared::cluster")


def lower_cluster_send(op: gpu_tile.ClusterSendOp, state: Lowering) -> None:
    """Lowers to the stores of `buffer_store`, each to the CTA whose stripe it is of: as far from
    ours as its shared memory is (PTX ISA 9.0, "mapa", "st")."""
    own = create("llvm.ptrtoint", [shared_base(state)], state.i32)
    size, apart = buffer_of(op.dst).shape[op.axis], {}
    layout, rank = layout_of(op.value), len(shape(op.value))
    from_thread = state.thread_coordinates(layout, rank)[op.axis]

    def distance(at: int) -> ir.Value:
        """Computes how far our shared memory lies from that of the CTA that gets coordinate `at` of
        this thread."""
        if at not in apart:
            moved = state.arith("addi", from_thread, at)
            to = state.arith("divui", moved, size)
            apart[at] = state.arith("subi", _mapped(own, to, state), own)
        return apart[at]

    for pointer, words, guard, at in stores_of_stripes(op.value, op.dst, op.axis, state):
        address = create("llvm.ptrtoint", [pointer], state.i32)
        remote = state.arith("addi", address, distance(at))
        guard = state.constant(ir.IntegerType.get_signless(1), 1) if guard is None else guard
        store_words(remote, words, guard, None, space="shared::cluster")


def _mapped(address: ir.Value, rank: ir.Value, state: Lowering) -> ir.Value:
    """The address (i32) in the CTA of a rank of what has this one here."""
    text, letters = "mapa.shared::cluster.u32 $0, $1, $2;", ["=r", "r", "r"]
    return inline_asm(text, letters, [address, rank], [state.i32], pure=True)[0]


def lower_stripe_id(op: tile.StripeIdOp, state: Lowering) -> None:
    """Lowers to a CTA's place among those that run a program's stripes, which follow one another;
    in a cluster, in the order of their ranks."""
    number = state.special("ctaid.x")
    stripe = state.arith("remui", number, state.stripes)
    state.values[op.result] = state.to_index(stripe)


def lower_part_id(op: tile.PartIdOp, state: Lowering) -> None:
    """Lowers to a CTA's place among all those that run a program, which follow one another."""
    part = state.arith("remui", state.special("ctaid.x"), state.ctas_per_program)
    state.values[op.result] = state.to_index(part)


def _position(axis: int, state: Lowering) -> ir.Value:
    size, below = state.cluster[axis], prod(state.cluster[:axis])
    if size == 1:
        return state.i32_constant(0)
    rank = state.special("cluster.ctarank")
    if below > 1:
        rank = state.arith("divui", rank, below)
    if below * size < prod(state.cluster):
        rank = state.arith("andi", rank, size - 1)
    return rank


RULES = {
    gpu_tile.ClusterPositionOp: lower_position,
    gpu_tile.ClusterMaskOp: lower_mask,
    gpu_tile.ClusterSyncOp: lower_sync,
    gpu_tile.ClusterStoreOp: lower_cluster_store,
    gpu_tile.ClusterSendOp: lower_cluster_send,
    tile.StripeIdOp: lower_stripe_id,
    tile.PartIdOp: lower_part_id,
}
