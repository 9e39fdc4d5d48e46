"""Loops whose warps wait for each other in each iteration."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.tile.reduction import Combining
from tilec.passes.layouts.axis_levels import Place, axis_levels
from tilec.passes.rewriting.walk import find_ops


def warps_meet(loop: ir.Operation) -> bool:
    """Whether warps exchange what they have reduced or scanned in each iteration of a loop that
    multiplies nothing, branches and inner loops left out. Tiles have layouts."""
    if find_ops(loop, tile.DotOp):
        return False
    body = loop.regions[0].blocks[0]
    return any(_is_shared(op.opview) for op in find_ops(loop, Combining) if op.block == body)


def _is_shared(view: Combining) -> bool:
    """Whether several warps hold elements that are combined: lanes of one need not wait."""
    levels = axis_levels(layout_of(view.inputs[0]), view.axis)
    return any(level.place is Place.WARP for level in levels)
