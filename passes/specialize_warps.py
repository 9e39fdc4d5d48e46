"""specialize-warps: one warp keeps rings of buffers full while the others compute.

Before:   %full = "gpu_tile.barrier_init"() {slots = 1 ...}
          scf.for %k ... iter_args(%n, ...) {
            %slot, %parity = "gpu_tile.ring_position"(%n) {slots = 1 : i32}
            "gpu_tile.barrier_expect"(%full, %slot)   "gpu_tile.tma_load"(%map, %s, %full, ...)
            "gpu_tile.barrier_wait"(%full, %slot, %parity)
            ... reads %s ...
          }
After:    %ring = "gpu_tile.alloc"()   %full, %empty = "gpu_tile.barrier_init"() {slots = 3 ...}
          "gpu_tile.role"() ({                                    (the loop without its tiles)
            scf.for %k ... {
              "gpu_tile.barrier_wait"(%empty, %slot, not %parity)
              "gpu_tile.barrier_expect"(%full, %slot)   "gpu_tile.tma_load"(...)
            }
          }) {name = "load", ...}
          "gpu_tile.role"() ({                                    (everything but the copies)
            scf.for %k ... iter_args(%n, ...) {
              "gpu_tile.barrier_wait"(%full, %slot, %parity)
              ... reads slot %slot of %ring ...
              "gpu_tile.barrier_arrive"(%empty, %slot)
            }
          }) {name = "compute", ...}

1. A copy qualifies if its coordinates and the loops around it depend on scalars that need no tile;
   they are computed again in the load role. All copies of a kernel go there, or none. What stores
   (`roles.fills`) brings its tile along, folded to the load role's warpgroup.
2. The stages: `tile.stages` where the author demands them, else as many as fit beside the other
   buffers, fewer where a second CTA then fits beside this one (`ring_stages`); the same for every
   ring, but where only one fits so, one for rings around others (`roles.ring_slots`). Loops behind
   each other share alike rings.
3. A slot is given back behind its last reader: once per warpgroup where only its matrix
   instructions read it, by a tcgen05_commit where only products in tensor memory do, else once per
   warp; where warps compute an operand from it (`computed_lhs`), behind the product's issue.
4. Registers move from the load role to the others where the kernel could use more than its share.

A demand that cannot be met is an error with the reason; otherwise the report has it.
Does not handle: scf.while around a copy.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import (
    AllocOp,
    BarrierArriveOp,
    BarrierExpectOp,
    BarrierInitOp,
    BarrierWaitOp,
    BufferStoreOp,
    CpAsyncArriveOp,
    FenceOp,
    MakeTensorMapOp,
    RoleOp,
    SlotOp,
    SyncOp,
    Tcgen05CommitOp,
    TmaLoadOp,
)
from tilec.dialects.gpu_tile.role import TOTAL_WARPS, WARPGROUP_WARPS
from tilec.dialects.gpu_tile.types import BufferType, buffer_of
from tilec.dialects.types import is_tile
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.copies.tensor_copies import refused_tensor_copies
from tilec.passes.demands.kernels import PINGPONG, teams_of
from tilec.passes.demands.loops import STAGES, WARP_SPECIALIZE
from tilec.passes.rewriting.free_ops import erase_unused
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import behind
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.scalars import negated
from tilec.passes.rewriting.walk import kernels
from tilec.passes.roles.budgets import share_registers
from tilec.passes.roles.fills import arrivals, refused_fills
from tilec.passes.roles.multiply_role import (
    Products,
    add_multiply_role,
    drop_shell,
    find_products,
)
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
    FILL_NAMES,
    Ring,
    arrivals_per,
    find_rings,
    go_on,
    last_product,
    last_reader,
    share_rings,
    why_no_ring,
)
from tilec.target import Feature


@tile_pass(
    requires=Level.BUFFERS,
    ensures=Level.BUFFERS,
    behind={
        "schedule-programs": "roles run the whole loop over programs",
        "insert-async-copies": "roles issue the copies that it makes",
    },
)
def specialize_warps(module: ir.Module, context: PassContext) -> None:
    """Gives the tensor copies of every kernel a warp of their own."""
    for function in kernels(module):
        _specialize(function, context)


def _specialize(function: ir.Operation, context: PassContext) -> None:
    demanding, forbidden = _demands(function)
    rings = find_rings(function)
    reason = _refusal(function, rings, context)
    if forbidden is not None and reason is None:
        reason = "warp_specialize=False"
    followers = share_rings(rings) if reason is None else []
    wanted = wanted_stages(rings)
    stages, outer = wanted, wanted
    if not wanted and reason is None:
        stages, outer = slots_that_fit(function, rings, context)
    if reason is None and stages < 2 and demanding is None:
        reason = "one stage was asked for" if wanted else "the shared memory holds one stage only"
    in_turn = teams_of(function) > 1
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
            context.report.add("warp specialisation", function, "no", reason)
        return
    for loop, number, reached in followers:
        go_on(loop, number, reached)
    _Rewrite(function, rings, (stages, outer), context).run()


def _demands(function: ir.Operation) -> tuple[ir.Operation | None, ir.Operation | None]:
    """A loop that demands warp specialisation, and one that forbids it."""
    found: dict[bool, ir.Operation] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "scf.for" and WARP_SPECIALIZE in op.attributes:
            found.setdefault(bool(op.attributes[WARP_SPECIALIZE].value), op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found.get(True), found.get(False)


def _refusal(function: ir.Operation, rings: list[Ring], context: PassContext) -> str | None:
    if not context.target.supports(Feature.SETMAXNREG):
        return f"{context.target.name} does not move registers between warps"
    if not rings:
        return "no loop fills buffers that other warps could fill"
    if any(ring.barrier.slots > 1 for ring in rings):
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


def _find_products(function: ir.Operation, rings: list[Ring]) -> list[Products]:
    loops = OpMap((alloc, ring.loop) for ring in rings for alloc in ring.allocs)
    return find_products(function, loops)


def _stores(rings: list[Ring]) -> bool:
    """Whether tiles go through the load role's registers."""
    return any(isinstance(copy, BufferStoreOp) for ring in rings for copy in ring.copies)


