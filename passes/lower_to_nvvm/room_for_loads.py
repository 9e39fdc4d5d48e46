"""Whether ptxas is told that a kernel's loads may have registers.

Where 32 registers of a thread suffice ptxas gives no more, so that a multiprocessor holds all the
warps that it can: of six vectors of 16 bytes that a thread loads one behind the other it asks for
three, waits for them, adds them up, and asks for the next; of 32 for eight rows that are added up,
for one to three at a time. A directive that one CTA has to fit (`.minnctapersm 1`) says nothing
new, but ptxas then leaves the loads where they stand.

Does not handle: loads in loops that walk along arrays, which `prefetch-loads` issues ahead; kernels
that hold much else, whose registers ptxas does not spare.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.effects import is_product
from tilec.dialects.gpu_tile import CtaIdOp
from tilec.dialects.gpu_tile.role import RoleOp
from tilec.dialects.op import TileOp
from tilec.dialects.tile import ArrayOp
from tilec.dialects.types import shape
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.register_pressure import most_live_registers, registers_of
from tilec.passes.rewriting.loops import innermost_loop
from tilec.passes.rewriting.walk import all_ops, find_ops, is_of

LOADED = 16
"""Registers of a thread for what a block loads, beside which 32 have no room for addresses."""
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
    if max(loaded.values(), default=0) < LOADED:
        return False
    return most_live_registers(function.regions[0].blocks[0]) <= HELD


def _is_once(op: ir.Operation) -> bool:
    """Whether a program does an op at most once: no loop is around it but one over programs."""
    loop = innermost_loop(op)
    return loop is None or any(is_of(each, CtaIdOp) for each in ops_behind([loop.operands[0]]))
