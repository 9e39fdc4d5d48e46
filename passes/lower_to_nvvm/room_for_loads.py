"""Whether ptxas is told that a kernel's loads may have registers.

Where 32 registers of a thread suffice ptxas gives no more, so that a multiprocessor holds all the
warps that it can: of six vectors of 16 bytes that a thread loads one behind the other it asks for
three, waits for them, adds them up, and asks for the next; of 32 for eight rows that are added up,
for one to three at a time. A directive that one CTA has to fit (`.minnctapersm 1`) says nothing
new, but ptxas then leaves the loads where they stand. Where threads meet behind the loads that is
worth the warps that the registers cost (H200): instance norms of 659 rows of 4566 f32 take 8.0 us
for 9.2, layer norms of a branch of 5195 of 193 f16 4.9 for 5.7, of embeddings of 9010 of 320 f32
7.4 for 8.0. Else other warps compute meanwhile: a fake quantisation of 12158 x 512 f16 took 8.8 for
8.1, geglu of 3683 x 7353 50.1 for 49.2.

Does not handle: loads in loops that walk along arrays, which `prefetch-loads` issues ahead; kernels
that hold much else, whose registers ptxas does not spare.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.effects import is_product
from tilec.dialects.gpu_tile import CtaIdOp, WarpReduceOp
from tilec.dialects.gpu_tile.role import RoleOp
from tilec.dialects.op import TileOp
from tilec.dialects.tile import ArrayOp, ScanOp
from tilec.dialects.types import shape
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.register_pressure import most_live_registers, registers_of
from tilec.passes.rewriting.loops import innermost_loop
from tilec.passes.rewriting.walk import all_ops, find_ops, is_of

LOADED, LOADED_APART = 16, 32
"""Registers of a thread for what a block loads: beside so many 32 have no room for addresses; and
where no threads meet, so many that 32 do not hold them."""
HELD = 34
"""Registers of a thread for all values at the same time, at most: of more ptxas gives what they
take in any case (layer normalisation's gradient of rows of 384 f16, 40, takes 80)."""


def wants_room(function: ir.Operation) -> bool:
    """Whether what a program loads at once would be waited for in parts."""
    if find_ops(function, RoleOp) or any(
        is_product(op.opview) for op in find_ops(function, TileOp)
    ):
        return False
    loaded: dict[ir.Block, int] = {}
    for op in all_ops(function):
        view = op.opview
        if isinstance(view, ArrayOp) and view.is_load and shape(view.tile) and _is_once(op):
            loaded[op.block] = loaded.get(op.block, 0) + registers_of(op.results[0])
    meets = find_ops(function, WarpReduceOp, ScanOp)
    if max(loaded.values(), default=0) < (LOADED if meets else LOADED_APART):
        return False
    return most_live_registers(function.regions[0].blocks[0]) <= HELD


def _is_once(op: ir.Operation) -> bool:
    """Whether a program does an op at most once: no loop is around it but one over programs."""
    loop = innermost_loop(op)
    return loop is None or any(is_of(each, CtaIdOp) for each in ops_behind([loop.operands[0]]))
