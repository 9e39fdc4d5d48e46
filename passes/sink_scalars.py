"""sink-scalars: what only the end of a program needs is computed under its last products.

Before:   %group = arith.divui %number, %columns : i32
          %row = arith.muli %group, %c128 : i32
          %acc = scf.for ... { llvm.inline_asm "wgmma.mma_async ..." ... }
          %sum = llvm.inline_asm "wgmma.wait_group.sync.aligned 0;" %acc
          llvm.inline_asm "cp.async.bulk.tensor ..." %row
After:    %acc = scf.for ... { llvm.inline_asm "wgmma.mma_async ..." ... }
          %group = arith.divui %number, %columns : i32
          %row = arith.muli %group, %c128 : i32
          llvm.inline_asm "pmevent 0;"
          %sum = llvm.inline_asm "wgmma.wait_group.sync.aligned 0;" %acc
          llvm.inline_asm "cp.async.bulk.tensor ..." %row

In a persistent kernel the warps that multiply take a new program where the one before ended, and
where its results go follows from its number by three divisions, one after the other: some 300
clocks in front of the first product, in which tensor cores idle. A group of products is in flight
behind their loop, for longer than that. Neither LLVM nor ptxas moves divisions across a loop; ptxas
takes waits for cheap and would put this one in front of them, but schedules nothing across a
`pmevent` (see `gpu_tile.wgmma_meanwhile`).

Pure integer arithmetic moves, divisions too: it runs as often as before.
Does not handle: what stands behind a wait for something else, as where sets of warps take programs
in turn: those have each other's products to hide under.
"""

from __future__ import annotations

from mlir import ir

from tilec.passes.analysis.integer_ops import is_division, is_integer_op
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.lower_to_nvvm.access import asm_text, inline_asm
from tilec.passes.rewriting.loops import behind
from tilec.passes.rewriting.op_tables import OpMap, order_of
from tilec.passes.rewriting.walk import ops_named

_LAST_WAIT = "wgmma.wait_group.sync.aligned 0;"
_PRODUCT = "wgmma.mma_async"
_STAYS = "pmevent 0;"


@tile_pass(requires=Level.NVVM)
def sink_scalars(module: ir.Module, context: PassContext) -> None:
    """Moves integer arithmetic in front of loops of products behind them, where nothing inside
    needs it."""
    loops: list[tuple[ir.Operation, ir.Operation]] = []
    for op in ops_named(module.operation, ["scf.for"]):
        following = behind(op)
        if asm_text(following) == _LAST_WAIT and _multiplies(op):
            loops.append((op, following))
    for loop, wait in loops:
        _sink(loop, wait)


def _multiplies(loop: ir.Operation) -> bool:
    """Whether a loop's own block has a product."""
    return any(
        _PRODUCT in asm_text(view.operation) for view in loop.regions[0].blocks[0].operations
    )


def _sink(loop: ir.Operation, wait: ir.Operation) -> None:
    ops = [view.operation for view in loop.block.operations]
    order = order_of(ops)
    last = order[wait]
    place = wait
    for op in reversed(ops[: order[loop]]):
        if not (is_integer_op(op) or is_division(op)):
            continue
        users = [use.owner for result in op.results for use in result.uses]
        if not users:
            op.erase()
        elif all(_number(user, order) >= last for user in users):
            op.move_before(place)
            order[op] = last
            place = op
    if place != wait:
        with ir.InsertionPoint(wait), wait.location:
            inline_asm(_STAYS, [], [], [])


def _number(op: ir.Operation, order: OpMap[int]) -> int:
    """The number of the block's op that is or holds an op."""
    while op not in order:
        op = op.parent
    return order[op]