def _part(function: ir.Operation, rings: list[Ring], roots: list[ir.Operation]) -> Slice:
    return Slice(function, roots, tiles=_stores(rings))


class _Rewrite:
    """Splits one kernel."""

    def __init__(
        self,
        function: ir.Operation,
        rings: list[Ring],
        slots: tuple[int, int],
        context: PassContext,
    ) -> None:
        self._function = function
        self._rings = rings
        self._stages, self._outer = slots
        self._demanded = any(staged_loop(ring) is not None for ring in rings)
        self._context = context
        self._teams = teams_of(function)
        self._body = function.regions[0].blocks[0]
        self._products: list[Products] = []
        self._shapes: dict[str, RoleShape] = {}
        self._made: dict[int, tuple[ir.Value, ir.Value, list[ir.Value]]] = {}

    def run(self) -> None:
        """Rings at the entry, then the roles."""
        self._products = _find_products(self._function, self._rings)
        self._shapes = self._plan()
        total_warps = max(shape.end for shape in self._shapes.values())
        with ir.InsertionPoint(self._move_to_entry()), self._function.location:
            empties = [self._make_ring(ring) for ring in self._rings]
            made = FenceOp.build(kind="barrier_init")
            entry = SyncOp.build(warps=total_warps)
        loads: list[ir.Operation] = []
        for ring, empty in zip(self._rings, empties, strict=True):
            loads += self._fill(ring, empty)
        multiplies = [op for p in self._products for op in self._multiply(p, empties, made)]
        parts = {"load": _part(self._function, self._rings, loads)}
        if multiplies:
            parts["multiply"] = Slice(self._function, multiplies)
        roles = self._make_roles(parts, entry.operation)
        i32 = ir.IntegerType.get_signless(32)
        self._function.attributes[TOTAL_WARPS] = ir.IntegerAttr.get(i32, total_warps)
        for ring in self._rings:
            for name in (STAGES, WARP_SPECIALIZE):
                if name in ring.loop.attributes:
                    del ring.loop.attributes[name]
        for root in (*loads, *multiplies):
            operands = [value for value in root.operands if is_tile(value)]
            root.erase()
            for operand in operands:
                erase_unused(operand)
        for products in self._products:
            drop_shell(products.loop)
        share_registers(self._function, roles, self._plan, self._context)
        self._report()

    def _multiply(
        self, products: Products, empties: list[ir.Value], made: FenceOp
    ) -> list[ir.Operation]:
        """The ops that the multiply role runs for one loop. `made`: the fence behind all
        barriers."""
        rings = [
            (ring, empty)
            for ring, empty in zip(self._rings, empties, strict=True)
            if ring.loop == products.loop
        ]
        waits = [ring.wait.operation for ring, _ in rings]
        slots = [(empty, ring.position.slot) for ring, empty in rings]
        warps = self._context.num_warps
        return [*waits, *add_multiply_role(products, made.operation, slots, warps)]

    def _is_multiplied(self, ring: Ring) -> bool:
        """Whether the multiply role empties a ring."""
        return any(products.loop == ring.loop for products in self._products)

    def _move_to_entry(self) -> ir.Operation:
        """Tensor maps and barriers move up, the barriers' own fences and syncs go. Returns the op
        behind what moved."""
        views = list(self._body.operations)
        stale = [
            op.operation
            for init, *pair in zip(views, views[1:], views[2:], strict=False)
            if isinstance(init, BarrierInitOp) and [type(op) for op in pair] == [FenceOp, SyncOp]
            for op in pair
        ]
        for op in stale:
            op.erase()
        moved = (MakeTensorMapOp, BarrierInitOp)
        for view in views:
            if isinstance(view, moved):
                view.operation.move_before(self._first())
        return next(v.operation for v in self._body.operations if not isinstance(v, moved))

    def _first(self) -> ir.Operation:
        return next(iter(self._body.operations)).operation

    def _make_ring(self, ring: Ring) -> ir.Value:
        """Longer barriers and buffers at the entry; returns the barrier of free slots."""
        leader = ring.leader or ring
        if id(leader) not in self._made:
            self._made[id(leader)] = self._make_buffers(leader)
        full, empty, wholes = self._made[id(leader)]
        ring.barrier.result.replace_all_uses_with(full)
        ring.barrier.operation.erase()
        for alloc, whole in zip(ring.allocs, wholes, strict=True):
            with ir.InsertionPoint(self._first_fill(ring)), alloc.location:
                one = SlotOp.build(whole, ring.position.slot)
            alloc.results[0].replace_all_uses_with(one)
            alloc.erase()
        i32 = ir.IntegerType.get_signless(32)
        ring.position.operation.attributes["slots"] = ir.IntegerAttr.get(i32, self._slots(ring))
        return empty

    def _make_buffers(self, ring: Ring) -> tuple[ir.Value, ir.Value, list[ir.Value]]:
        """The barriers of full and of free slots, and the buffers."""
        slots = self._slots(ring)
        full = BarrierInitOp.build(slots=slots, count=self._filled(ring))
        empty = BarrierInitOp.build(slots=slots, count=self._arrivals(ring))
        wholes = []
        for alloc in ring.allocs:
            slot = buffer_of(alloc.results[0])
            type_ = BufferType((slots, *slot.shape), slot.element, slot.layout).type()
            wholes.append(AllocOp.build(results=[type_]))
        return full, empty, wholes

    def _slots(self, ring: Ring) -> int:
        return self._outer if is_outer(ring.leader or ring, self._rings) else self._stages

    def _filled(self, ring: Ring) -> int:
        """How many arrivals say that a slot of `ring` is full."""
        kinds = [type(arrival) for arrival in ring.arrivals]
        copies, stores = CpAsyncArriveOp in kinds, BarrierArriveOp in kinds
        lanes = self._context.target.warp_size
        announced = kinds.count(BarrierExpectOp)
        return announced + arrivals(copies, stores, self._shapes["load"].warps, lanes)

    def _arrivals(self, ring: Ring) -> int:
        if self._is_multiplied(ring) or last_product(ring) is not None:
            return 1
        warps = self._context.num_warps
        return warps // WARPGROUP_WARPS if arrivals_per(ring) == "warpgroup" else warps

    def _fill(self, ring: Ring, empty: ir.Value) -> list[ir.Operation]:
        """What the load role does for a ring; the release of a slot stays with the readers."""
        if not self._is_multiplied(ring):
            product = last_product(ring)
            last = last_reader(ring) if product is None else product
            with ir.InsertionPoint(behind(last)), last.location:
                if product is None:
                    BarrierArriveOp.build(empty, ring.position.slot, per=arrivals_per(ring))
                else:
                    Tcgen05CommitOp.build(empty, ring.position.slot)
        first = self._first_fill(ring)
        with ir.InsertionPoint(first), first.location:
            free = negated(ring.position.parity)
            wait = BarrierWaitOp.build(empty, ring.position.slot, free)
        return [wait.operation, *(op.operation for op in (*ring.copies, *ring.arrivals))]

    def _first_fill(self, ring: Ring) -> ir.Operation:
        own = OpSet((*ring.copies, *ring.arrivals))
        ops = (view.operation for view in ring.position.operation.block.operations)
        return next(op for op in ops if op in own)

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
            teams=self._teams,
        )

    def _report(self) -> None:
        kinds = {type(copy): copy for ring in self._rings for copy in ring.copies}
        names = [name for kind, name in FILL_NAMES.items() if kind in kinds]
        number = 1 if list(kinds) == [TmaLoadOp] else self._shapes["load"].warps
        multiplying = "1 multiplying, " if self._products else ""
        self._context.report.add(
            "warp specialisation",
            self._function,
            f"{number} loading warp{'s' * (number > 1)}, {multiplying}"
            f"{self._teams * self._context.num_warps} computing, {self._stages} stages",
            f"{' and '.join(names)} run ahead of their readers",
            stages=self._stages,
            demanded=self._demanded,
        )
