"""How many warps a kernel gets when its author does not say."""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.types import is_tile, shape
from tilec.passes.contract import Report
from tilec.target import Target

ELEMENTS_PER_THREAD = 16
"""Of the largest tile, without dots: enough loads in flight, few enough registers."""
ACCUMULATORS_PER_THREAD = 64
"""Of the largest dot accumulator: a quarter of the registers."""


def choose_num_warps(function: ir.Operation, target: Target, report: Report) -> int:
    """A power of two by the largest tile: 1 to 16 warps, with dots 4 to 8."""
    largest, accumulators = 1, 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal largest, accumulators
        for result in op.results:
            if is_tile(result):
                largest = max(largest, prod(shape(result)))
        if isinstance(op.opview, tile.DotOp):
            accumulators = max(accumulators, prod(shape(op.opview.acc)))
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    if accumulators:
        warps = _power(accumulators // (ACCUMULATORS_PER_THREAD * target.warp_size), 4, 8)
        why = f"{accumulators} accumulators"
    else:
        warps = _power(largest // (ELEMENTS_PER_THREAD * target.warp_size), 1, 16)
        why = f"largest tile has {largest} elements"
    report.add("warps", function, str(warps), why, num_warps=warps)
    return warps


def _power(wanted: int, least: int, most: int) -> int:
    """The power of two at or below `wanted`, within bounds."""
    power = 1 << (max(1, wanted).bit_length() - 1)
    return max(least, min(most, power))
