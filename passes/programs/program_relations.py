"""How programs of a grid compare: what they read alike, and whether some take longer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op, of_kind, traced
from tilec.dialects.effects import read_by
from tilec.dialects.gpu_tile import ConvertLayoutOp
from tilec.dialects.tile import ArrayOp, DotOp, LoadOp, ProgramIdOp, TransposeOp
from tilec.dialects.types import shape
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.rewriting.loops import enclosing_ops, find_loops, innermost_loop, terminator
from tilec.passes.rewriting.scalars import binary, create, i32_constant, select
from tilec.passes.rewriting.walk import blocks_in, find_ops, is_of

_COMPARING = ("arith.cmpi", "arith.cmpf")


def shares_rows_and_columns(loads: Sequence[ir.Operation]) -> bool:
    """Whether programs of a row read some tile alike, and those of a column mostly another.

    True without loads of tiles; single elements do not count. Products do, and those of groups of
    rows, whose matrix a search through the groups' ends chooses: neighbours mostly find the same
    one. Attention's blocks of queries share the keys of their head, but heads share nothing.
    """
    tiles = [load for load in loads if shape(load.results[0])]
    axes = [program_axes(load.operands) & {0, 1} for load in tiles]
    mostly = axes + [_steps(load.operands) & {0, 1} for load in tiles]
    return not tiles or any({own} in axes and {other} in mostly for own, other in ((0, 1), (1, 0)))


def differ_in_length(function: ir.Operation) -> bool:
    """Whether a loop ends, or begins, where the program id says, as under a causal mask.

    Where both depend on it, a sum was split into alike parts. Where data decides, nobody knows
    which programs are long.
    """
    bounds = [list(loop.operands)[:2] for loop in find_loops(function)]
    return any(
        _steps([one]) and not program_axes([other])
        for lower, upper in bounds
        for one, other in ((upper, lower), (lower, upper))
    )


def read_their_length(function: ir.Operation) -> bool:
    """Whether programs find in memory where a loop of theirs ends, or whether it runs: some may
    have nothing to do."""
    loops = find_loops(function)
    deciding = [list(loop.operands)[1] for loop in loops]
    deciding += [branch.operands[0] for loop in loops for branch in _branches(loop)]
    return any(program_axes([one]) and of_kind(ops_behind([one]), LoadOp) for one in deciding)


def bring_operands(function: ir.Operation) -> bool:
    """Whether a loop loads what it multiplies: an rhs as it is, or all that an lhs is computed
    from (`dots/computed_lhs.py`). Copies for the next program can run ahead then; what else is
    loaded goes through registers of those who multiply."""
    dots = [op.opview for op in find_ops(function, DotOp)]
    looping = [dot for dot in dots if innermost_loop(dot.operation) is not None]
    behind = [op.results[0] for dot in looping for op in ops_behind([dot.lhs]) if op.results]
    moves = (TransposeOp, ConvertLayoutOp)
    sides = [traced(dot.rhs, *moves)[1] for dot in looping]
    return any(map(_is_loaded_in_loop, [*behind, *sides]))


def _is_loaded_in_loop(value: ir.Value) -> bool:
    op = defining_op(value)
    is_load = op is not None and is_of(op, ArrayOp) and op.opview.is_load
    return is_load and bool(shape(value)) and innermost_loop(op) is not None


def have_uneven_loops(function: ir.Operation) -> bool:
    """Whether memory says where a loop ends."""
    ends = [loop.operands[1] for loop in find_loops(function)]
    return bool(of_kind(ops_behind(ends), LoadOp))


def leave_some_out(function: ir.Operation) -> bool:
    """Whether some programs skip a loop: a guard lets only others in, with no loop on its other
    side, or the loop's end is 0 there."""
    conditions: list[ir.Value] = []
    for loop in find_loops(function):
        guards = [branch for branch in _branches(loop) if not _runs_in_both(branch)]
        ends = [op for op in ops_behind([loop.operands[1]]) if _chooses_zero(op)]
        conditions += [op.operands[0] for op in (*guards, *ends)]
    return any(program_axes([condition]) for condition in conditions)


def _branches(op: ir.Operation) -> list[ir.Operation]:
    return [around for around in enclosing_ops(op) if around.name == "scf.if"]


def _runs_in_both(branch: ir.Operation) -> bool:
    """Whether both sides of a branch hold loops."""
    blocks = blocks_in(branch)
    ops = [[view.operation for view in block.operations] for block in blocks]
    return len(ops) == 2 and all(any(find_loops(op) for op in side) for side in ops)


def _chooses_zero(op: ir.Operation) -> bool:
    """Whether an op chooses between a number and 0."""
    if op.name == "arith.select":
        return any(constant_of(value) == 0 for value in list(op.operands)[1:])
    if op.name != "scf.if":
        return False
    yielded = [v for region in op.regions for v in terminator(region.blocks[0]).operands]
    return any(constant_of(value) == 0 for value in yielded)


def program_axes(values: Iterable[ir.Value]) -> set[int]:
    """The axes of the grid that have a part in `values`."""
    return _axes(ops_behind(values))


def _axes(ops: Iterable[ir.Operation]) -> set[int]:
    return {op.opview.axis for op in ops if is_of(op, ProgramIdOp)}


def _steps(values: Iterable[ir.Value]) -> set[int]:
    """The axes of the grid along which `values` grow by arithmetic.

    What is compared or read from memory chooses between places instead: from one program to the
    next mostly the same one.
    """
    return _axes(ops_behind(values, lambda op: not (op.name in _COMPARING or read_by(op.opview))))


def from_both_ends(number: ir.Value, total: ir.Value, ctas: ir.Value) -> ir.Value:
    """The program for a CTA's turn `number` = turns before * `ctas` + its own number: from the
    front of all `total` in even turns, from the back in odd ones.

    Front and back meet in the middle, whatever is left over there. Where lengths grow along the
    grid again and again, a CTA's turns are then long and short ones in pairs.
    """
    turns = binary("arith.divui", number, ctas)
    even = binary("arith.shrui", binary("arith.addi", turns, i32_constant(1)), 1)
    front = binary("arith.subi", number, binary("arith.muli", even, ctas))
    back = binary("arith.subi", binary("arith.subi", total, 1), front)
    odd = create("arith.trunci", [turns], ir.IntegerType.get_signless(1))
    program = select(odd, back, front)
    # It never is negative anyway; this lets the compiler know.
    return binary("arith.maxsi", program, i32_constant(0))
