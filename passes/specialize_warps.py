"""specialize-warps: one warp keeps rings of buffers full while the others compute.

Before:   %ring = "gpu_tile.make_ring"() {slots = 1, fills = 1, releases = 0}
          scf.for %k ... iter_args(%n, ...) {
            %s = "gpu_tile.alloc"()   %slot = "gpu_tile.ring_slot"(%ring, %n)
            "gpu_tile.ring_announce"(%ring, %slot)   "gpu_tile.tma_load"(%map, %s, %ring, %slot ...)
            "gpu_tile.ring_wait"(%ring, %n)
            ... reads %s ...
          }
After:    %buffer = "gpu_tile.alloc"()
          %ring = "gpu_tile.make_ring"() {slots = 3, fills = 1, releases = 2}
          "gpu_tile.role"() ({                                    (the loop without its tiles)
            scf.for %k ... iter_args(%n) {
              %slot = "gpu_tile.ring_acquire"(%ring, %n)   %s = "gpu_tile.slot"(%buffer, %slot)
              "gpu_tile.ring_announce"(%ring, %slot)   "gpu_tile.tma_load"(%map, %s, %ring, ...)
            }
          }) {name = "load", ...}
          "gpu_tile.role"() ({                                    (everything but the copies)
            scf.for %k ... iter_args(%n, ...) {
              %slot = "gpu_tile.ring_wait"(%ring, %n)   %s = "gpu_tile.slot"(%buffer, %slot)
              ... reads %s ...
              "gpu_tile.ring_release"(%ring, %slot)
            }
          }) {name = "compute", ...}

1. A copy qualifies if its coordinates, and the loops and branches around it, depend on scalars that
   need no tile; they are computed again in the load role. All copies of a kernel go there, or none.
   What stores (`roles.fills`) brings its tile along, folded to the load role's warpgroup.
2. The stages: `tile.stages` where the author demands them, else as many as fit beside the other
   buffers, fewer where a second CTA then fits beside this one (`ring_stages`); the same for every
   ring, but few for rings around loops of products where a second CTA fits so, and one where only
   one fits (`roles.ring_slots`). Loops behind each other have alike rings in common.
3. A slot is released behind its last reader: once per warpgroup where only its matrix
   instructions read it, by the end of products where only those in tensor memory do, else once per
   warp; where warps compute an operand from it (`computed_lhs`), behind the product's issue.
4. Registers move from the load role to the others where the kernel could use more than its part: of
   a multiprocessor's, or of the share of each of the CTAs for which slots leave room
   (`tile.ctas_per_sm`), never more than the launch has programs (`tile.programs_per_sm`).
5. Unless somebody asks for them, there are no roles where all rings stand around loops that
   multiply what none of them brings: the role would load once a program, and its warps take the
   registers of another CTA, which hides that as well.

A demand that cannot be met is an error with the reason; otherwise the report has it.
Does not handle: a copy in a loop or a branch whose condition needs a tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferStoreOp,
    CpAsyncGatherOp,
    MakeRingOp,
    RingAcquireOp,
    RingReleaseOp,
    RoleOp,
    SlotOp,
    TensorMapOp,
    TmaLoadOp,
)
from tilec.dialects.gpu_tile.ring import COPIES, PRODUCTS
from tilec.dialects.gpu_tile.role import CTAS_PER_SM, TOTAL_WARPS
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.dialects.types import is_tile
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.hardware.target import Feature
from tilec.passes.analysis.register_pressure import most_live_registers
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.tensor_copies import refused_tensor_copies
from tilec.passes.demands.kernels import PINGPONG, programs_per_sm, settled_arrays, teams_of
from tilec.passes.demands.loops import STAGES, WARP_SPECIALIZE, check_stages
from tilec.passes.rewriting.free_ops import erase_unused
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import behind, enclosing_ops, find_loops
from tilec.passes.rewriting.op_tables import OpMap, OpSet, order_of
from tilec.passes.rewriting.values import replace_op
from tilec.passes.roles.budgets import share_registers
from tilec.passes.roles.fills import arrivals, refused_fills
from tilec.passes.roles.multiply_role import Products, add_multiply_role, drop_shell, find_products
from tilec.passes.roles.program_slice import Slice
from tilec.passes.roles.registers import (
    LOAD_REGISTERS,
    RoleShape,
    plan_roles,
    why_not_in_turn,
    why_too_large,
)
from tilec.passes.roles.ring_slots import is_outer, slots_that_fit, staged_loop, wanted_stages
from tilec.passes.roles.rings import (
    Ring,
    find_rings,
    go_on,
    last_product,
    last_reader,
    released_by,
    share_rings,
    why_no_ring,
)
from tilec.passes.roles.short_programs import RingSlots


@kernel_pass(
    requires=Level.BUFFERS,
    behind={
        "schedule-programs": "roles run the whole loop over programs",
        "insert-async-copies": "roles issue the copies that it makes",
    },
    rings=True,
)
def specialize_warps(function: ir.Operation, context: PassContext) -> None:
    """Gives the tensor copies of every kernel a warp of their own."""
    _specialize(function, context)
    check_stages(function)


def _specialize(function: ir.Operation, context: PassContext) -> None:
    demanding, forbidden = _demands(function)
    rings = find_rings(function)
    wanted, in_turn = wanted_stages(rings), teams_of(function) > 1
    is_asked = demanding is not None or in_turn or wanted > 0
    reason = _refusal(function, rings, context) or _left_alone(rings, forbidden, is_asked)
    multiplied = OpSet(products.loop for products in _find_products(function, rings))
    followers = share_rings(rings, multiplied) if reason is None else []
    slots = RingSlots(wanted, wanted)
    if not wanted and reason is None:
        multiply = bool(_find_products(function, rings))
        slots = slots_that_fit(function, rings, context, multiply=multiply)
    stages = slots.each
    if reason is None and stages < 2 and demanding is None:
        reason = "one stage was asked for" if wanted else "the shared memory holds one stage only"
    if reason is None and (demanding is not None or in_turn):
        reason = why_too_large(function, context, teams_of(function))
    if reason is not None:
        if demanding is not None or in_turn:
            notes = () if rings else (*refused_tensor_copies(context), *refused_fills(context))
            what = f'consumers="{PINGPONG}"' if in_turn else "warp_specialize=True"
            place = function if in_turn else demanding
            raise error_at(place, f"{what} was asked for, but {reason}", *notes)
        if stages > 1:
            loop = next(filter(None, map(staged_loop, rings)))
            raise error_at(loop, f"stages={stages} was asked for, but {reason}")
        if rings:
            is_starved = not wanted and stages < 2
            facts = {"stages": stages} if is_starved else {}
            context.report.add("warp specialisation", function, "no", reason, **facts)
        return
    for loop, number, reached in followers:
        go_on(loop, number, reached)
    _Rewrite(function, rings, slots, context).run()


def _demands(function: ir.Operation) -> tuple[ir.Operation | None, ir.Operation | None]:
    """A loop that demands warp specialisation, and one that forbids it."""
    found: dict[bool, ir.Operation] = {}
    for loop in find_loops(function):
        if WARP_SPECIALIZE in loop.attributes:
            found.setdefault(bool(loop.attributes[WARP_SPECIALIZE].value), loop)
    return found.get(True), found.get(False)


def _refusal(function: ir.Operation, rings: list[Ring], context: PassContext) -> str | None:
    if not context.target.supports(Feature.SETMAXNREG):
        return f"{context.target.name} does not move registers between warps"
    if not rings:
        return "no loop fills buffers that other warps could fill"
    if any(ring.made.slots > 1 for ring in rings):
        return "the kernel has rings of its own"
    if reason := next(filter(None, map(why_no_ring, rings)), None):
        return reason
    if context.num_warps % WARPGROUP_WARPS:
        return f"{context.num_warps} warps are no whole warpgroups"
    most = context.target.max_threads // context.target.warp_size
    teams = teams_of(function)
    if plan_roles(context.target, context.num_warps, teams=teams)["load"].end > most:
        often = f"{teams} times " if teams > 1 else ""
        return f"{often}{context.num_warps} warps leave none for loading"
    if teams > 1 and (
        reason := why_not_in_turn(function, rings, multiply=bool(_find_products(function, rings)))
    ):
        return reason
    return _part(function, rings, [copy.operation for r in rings for copy in r.copies]).refusal


def _left_alone(
    rings: Sequence[Ring], forbidden: ir.Operation | None, is_asked: bool
) -> str | None:
    """Says why a kernel that could have roles does not get them, or None."""
    if forbidden is not None:
        return "warp_specialize=False"
    if not is_asked and all(map(is_outer, rings)):
        return "loops inside multiply what no ring brings: more CTAs hide the rest"
    return None


def _find_products(function: ir.Operation, rings: list[Ring]) -> list[Products]:
    loops = OpMap((alloc, ring.loop) for ring in rings for alloc in ring.allocs)
    return find_products(function, loops)


def _takes_tiles(rings: list[Ring]) -> bool:
    """Whether the load role computes tiles: what it stores, or the numbers of what it gathers."""
    copies = [copy for ring in rings for copy in ring.copies]
    return bool(of_kind(copies, BufferStoreOp, CpAsyncGatherOp))


def _part(function: ir.Operation, rings: list[Ring], roots: list[ir.Operation]) -> Slice:
    return Slice(function, roots, tiles=_takes_tiles(rings))


class _Rewrite:
    """Splits one kernel into roles."""

    def __init__(
        self,
        function: ir.Operation,
        rings: list[Ring],
        slots: RingSlots,
        context: PassContext,
    ) -> None:
        self._function = function
        self._rings = rings
        self._counts = slots
        self._demanded = any(staged_loop(ring) is not None for ring in rings)
        self._context = context
        self._teams = teams_of(function)
        self._body = function.regions[0].blocks[0]
        self._products: list[Products] = []
        self._shapes: dict[str, RoleShape] = {}
        self._buffers: dict[int, list[ir.Value]] = {}

    def run(self) -> None:
        """Rings at the entry, then the roles."""
        self._products = _find_products(self._function, self._rings)
        self._shapes = self._plan(live=most_live_registers(self._body))
        behind_rings = self._move_maps()
        for ring in self._rings:
            self._release(ring)
            self._lengthen(ring, behind_rings)
        entry = [*self._buffers.values()][-1][-1].owner.operation
        loads = [op.operation for r in self._rings for op in (r.turn, *r.copies, *r.arrivals)]
        multiplies = [op for p in self._products for op in self._multiply(p, entry)]
        parts = {"load": _part(self._function, self._rings, loads)}
        if multiplies:
            parts["multiply"] = Slice(self._function, multiplies)
        roles = self._make_roles(parts, entry)
        self._say_how_many()
        for ring in self._rings:
            for loop in (ring.loop, *enclosing_ops(ring.loop)):
                for name in (STAGES, WARP_SPECIALIZE):
                    if name in loop.attributes:
                        del loop.attributes[name]
        for root in reversed([*loads, *multiplies]):
            operands = [value for value in root.operands if is_tile(value)]
            _erase_with_views(root)
            for operand in operands:
                erase_unused(operand)
        for products in self._products:
            drop_shell(products.loop)
        share_registers(self._function, roles, self._plan, self._context)
        self._report()

    def _say_how_many(self) -> None:
        """Notes the CTA's warps, and how many CTAs share the registers, where several do."""
        i32, function = ir.IntegerType.get_signless(32), self._function
        warps, ctas = max(shape.end for shape in self._shapes.values()), self._counts.ctas
        function.attributes[TOTAL_WARPS] = ir.IntegerAttr.get(i32, warps)
        if ctas > 1:
            function.attributes[CTAS_PER_SM] = ir.IntegerAttr.get(i32, ctas)
        programs = programs_per_sm(function)
        if ctas > 1 or programs:
            why = (
                f"launches have {programs} programs each" if programs else "one waits, others work"
            )
            self._context.report.add("CTAs a multiprocessor", function, str(ctas), why)

    def _multiply(self, products: Products, entry: ir.Operation) -> list[ir.Operation]:
        """The ops that the multiply role runs for one loop. `entry`: the op at the kernel's entry
        in front of which its sums go."""
        rings = [ring for ring in self._rings if ring.loop == products.loop]
        waits = [ring.wait.operation for ring in rings]
        slots = [(ring.wait.ring, ring.wait.slot) for ring in rings]
        warps = self._context.num_warps
        return [*waits, *add_multiply_role(products, entry, slots, warps)]

    def _is_multiplied(self, ring: Ring) -> bool:
        """Whether the multiply role empties a ring."""
        return any(products.loop == ring.loop for products in self._products)

    def _move_maps(self) -> ir.Operation:
        """Moves tensor maps up to the rings. Gives the op behind them."""
        for made in of_kind(self._body.operations, TensorMapOp):
            made.operation.move_before(next(iter(self._body.operations)).operation)
        kinds = (TensorMapOp, MakeRingOp)
        return next(v.operation for v in self._body.operations if not isinstance(v, kinds))

    def _release(self, ring: Ring) -> None:
        """Applies rule 3, where no multiply role does: releases a slot behind its last reader."""
        if self._is_multiplied(ring):
            return
        product = last_product(ring)
        last = last_reader(ring) if product is None else product
        by = released_by(ring) if product is None else PRODUCTS
        with ir.InsertionPoint(behind(last)), last.location:
            RingReleaseOp.build(ring.wait.ring, ring.wait.slot, by=by)

    def _lengthen(self, ring: Ring, behind_rings: ir.Operation) -> None:
        """Gives a ring its slots and buffers, and what fills and what reads it a slot of them."""
        leader = ring.leader or ring
        if ring is leader:
            self._buffers[id(ring)] = self._make_buffers(ring, behind_rings)
            ring.made.slots = self._slots(ring)
            ring.made.fills, ring.made.releases = self._filled(ring), self._releases(ring)
        else:
            replace_op(ring.made, leader.made.result)
        with ir.InsertionPoint(self._first_fill(ring)), ring.turn.operation.location:
            acquired = RingAcquireOp.build(leader.made.result, ring.turn.count)
        replace_op(ring.turn, acquired)
        ring.turn = acquired.owner
        pairs = list(zip(ring.allocs, self._buffers[id(leader)], strict=True))
        for alloc, whole in reversed(pairs):  # each goes in front of the one before
            self._use_slots(ring, alloc, whole)

    def _use_slots(self, ring: Ring, alloc: ir.Operation, whole: ir.Value) -> None:
        """Replaces the one buffer of a ring by slots: the acquired one where it is filled, the one
        that was waited for where it is read."""
        with ir.InsertionPoint(behind(ring.turn.operation)), alloc.location:
            filled = SlotOp.build(whole, ring.turn.slot)
        with ir.InsertionPoint(behind(ring.wait.operation)), alloc.location:
            read = SlotOp.build(whole, ring.wait.slot)
        copies = OpSet(ring.copies)
        order = order_of(ring.block.operations)
        for use in list(alloc.results[0].uses):
            user = use.owner.operation
            fills = user in copies
            user.operands[use.operand_number] = filled if fills else read
            if not fills and order.get(user, len(order)) < order[ring.wait]:
                _sink(user, read.owner.operation, order)  # a view that stood beside its buffer
        alloc.erase()

    def _make_buffers(self, ring: Ring, behind_rings: ir.Operation) -> list[ir.Value]:
        """Buffers of as many slots at the kernel's entry."""
        slots = [buffer_of(alloc.results[0]) for alloc in ring.allocs]
        types = [slot.with_slots(self._slots(ring)).type() for slot in slots]
        with ir.InsertionPoint(behind_rings), self._function.location:
            return [AllocOp.build(results=[type_]) for type_ in types]

    def _slots(self, ring: Ring) -> int:
        return self._counts.around if is_outer(ring.leader or ring) else self._counts.each

    def _filled(self, ring: Ring) -> int:
        """The number of times that a slot of `ring` is published until it is full."""
        kinds = [getattr(arrival, "by", None) for arrival in ring.arrivals]
        copies, stores = COPIES in kinds, "warp" in kinds
        lanes = self._context.target.warp_size
        announced = kinds.count(None)
        return announced + arrivals(copies, stores, self._shapes["load"].warps, lanes)

    def _releases(self, ring: Ring) -> int:
        if self._is_multiplied(ring) or last_product(ring) is not None:
            return 1
        warps = self._context.num_warps
        return warps // WARPGROUP_WARPS if released_by(ring) == "warpgroup" else warps

    def _first_fill(self, ring: Ring) -> ir.Operation:
        own = OpSet((*ring.copies, *ring.arrivals))
        return next(view.operation for view in ring.block.operations if view in own)

    def _make_roles(self, parts: dict[str, Slice], entry: ir.Operation) -> dict[str, RoleOp]:
        """A role per part on warps of its own, and one for what stands behind `entry`."""
        *_, end = self._body.operations
        rest = [view.operation for view in self._body.operations]
        rest = rest[rest.index(entry) + 1 : -1]
        with ir.InsertionPoint(end), self._function.location:
            roles = {name: self._make_role(name, part) for name, part in parts.items()}
            roles["compute"] = self._make_role("compute", None)
        (yield_,) = roles["compute"].body.operations
        for op in rest:
            op.move_before(yield_.operation)
        return roles

    def _make_role(self, name: str, part: Slice | None) -> RoleOp:
        shape = self._shapes[name]

        def body() -> list[ir.Value]:
            if part is not None:
                part.clone()
            return []

        return RoleOp.build(
            name=name,
            first_warp=shape.first_warp,
            warps=shape.warps,
            registers=shape.registers,
            body=body,
        )

    def _plan(self, load_least: int = LOAD_REGISTERS, live: int = 0) -> dict[str, RoleShape]:
        return plan_roles(
            self._context.target,
            self._context.num_warps,
            load_least,
            live,
            multiply=bool(self._products),
            copying=self._copied_by_threads(),
            early=bool(settled_arrays(self._function)),
            teams=self._teams,
            ctas=self._counts.ctas,
        )

    def _copied_by_threads(self) -> bool:
        """Whether more than one thread of the load role fills rings."""
        copies = (copy for ring in self._rings for copy in ring.copies)
        return any(not isinstance(copy, TmaLoadOp) for copy in copies)

    def _report(self) -> None:
        names = dict.fromkeys(copy.FILLS for ring in self._rings for copy in ring.copies)
        number = self._shapes["load"].warps if self._copied_by_threads() else 1
        multiplying = "1 multiplying, " if self._products else ""
        self._context.report.add(
            "warp specialisation",
            self._function,
            f"{number} loading warp{'s' * (number > 1)}, {multiplying}"
            f"{self._teams * self._context.num_warps} computing, {self._counts.each} stages",
            f"{' and '.join(names)} run ahead of their readers",
            stages=self._counts.each,
            demanded=self._demanded,
        )


def _sink(op: ir.Operation, place: ir.Operation, order: OpMap[int]) -> None:
    """Moves a view of a slot behind `place`, and with it the views of it that stood in front."""
    op.move_after(place)
    for use in op.results[0].uses:
        user = use.owner.operation
        if order.get(user, len(order)) < order[place]:
            _sink(user, op, order)


def _erase_with_views(op: ir.Operation) -> None:
    """Erases an op of a turn, and the slots and views that nothing reads any more."""
    for result in op.results:
        for use in list(result.uses):
            _erase_with_views(use.owner.operation)
    op.erase()
