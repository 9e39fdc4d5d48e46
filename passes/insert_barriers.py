"""insert-barriers: a sync between accesses of different threads to the same shared memory.

Before:   "gpu_tile.buffer_store"(%x, %s)   %y = "gpu_tile.buffer_load"(%s)
After:    "gpu_tile.buffer_store"(%x, %s)   "gpu_tile.sync"() {barrier = 0, warps = 4, mode = "sync"}
          %y = "gpu_tile.buffer_load"(%s)

1. Walk in program order with the accesses since the last sync that some thread may still be making.
2. Before an access that conflicts with one of them (same bytes, at least one writes) place a sync; the
   set is empty after it.
3. A loop's entry also follows its end: repeat until the set at its entry no longer grows.

Two boxes of one buffer that do not overlap, and buffers that lie in other bytes, do not conflict.
Does not handle: conditions that differ between threads (tile programs branch on uniform scalars).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferGatherOp,
    BufferLoadOp,
    BufferStoreOp,
    ReshapeViewOp,
    SyncOp,
    ViewOp,
)
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.divisibility import constant_of


@dataclass(frozen=True)
class _Access:
    """An access to bytes [start, end) of shared memory; `box`: its (offsets, sizes), where known."""

    writes: bool
    start: int
    end: int
    box: tuple[tuple[int, ...], tuple[int, ...]] | None

    def conflicts(self, other: _Access) -> bool:
        """Whether the two need an order."""
        if not (self.writes or other.writes) or self.end <= other.start or other.end <= self.start:
            return False
        same = (self.start, self.end) == (other.start, other.end)
        if not same or self.box is None or other.box is None:
            return True
        if len(self.box[0]) != len(other.box[0]):
            return True
        return all(
            a < b + size_b and b < a + size_a
            for a, size_a, b, size_b in zip(*self.box, *other.box, strict=True)
        )


Pending = frozenset[_Access]


@tile_pass(requires=Level.ALLOCATED, ensures=Level.ALLOCATED)
def insert_barriers(module: ir.Module, context: PassContext) -> None:
    """Orders every cross-thread dependence through shared memory."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            _walk_block(function.operation.regions[0].blocks[0], frozenset(), context)


def _walk_block(block: ir.Block, pending: Pending, context: PassContext) -> Pending:
    for view in list(block.operations):
        op = view.operation
        if isinstance(view, SyncOp):
            if view.mode == "sync" and view.warps == context.num_warps:
                pending = frozenset()
        elif op.name in ("scf.for", "scf.while"):
            pending = _walk_loop(op, pending, context)
        elif op.name == "scf.if":
            after = [_walk_block(b, pending, context) for r in op.regions for b in r.blocks]
            # A missing else leaves the set as it was.
            if not op.regions[1].blocks:
                after.append(pending)
            pending = frozenset().union(*after)
        else:
            access = _access(view)
            if access is None:
                continue
            if any(access.conflicts(earlier) for earlier in pending):
                with ir.InsertionPoint(op), op.location:
                    SyncOp.build(warps=context.num_warps)
                pending = frozenset()
            pending |= {access}
    return pending


def _walk_loop(loop: ir.Operation, pending: Pending, context: PassContext) -> Pending:
    while True:
        after = pending
        for region in loop.regions:
            for block in region.blocks:
                after = _walk_block(block, after, context)
        if after <= pending:
            return pending
        pending |= after


def _access(view: object) -> _Access | None:
    if isinstance(view, BufferStoreOp):
        return _describe(view.dst, writes=True)
    if isinstance(view, (BufferLoadOp, BufferGatherOp)):
        return _describe(view.src, writes=False)
    return None


def _describe(buffer: ir.Value, *, writes: bool) -> _Access:
    sizes = buffer_of(buffer).shape
    offsets: tuple[int, ...] | None = (0,) * len(sizes)
    value = buffer
    while not isinstance(value.owner, AllocOp):
        view = value.owner
        if isinstance(view, ReshapeViewOp):
            offsets = None
        elif isinstance(view, ViewOp):
            steps = [constant_of(v) for v in view.offsets]
            known = offsets is not None and None not in steps
            offsets = tuple(a + b for a, b in zip(offsets, steps, strict=True)) if known else None
        value = view.src
    start = value.owner.options["offset"]
    end = start + buffer_of(value).size_bytes
    return _Access(writes, start, end, None if offsets is None else (offsets, sizes))
