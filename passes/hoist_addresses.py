"""hoist-addresses: what asynchronous instructions are given is computed in front of the waits.

Before:   llvm.inline_asm "... mbarrier.try_wait ..." %full, %parity
          %a = arith.muli %slot, %c16384 : i32
          llvm.inline_asm "wgmma.mma_async ..." %a
          scf.if %later {
            %b = arith.addi %slot, %c8 : i32
            llvm.inline_asm "@$1 mbarrier.arrive ..." %b, %first
          }
After:    %a = arith.muli %slot, %c16384 : i32
          %b = arith.addi %slot, %c8 : i32
          llvm.inline_asm "... mbarrier.try_wait ..." %full, %parity
          llvm.inline_asm "wgmma.mma_async ..." %a
          %both = arith.andi %later, %first : i1
          llvm.inline_asm "@$1 mbarrier.arrive ..." %b, %both

A wait is a loop, and neither LLVM nor ptxas moves anything up across it or out of a branch. Behind
it every instruction delays what others wait for: the arrival that gives a slot back, the copy that
fills it again. An arrival with a guard needs no branch: in the block of the products its address is
there before they are finished.

Only pure integer arithmetic moves, out of scf.if too: a few registers that live across a wait. A
division moves if its divisor is a constant, which is not zero.
Does not handle: what an earlier iteration could compute for a later one.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.analysis.integer_ops import has_integers_alone, is_division, is_integer_op
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.lower_to_nvvm.access import asm_text
from tilec.passes.rewriting.op_tables import OpMap, order_of
from tilec.passes.rewriting.scalars import binary
from tilec.passes.rewriting.walk import ops_named

_WAIT = "mbarrier.try_wait"
_ISSUED = (
    "mbarrier.arrive",
    "cp.async.bulk.tensor",
    "wgmma.mma_async",
)
"""Instructions whose operands are wanted early, by a part of their text."""

_ADDRESSES = frozenset(
    {"arith.constant", "llvm.mlir.constant", "llvm.getelementptr", "llvm.addrspacecast"}
)
"""Ops that move like integer arithmetic."""


@tile_pass(requires=Level.NVVM)
def hoist_addresses(module: ir.Module, context: PassContext) -> None:
    """Moves the address arithmetic of every block in front of its first wait that it can pass, and
    replaces branches around arrivals."""
    blocks: dict[ir.Block, list[ir.Operation]] = {}
    for op in ops_named(module.operation, ["llvm.inline_asm"]):
        if _WAIT in asm_text(op):
            blocks.setdefault(op.block, []).append(op)
    for block, waits in blocks.items():
        _Block(block, waits).run()


class _Block:
    """One block in which some op waits for a barrier."""

    def __init__(self, block: ir.Block, waits: list[ir.Operation]) -> None:
        self._ops = [view.operation for view in block.operations]
        self._order = order_of(self._ops)
        self._waits = waits
        self._places: OpMap[int] = OpMap()

    def run(self) -> None:
        """Moves what the instructions behind the first wait need, out of branches too."""
        for op in self._ops[self._order[self._waits[0]] :]:
            if op.name not in ("llvm.inline_asm", "scf.if"):
                continue
            for issued in _issued(op):
                for operand in issued.operands:
                    self._hoist(operand)
            if op.name == "scf.if":
                _predicate(op)

    def _hoist(self, value: ir.Value) -> int:
        """Moves what computes a value as early as it may stand. Returns the number of the op behind
        which the value is known, -1 in front of all."""
        op = defining_op(value)
        if op is None:
            return -1 if self._place(value.owner.owner) is None else len(self._ops)
        place = self._places.get(op)
        if place is None:
            place = self._places[op] = self._hoist_op(op)
        return place

    def _hoist_op(self, op: ir.Operation) -> int:
        place = self._place(op)
        if place is None:
            return -1
        if not _is_movable(op):
            return place
        earliest = max((self._hoist(operand) for operand in op.operands), default=-1)
        wait = next((w for w in self._waits if self._order[w] > earliest), None)
        if wait is None or self._order[wait] >= place:
            return place
        op.move_before(wait)
        self._order[op] = self._order[wait] - 1
        return self._order[op]

    def _place(self, op: ir.Operation | None) -> int | None:
        """The number of the block's op that is or holds an op, None for one outside."""
        while op is not None and (number := self._order.get(op)) is None:
            op = op.parent
        return None if op is None else number


def _issued(op: ir.Operation) -> list[ir.Operation]:
    """The asynchronous instructions that an op is, or holds in an scf.if."""
    if op.name == "scf.if":
        inside = (view.operation for region in op.regions for block in region for view in block)
        return [found for one in inside for found in _issued(one)]
    text = asm_text(op)
    return [op] if any(name in text for name in _ISSUED) else []


def _predicate(branch: ir.Operation) -> None:
    """Replaces an scf.if around one guarded arrival by a narrower guard."""
    if branch.results or len(branch.regions[1].blocks):
        return
    if len(branch.regions[0].blocks[0].operations) == 1:  # nothing but its end
        return
    *pure, arrival, _ = (view.operation for view in branch.regions[0].blocks[0].operations)
    if not asm_text(arrival).startswith("@$1 mbarrier.arrive") or not all(map(_is_movable, pure)):
        return
    for op in (*pure, arrival):
        op.move_before(branch)
    *_, guard = arrival.operands
    with ir.InsertionPoint(arrival), arrival.location:
        arrival.operands[1] = binary("arith.andi", branch.operands[0], guard)
    branch.erase()


def _is_movable(op: ir.Operation) -> bool:
    """Whether an op is integer arithmetic that may run where it did not before."""
    if not has_integers_alone(op):
        return False
    if op.name == "llvm.inline_asm":
        return "has_side_effects" not in op.attributes
    if is_division(op):
        return bool(constant_of(op.operands[1]))
    return op.name in _ADDRESSES or is_integer_op(op)
