"""load-next-programs: a warp that takes one program after the other loads what the next one needs
before it works on this one.

Before:   scf.for %row = %mine to %programs step %step {                 (pass pack-programs)
            %x = "tile.load"(%a, %row, %c0) ...
            %w = "tile.load"(%weight, %c0) ...
            %s = "tile.reduce"(%x) ...
            "tile.store"(...)
          }
After:    %w = "tile.load"(%weight, %c0) ...
          %x0 = scf.if (%mine < %programs) { "tile.load"(%a, %mine, %c0) } else { zeros }
          scf.for %row = %mine to %programs step %step iter_args(%x = %x0) {
            %next = scf.if (%row + %step < %programs) { "tile.load"(%a, %row + %step, %c0) } else %x
            %s = "tile.reduce"(%x) ...
            "tile.store"(...)
            scf.yield %next
          }

A warp alone waits for memory once a program, and for its lanes' exchanges behind that, and ptxas
moves no load across a store. Softmax of 200000 rows of 64 f16 takes 15.9 us for 16.9, layer norm of
25628 of 143 bf16 13.4 for 17.2, RMS norms of 7110 of 512 5.9 for 6.3 (H200). Programs may run in
any order and side by side, so that none reads what another one writes: their loads may stand in
front of each other's stores, also where a kernel works in place.

1. Loads of the loop over programs itself qualify whose addresses follow from its counter, of what
   the program itself has not written before. One that tells another where it goes, as the number of
   a table's row, comes along with that one and is loaded again for its own program's other uses.
2. Those that every program does alike, of arrays that the kernel does not write, stand in front of
   the loop.
3. All of them, if few registers hold what is on its way (`MOST_WORDS`), or none; nor single numbers
   alone, as labels and ends of rows: what waits for them is not on its way then.
4. Whole warps that share nothing with other programs wait: others run then, more of them without
   these registers. Fifteen softmaxes and quantisations of 612 to 60000 rows of 49 to 768 columns
   took 0.93 to 1.00 of the time so (H200).
Does not handle: loads in branches and in loops of a program; gathers; tiles of which a thread's
elements come one by one in less than a register, which packing waits for (50000 rows of 153 f16 to
length 1, in 16 lanes each: 15.5 us for 14.0, H200).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.effects import whole_of, written_by
from tilec.dialects.gpu_tile import CtaIdOp
from tilec.dialects.tile import LoadOp
from tilec.dialects.types import shape
from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.register_pressure import most_live_registers, tiles_apart
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.loads_ahead import AheadLoads, ahead_loads, are_apart, issue_ahead
from tilec.passes.demands.kernels import lanes_of, programs_per_cta
from tilec.passes.rewriting.loops import find_loops
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import all_ops, is_of

MOST_WORDS = 16
"""Registers of a thread for what is on its way: a row of 1024 elements of 2 bytes in a warp."""
ROOM = 56
"""Registers of a thread that may be alive with them: of more a multiprocessor holds less than the
32 warps of four CTAs."""


@kernel_pass(
    requires=Level.BUFFERS,
    behind={
        "pack-programs": "that writes the loop",
        "hoist-loads": "loads that it moves are in the way of no others",
    },
)
def load_next_programs(function: ir.Operation, context: PassContext) -> None:
    """Loads for a warp's next program while it works on this one."""
    if programs_per_cta(function) == 1:
        return
    for loop in filter(_is_over_programs, find_loops(function)):
        _load_next(function, loop, context)


def _is_over_programs(loop: ir.Operation) -> bool:
    """Whether a loop begins at the first program of a warp, and holds all that is done for it."""
    starts = any(is_of(op, CtaIdOp) for op in ops_behind([loop.operands[0]]))
    return starts and not len(loop.results)


def _load_next(function: ir.Operation, loop: ir.Operation, context: PassContext) -> None:
    body = loop.regions[0].blocks[0]
    loads = _of_others(body)
    known = [found for load in loads if (found := ahead_loads(loop, [load])) is not None]
    common = [found for found in known if _is_common(found, function)]
    others = [found for found in known if not _is_common(found, function)]
    behind = OpSet(op for found in others for op in found.addresses)
    own = [found.loads[0] for found in others if found.loads[0] not in behind]
    shares_nothing = not common and lanes_of(function) == WARP_SIZE
    if shares_nothing or are_apart(own, tiles_apart(function, body)):
        return
    found = ahead_loads(loop, own)
    taken = sum(each.registers for each in common) + (found.registers if found else 0)
    is_little = taken <= MOST_WORDS and most_live_registers(body) + taken <= ROOM
    if found is None or not is_little or not any(shape(load.opview.result) for load in own):
        return
    for each in common:
        for op in (*each.addresses, *each.loads):
            if op.block == body:
                op.move_before(loop)
    why = f"{taken} registers of a thread hold what is under way"
    context.report.add("loads", own[0], "a program ahead", why)
    again = ahead_loads(loop, own)
    assert again is not None  # as before: what is common says nothing of where others are
    issue_ahead(again)


def _of_others(body: ir.Block) -> list[ir.Operation]:
    """The loads of a program of what it has not written itself by then."""
    found, written = [], list[ir.Value]()
    for view in body.operations:
        if isinstance(view, LoadOp) and whole_of(view.src) not in written:
            found.append(view.operation)
        for op in all_ops(view.operation):
            written += written_by(op.opview)
    return found


def _is_common(found: AheadLoads, function: ir.Operation) -> bool:
    """Whether a load is the same for all programs."""
    counter = found.loop.regions[0].blocks[0].arguments[0]
    ops = [*found.addresses, *found.loads]
    if any(operand == counter for op in ops for operand in op.operands):
        return False
    arrays = {load.opview.array for load in found.loads}
    return read_ahead_hazard(function, arrays, "the kernel") is None
