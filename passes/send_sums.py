"""send-sums: sums that the CTAs of a cluster have in parts reach those that add them up.

Before:   %sum = "tile.sum_stripes"(%mine) {axis = 0, merges = ["arith.addf"]}
              : tensor<64x32xf32> -> tensor<16x32xf32>
After:    %parts = "gpu_tile.alloc"() : 4 slots of 16 x 32, for what each CTA has of this stripe
          "gpu_tile.cluster_sync"() {order = "relaxed"}                       (all have begun)
          "gpu_tile.cluster_send"(%mine, slot of this CTA's number of %parts) {axis = 0}
          "gpu_tile.cluster_sync"() {order = "acq_rel"}
          %sum = "gpu_tile.buffer_load"(slot 0) + ... (slot 1) + ... (slot 2) + ... (slot 3)

Each CTA sends all of what it has, a stripe to each, and gets as much: distributed shared memory
takes the time of one part whatever the number of parts. They are added up in order, so results do
not differ from call to call, and in the layout of what is stored, rows of it in one piece. So the
least of parts is found (`arith.minimumf`), and the place that goes with the least (`olt 0`).

Matrix instructions leave a thread pairs along rows, of which those of four lanes lie side by side,
and single sums along columns. Lanes exchange them first, so that each sends 16 bytes of neighbours
at a time, along whichever the result is stored.

Several sums are sent at once if their buffers take little of the memory that rings want
(`hardware/ring_stages.py`), else one after the other: those that are alike through one buffer,
which all have read by the cluster's next sync.

Does not handle: buffers in the memory of rings that the loop has done with.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.merges import Merge
from tilec.dialects.types import (
    bit_width,
    byte_width,
    count_stripes,
    element,
    shape,
)
from tilec.dialects.types import tile as tile_type
from tilec.hardware.layout import Layout
from tilec.hardware.ring_stages import sent_in_vectors, sent_together
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.layouts.buffer_layouts import buffer_for
from tilec.passes.layouts.conversion_costs import cheap_lane_move
from tilec.passes.layouts.lane_moves import LaneMove
from tilec.passes.layouts.runs import in_vectors
from tilec.passes.rewriting.scalars import as_type, binary, compare, i32_constant, select
from tilec.passes.rewriting.walk import find_ops


@tile_pass(requires=Level.LAYOUTS)
def send_sums(module: ir.Module, context: PassContext) -> None:
    """Takes sums that CTAs have in parts through the shared memory of their cluster."""
    for op in find_ops(module.operation, tile.SumStripesOp):
        with ir.InsertionPoint(op), op.location:
            _send(op.opview)
        op.erase()


def _send(op: tile.SumStripesOp) -> None:
    merges = [Merge.named(name) for name in op.merges]
    both = zip(op.values, op.sums, strict=True)
    pairs = [(_in_vectors(value, layout_of(total)), total) for value, total in both]
    decided = any(merge.by is not None for merge in merges)
    goes = [pairs] if decided else _goes(pairs)
    buffers = _buffers(goes, op.axis)
    number = as_type(tile.StripeIdOp.build(), ir.IntegerType.get_signless(32))
    gpu_tile.ClusterSyncOp.build(order="relaxed")
    for position, go in enumerate(goes):
        if position:
            gpu_tile.ClusterSyncOp.build(order="acq_rel")
        for (value, _), buffer in zip(go, buffers[position], strict=True):
            gpu_tile.ClusterSendOp.build(value, gpu_tile.SlotOp.build(buffer, number), axis=op.axis)
        gpu_tile.ClusterSyncOp.build(order="acq_rel")
        own, merges = merges[: len(go)], merges[len(go) :]
        arrived = _Arrived([value for value, _ in go], buffers[position], own)
        for index, (value, total) in enumerate(go):
            parts = count_stripes(shape(value), shape(total), op.axis)
            total.replace_all_uses_with(arrived.merged(index, total, parts))


def _in_vectors(value: ir.Value, stored: Layout) -> ir.Value:
    """A tile as it is sent with the fewest instructions to where it is read in a layout, if lanes
    can arrange it so."""
    layout, width = layout_of(value), byte_width(element(value))
    along = next((m.dim for m in stored.values[:1] + layout.values[:1] if m.stride == 1), None)
    if along is None or not sent_in_vectors(layout.num_values):
        return value
    wide = in_vectors(layout, along, width)
    move = cheap_lane_move(tuple(shape(value)), width, layout, wide)
    if wide == layout or not isinstance(move, LaneMove):
        return value
    type_ = tile_type(shape(value), element(value), layout_attr(wide))
    return gpu_tile.ConvertLayoutOp.build(value, results=[type_])


def _goes(pairs: list[tuple[ir.Value, ir.Value]]) -> list[list[tuple[ir.Value, ir.Value]]]:
    """The sums that are sent together: all where the buffers for them take little of what rings may
    have, else one after the other."""
    each = [prod(shape(value)) * bit_width(element(value)) // 8 for value, _ in pairs]
    return [pairs] if sent_together(each) else [[pair] for pair in pairs]


def _buffers(goes: list[list[tuple[ir.Value, ir.Value]]], axis: int) -> list[list[ir.Value]]:
    """The buffer of each sum, a slot for what each CTA has of the stripe; those that are sent one
    after the other share one if they are alike."""
    found: list[list[ir.Value]] = []
    for go in goes:
        free = [buffer for buffers in found for buffer in buffers]
        found.append([_buffer(value, total, axis, free) for value, total in go])
    return found


def _buffer(value: ir.Value, total: ir.Value, axis: int, free: list[ir.Value]) -> ir.Value:
    parts = count_stripes(shape(value), shape(total), axis)
    layouts = layout_of(value), layout_of(total)
    each = int(sent_in_vectors(layout_of(value).num_values))  # instructions count as well
    type_ = buffer_for(total, *layouts, per_instruction=each).with_slots(parts).type()
    alike = next((buffer for buffer in free if buffer.type == type_), None)
    return alike or gpu_tile.AllocOp.build(results=[type_])


class _Arrived:
    """What all CTAs have sent of this one's stripe of `values`, a buffer each."""

    def __init__(
        self, values: list[ir.Value], buffers: list[ir.Value], merges: list[Merge]
    ) -> None:
        self._elements = [element(value) for value in values]
        self._buffers, self._merges = buffers, merges

    def merged(self, index: int, like: ir.Value, parts: int) -> ir.Value:
        """The parts of a value put together in order, where they are wanted: like a tile."""
        merge = self._merges[index]
        total = self._part(index, like, 0)
        decider = total if merge.by in (None, index) else self._part(merge.by, like, 0)
        for number in range(1, parts):
            part = self._part(index, like, number)
            if merge.by is None:
                total = binary(merge.op, total, part)
                continue
            other = part if merge.by == index else self._part(merge.by, like, number)
            wins = compare(merge.op, other, decider)
            total = select(wins, part, total)
            by = self._merges[merge.by]
            decider = (
                select(wins, other, decider) if by.by is not None else binary(by.op, decider, other)
            )
        return total

    def _part(self, index: int, like: ir.Value, number: int) -> ir.Value:
        """What one CTA has of a value."""
        slot = gpu_tile.SlotOp.build(self._buffers[index], i32_constant(number))
        type_ = tile_type(shape(like), self._elements[index], layout_attr(layout_of(like)))
        return gpu_tile.BufferLoadOp.build(slot, results=[type_])
