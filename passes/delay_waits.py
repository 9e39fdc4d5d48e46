"""delay-waits: products of one iteration run beside each other, and beside the work between them.

Before:   %s = issue q @ k, wait       %p = work on %s
          %v = issue p @ grad, wait
          %w = issue value @ g, wait   %d = work on %p, %w
          %k = issue d @ q, wait       slots given back behind the waits
After:    issue q @ k   issue value @ g
          wait {pending = 1} for %s    %p = work on %s
          wait {pending = 0} for %w    %d = work on %p, %w
          issue p @ grad   issue d @ q
          wait {pending = 1} for %v, its slot   wait {pending = 0} for %k, its slot

1. A product that needs nothing but slots of rings, what was filled before, and a sum that is there
   already, is issued right behind the first product of its block.
2. One that takes an operand from registers is issued right in front of the next such one, if
   nothing reads its sum earlier: where registers that a product takes are written while another
   one runs, ptxas waits behind each instruction (C7513).
3. A wait moves down to the first reader of its sum, or where such registers are written, with the
   slots that its product reads. Groups end in the order of their issue: it lets as many be
   unfinished as were issued behind its own, and stays in front of the wait for a later one, and of
   waits for slots, which may want those of the product back.
4. What only stores a sum comes behind the issue of the last product: that runs meanwhile.
5. A product of several groups, whose left operand is computed part by part (`computed_lhs.py`),
   stays where it is.

What lives longer for it must find registers. Accumulators that cross an iteration in flight are
`overlap-mma`'s and `rotate-dots`': their loops stay as they are.
Where a branch or a loop of a block multiplies, too, what is in front of it and what is behind
are apart. Registers that the next iteration's products take (`rotate_last`) are written when all
of this one are done.
Does not handle: blocks with a product that is not waited for right away.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mlir import ir

from tilec.dialects.def_use import made_by, of_kind, only_user, traced
from tilec.dialects.effects import is_fill
from tilec.dialects.gpu_tile import (
    BufferView,
    RingReleaseOp,
    RingSlotOp,
    RingWaitOp,
    WgmmaFenceOp,
    WgmmaMeanwhileOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.passes.analysis.dependence import needed_inside
from tilec.passes.analysis.issue_order import is_free, ring_turn
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.dots.issued_products import (
    ROTATED,
    IssuedProduct,
    find_product,
    narrowing,
    products_of,
)
from tilec.passes.dots.late_stores import may_pass, storing
from tilec.passes.rewriting.loops import behind, enclosing_ops, in_block, terminator
from tilec.passes.rewriting.op_tables import OpMap, OpSet, order_of
from tilec.passes.rewriting.walk import blocks_in, find_ops, is_of, users_of
from tilec.passes.roles.parts import Part, parts_of
from tilec.records import dataclass

MOST_PENDING = 7
"""Groups that a wait may leave unfinished (PTX ISA 9.0, "wgmma.wait_group"; what `wgmma_wait`
takes)."""


@kernel_pass(
    requires=Level.BUFFERS,
    behind={
        "specialize-warps": "that gives slots back behind waits, which this moves",
        "rotate-dots": "it takes products whose waits stand right behind them",
        "overlap-mma": "it takes products whose waits stand right behind them",
    },
    rings=True,
)
def delay_waits(function: ir.Operation, context: PassContext) -> None:
    """Waits for warpgroup products where their sums are read, and issues others ahead of that."""
    told: set[str] = set()
    for part in parts_of(function, context):
        for block in _blocks(part.block):
            moved = [_Run(run, function, part).run() for run in _runs(block)]
            place = str(block.owner.location)  # a rotated loop's first iteration has the loop's
            about = ("matrix instructions", block.owner)
            is_told = place in told or context.report.has(*about, ROTATED)
            if any(moved) and not is_told:
                told.add(place)
                why = "sums are waited for where they are read"
                context.report.add(*about, "side by side", why)


def _blocks(block: ir.Block) -> list[ir.Block]:
    """The blocks, this one and those inside its ops, that multiply."""
    inner = [one for view in block.operations for one in blocks_in(view.operation)]
    found = [each for one in inner for each in _blocks(one)]
    return [*found, *([block] if products_of(block) else [])]


@dataclass
class _Products:
    """Products of a block in order, and the groups of each of those that have several; `end`: the
    op in front of which they end, which multiplies, too, or ends the block."""

    block: ir.Block
    end: ir.Operation
    single: list[IssuedProduct]
    chains: list[list[WgmmaOp]]


class _Run:
    """Products of a block that are issued and waited for one by one."""

    def __init__(self, products: _Products, function: ir.Operation, part: Part) -> None:
        self._block, self._end = products.block, products.end
        self._products, self._chains = products.single, products.chains
        self._function, self._part = function, part

    def run(self) -> bool:
        """Issues, then waits; whether any product runs beside something else now."""
        if len(self._products) < 2:
            return False
        self._issue_ahead()
        self._issue_together()
        self._store_late()
        order = self._order()
        for product in sorted(self._products, key=lambda p: -order[p.multiply]):
            self._sink(product)
        return self._count()

    def _order(self) -> OpMap[int]:
        return order_of(view.operation for view in self._block.operations)

    def _most(self) -> int:
        return self._part.peak(self._function).registers

    def _move(self, ops: Sequence[ir.Operation], place: ir.Operation) -> bool:
        """Moves ops in front of another, if registers hold what lives longer for it."""
        most = max(self._part.registers, self._most())
        back = [(op, behind(op)) for op in ops]
        for op in ops:
            op.move_before(place)
        if self._most() <= most:
            return True
        for op, following in reversed(back):
            op.move_before(following)
        return False

    def _issue_ahead(self) -> None:
        """Rule 1."""
        first, *others = self._products
        anchor = first.multiply.operation
        for product in others:
            needed, order = self._needed(product), self._order()
            if needed is None or order[product.multiply] < order[anchor]:
                continue
            if self._move([op for op in needed if order[op] > order[anchor]], behind(anchor)):
                anchor = product.multiply.operation

    def _needed(self, product: IssuedProduct) -> list[ir.Operation] | None:
        """The ops of the block up to a product's issue, in order, if they may stand further up."""
        operands = [v for v in (product.multiply.lhs, product.multiply.rhs) if is_buffer(v)]
        if not all(map(self._is_there, operands)):
            return None
        needed = needed_inside([product.multiply.result], self._block)
        for op in needed:
            if not is_free(op) and not is_of(op, RingWaitOp, WgmmaFenceOp, WgmmaOp):
                return None
            if is_of(op, RingWaitOp) and self._turns_of(op.opview.ring) > 1:
                return None
        return needed

    def _is_there(self, buffer: ir.Value) -> bool:
        """Whether a wait for a slot is all that a product needs to read a buffer."""
        turn, (_, buffer) = ring_turn(buffer), traced(buffer, BufferView)
        filled = [user for user in users_of(buffer) if is_fill(user.opview)]
        here = any(self._block.owner in [user, *enclosing_ops(user)] for user in filled)
        if isinstance(turn, RingSlotOp):  # an earlier iteration's, if this one does not wait for it
            waits = of_kind(self._block.operations, RingWaitOp)
            here = here or any((w.ring, w.count) == (turn.ring, turn.count) for w in waits)
        return isinstance(turn, RingWaitOp) or not here

    def _turns_of(self, ring: ir.Value) -> int:
        """How many slots of a ring the block waits for: the second may want the first's return."""
        waits = of_kind(self._block.operations, RingWaitOp)
        return sum(wait.ring == ring for wait in waits)

    def _issue_together(self) -> None:
        """Rule 2, the last pair first: what has moved down to one moves on with it."""
        order = self._order()
        taking = [p for p in self._products if not is_buffer(p.multiply.lhs)]
        taking.sort(key=lambda p: order[p.multiply])
        for product, following in reversed(list(pairwise(taking))):
            place = following.fence.operation
            place.move_before(following.multiply.operation)
            order = self._order()
            readers = [order[each] for each in self._readers(product)]
            if min(readers, default=len(order)) < order[following.multiply]:
                continue
            issue = [*product.packing(), product.fence.operation, product.multiply.operation]
            given = self._releases(product, place)
            self._move([*issue, product.wait.operation, *given], place)

    def _store_late(self) -> None:
        """Rule 4."""
        ends = [(product.multiply, product.wait) for product in self._products]
        ends += [(chain[-1], only_user(chain[-1].result)) for chain in self._chains]
        for product in self._products:
            ops, order = [view.operation for view in self._block.operations], self._order()
            last, wait = max(ends, key=lambda end: order[end[0]])
            stored = storing(product.wait.result, self._block)
            if not stored or order[stored[0]] > order[last]:
                continue
            between, moved = ops[order[stored[0]] : order[wait]], OpSet(stored)
            if may_pass(op for op in between if op not in moved):
                self._move(stored, wait.operation)

    def _readers(self, product: IssuedProduct) -> list[ir.Operation]:
        """The ops of the block that read a product's sum."""
        return [in_block(use.owner.operation, self._block) for use in product.wait.result.uses]

    def _releases(self, product: IssuedProduct, place: ir.Operation) -> list[ir.Operation]:
        """What gives back the slots that a product reads between its wait and a place. Behind it
        another product may read them."""
        order = self._order()
        later = (r.operation for r in product.releases if order[r] > order[product.wait])
        return [release for release in later if order[release] < order[place]]

    def _sink(self, product: IssuedProduct) -> None:
        """Rule 3."""
        ops, order = [view.operation for view in self._block.operations], self._order()
        at = order[product.wait]
        stops = [n for n, op in enumerate(ops) if is_of(op, RingWaitOp)]
        stops += [order[self._end], *(order[reader] for reader in self._readers(product))]
        for other in self._products:
            if order[other.multiply] > order[product.multiply]:
                stops += [order[other.wait], *(order[op] for op in other.packing())]
        for chain in self._chains:
            if order[chain[0]] > order[product.multiply]:
                stops.append(order[only_user(chain[-1].result)])
        stops += [order[op] for op in self._packed_next()]
        stop = min(stop for stop in stops if stop > at)
        if any(_is_work(op) for op in ops[at + 1 : stop]):
            given = self._releases(product, ops[stop])
            self._move([product.wait.operation, *given], ops[stop])

    def _packed_next(self) -> list[ir.Operation]:
        """The ops that narrow what the next iteration's products take from registers."""
        taken = [product.multiply.lhs for product in self._products]
        arguments = list(self._block.arguments)
        numbers = [arguments.index(value) - 1 for value in taken if value in arguments]
        yielded = list(terminator(self._block).operands)
        return [op for number in numbers for op in narrowing(yielded[number], self._block)]

    def _count(self) -> bool:
        """Tells each wait how many groups were issued behind its own; whether any were."""
        ops, order = [view.operation for view in self._block.operations], self._order()
        beside = False
        for product in self._products:
            issued, at = order[product.multiply], order[product.wait]
            groups = [other.multiply for other in self._products]
            groups += [multiply for chain in self._chains for multiply in chain]
            later = [order[each] for each in groups if issued < order[each] < at]
            product.wait.pending = min(len(later), MOST_PENDING)
            works = any(map(_is_work, ops[max((issued, *later)) + 1 : at]))
            if works:
                with ir.InsertionPoint(product.wait.operation), product.wait.operation.location:
                    WgmmaMeanwhileOp.build()
            beside = beside or works or bool(later)
        return beside


