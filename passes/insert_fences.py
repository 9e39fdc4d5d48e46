"""insert-fences: what threads write into shared memory becomes visible to tensor cores and the copy
engine.

Before:   "gpu_tile.buffer_store"(%x, %s)                       "gpu_tile.wgmma"(%s, ...)
After:    "gpu_tile.buffer_store"(%x, %s)   "gpu_tile.fence"() {kind = "async_shared"}
          "gpu_tile.wgmma"(%s, ...)              (insert-barriers puts its sync between the two)

Ordinary writes and asynchronous reads go through different proxies; the fence orders them (PTX ISA
9.0, "Async proxy"; "wgmma.fence": cp.async is an ordinary write). It stands

1. behind a buffer_store, or behind the cp_async_wait that ends such a copy, in front of what may
   tell others that the data is there: one fence for all writes in a row;
2. in front of the reader, where all there is is that copies publish a ring's slot;
3. behind what threads read of bytes that a tensor load may overwrite, in front of what may tell
   that they have: an arrival or a barrier alone lets the copy in before a load that was issued
   earlier has read (seen on an H200, `rings._readers`).

What a tensor load overwrites, in this buffer or in another in the same bytes, is fenced alike.
Does not handle: fragments that a wgmma takes (`rings` gives their slot back behind that product).
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.effects import ends, read_by, read_late_by, until, written_by
from tilec.dialects.gpu_tile import (
    AllocOp,
    ClusterSyncOp,
    FenceOp,
    RingPublishOp,
    SyncOp,
    TensorMapLoad,
    ThreadCopy,
    WgmmaOp,
)
from tilec.dialects.gpu_tile.ring import COPIES
from tilec.dialects.gpu_tile.types import buffer_of, is_buffer
from tilec.dialects.op import class_of
from tilec.dialects.traits import Until
from tilec.dialects.types import is_array
from tilec.passes.analysis.signals import threads_arrive_at, waits_at
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.buffer_fills import products_of
from tilec.passes.rewriting.loops import enclosing_ops
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.walk import all_ops, alloc_of

KIND = "async_shared"
_MEETS = (ClusterSyncOp, SyncOp, TensorMapLoad)


@kernel_pass(requires=Level.ALLOCATED)
def insert_fences(function: ir.Operation, context: PassContext) -> None:
    """Fences writes that asynchronous readers see."""
    ops = [op.opview for op in all_ops(function) if class_of(op) is not None]
    readers = [op for op in ops if read_late_by(op)]
    touched = OpSet(
        alloc_of(buffer) for reader in readers for buffer in _shared(read_late_by(reader))
    )
    loads = _last_loads(ops)
    shared = [alloc for alloc in of_kind(ops, AllocOp) if is_buffer(alloc.result)]
    touched.update(op for op in shared if any(_overlap(op, other) for other in loads))
    if not touched:
        return
    copied = OpSet(alloc_of(copy.dst) for copy in of_kind(ops, ThreadCopy)) & touched
    for number, op in enumerate(ops):
        by_threads = until(op) is None
        stored = by_threads and any(
            alloc_of(buffer) in touched for buffer in _shared(written_by(op))
        )
        if stored or (ends(op) is Until.COPIES_WAITED and copied):
            _fence_behind(op.operation, _may_tell)
        for source in map(alloc_of, _shared(read_by(op)) if by_threads else ()):
            later = [other for other, last in loads.items() if number < last]
            fed = of_kind(products_of(op), WgmmaOp)
            if not fed and any(_overlap(source, other) for other in later):
                _fence_behind(op.operation, _gives_back)
    if any(publish.by == COPIES for publish in of_kind(ops, RingPublishOp)):
        for reader in readers:
            if any(alloc_of(buffer) in copied for buffer in _shared(read_late_by(reader))):
                _fence_before(reader.operation)


def _last_loads(ops: list[ir.OpView]) -> OpMap[int]:
    """Finds, for each alloc that tensor loads fill, the number of the last such load; in a loop,
    which comes to it again, that is the number behind all ops."""
    found: OpMap[int] = OpMap()
    for number, op in enumerate(ops):
        if isinstance(op, TensorMapLoad):
            around = (outer.name for outer in enclosing_ops(op.operation))
            again = any(name in ("scf.for", "scf.while") for name in around)
            last = len(ops) if again else number
            found[alloc_of(op.dst)] = max(last, found.get(alloc_of(op.dst), 0))
    return found


def _shared(values: list[ir.Value]) -> list[ir.Value]:
    return [value for value in values if is_buffer(value)]


def _overlap(one: AllocOp, other: AllocOp) -> bool:
    """Whether two allocs have bytes in common."""
    (a, b), (c, d) = map(_bytes, (one, other))
    return a < d and c < b


def _bytes(alloc: AllocOp) -> tuple[int, int]:
    start = alloc.options["offset"]
    return start, start + buffer_of(alloc.result).size_bytes


def _may_tell(view: ir.OpView) -> bool:
    """Whether writes are fenced in front of an op, since it reads buffers, or tells other threads,
    or a sync may be put there later."""
    waits = waits_at(view) is not None or ends(view) is Until.COPIES_WAITED
    reads = [buffer for buffer in read_by(view) if buffer not in written_by(view)]
    return _gives_back(view) or waits or any(not is_array(value) for value in reads)


def _gives_back(view: ir.OpView) -> bool:
    """Whether reads are fenced in front of an op, since it tells other threads that they are
    done."""
    return isinstance(view, _MEETS) or threads_arrive_at(view) is not None


def _fence_behind(access: ir.Operation, is_end: Callable[[ir.OpView], bool]) -> None:
    """Puts a fence behind `access`, as late as it may stand: in front of the next op that `is_end`
    names, of loops and of branches. Does nothing where a fence stands there already."""
    behind = False
    for view in access.block.operations:
        op = view.operation
        if behind and (isinstance(view, FenceOp) and view.kind == KIND):
            return
        if behind and (is_end(view) or _leaves(op)):
            _fence_before(op)
            return
        behind = behind or op == access


def _leaves(op: ir.Operation) -> bool:
    """Whether control goes on elsewhere behind an op: a loop, a branch, the end of a block."""
    return op.name.startswith("scf.") or op.name in ("func.return", "gpu.yield", "gpu_tile.role")


def _fence_before(op: ir.Operation) -> None:
    previous = None
    for view in op.block.operations:
        if view.operation == op:
            break
        previous = view
    if isinstance(previous, FenceOp) and previous.kind == KIND:
        return
    with ir.InsertionPoint(op), op.location:
        FenceOp.build(kind=KIND)
