"""pipeline-loops: copies of later iterations fly while this iteration computes.

Before:   scf.for %k ... {
            "gpu_tile.cp_async"(%a, %s, %m, %k) ; commit ; wait 0
            ... reads %s ...
          }
After:    for s in 0 .. stages-2:                                     (the prologue)
            copy into slot s, masked by lower + s*step < upper ; commit
          scf.for %k ... iter_args(%n = 0) {
            wait stages-2
            ... reads slot %n mod stages ...
            copy into slot (%n + stages-1) mod stages, masked by %k + (stages-1)*step < upper
            commit
            ... more of the body ...
          }
          wait 0

1. A loop qualifies if it holds copies whose addresses follow from its induction variable, values
   from outside, single elements of arrays (a table of pages) and loaded tiles of numbers of rows (a
   table of tokens), and nothing in it writes what they read. All copies of an iteration become one
   group.
2. The stages: `tile.stages` where the author demands them, else what fits into a CTA's part of
   the shared memory, at most `copied_stages` and what is allowed (`tilec.compile.fitting`).
3. Buffers get a ring's slots in front of the loop; groups of copies order it, no barrier. A group
   is committed in every iteration, empty or not, so that the count of pending groups is right; a
   copy past the last iteration is masked off. A load that its address follows from, of an array
   without bounds, is this iteration's again there, and in the prologue stands in a branch.
4. The copies stand behind the body's first matrix instructions, which hide the cost of issuing
   them. Where these run by themselves, and the loop carries their sum, behind the wait: there
   overlap-mma waits for the product before alone, whose slot they fill.

A demand that cannot be met is an error with the reason; otherwise the report has it.
Does not handle: addresses that depend on tiles in another layout, scf.while, loops over programs
that CTAs ask for one by one; tensor copies, which specialize-warps overlaps; of loops that wait for
products of tensor memory those that demand no stages: rotate-dots may do more for them.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from mlir import ir

from tilec.dialects.def_use import of_kind, users
from tilec.dialects.gpu_tile import (
    AllocOp,
    CpAsyncCommitOp,
    CpAsyncWaitOp,
    MmaOp,
    RingAnnounceOp,
    RingPublishOp,
    RingSlotOp,
    RingWaitOp,
    SlotOp,
    ThreadCopy,
    WgmmaFenceOp,
    WgmmaOp,
)
from tilec.dialects.gpu_tile.mbarrier import PRODUCTS
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.dialects.tile import GatherOp, LoadOp
from tilec.dialects.types import bit_width, element, shape
from tilec.hardware.ring_stages import copied_stages
from tilec.passes.analysis.addresses_ahead import address_ops
from tilec.passes.analysis.carried_products import carried_product
from tilec.passes.analysis.divisibility import unbounded_dims
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.contract import Level, PassContext, show_location, tile_pass
from tilec.passes.demands.loops import STAGES, demanded_stages
from tilec.passes.rewriting.control import either
from tilec.passes.rewriting.free_ops import drop_unused
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import (
    behind,
    clone_mapped,
    find_loops,
    innermost_loop,
    is_program_loop,
    replace_yield,
    terminator,
    with_iteration_arguments,
)
from tilec.passes.rewriting.refusals import Refusal, attempt, refuse
from tilec.passes.rewriting.rings import make_ring
from tilec.passes.rewriting.scalars import (
    binary,
    constant,
    i32_constant,
    less,
    select,
    truth_of,
)
from tilec.passes.rewriting.walk import all_ops, find_ops, is_of
from tilec.records import dataclass


@tile_pass(requires=Level.LAYOUTS, rings=True)
def pipeline_loops(module: ir.Module, context: PassContext) -> None:
    """Multi-buffers every loop of asynchronous copies."""
    for loop in find_loops(module):
        _pipeline(loop, context)


@dataclass
class _Plan:
    """The ops that run ahead: the copies, the scalar ops that their addresses need, and the ends of
    their groups."""

    copies: list[ir.Operation]
    addresses: list[ir.Operation]
    ends: list[ir.Operation]
    allocs: list[ir.Operation]


def _pipeline(loop: ir.Operation, context: PassContext) -> None:
    demanded = demanded_stages(loop)
    waits = [wait for wait in find_ops(loop, RingWaitOp) if innermost_loop(wait) == loop]
    if any(map(_is_filled, waits)) or (waits and demanded is None):
        return  # specialize-warps overlaps what fills rings, rotate-dots what waits for products
    plan, why = attempt(_plan, loop)
    if plan is None:
        if demanded is not None and demanded > 1:
            raise error_at(
                loop, f"stages={demanded} was asked for, but {why}", *_plain_loads(loop, context)
            )
        if not is_program_loop(loop):
            context.report.add("pipeline", loop, "no", why)
        return
    bytes_ = sum(buffer_of(op.results[0]).slot_bytes for op in plan.allocs)
    stages = demanded if demanded is not None else _stages(bytes_, loop, context)
    chosen, why = f"{stages} stages", f"{bytes_} bytes of shared memory each"
    if demanded is not None:
        why = "the author's demand"
    elif stages == 1:
        chosen, why = "no", f"a stage takes {bytes_} bytes of shared memory, and no second fits"
        if 2 * bytes_ <= context.target.shared_bytes:
            why += " beside the next CTA's"
    context.report.add("pipeline", loop, chosen, why, stages=stages, stage_bytes=bytes_)
    if stages > 1:
        _Expansion(loop, plan, stages).run()


def _is_filled(wait: ir.Operation) -> bool:
    """Whether a wait is for what copies or threads fill, not for the end of products."""
    (ring, *_) = wait.operands
    fills = [*users(ring, RingAnnounceOp), *users(ring, RingPublishOp)]
    return any(isinstance(fill, RingAnnounceOp) or fill.by != PRODUCTS for fill in fills)


def _stages(bytes_: int, loop: ir.Operation, context: PassContext) -> int:
    sums = _accumulators(loop)
    stages = copied_stages(bytes_, sums, context.num_warps, context.target)
    return max(1, min(stages, context.allowance.stages))


def _accumulators(loop: ir.Operation) -> int:
    """The registers, of all threads of a CTA, that sums of the loop's products take: those that it
    carries from iteration to iteration, all together, or the largest."""
    body = loop.regions[0].blocks[0]
    sums = [product.acc for product in of_kind(body.operations, MmaOp)]
    sums += [product.acc for product in of_kind(body.operations, WgmmaFenceOp)]
    carried = [acc for acc in sums if acc.owner == body]
    return max([sum(map(_registers, carried)), *map(_registers, sums)], default=0)


def _registers(acc: ir.Value) -> int:
    return prod(shape(acc)) * bit_width(element(acc)) // 32


def _plan(loop: ir.Operation) -> _Plan:
    ops = [view.operation for view in loop.regions[0].blocks[0].operations]
    # Copies into slots are the prologue of a pipelined loop inside this one.
    copies = [op for op in ops if is_of(op, ThreadCopy) and not is_of(op.opview.dst.owner, SlotOp)]
    ends = _ends(ops)
    if not copies:
        raise Refusal("the loop holds no asynchronous copy of its own")
    refuse(read_ahead_hazard(loop, {copy.opview.src for copy in copies}, "the loop"))
    allocs = []
    for copy in copies:
        alloc = copy.opview.dst.owner
        if alloc.operation.block != copy.block:
            raise Refusal("a copy fills a buffer from outside the loop")
        if alloc.operation not in allocs:
            allocs.append(alloc.operation)
    return _Plan(copies, address_ops(loop, copies, tiles=True), ends, allocs)


def _ends(ops: list[ir.Operation]) -> list[ir.Operation]:
    """The commits with their wait right behind, as insert-async-copies leaves them."""
    found = []
    for op, following in pairwise(ops):
        if is_of(op, CpAsyncCommitOp) and is_of(following, CpAsyncWaitOp):
            found += [op, following]
    return found


def _plain_loads(loop: ir.Operation, context: PassContext) -> list[str]:
    """Says why each load of a loop's body is no asynchronous copy, as insert-async-copies reported
    it."""
    loads = of_kind(loop.regions[0].blocks[0].operations, LoadOp)
    places = {show_location(load.operation) for load in loads}
    return [
        f"the load at {entry['at']} is no asynchronous copy: {entry['why']}"
        for entry in context.report.decisions
        if entry["about"] == "asynchronous copy"
        and entry["chosen"] == "no"
        and entry["at"] in places
    ]


def _is_vouched_for(op: ir.Operation) -> bool:
    """Whether an op, or one in it, loads where an iteration that exists may, and no other: nothing
    bounds the array."""
    return any(unbounded_dims(load.src) for load in of_kind(all_ops(op), GatherOp, LoadOp))


def _clone_where(exists: ir.Value, op: ir.Operation, mapped: dict[ir.Value, ir.Value]) -> None:
    """Clones an op that loads into a branch: zeros where there is no such iteration."""
    made = either(
        exists,
        lambda: clone_mapped(op, mapped).results,
        lambda: [constant(result.type, 0) for result in op.results],
    )
    mapped.update(zip(op.results, made, strict=True))


def _copy_places(loop: ir.Operation) -> list[ir.Operation]:
    """The ops in front of which a loop's copies may stand: behind each of its matrix
    multiplications but the last, whose time is for the next iteration's first reads; behind the
    first that runs by itself, or the wait for it where it may be in flight; behind its wait and
    slots where it has none."""
    ops = [view.operation for view in loop.regions[0].blocks[0].operations]
    issued = next((op for op in ops if is_of(op, WgmmaOp)), None)
    if issued is not None:
        carried = carried_product(loop)
        return [behind(issued if carried is None else carried[-1].operation)]
    products = [i for i, op in enumerate(ops) if is_of(op, MmaOp)]
    if not products:
        products = [max(i for i, op in enumerate(ops) if is_of(op, CpAsyncWaitOp, SlotOp))]
    return [ops[i + 1] for i in products[:-1] or products]


class _Expansion:
    """Makes one loop a prologue, a steady loop and a drain."""

    def __init__(self, loop: ir.Operation, plan: _Plan, stages: int) -> None:
        self.loop, self.plan, self.stages = loop, plan, stages
        self.lower, self.upper, self.step, *_ = loop.operands
        self.ring = make_ring(loop, slots=stages)
        self.buffers: dict[ir.Value, ir.Value] = {}
        self.induction = loop.regions[0].blocks[0].arguments[0]

    def run(self) -> None:
        """Writes the prologue, then the steady loop, then the drain."""
        with ir.InsertionPoint(self.loop), self.loop.location:
            self._make_buffers()
            for number in range(self.stages - 1):
                at = self._ahead(self.lower, number)
                self._copy_group(at, i32_constant(number))
            start = i32_constant(0)
        steady, (count,) = with_iteration_arguments(self.loop, [start])
        self._fill_ahead(steady, count)
        with ir.InsertionPoint(behind(steady)), steady.location:
            CpAsyncWaitOp.build(pending=0)

    def _make_buffers(self) -> None:
        for alloc in self.plan.allocs:
            slots = buffer_of(alloc.results[0]).with_slots(self.stages)
            self.buffers[alloc.results[0]] = AllocOp.build(results=[slots.type()])

    def _fill_ahead(self, loop: ir.Operation, count: ir.Value) -> None:
        """Has the loop, which counts its iterations, read slots and fill others for later ones."""
        block = loop.regions[0].blocks[0]
        if STAGES in loop.attributes:
            del loop.attributes[STAGES]
        for end in self.plan.ends:
            end.erase()
        with ir.InsertionPoint.at_block_begin(block), loop.location:
            CpAsyncWaitOp.build(pending=self.stages - 2)
            self._read_slots(RingSlotOp.build(self.ring, count))
        places = _copy_places(loop)
        self.induction = block.arguments[0]
        with ir.InsertionPoint(places[0]), loop.location:
            ahead = binary("arith.addi", count, self.stages - 1)
            slot = RingSlotOp.build(self.ring, ahead)
            self._copy_group(self._ahead(self.induction, self.stages - 1), slot, places)
        last = terminator(block)
        with ir.InsertionPoint(last), loop.location:
            following = binary("arith.addi", count, 1)
        replace_yield(last, [*list(last.operands)[:-1], following])
        # What was copied from has served.
        for op in [*self.plan.copies, *self.plan.allocs]:
            op.erase()
        drop_unused(self.plan.addresses)

    def _read_slots(self, current: ir.Value) -> None:
        """Gives what reads a buffer slot number `current` of its ring."""
        for buffer, slots in self.buffers.items():
            for use in list(buffer.uses):
                owner = use.owner.operation
                if owner not in self.plan.copies:
                    owner.operands[use.operand_number] = SlotOp.build(slots, current)

    def _copy_group(
        self, at: ir.Value, slot: ir.Value, places: list[ir.Operation] | None = None
    ) -> None:
        """The copies of the iteration at `at`, masked off if there is none, as one group.

        `places`: in front of which ops; the last takes all that are left.
        """
        exists = less(at, self.upper)
        if places is not None and any(map(_is_vouched_for, self.plan.addresses)):
            at = select(exists, at, self.induction)
        slots = {buffer: SlotOp.build(whole, slot) for buffer, whole in self.buffers.items()}
        mapped = {self.induction: at, **slots}
        for op in self.plan.addresses:
            if places is None and _is_vouched_for(op):
                _clone_where(exists, op, mapped)
            else:
                clone_mapped(op, mapped)
        for mask in {copy.opview.mask: None for copy in self.plan.copies}:
            taken = mapped.get(mask, mask)
            mapped[mask] = exists if truth_of(mask) else binary("arith.andi", exists, taken)
        place = ir.InsertionPoint.current
        for number, copy in enumerate(self.plan.copies):
            if places is not None:
                place = ir.InsertionPoint(places[min(number, len(places) - 1)])
            with place:
                clone_mapped(copy, mapped)
        with place:
            CpAsyncCommitOp.build()

    def _ahead(self, at: ir.Value, iterations: int) -> ir.Value:
        for _ in range(iterations):
            at = binary("arith.addi", at, self.step)
        return at
