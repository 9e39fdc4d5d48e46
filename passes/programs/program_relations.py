"""How programs of a grid compare: what they read alike, and whether some take longer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from tilec.dialects.tile import ProgramIdOp
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.rewriting.loops import find_loops
from tilec.passes.rewriting.scalars import binary, i32_constant, scalar_op


def shares_rows_and_columns(loads: Sequence[ir.Operation]) -> bool:
    """Whether programs of a row read something alike, and those of a column something else.

    True without loads. Products do; attention's blocks of queries share the keys of their head, but
    heads share nothing.
    """
    used = [_axes(load.operands) & {0, 1} for load in loads]
    return not used or ({0} in used and {1} in used)


def differ_in_length(function: ir.Operation) -> bool:
    """Whether a loop ends where the program id says, as under a causal mask.

    Where the beginning depends on it too, a sum was split into alike parts.
    """
    bounds = [list(loop.operands)[:2] for loop in find_loops(function)]
    return any(_axes([upper]) and not _axes([lower]) for lower, upper in bounds)


def _axes(values: Iterable[ir.Value]) -> set[int]:
    """The axes of the grid that have a part in `values`."""
    return {op.opview.axis for op in ops_behind(values) if isinstance(op.opview, ProgramIdOp)}


def from_both_ends(number: ir.Value, total: ir.Value, ctas: ir.Value) -> ir.Value:
    """The program for a CTA's turn `number` = turns before * `ctas` + its own number: from the
    front of all `total` in even turns, from the back in odd ones.

    Front and back meet in the middle, whatever is left over there. Where lengths grow along the
    grid again and again, a CTA's turns are then long and short ones in pairs.
    """
    turns = binary("arith.divui", number, ctas)
    even = binary("arith.shrui", binary("arith.addi", turns, i32_constant(1)), i32_constant(1))
    front = binary("arith.subi", number, binary("arith.muli", even, ctas))
    back = binary("arith.subi", binary("arith.subi", total, i32_constant(1)), front)
    odd = scalar_op("arith.trunci", [turns], ir.IntegerType.get_signless(1))
    program = scalar_op("arith.select", [odd, back, front], number.type)
    # It never is negative anyway; this lets the compiler know.
    return scalar_op("arith.maxsi", [program, i32_constant(0)], number.type)
