"""Which kernels the compiler may run in clusters whose CTAs load together what they share."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import made_by, of_kind, traced
from tilec.dialects.demands import is_demanded
from tilec.dialects.effects import whole_of
from tilec.dialects.gpu_tile import LaunchCount, TileOrderOp
from tilec.dialects.tile import ArrayOp, Atomic, DotOp, FenceOp, LoadOp, PrintOp, TransposeOp
from tilec.hardware.target import Feature, Target
from tilec.passes.analysis.hazards import may_write, orders_memory
from tilec.passes.demands.kernels import ctas_of, is_explicit, teams_of
from tilec.passes.programs.program_relations import program_axes
from tilec.passes.programs.sum_parts import find_sum, sum_parts_of
from tilec.passes.rewriting.walk import all_ops, find_ops
from tilec.terms.demands import CLUSTER, PERSISTENT

_OWN = (Atomic, FenceOp, PrintOp, TileOrderOp, LaunchCount)
"""What a kernel does that orders its programs itself, or that others notice if it is done twice."""


def why_apart(function: ir.Operation, target: Target) -> str | None:
    """Says why a kernel's programs do not run in clusters that share loads; None if they may.

    Those of one loop of products do, whose operands are loaded as they are, equally many steps in
    each program: CTAs of a cluster wait for each other. One whose program is outside the grid runs
    another once more and stores nothing, so nothing that it does beside may be noticed.
    """
    if not (target.supports(Feature.CLUSTERS) and target.supports(Feature.WGMMA)):
        return f"{target.name} has no clusters whose warpgroups multiply"
    if any(is_demanded(function, one) for one in (CLUSTER, PERSISTENT)) or is_explicit(function):
        return "the author says how programs run"
    if ctas_of(function) > 1 or teams_of(function) > 1 or sum_parts_of(function) > 1:
        return "CTAs share the programs already"
    loop = find_sum(function)
    dots = [] if loop is None else find_ops(loop, DotOp)
    if loop is None or not dots or program_axes(list(loop.operands)[:3]):
        return "no loop, or none of the same length in all programs, multiplies"
    if not all(_is_loaded(side, loop) for dot in dots for side in list(dot.operands)[:2]):
        return "what is multiplied is not all loaded as it is"
    ops = [op.opview for op in all_ops(function)]
    if any(isinstance(op, _OWN) or may_write(op) or orders_memory(op) for op in ops):
        return "programs do what others could notice"
    arrays = of_kind(ops, ArrayOp)
    written = [whole_of(op.array) for op in arrays if not op.is_load]
    if any(whole_of(op.array) in written for op in arrays if op.is_load):
        return "programs read what they write"
    return None


def _is_loaded(side: ir.Value, loop: ir.Operation) -> bool:
    """Whether an operand is a tile as the loop loads it, or its transpose."""
    load = made_by(traced(side, TransposeOp)[1], LoadOp)
    return load is not None and load.operation.block == loop.regions[0].blocks[0]
