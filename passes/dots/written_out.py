"""Products that stand one behind the other, as `tl.static_range` writes them out: the report says
so, as each waits for what it loads. In a loop copies of the next ones run ahead: a convolution of
nine gathered taps, 672 x 224 outputs of 128 channels of f16, takes 4.1 us on an H200 with
`tl.range(9)`, 7.2 written out."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.types import is_tile
from tilec.passes.contract import PassContext
from tilec.passes.rewriting.loops import innermost_loop
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import is_of

SEVERAL = 4
"""Products of a chain from which on a loop is worth a word: of fewer, loaded at once, threads wait
about as often. Nine were timed, others not."""


def report_written_out(dots: list[tile.DotOp], context: PassContext) -> None:
    """Names each chain of products outside of loops, of which each adds to the one before and
    loads."""
    chained = OpSet()
    for last in reversed(dots):
        if last.operation in chained or innermost_loop(last.operation) is not None:
            continue
        chain, dot = 0, last
        while dot is not None and any(map(_is_loaded, (dot.lhs, dot.rhs))):
            chain += 1
            chained.add(dot.operation)
            before = defining_op(dot.acc)
            dot = before.opview if before is not None and is_of(before, tile.DotOp) else None
        if chain >= SEVERAL:
            why = f"{chain} products are written out, and each waits for what it loads: in a loop, "
            why += "tl.range, copies would run ahead"
            context.report.add("pipeline", last.operation, "no", why)


def _is_loaded(value: ir.Value) -> bool:
    """Whether a tile is loaded, or computed from such, element by element."""
    op = defining_op(value)
    if op is None or is_of(op, tile.LoadOp, tile.GatherOp):
        return op is not None
    through = is_elementwise(op) or is_of(op, tile.TransposeOp)
    return through and any(_is_loaded(operand) for operand in op.operands if is_tile(operand))
