"""How specialize-warps gives matrix instructions that add up in tensor memory a warp of their own.

Before:   scf.for %k ... {
            ... tensor copies fill %a, %b ...   "gpu_tile.barrier_wait"(%full, ...)
            "gpu_tile.tcgen05_mma"(%a, %b, %t, %add)
            "gpu_tile.tcgen05_commit"(%done, ...)   "gpu_tile.barrier_wait"(%done, ...)
          }
          %sum = "gpu_tile.buffer_load"(%t)
After:    "gpu_tile.barrier_wait"(%taken, %slot, not %parity)                          (multiply)
          scf.for %k ... {
            "gpu_tile.barrier_wait"(%full, ...)   "gpu_tile.tcgen05_mma"(..., %t[%slot], %add)
            "gpu_tile.tcgen05_commit"(%empty, ...)              (the load role may go on then)
          }
          "gpu_tile.tcgen05_commit"(%ready, %slot)
          "gpu_tile.barrier_wait"(%ready, %slot, %parity)                               (compute)
          %sum = "gpu_tile.buffer_load"(%t[%slot])   "gpu_tile.barrier_arrive"(%taken, %slot)

A loop qualifies if it does nothing but copy, multiply and wait, and its sums are read behind it
only. In a loop over programs the sums get two slots where tensor memory holds them: the next
program's products run under this one's end.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.dialects.gpu_tile import (
    AllocOp,
    BarrierArriveOp,
    BarrierExpectOp,
    BarrierInitOp,
    BarrierWaitOp,
    BufferLoadOp,
    ReshapeViewOp,
    RingPositionOp,
    SlotOp,
    Tcgen05CommitOp,
    Tcgen05CopyOp,
    Tcgen05MmaOp,
    TmaLoadOp,
    TransposeViewOp,
    ViewOp,
)
from tilec.dialects.gpu_tile.types import TensorBuffer, tensor_buffer_of
from tilec.dialects.types import is_tile
from tilec.passes.rewriting.loops import add_counter, behind, enclosing_ops
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.scalars import i32_constant, negated
from tilec.passes.rewriting.walk import alloc_of
from tilec.tensor_memory import COLUMNS

_SCALAR_OPS = (
    RingPositionOp,
    SlotOp,
    ViewOp,
    ReshapeViewOp,
    TransposeViewOp,
    BarrierExpectOp,
    TmaLoadOp,
    AllocOp,
)


@dataclass
class Products:
    """A loop whose matrix instructions can have a warp of their own.

    `commits`, `waits`: how its products are awaited now. `sums`: the allocs that it adds up in;
    `readers`: the ops of the loop's block that hold the loads of them. `copies`: what brings scales
    to tensor memory.
    """

    loop: ir.Operation
    multiplies: list[Tcgen05MmaOp]
    commits: list[Tcgen05CommitOp]
    waits: list[BarrierWaitOp]
    sums: list[AllocOp]
    readers: list[ir.Operation]
    copies: list[Tcgen05CopyOp]

    @property
    def operands(self) -> list[ir.Value]:
        """The buffers that the instructions read."""
        read = [copy.src for copy in self.copies]
        return [v for op in self.multiplies for v in (op.lhs, op.rhs)] + read


def find_products(function: ir.Operation, copied: OpMap[ir.Operation]) -> list[Products]:
    """The loops that qualify. `copied`: the loop that fills each alloc by tensor copies."""
    found: list[Products] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        products = _products(op, copied) if op.name == "scf.for" else None
        if products is not None:
            found.append(products)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _products(loop: ir.Operation, copied: OpMap[ir.Operation]) -> Products | None:
    body = list(loop.regions[0].blocks[0].operations)
    multiplies = [view for view in body if isinstance(view, Tcgen05MmaOp)]
    commits = [view for view in body if isinstance(view, Tcgen05CommitOp)]
    if not multiplies or not commits or any(op.name != "scf.for" for op in enclosing_ops(loop)):
        return None
    # Every product is finished by a commit of its own; the last one waits for all of them.
    waits = [w for c in commits for w in body if _waits_for(w, c)]
    copies = [view for view in body if isinstance(view, Tcgen05CopyOp)]
    ours = OpSet((*multiplies, *commits, *copies))
    if not all(view in ours or _is_simple(view) for view in body[:-1]):
        return None
    if len(waits) != len(commits):
        return None
    products = Products(loop, multiplies, commits, waits, [], [], copies)
    if any(copied.get(alloc_of(v)) != loop for v in products.operands):
        return None
    return products if _find_sums(products) else None


def _waits_for(view: ir.OpView, commit: Tcgen05CommitOp) -> bool:
    return isinstance(view, BarrierWaitOp) and view.barrier == commit.barrier


def _is_simple(view: ir.OpView) -> bool:
    """Scalars, copies and waits."""
    op = view.operation
    if isinstance(view, (*_SCALAR_OPS, BarrierWaitOp)):
        return True
    scalar = op.name.startswith("arith.") or op.name == "memref.dim"
    return scalar and not any(is_tile(v) for v in [*op.operands, *op.results])


def _find_sums(products: Products) -> bool:
    """Fills in the accumulators; whether nothing but the loop and loads behind it uses them."""
    seen = OpSet()
    for multiply in products.multiplies:
        alloc = multiply.acc.owner
        if not isinstance(alloc, AllocOp):
            return False
        if alloc in seen:
            continue
        seen.add(alloc)
        products.sums.append(alloc)
        for use in alloc.result.uses:
            user = use.owner.opview
            reader = _ancestor(user.operation, products.loop.block)
            if isinstance(user, BufferLoadOp) and reader is not None:
                products.readers.append(reader)
            elif user.operation not in [m.operation for m in products.multiplies]:
                return False
    order = [view.operation for view in products.loop.block.operations]
    behind_loop = [order.index(r) > order.index(products.loop) for r in products.readers]
    return bool(behind_loop) and all(behind_loop)


def _ancestor(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The op of `block` that is `op` or holds it."""
    around = [op, *enclosing_ops(op)]
    return next((each for each in around if each.block == block), None)