def _runs(block: ir.Block) -> list[_Products]:
    """The products of a block, apart where a branch or a loop between them multiplies, too; none
    where one is not waited for right away."""
    found: list[_Products] = []
    single: list[IssuedProduct] = []
    chains: list[list[WgmmaOp]] = []
    last = terminator(block)
    for view in block.operations:
        if isinstance(view, WgmmaOp):
            product, chain = find_product(view, block), _groups(view, block)
            if product is None and not chain:
                return []
            single += [product] if product is not None else []
            chains += [chain] if product is None and chain[0] == view else []
        elif view == last or _multiplies(view):
            found.append(_Products(block, view.operation, single, chains))
            single, chains = [], []
    return found


def _multiplies(view: ir.OpView) -> bool:
    """Whether a branch or a loop has products inside."""
    return not isinstance(view, WgmmaWaitOp) and bool(
        find_ops(view.operation, WgmmaOp, WgmmaWaitOp)
    )


def _groups(multiply: WgmmaOp, block: ir.Block) -> list[WgmmaOp]:
    """All groups of a product that has several in a block, each adding to the one before; none
    where they are not issued and waited for there."""
    while (before := made_by(multiply.acc, WgmmaOp)) is not None:
        multiply = before
    found = [multiply]
    while (following := only_user(found[-1].result, WgmmaOp)) is not None:
        found.append(following)
    fence, wait = made_by(multiply.acc, WgmmaFenceOp), only_user(found[-1].result, WgmmaWaitOp)
    if fence is None or wait is None or wait.pending:
        return []
    return found if all(op.operation.block == block for op in (*found, fence, wait)) else []


def _is_work(op: ir.Operation) -> bool:
    """Whether an op takes time that a wait should not stand in front of."""
    return not is_free(op) and not isinstance(
        op.opview, (WgmmaFenceOp, WgmmaWaitOp, RingReleaseOp, WgmmaMeanwhileOp)
    )
