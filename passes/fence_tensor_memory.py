"""fence-tensor-memory: what threads do with tensor memory keeps the order that barriers give it.

Before:   "gpu_tile.ring_wait"(%sums, ...)   %x = "gpu_tile.buffer_load"(%t)
          "gpu_tile.ring_release"(%sums, ...)
After:    "gpu_tile.ring_wait"(%sums, ...)   "gpu_tile.fence"() {kind = "tcgen05_after"}
          %x = "gpu_tile.buffer_load"(%t)    "gpu_tile.fence"() {kind = "tcgen05_before"}
          "gpu_tile.ring_release"(%sums, ...)

Loads, stores and products in tensor memory are asynchronous: a sync or a ring orders them
between threads only with a fence in front of what tells others and one behind what hears of them
(PTX ISA 9.0, "tcgen05 Memory Consistency Model"). Both stand as close to the access as control flow
lets them:

1. `tcgen05_after` in front of an access that a sync or wait may precede;
2. `tcgen05_before` in front of a sync or of threads' arrival that an access may precede. The end of
   products orders by itself.

A wait for tensor copies alone tells nothing about tensor memory. Roles are looked at one by one.
Does not handle: which access a barrier is for (a fence may stand where none of the two is needed);
explicit kernels, whose fences are their author's.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.effects import read_by, written_by
from tilec.dialects.gpu_tile import FenceOp, RoleOp, SyncOp
from tilec.dialects.gpu_tile.types import is_tensor_buffer
from tilec.dialects.op import class_of
from tilec.passes.analysis.async_readers import ends_with_products
from tilec.passes.analysis.signals import hears_of_threads_or_products, threads_arrive_at
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.walk import all_ops, blocks_in
from tilec.records import dataclass


@kernel_pass(
    requires=Level.ALLOCATED, behind={"insert-barriers": "fences stand at the syncs that it makes"}
)
def fence_tensor_memory(function: ir.Operation, context: PassContext) -> None:
    """Puts fences between accesses to tensor memory and what orders them."""
    if _touches(function):
        _Walk().block(function.regions[0].blocks[0], _Since(False, False))


@dataclass(frozen=True)
class _Since:
    """What may have happened since the last fence of its kind: a thread `heard` of others through a
    sync or wait, or `touched` tensor memory."""

    heard: bool
    touched: bool

    def __or__(self, other: _Since) -> _Since:
        return _Since(self.heard or other.heard, self.touched or other.touched)


def _is_access(view: ir.OpView) -> bool:
    return any(map(is_tensor_buffer, (*read_by(view), *written_by(view))))


def _touches(op: ir.Operation) -> bool:
    return any(_is_access(inner.opview) for inner in _ours(op))


def _ours(inside: ir.Operation) -> list[ir.Operation]:
    """What is inside an op, without upstream's ops, which know of no tensor memory."""
    return [op for op in all_ops(inside) if class_of(op) is not None]


class _Walk:
    """One walk in program order, which places fences."""

    def block(self, block: ir.Block, since: _Since) -> _Since:
        """Follows a block that starts with `since`; gives what may be so at its end."""
        for view in list(block.operations):
            op = view.operation
            if isinstance(view, RoleOp):
                # Other warps run it: what they heard and touched, they fence themselves.
                if _touches(op):
                    self.block(view.body, _Since(True, False))
            elif op.name in ("scf.for", "scf.while"):
                since = self._loop(op, since)
            elif op.name == "scf.if":
                after = [self.block(b, since) for b in blocks_in(op)]
                for other in after:
                    since |= other
            else:
                since = self._visit(view, since)
        return since

    def _loop(self, loop: ir.Operation, since: _Since) -> _Since:
        entry = since | _Since(_hears(loop), _touches(loop))
        for block in blocks_in(loop):
            since |= self.block(block, entry)
        return since

    def _visit(self, view: ir.OpView, since: _Since) -> _Since:
        if _is_access(view):
            if since.heard:
                _fence(view.operation, "tcgen05_after")
            # The thread that issues an op and commits it needs no fence between the two.
            return _Since(False, not ends_with_products(view) or since.touched)
        if isinstance(view, FenceOp) and view.kind == "tcgen05_after":
            return _Since(False, since.touched)
        if isinstance(view, FenceOp) and view.kind == "tcgen05_before":
            return _Since(since.heard, False)
        if isinstance(view, SyncOp) or threads_arrive_at(view) is not None:
            if since.touched:
                _fence(view.operation, "tcgen05_before")
            return _Since(since.heard or isinstance(view, SyncOp), False)
        return _Since(since.heard or hears_of_threads_or_products(view), since.touched)


def _hears(loop: ir.Operation) -> bool:
    views = (op.opview for op in _ours(loop))
    return any(isinstance(view, SyncOp) or hears_of_threads_or_products(view) for view in views)


def _fence(op: ir.Operation, kind: str) -> None:
    with ir.InsertionPoint(op), op.location:
        FenceOp.build(kind=kind)
