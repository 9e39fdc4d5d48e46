"""skip-scaling: sums of products stay as they are where no row's running maximum grew.

Before:   %more = arith.maximumf %most, ...       (or a select of %most)
          %shrink = math.exp2 (arith.subf %most, %more)     %rows = "tile.broadcast"(%shrink)
          %sum = "gpu_tile.wgmma_wait"(...)       %scaled = arith.mulf %sum, %rows
After:    %scaled = "gpu_tile.scale"(%sum, %rows)

Sums that are weighted by exponentials, less the highest seen so far, are scaled each time a higher
one comes: by one for most rows of most iterations. A warp whose rows all have a factor of one skips
it, with the same bits: an instruction for each element less where tensor cores wait for the sums,
130 of 419 in an iteration of attention with heads of 256 elements.

Does not handle: sums in tensor memory, which are loaded to be scaled; those of single warps.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile import ScaleOp, WgmmaFenceOp, WgmmaWaitOp
from tilec.dialects.types import is_tile
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import ops_named

_EXPONENTIALS = ("math.exp2", "math.exp")
_CHOICES = ("arith.maximumf", "arith.maxnumf", "arith.select")
"""What gives a number that is another one, or more than it."""


@kernel_pass(
    requires=Level.BUFFERS,
    behind={"rotate-dots": "it tells what needs an accumulator by ops of arithmetic"},
)
def skip_scaling(function: ir.Operation, context: PassContext) -> None:
    """Scales sums of warpgroup products only where a factor is not one."""
    for op in ops_named(function, ("arith.mulf",)):
        if not is_tile(op.result):
            continue
        for total, rows in (op.operands, reversed(op.operands)):
            if _is_sum(total, op.result) and _is_running(rows):
                context.report.add(
                    "scaling", op, "skipped where a warp's factors are one", "a maximum stays often"
                )
                with ir.InsertionPoint(op), op.location:
                    made = ScaleOp.build(total, rows, results=[op.result.type])
                replace_op(op, made)
                break


def _is_sum(value: ir.Value, scaled: ir.Value) -> bool:
    """Whether a tile is a product's sums, or `scaled` what the next product adds to."""
    adds = any(isinstance(use.owner, WgmmaFenceOp) for use in scaled.uses)
    return adds or isinstance(value.owner, WgmmaWaitOp)


def _is_running(rows: ir.Value) -> bool:
    """Whether a factor of each row is the exponential of what a maximum was less what it is."""
    spread = defining_op(rows, "tile.broadcast")
    power = spread and defining_op(spread.operands[0], *_EXPONENTIALS)
    less = power and defining_op(power.operands[0], "arith.subf")
    if not less:
        return False
    was, now = less.operands
    chosen = defining_op(now, *_CHOICES)
    return chosen is not None and any(value == was for value in chosen.operands)
