"""split-sums: the CTAs of a cluster each sum a part of a loop of products, the first adds them up.

Before:   (tile.sum_parts = 4 : i32 of the kernel)
          %acc = scf.for %k = %low to %high step %c64 iter_args(%sum = %zero) { ... "tile.dot" ... }
          ... the rest of the kernel, for %acc ...
After:    (tile.stripes = 4 : i32: each program is run by so many CTAs)
          %part = "tile.stripe_id"()
          %steps = the iterations from %low to %high
          %mine = scf.for %k = %low + (%part * %steps / 4) * 64
                      to %low + ((%part + 1) * %steps / 4) * 64 step %c64 ... { ... the same ... }
          %parts = "gpu_tile.alloc"() : 3 slots, each for a part of another CTA
          "gpu_tile.cluster_sync"() {order = "relaxed"}                       (all have begun)
          scf.if %part != 0 { "gpu_tile.cluster_send"(%mine, slot %part - 1 of %parts) }
          "gpu_tile.cluster_sync"() {order = "acq_rel"}
          scf.if %part == 0 {
            %acc = %mine + "gpu_tile.buffer_load"(slot 0) + ... (slot 1) + ... (slot 2)
            ... the rest of the kernel, for %acc ...
          }

Loops in loops are one sum, if the inner one adds to what the outer one carries, as gradients of
keys that several heads share do:
          scf.for %head = %c0 to %c4 step %c1 iter_args(%s = %zero) {
            %t = scf.for %k = %low to %high step %c64 iter_args(%u = %s) { ... "tile.dot" ... }
            scf.yield %t }
Of those the outermost whose iterations are known to be a multiple of the parts is cut into them,
else the innermost.

Few programs with a long loop leave most multiprocessors without work, and each CTA waits for memory
as often as the loop has iterations. Parts are added up in order, so results do not differ from call
to call. They go through distributed shared memory: no array for them, no second launch.

1. In as many parts as `tile.sum_parts` says: the author's demand, or what `tl.auto` comes to
   (`tilec/call/auto_tiles.py`). `programs/sum_parts.py` says which loops can be in parts.
2. What stands behind the loop only the first CTA runs, in a branch; what stands in front, all do.
3. Threads send and read their own elements: the parts have the layout of the sum.
4. Several sums are sent at once if their parts take little of the memory that rings want
   (`hardware/ring_stages.py`), else one after the other: those that are alike through one buffer,
   which the first CTA has read by the cluster's next sync.

Does not handle: sums that start from anything but zero; kernels with effects up to the end of the
loop; loops in branches; programs that CTAs or clusters share already; targets with tensor memory,
which all warps meet at the end to give back: those that load and multiply would wait there for the
ones that compute, and these at the cluster's barrier for all that still run.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.types import BufferType, layout_of
from tilec.dialects.types import bit_width, element, shape
from tilec.hardware.ring_stages import sent_together
from tilec.hardware.shared_layout import strided
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.demands.kernels import STRIPES
from tilec.passes.layouts.buffer_layouts import choose_shared_layout
from tilec.passes.programs.sum_parts import find_shared, find_sum, sum_parts_of, why_whole
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.scalars import (
    binary,
    constant,
    equal,
    i32_constant,
    negated,
    scalar_op,
)
from tilec.passes.rewriting.walk import kernels
from tilec.terms.demands import SUM_PARTS


@tile_pass(requires=Level.LAYOUTS, ensures=Level.LAYOUTS)
def split_sums(module: ir.Module, context: PassContext) -> None:
    """Gives the CTAs of a cluster parts of a loop of products, which the first adds up."""
    for function in kernels(module):
        parts = sum_parts_of(function)
        if parts == 1:
            continue
        reason = why_whole(function, context.target)
        loop = find_sum(function)
        if reason is not None or loop is None:
            raise error_at(function, f"sum_parts={parts} was asked for, but {reason}")
        with function.location:
            _split(function, loop, parts)
        why = "few programs have a long loop: so many CTAs sum a part of it each"
        context.report.add("sums", loop, f"in {parts} parts, a cluster", why, parts=parts)


def _split(function: ir.Operation, loop: ir.Operation, parts: int) -> None:
    i32 = ir.IntegerType.get_signless(32)
    function.attributes[STRIPES] = ir.IntegerAttr.get(i32, parts)
    del function.attributes[SUM_PARTS.attribute]
    with ir.InsertionPoint(loop), loop.location:
        part = tile.StripeIdOp.build()
        _shorten(find_shared(loop, parts), part, parts)
        sums, uses = list(loop.results), [list(value.uses) for value in loop.results]
        goes = _goes(sums, parts)
        buffers = _buffers(goes, parts)
    *_, end = function.regions[0].blocks[0].operations
    rest = _behind(loop)
    with ir.InsertionPoint(end), loop.location:
        number = scalar_op("arith.index_cast", [part], ir.IntegerType.get_signless(32))
        is_first = equal(number, i32_constant(0))
        gpu_tile.ClusterSyncOp.build(order="relaxed")
        for values in goes[:-1]:
            _send(values, buffers, number, is_first)
            added = _added(values, buffers, parts, is_first)
            sums = [added.get(value, value) for value in sums]
            gpu_tile.ClusterSyncOp.build(order="acq_rel")
        _send(goes[-1], buffers, number, is_first)
        last = _branch(is_first)
    for op in rest:
        op.move_before(last)
    with ir.InsertionPoint.at_block_begin(last.block), loop.location:
        for value in goes[-1]:
            sums[sums.index(value)] = _total(value, buffers[value], parts)
    for total, found in zip(sums, uses, strict=True):
        for use in found:
            use.owner.operation.operands[use.operand_number] = total


def _goes(sums: list[ir.Value], parts: int) -> list[list[ir.Value]]:
    """The sums that are sent together: all where the buffers for them take little of what rings may
    have, else one after the other, through the same buffer if they are alike."""
    each = [prod(shape(value)) * bit_width(element(value)) // 8 for value in sums]
    return [sums] if sent_together(each, parts) else [[value] for value in sums]


def _buffers(goes: list[list[ir.Value]], parts: int) -> dict[ir.Value, ir.Value]:
    """The buffer of each sum, one slot for each part but the first; those that are sent one after
    the other share one."""
    found: dict[ir.Value, ir.Value] = {}
    for values in goes:
        free = [found[value] for value in found if value not in values]
        for value in values:
            type_ = _buffer_type(value, parts - 1)
            buffer = next((x for x in free if x.type == type_), None)
            found[value] = buffer or gpu_tile.AllocOp.build(results=[type_])
    return found


def _send(
    values: list[ir.Value], buffers: dict[ir.Value, ir.Value], number: ir.Value, is_first: ir.Value
) -> None:
    """Each CTA but the first sends it its sums, which are there then."""
    with ir.InsertionPoint(_branch(negated(is_first))):
        slot = binary("arith.subi", number, i32_constant(1))
        for value in values:
            gpu_tile.ClusterSendOp.build(value, gpu_tile.SlotOp.build(buffers[value], slot))
    gpu_tile.ClusterSyncOp.build(order="acq_rel")


def _added(
    values: list[ir.Value], buffers: dict[ir.Value, ir.Value], parts: int, is_first: ir.Value
) -> dict[ir.Value, ir.Value]:
    """What sums are where the first CTA has added those of others to them, which may then be
    overwritten."""
    types = [value.type for value in values]
    guarded = ir.Operation.create("scf.if", results=types, operands=[is_first], regions=2)
    with ir.InsertionPoint(guarded.regions[0].blocks.append()):
        totals = [_total(value, buffers[value], parts) for value in values]
        ir.Operation.create("scf.yield", operands=totals)
    with ir.InsertionPoint(guarded.regions[1].blocks.append()):
        ir.Operation.create("scf.yield", operands=values)
    return dict(zip(values, guarded.results, strict=True))


def _shorten(loop: ir.Operation, part: ir.Value, parts: int) -> None:
    """Leaves a loop the iterations of one part."""
    low, high, step = list(loop.operands)[:3]
    with ir.InsertionPoint(loop):
        one, all_parts = constant(step.type, 1), constant(step.type, parts)
        part = part if part.type == step.type else scalar_op("arith.index_cast", [part], step.type)
        length = binary("arith.subi", high, low)
        rounded = binary("arith.addi", length, binary("arith.subi", step, one))
        steps = binary("arith.divsi", rounded, step)

        def start(number: ir.Value) -> ir.Value:
            done = binary("arith.divsi", binary("arith.muli", number, steps), all_parts)
            return binary("arith.addi", low, binary("arith.muli", done, step))

        loop.operands[0] = start(part)
        loop.operands[1] = start(binary("arith.addi", part, one))


def _buffer_type(value: ir.Value, slots: int) -> ir.Type:
    """Of shared memory for as many tiles like `value`."""
    bytes_ = BufferType((), element(value), strided((), ())).element_bytes
    shared = choose_shared_layout(shape(value), bytes_, (layout_of(value),))
    return BufferType((slots, *shape(value)), element(value), shared).type()


def _total(value: ir.Value, buffer: ir.Value, parts: int) -> ir.Value:
    """Adds the parts of other CTAs to this one's."""
    total, add = value, "arith.addf" if isinstance(element(value), ir.FloatType) else "arith.addi"
    for number in range(parts - 1):
        slot = gpu_tile.SlotOp.build(buffer, i32_constant(number))
        total = binary(add, total, gpu_tile.BufferLoadOp.build(slot, results=[value.type]))
    return total


def _branch(flag: ir.Value) -> ir.Operation:
    """Makes an scf.if without an else; gives the end of its block."""
    guarded = ir.Operation.create("scf.if", operands=[flag], regions=2)
    with ir.InsertionPoint(guarded.regions[0].blocks.append()):
        ir.Operation.create("scf.yield")
    return terminator(guarded.regions[0].blocks[0])


def _behind(loop: ir.Operation) -> list[ir.Operation]:
    """The ops between a loop and the end of the kernel."""
    block = [view.operation for view in loop.block.operations]
    return block[block.index(loop) + 1 : -1]
