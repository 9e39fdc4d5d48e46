"""prefetch-fragments: the first k-step of an iteration is read during the last one before it.

Before:   scf.for ... iter_args(%acc, %n) {
            wait p ; %s = slot(%ring, %n mod stages) ; %f = buffer_load(view(%s)) ...
            mma(%f, ...) ; copies, commit ; ... ; mma ; mma
          }
After:    wait p ; %f0 = buffer_load(view(slot(%ring, 0))) ...
          scf.for ... iter_args(%acc, %n, %f = %f0) {
            mma(%f, ...) ; copies, commit ; ... ; mma
            wait p ; %next = buffer_load(view(slot(%ring, (%n + 1) mod stages)))
            mma
          }

An iteration else starts with a barrier and the latency of its first reads, and no warp of the CTA
has anything to multiply meanwhile.

1. A loop qualifies if it starts with the only wait of its body, its first `gpu_tile.mma` reads
   slots at the ring's count, and its copies are committed, and its other slots read, before its
   last `gpu_tile.mma`.
2. The wait moves with the reads: at the end of an iteration as many groups are pending as at the
   start of the next.
3. What the last iteration reads ahead is a masked copy's zeros, and nobody uses it.

Does not handle: loops whose k is a single step; rings that are published; dots on FMA units with
few accumulators a thread, of which so many threads fit that others multiply meanwhile.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op, made_by
from tilec.dialects.gpu_tile import (
    BufferLoadOp,
    CpAsyncCommitOp,
    CpAsyncWaitOp,
    MmaOp,
    RingSlotOp,
    SlotOp,
    ViewOp,
)
from tilec.dialects.gpu_tile.types import layout_of
from tilec.hardware.mma_shapes import find_instruction
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.free_ops import drop_unused
from tilec.passes.rewriting.loops import (
    find_loops,
    replace_yield,
    terminator,
    with_iteration_arguments,
)
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import binary, i32_constant
from tilec.passes.rewriting.walk import is_of
from tilec.records import dataclass

FMA_ACCUMULATORS = 64
"""A thread; with 32 the f32 product of 64x64 tiles lost 6 % on an H200, with 64 it gained 3 %."""


@tile_pass(
    requires=Level.LAYOUTS,
    behind={"pipeline-loops": "that makes the rings that fragments are read ahead from"},
    rings=True,
)
def prefetch_fragments(module: ir.Module, context: PassContext) -> None:
    """Rotates every pipelined loop of several matrix multiplications."""
    for loop in find_loops(module):
        found = _find(loop)
        if found is not None:
            _rotate(loop, found)


@dataclass
class _Rotation:
    """The ops that move to the iteration before. `reads`: loads of fragments, each with its view
    and slot. `count`: the number of the argument that counts the ring's turns."""

    wait: ir.Operation
    turn: ir.Operation
    reads: list[tuple[ir.Operation, ir.Operation, ir.Operation]]
    count: int
    last: ir.Operation


def _find(loop: ir.Operation) -> _Rotation | None:
    block = loop.regions[0].blocks[0]
    ops = [view.operation for view in block.operations]
    waits = [op for op in ops if is_of(op, CpAsyncWaitOp)]
    products = [number for number, op in enumerate(ops) if is_of(op, MmaOp)]
    if len(waits) != 1 or ops[0] != waits[0] or len(products) < 2:
        return None
    first = ops[products[0]].opview
    commits = [n for n, op in enumerate(ops) if is_of(op, CpAsyncCommitOp)]
    if not commits or commits[-1] > products[-1] or _has_many_threads(first):
        return None
    reads = []
    for operand in first.fragments:
        read = _slot_read(operand, block)
        if read is not None:
            reads.append(read)
    turns = OpSet(read[2].opview.index.owner.operation for read in reads)
    if len(turns) != 1:
        return None
    (turn,) = turns
    count = turn.opview.count
    if count.owner != block:
        return None
    if _reads_after(ops[products[-1] :], block):
        return None
    number = ir.BlockArgument(count).arg_number
    if constant_of(loop.operands[number + 2]) is None:
        return None
    return _Rotation(waits[0], turn, reads, number, ops[products[-1]])


def _known(value: ir.Value) -> int:
    """A constant that `_find` has seen."""
    number = constant_of(value)
    assert number is not None
    return number


def _has_many_threads(product: MmaOp) -> bool:
    on_fma_units = find_instruction(product.instruction).acc_layout is None
    return on_fma_units and layout_of(product.acc).num_values < FMA_ACCUMULATORS


def _slot_read(
    value: ir.Value, block: ir.Block
) -> tuple[ir.Operation, ir.Operation, ir.Operation] | None:
    """The read of a fragment from a constant place of a slot, its view and its slot."""
    load = defining_op(value)
    if load is None or load.block != block or not is_of(load, BufferLoadOp):
        return None
    view = load.opview.src.owner
    if not is_of(view, ViewOp) or None in map(constant_of, view.opview.offsets):
        return None
    slot = view.opview.src.owner
    if not is_of(slot, SlotOp) or slot.operation.block != block:
        return None
    if made_by(slot.opview.index, RingSlotOp) is None:
        return None
    return load, view.operation, slot.operation


def _reads_after(ops: list[ir.Operation], block: ir.Block) -> bool:
    return any(
        is_of(op, BufferLoadOp) and _slot_read(op.results[0], block) is not None for op in ops
    )


def _rotate(loop: ir.Operation, found: _Rotation) -> None:
    slots = found.turn.opview.slots
    start = _known(list(loop.operands)[2 + found.count])
    with ir.InsertionPoint(loop), loop.location:
        first = _read_ahead(found, i32_constant(start % slots))
    with ir.InsertionPoint(found.last), found.last.location:
        count = binary("arith.addi", found.turn.opview.count, 1)
        slot = RingSlotOp.build(found.turn.opview.ring, count)
        following = _read_ahead(found, slot)
    new, carried = with_iteration_arguments(loop, first)
    for (load, view, slot), fragment in zip(found.reads, carried, strict=True):
        load.results[0].replace_all_uses_with(fragment)
        drop_unused((slot, view, load))
    found.wait.erase()
    last = terminator(new.regions[0].blocks[0])
    replace_yield(last, [*list(last.operands)[: -len(carried)], *following])


def _read_ahead(found: _Rotation, slot: ir.Value) -> list[ir.Value]:
    """The wait and the reads of slot number `slot`, at the insertion point."""
    CpAsyncWaitOp.build(pending=found.wait.opview.pending)
    values = []
    for load, view, old in found.reads:
        part = SlotOp.build(old.opview.src, slot)
        offsets = [i32_constant(_known(offset)) for offset in view.opview.offsets]
        viewed = ViewOp.build(part, offsets, results=[view.results[0].type])
        values.append(BufferLoadOp.build(viewed, results=[load.results[0].type]))
    return values
