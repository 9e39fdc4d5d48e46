"""split-edges: programs whose tiles lie inside of their arrays test no bounds.

Before:   %x = "tile.load"(%a, %m, %n) ...
          "tile.store"(%x, %c, %m, %n) ...
After:    %inside = 0 <= %m and %m + 32 <= memref.dim(%a, 0) and ...                 (of each array)
          scf.if %inside {
            %x = "tile.load"(%a, %m, %n) {options = {inside = true}} ...
            "tile.store"(%x, %c, %m, %n) {options = {inside = true}} ...
          } else { ... as before ... }

A guarded load of one element takes three instructions: its comparison, its padding, and itself. All
but the programs at the edges of an array ask for nothing, and where rows begin at odd places a
thread has dozens of such loads: a stencil of f16 with two neighbours in each direction had 544
instructions for 8 elements, and has 345.

1. Accesses are those of one block whose offsets are known in front of the first, and in which
   threads compute elements of their own alone: neither loops nor branches follow.
2. The kernel is for launches of many programs (`MANY`); else it says from how many on it were.
3. The loads among them test at least `LEAST_TESTS` times in a thread. (Stores have no padding, and
   rows and columns their tests in common.) For each a thread computes few elements.
4. Offsets along an axis that differ by constants are tested once, at their least and their most.

Does not handle: gathers, which go anywhere; blocks in which threads meet; what loops carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.tile import LoadOp, SplitOp, StoreOp
from tilec.dialects.types import is_tile, shape
from tilec.passes.analysis.divisibility import (
    Divisibility,
    unbounded_dims,
    value_and_constant,
)
from tilec.passes.analysis.signs import is_never_negative
from tilec.passes.analysis.vector_width import vector_width
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import MANY, programs_per_sm, suit_few
from tilec.passes.rewriting.control import branch
from tilec.passes.rewriting.free_ops import is_scalar, is_total, stays_in_thread
from tilec.passes.rewriting.loops import clone_mapped, terminator
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import binary, both, compare, constant, create
from tilec.passes.rewriting.walk import find_ops, is_of

LEAST_TESTS = 20
"""Of a thread: with 9 or 10 a stencil of 1608 x 1536 f32 takes 8.2 us for 8.0, with 21 a filter of
7 x 1256 x 384 f32 8.9 for 9.4 (H200)."""
COMPUTED_A_TEST = 32
"""Elements that a thread computes for each test at most: the code for them stands there twice, and
gains little of what it takes. A stencil has 3 to 12, the filter 20. Not timed with others."""

Access = LoadOp | StoreOp


@kernel_pass(
    requires=Level.ALLOCATED,
    behind={"overlap-launches": "what waits for earlier launches stays in front of the branch"},
)
def split_edges(function: ir.Operation, context: PassContext) -> None:
    """Gives programs that lie inside of all arrays code without bounds."""
    accesses = [op for op in find_ops(function, LoadOp, StoreOp) if shape(op.opview.tile)]
    if not accesses or any(op.block != accesses[0].block for op in accesses):
        return
    first, end = accesses[0], terminator(accesses[0].block)
    rest = [op for op in _from(first) if op != end]
    if list(end.operands) or not all(map(_is_free, rest)):
        return
    early = _Early(first)
    tested = [op for op in accesses if all(map(early.can_have, op.opview.offsets))]
    facts = Divisibility(function)
    tests = sum(_tests(op.opview, facts) for op in tested if op.opview.is_load)
    if tests < max(LEAST_TESTS, _computed(rest) // COMPUTED_A_TEST):
        return
    if programs_per_sm(function) <= MANY:
        suit_few(function, MANY)
        why = f"{MANY} programs a multiprocessor and fewer gain nothing"
        context.report.add("bounds", function, "tested by all programs", why)
        return
    for op in early.needed(op.opview for op in tested):
        op.move_before(first)
    with ir.InsertionPoint(first), first.location:
        inside = _inside(op.opview for op in tested)
        if inside is None:
            return
        _split(inside, [op for op in _from(first) if op != end], OpSet(tested))
    why = f"they lie inside of the arrays, and a thread has {tests} tests"
    context.report.add("bounds", function, "not tested by programs away from the edges", why)


def _from(first: ir.Operation) -> list[ir.Operation]:
    """An op and those behind it in its block."""
    ops = [view.operation for view in first.block.operations]
    return ops[ops.index(first) :]


def _is_free(op: ir.Operation) -> bool:
    return is_scalar(op) or stays_in_thread(op) or is_of(op, SplitOp, StoreOp)


def _computed(ops: Iterable[ir.Operation]) -> int:
    """Elements of a thread that ops give."""
    results = (result for op in ops for result in op.results if is_tile(result))
    return sum(layout_of(result).num_values for result in results)


def _tests(load: LoadOp, facts: Divisibility) -> int:
    """How often a thread asks whether something lies inside; first and last of ragged vectors."""
    found = vector_width(load, facts)
    if found.width > 1 and not found.whole:
        return 2
    return layout_of(load.result).num_values // found.width


class _Early:
    """What may be computed in front of an op of a block, though it stands behind it."""

    def __init__(self, first: ir.Operation) -> None:
        self._behind = OpSet(_from(first))

    def can_have(self, value: ir.Value) -> bool:
        """Whether a value follows from scalars known there."""
        op = defining_op(value)
        if op is None or op not in self._behind:
            return True
        return is_scalar(op) and is_total(op) and all(map(self.can_have, op.operands))

    def needed(self, accesses: Iterable[Access]) -> list[ir.Operation]:
        """The ops to move there, in order, for arrays and offsets of accesses."""
        found, pending = OpSet(), [v for each in accesses for v in (each.array, *each.offsets)]
        while pending:
            op = defining_op(pending.pop())
            if op is not None and op in self._behind and op not in found:
                found.add(op)
                pending += op.operands
        return [op for op in self._behind if op in found]


def _inside(accesses: Iterable[Access]) -> ir.Value | None:
    """Whether all tiles lie inside of their arrays (i1), at the insertion point; None where they
    certainly do."""
    ends: dict[tuple[ir.Value, int, ir.Value], tuple[int, int]] = {}
    for access in accesses:
        lengths = dict(zip(access.dims, shape(access.tile), strict=True))
        for axis, offset in enumerate(access.offsets):
            if axis not in unbounded_dims(access.array):
                base, least = value_and_constant(offset)
                low, high = ends.get((access.array, axis, base), (least, least))
                most = least + lengths.get(axis, 1)
                ends[access.array, axis, base] = min(low, least), max(high, most)
    flag = None
    for (array, axis, base), (low, high) in ends.items():
        if low < 0 or not is_never_negative(base):
            flag = both(flag, compare("sge", binary("arith.addi", base, low), 0))
        number = constant(base.type, axis)
        size = create("memref.dim", [array, number], base.type)
        flag = both(flag, compare("sle", binary("arith.addi", base, high), size))
    return flag


def _split(inside: ir.Value, ops: Sequence[ir.Operation], tested: OpSet) -> None:
    """Moves ops into the second block of a branch at the insertion point, which is for programs at
    the edges, and copies them into the first."""
    whole, edges = (region.blocks[0] for region in branch(inside, []).regions)
    mapped: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(whole):
        for op in ops:
            copy = clone_mapped(op, mapped)
            if op in tested:
                copy.opview.options = {**copy.opview.options, "inside": True}
        ir.Operation.create("scf.yield")
    with ir.InsertionPoint(edges):
        end = ir.Operation.create("scf.yield")
    for op in ops:
        op.move_before(end)
