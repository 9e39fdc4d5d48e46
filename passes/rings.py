"""Rings of buffers that tensor copies fill: what belongs to each, and when its readers are done."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir

from tilec.dialects.gpu_tile import (
    BarrierExpectOp,
    BarrierInitOp,
    BarrierWaitOp,
    RingPositionOp,
    SlotOp,
    Tcgen05MmaOp,
    TmaLoadOp,
    ViewOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.passes.tensor_memory_dot import awaited


@dataclass
class Ring:
    """The copies that share a barrier, and what becomes of it."""

    barrier: BarrierInitOp
    position: RingPositionOp
    expect: BarrierExpectOp
    copies: list[TmaLoadOp] = field(default_factory=list)
    wait: BarrierWaitOp | None = None
    leader: Ring | None = None
    """The ring of an earlier loop whose buffers and barriers serve this one, too."""

    @property
    def loop(self) -> ir.Operation:
        """The loop whose every iteration fills one slot."""
        return self.expect.operation.parent

    @property
    def signature(self) -> tuple[object, ...]:
        """Rings of equal signature can be one."""
        return (*(str(alloc.results[0].type) for alloc in self.allocs), arrivals_per(self))

    @property
    def allocs(self) -> list[ir.Operation]:
        """Its buffers, one slot each so far."""
        return [copy.dst.owner.operation for copy in self.copies]


def find_rings(function: ir.Operation) -> list[Ring]:
    """Every ring of a kernel, in program order."""
    rings: dict[ir.Value, Ring] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if isinstance(view, BarrierExpectOp):
            barrier, position = view.barrier.owner, view.slot.owner
            if isinstance(barrier, BarrierInitOp) and isinstance(position, RingPositionOp):
                rings[view.barrier] = Ring(barrier, position, view)
        elif isinstance(view, TmaLoadOp) and view.barrier in rings:
            rings[view.barrier].copies.append(view)
        elif isinstance(view, BarrierWaitOp) and view.barrier in rings:
            rings[view.barrier].wait = view
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return [ring for ring in rings.values() if ring.wait is not None and ring.copies]


def arrivals_per(ring: Ring) -> str:
    """Who gives slots of a ring back: rule 3 of specialize-warps."""
    readers = [reader for copy in ring.copies for reader in _readers(copy.dst)]
    return "warpgroup" if all(isinstance(r.opview, WgmmaWaitOp) for r in readers) else "warp"


def _readers(buffer: ir.Value) -> list[ir.Operation]:
    """The ops after which a buffer's readers are done with it."""
    found: list[ir.Operation] = []
    for use in buffer.uses:
        user = use.owner.opview
        if isinstance(user, (ViewOp, SlotOp)):
            found += _readers(user.result)
        elif isinstance(user, WgmmaOp):
            found.append(_finished(user.result))
        elif isinstance(user, Tcgen05MmaOp):
            found.append(awaited(user))
        elif not isinstance(user, TmaLoadOp):
            found.append(user.operation)
    return found


def _finished(pending: ir.Value) -> ir.Operation:
    """The wait that ends the group which wrote a pending tile."""
    (use,) = pending.uses
    user = use.owner.opview
    return user.operation if isinstance(user, WgmmaWaitOp) else _finished(user.result)


def last_reader(ring: Ring) -> ir.Operation:
    """The op of the ring's own block behind which all its readers are done."""
    block = ring.expect.operation.block
    order = {view.operation: number for number, view in enumerate(block.operations)}
    last = ring.wait.operation
    for copy in ring.copies:
        for reader in _readers(copy.dst):
            while reader.block != block:
                reader = reader.parent
            last = max(last, reader, key=order.__getitem__)
    return last
