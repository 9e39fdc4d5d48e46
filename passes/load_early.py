"""load-early: copies of arrays that no earlier launch still writes do not wait for those launches.

Before:   %ring = "gpu_tile.make_ring"() {slots = 5, fills = 1}          (%b is `tile.settled`)
          "gpu_tile.role"() ({
            scf.for %k = %low to %high step %step {
              %slot = "gpu_tile.ring_acquire"(%ring, %count)
              "gpu_tile.ring_announce"(%ring, %slot) {bytes = 40960}
              scf.if (%k < %low + %step) { "gpu_tile.griddepcontrol"() {kind = "wait"} }
              "gpu_tile.tma_load"(%map_a, ...)   "gpu_tile.tma_load"(%map_b, ...) }
          }) {name = "load", first_warp = 4, warps = 4}
After:    %ring = "gpu_tile.make_ring"() {slots = 5, fills = 2}
          "gpu_tile.role"() ({
            scf.for %k = %low to %high step %step {
              %slot = "gpu_tile.ring_acquire"(%ring, %count)
              "gpu_tile.ring_announce"(%ring, %slot) {bytes = 8192}
              scf.if (%k < %low + %step) { "gpu_tile.griddepcontrol"() {kind = "wait"} }
              "gpu_tile.tma_load"(%map_a, ...) }
          }) {name = "load", first_warp = 4, warps = 4}
          "gpu_tile.role"() ({
            scf.for %k = %low to %high step %step {
              %slot = "gpu_tile.ring_acquire"(%ring, %count)
              "gpu_tile.ring_announce"(%ring, %slot) {bytes = 32768}
              "gpu_tile.tma_load"(%map_b, ...) }
          }) {name = "load settled", first_warp = 5, warps = 1}

The author says of which arrays that is so (`settled="b"`): weights, say, which are as they are
since long before. So a product of few rows, which takes as long as memory needs for its weights,
reads them while the launch before it ends.

1. The copies get a thread of their own, in the load role's second warp, which has nothing to do: a
   single thread would issue a whole ring of them before it came to the other copies, and the ring
   would run dry.
2. A slot is full when both threads' bytes are there.
3. Where all copies are of settled arrays, the load role does not wait at all.

A kernel that writes an array said to be settled is an error. Where the promise brings nothing, the
report says why.
Does not handle: kernels without roles, which wait in front of all copies; load roles that fill
several rings.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import (
    GriddepcontrolOp,
    RingAcquireOp,
    RingAnnounceOp,
    RoleOp,
    TensorMapLoad,
)
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.passes.analysis.written_arrays import array_of, written_arrays
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import settled_arrays
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.refusals import Refusal, attempt
from tilec.passes.rewriting.walk import all_ops, alloc_of, find_ops, is_of, is_pure, role_of
from tilec.records import dataclass

_SCALAR_OPS = ("memref.dim", "scf.for", "scf.yield", "gpu.yield", "gpu_tile.role")


@kernel_pass(
    requires=Level.ALLOCATED,
    behind={"overlap-launches": "it takes copies out from behind the waits that it makes"},
    rings=True,
)
def load_early(function: ir.Operation, context: PassContext) -> None:
    """Lets copies of settled arrays go in front of the wait for earlier launches."""
    settled = settled_arrays(function)
    if not settled:
        return
    for array in written_arrays(function):
        if array in settled:
            raise error_at(function, f"settled: the kernel writes '{settled[array]}'")
    roles = find_ops(function, RoleOp)
    reasons = [_load_early(role, settled, context) for role in roles]
    starts = bool(find_ops(function, GriddepcontrolOp))
    late = None if starts else "the kernel does not start under the launch before"
    for name in settled.values() if None not in reasons else ():
        why = late or next(filter(None, reasons), "no role copies it")
        context.report.add("settled array", function, f"'{name}' is loaded like any other", why)


@dataclass(frozen=True)
class _Loads:
    """The ops by which a role fills its ring. `early`: copies of settled arrays. `announce`: tells
    the bytes of all copies; `wait`: the branch that waits for earlier launches."""

    early: list[ir.Operation]
    others: list[ir.Operation]
    announce: RingAnnounceOp
    wait: ir.Operation


def _load_early(
    role: ir.Operation, settled: dict[ir.Value, str], context: PassContext
) -> str | None:
    """Lets copies of settled arrays run early. Says why none of a role's does, "" where it has
    none; None where they do."""
    copies = find_ops(role, TensorMapLoad)
    early = [op for op in copies if array_of(op.opview.map) in settled]
    if not early:
        return ""
    others = [op for op in copies if op not in early]
    waits = [op for op in find_ops(role.parent, GriddepcontrolOp) if op.opview.kind == "wait"]
    if any(role_of(op) is None for op in waits):
        return "all threads wait for earlier launches in front of the roles"
    if not others and all(role_of(op) != role for op in waits):
        return None  # it runs early as it is
    found, refused = attempt(_find_loads, role, early, others)
    if found is None:
        return refused
    for op in early:
        how = "in a warp of its own" if others else "without a wait for earlier launches"
        context.report.add("settled array", op, how, "no launch still under way writes it")
    if others:
        _split(role.opview, found)
    else:
        found.wait.erase()
    return None


def _find_loads(
    role: ir.Operation, early: list[ir.Operation], others: list[ir.Operation]
) -> _Loads:
    """The parts of a role whose copies can run ahead."""
    block = early[0].block
    announces = find_ops(role, RingAnnounceOp)
    if any(op.block != block for op in (*early, *others, *announces)) or len(announces) != 1:
        raise Refusal("its warps fill several rings")
    waits = [op for op in find_ops(role, GriddepcontrolOp) if op.parent.name == "scf.if"]
    if len(waits) != 1 or waits[0].parent.block != block:
        raise Refusal("an earlier access of its warps waits for earlier launches")
    known = (*early, *others, *announces, *waits, waits[0].parent)
    stranger = _stranger(role, known)
    if stranger is not None:
        raise Refusal(f"'{stranger}' stands among the copies")
    if role.opview.warps < 2:
        raise Refusal("the role that loads has one warp")
    return _Loads(early, others, announces[0].opview, waits[0].parent)


def _stranger(role: ir.Operation, known: tuple[ir.Operation, ...]) -> str | None:
    """An op of a role that is no scalar and not known, by name."""
    for op in all_ops(role, inner_first=True):
        scalar = op.name.startswith("arith.") or op.name in _SCALAR_OPS or is_pure(op)
        if not (scalar or op in known or is_of(op, RingAcquireOp)):
            return op.name
    return None


def _split(role: RoleOp, found: _Loads) -> None:
    """A second role with the early copies, one warp behind the first role's first."""
    old = all_ops(role.operation)
    left_out = [old.index(op) for op in (found.wait, *found.others)]
    announced = old.index(found.announce.operation)
    early = sum(_slot_bytes(op) for op in found.early)
    all_bytes = found.announce.bytes
    with ir.InsertionPoint.after(role.operation), role.operation.location:
        copy = role.operation.clone().operation
    new = all_ops(copy)
    second = copy.opview
    second.name, second.first_warp = f"{role.name} settled", role.first_warp + 1
    second.warps, second.registers = 1, 0
    new[announced].opview.bytes = early
    for number in left_out:
        new[number].erase()
    found.announce.bytes = all_bytes - early
    found.announce.ring.owner.fills += 1
    for op in found.early:
        op.erase()


def _slot_bytes(copy: ir.Operation) -> int:
    """The bytes that arrive in a slot of the CTA's ring, whichever CTAs of a cluster load them."""
    return buffer_of(alloc_of(copy.opview.dst).result).slot().tile_bytes