def add_multiply_role(
    products: Products, position: ir.Operation, empties: list[tuple[ir.Value, ir.Value]], warps: int
) -> list[ir.Operation]:
    """Rewrites one loop in place; returns what goes to the multiply role beside the waits for full
    slots.

    `position`: an op at the kernel's entry in front of which barriers and sums go. `empties`: per
    ring the loop reads its barrier of free slots and the slot. `warps`: how many read the sums.
    """
    around = products.loop.parent
    slots = _slots(products)
    with ir.InsertionPoint(position), products.loop.location:
        ready = BarrierInitOp.build(slots=slots, count=1)
        taken = BarrierInitOp.build(slots=slots, count=warps)
        whole = [_ring(alloc, slots) for alloc in products.sums]
    for copy in products.copies:
        copy.dst.owner.operation.move_before(position)
    if around.name == "scf.for":
        _, count = add_counter(around)
    else:
        with ir.InsertionPoint(products.loop):
            count = i32_constant(0)
    return _Rewrite(products, slots, (ready, taken), whole, count).run(empties)


def _slots(products: Products) -> int:
    """The slots for the sums of `products`: two where another program follows and tensor memory
    holds both, else one."""
    columns = sum(tensor_buffer_of(alloc.result).columns for alloc in products.sums)
    scales = sum(tensor_buffer_of(copy.dst).columns for copy in products.copies)
    follows = products.loop.parent.name == "scf.for"
    return 2 if follows and 2 * columns + scales <= COLUMNS else 1


def _ring(alloc: AllocOp, slots: int) -> ir.Value:
    one = tensor_buffer_of(alloc.result)
    if slots == 1:
        return AllocOp.build(results=[one.type()])
    return AllocOp.build(
        results=[TensorBuffer((slots, *one.shape), one.element, one.layout).type()]
    )


class _Rewrite:
    """Splits one loop; `barriers`: of sums that are ready, and of those that were taken."""

    def __init__(
        self,
        products: Products,
        slots: int,
        barriers: tuple[ir.Value, ir.Value],
        whole: list[ir.Value],
        count: ir.Value,
    ) -> None:
        self._products = products
        self._slots = slots
        self._ready, self._taken = barriers
        self._whole = whole
        self._count = count

    def run(self, empties: list[tuple[ir.Value, ir.Value]]) -> list[ir.Operation]:
        """See `add_multiply_role`."""
        loop = self._products.loop
        with ir.InsertionPoint(loop), loop.location:
            slot, parity = RingPositionOp.build(self._count, slots=self._slots)
            free = negated(parity)
            begin = BarrierWaitOp.build(self._taken, slot, free)
            self._place_sums(slot)
        returned = self._return_operands(empties)
        ready = self._hand_over(slot, parity)
        issued = (*self._products.copies, *self._products.multiplies)
        multiplies = [op.operation for op in issued]
        return [begin.operation, *multiplies, *returned, ready]

    def _place_sums(self, slot: ir.Value) -> None:
        for alloc, whole in zip(self._products.sums, self._whole, strict=True):
            one = SlotOp.build(whole, slot) if self._slots > 1 else whole
            alloc.result.replace_all_uses_with(one)
            alloc.operation.erase()

    def _return_operands(self, empties: list[tuple[ir.Value, ir.Value]]) -> list[ir.Operation]:
        """Behind the last instruction: its commit gives the slots back when all are done."""
        last = self._products.commits[-1].operation
        with ir.InsertionPoint(last), last.location:
            commits = [Tcgen05CommitOp.build(empty, slot) for empty, slot in empties]
        done = OpSet(commit.barrier.owner.operation for commit in self._products.commits)
        for old in (*self._products.waits, *self._products.commits):
            old.operation.erase()
        for barrier in done:
            barrier.erase()
        return [commit.operation for commit in commits]

    def _hand_over(self, slot: ir.Value, parity: ir.Value) -> ir.Operation:
        loop = self._products.loop
        with ir.InsertionPoint(behind(loop)), loop.location:
            ready = Tcgen05CommitOp.build(self._ready, slot)
            BarrierWaitOp.build(self._ready, slot, parity)
        order = [view.operation for view in loop.block.operations]
        last = max(self._products.readers, key=order.index)
        with ir.InsertionPoint(behind(last)), last.location:
            BarrierArriveOp.build(self._taken, slot, per="warp")
        return ready.operation


def drop_shell(loop: ir.Operation) -> None:
    """Erases a loop whose work went to other roles: what it counted, nobody here needs."""
    for result, init in zip(loop.results, list(loop.operands)[3:], strict=True):
        result.replace_all_uses_with(init)
    loop.erase()
