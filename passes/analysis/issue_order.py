"""What of a loop's body a product needs before it can be issued, and so whether it can be issued in
another iteration."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op, made_by
from tilec.dialects.gpu_tile import BufferView, RingSlotOp, RingWaitOp, SlotOp
from tilec.dialects.types import is_tile
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.rewriting.loops import in_block, terminator
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.refusals import Refusal
from tilec.passes.rewriting.walk import is_of


def ring_turn(operand: ir.Value) -> RingSlotOp | RingWaitOp | None:
    """The turn whose slot an operand lies in."""
    while (view := made_by(operand, BufferView)) is not None:
        turn = made_by(view.index, RingSlotOp, RingWaitOp) if is_of(view, SlotOp) else None
        if turn is not None:
            return turn
        operand = view.src
    return None


def constant_steps(loop: ir.Operation) -> dict[int, int]:
    """The loop-carried values that grow by a constant, by number, and that constant."""
    body = loop.regions[0].blocks[0]
    found = {}
    for number, yielded in enumerate(terminator(body).operands):
        op = defining_op(yielded, "arith.addi")
        if op is None:
            continue
        base, step = op.operands
        if base == body.arguments[1 + number] and (known := constant_of(step)) is not None:
            found[number] = known
    return found


def needed_to_issue(
    roots: Sequence[ir.Operation],
    body: ir.Block,
    counters: dict[int, int],
    given: Sequence[ir.Value],
    issuing: tuple[type, ...],
) -> list[ir.Operation]:
    """The ops of the body that `roots` need beside the values `given`, in order; refused where they
    cannot be issued in another iteration: of what is no scalar, only ops of the kinds `issuing` may
    move."""
    needed = OpSet()
    pending = list(roots)
    while pending:
        op = pending.pop()
        if op in needed:
            continue
        if not is_free(op) and not is_of(op, *issuing):
            raise Refusal(f"a product depends on '{op.name}' in its iteration")
        needed.add(op)
        for value in op.operands:
            if any(value == one for one in given):
                continue
            made = defining_op(value)
            if made is None:
                number = ir.BlockArgument(value).arg_number
                if value.owner == body and number and number - 1 not in counters:
                    raise Refusal("a product depends on the iteration before")
            elif made.block == body:
                pending.append(made)
    return [view.operation for view in body.operations if view.operation in needed]


def is_free(op: ir.Operation) -> bool:
    """Whether doing an op twice costs next to nothing."""
    if is_of(op, RingSlotOp, BufferView) or op.name == "arith.constant":
        return True
    return op.name.startswith("arith.") and not any(is_tile(v) for v in op.results)


def ops_beside(body: ir.Block, issued: OpSet, moved: OpSet) -> list[ir.Operation]:
    """The ops of a loop's body beside products that go elsewhere, in order: none of `moved`, and of
    those that issue products (`issued`) scalars and slots alone, where what stays needs them."""
    kept = OpSet()
    *ops, last = [view.operation for view in body.operations]
    for op in reversed(ops):
        if op in moved or (op in issued and not is_free(op)):
            continue
        uses = [use.owner.operation for result in op.results for use in result.uses]
        users = OpSet(in_block(user, body) for user in uses)
        if op not in issued or last in users or users & kept:
            kept.add(op)
    return [op for op in ops if op in kept]
