"""pair-products: two CTAs of a cluster multiply together, each with half of the rhs.

Before:   (in a cluster of 2 x 1 programs)
          load role:     acquire, announce(%operands)  tma_load A, 128 rows  tma_load B, 256 columns
          multiply role: acquire(%sums)  wait(%operands)
                         "gpu_tile.tcgen05_mma"(%a, %b, %t, %add) {"tcgen05.m128n256k16..."}
                         release(%operands)   publish(%sums)
          compute role:  wait(%sums)   release(%sums)
After:    load role:     the even CTA announces the bytes of both in its %operands
                         tma_pair_load A, own 128 rows   tma_pair_load B, own 128 columns
          multiply role: in the even CTA only
                         "gpu_tile.tcgen05_mma"(%a, %b, %t, %add) {"tcgen05.pair.m256n256k16..."}
                         release(%operands of both)   publish(%sums of both)
          compute role:  wait(%sums)   release(%sums of the even CTA)

The instruction reads the lhs rows and the rhs columns of both CTAs and adds up in the tensor memory
of each its own rows (PTX ISA 9.0, "CTA Pair"): half the shared memory and half the traffic for the
rhs, and so more stages. It takes place where a multiply role has products of 128 rows whose lhs
differs between the two CTAs and whose rhs does not.

In a cluster of several pairs each CTA loads a part of what CTAs of other pairs need, too (the rhs
half along the first axis, the lhs along others), multicasts it, and has its slot back when the
products of all pairs that it loads for are done.
Does not handle: an lhs in tensor memory, several accumulators side by side in one product.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from tilec.dialects.def_use import made_by, of_kind, users
from tilec.dialects.gpu_tile import (
    AllocOp,
    ClusterMaskOp,
    ClusterPositionOp,
    MakeTensorMapOp,
    RingAcquireOp,
    RingAnnounceOp,
    RingHandover,
    RingReleaseOp,
    RoleOp,
    SlotOp,
    Tcgen05MmaOp,
    TensorMapLoad,
    TmaLoadOp,
    TmaPairLoadOp,
    TmaPairMulticastOp,
)
from tilec.dialects.gpu_tile.cluster import cluster_shape
from tilec.dialects.gpu_tile.ring import PRODUCTS
from tilec.dialects.gpu_tile.types import BufferType, any_buffer_of, buffer_of
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import PAIR_MS, find_instruction, select_tensor_instruction
from tilec.hardware.ring_stages import barrier_bytes, most_slots
from tilec.hardware.target import Feature
from tilec.passes.analysis.placement import shared_bytes
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.shared_parts import acquired_by, load_part, part_of
from tilec.passes.copies.tensor_copies import box_of
from tilec.passes.layouts.panels import operand_layout, swizzle_bytes
from tilec.passes.programs.cluster_alike import axes_of, meet
from tilec.passes.programs.pair_sharing import PAIR, Sharing
from tilec.passes.rewriting.control import only_if
from tilec.passes.rewriting.loops import behind
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.refusals import Refusal, attempt
from tilec.passes.rewriting.scalars import binary, equal, i32_constant
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import find_ops, role_of
from tilec.records import dataclass

BOTH, EVEN = 3, 1
"""Masks of the CTAs of a pair of ranks 0 and 1."""


@kernel_pass(
    requires=Level.BUFFERS,
    needs=Feature.TCGEN05,
    behind={"specialize-warps": "that makes the roles whose products are paired"},
    rings=True,
)
def pair_products(function: ir.Operation, context: PassContext) -> None:
    """Makes products of CTA pairs where clusters of two share their rhs."""
    shape = cluster_shape(function)
    copies = [op.opview for op in find_ops(function, TensorMapLoad)]
    if shape[0] % PAIR or any(copy.PAIRED for copy in copies):
        return
    products, refused = attempt(_products, function, context)
    if not products:
        why = refused or "nothing adds up in tensor memory"
        context.report.add("CTA pair", function, "no", why)
        return
    name = products[0].row.name
    stages = _Rewrite(function, products, shape, context).run()
    why = "both read the same rhs: each loads half of it"
    context.report.add("CTA pair", function, f"{name}, {stages} stages", why, stages=stages)


@dataclass
class _Product:
    """A product that a pair can do: its instruction, the rings of its operands, and what fills
    them."""

    multiply: Tcgen05MmaOp
    row: MmaInstruction
    lhs: AllocOp
    rhs: AllocOp
    loads: tuple[TmaLoadOp, TmaLoadOp]


def _products(function: ir.Operation, context: PassContext) -> list[_Product]:
    return [_product(op.opview, context) for op in find_ops(function, Tcgen05MmaOp)]


def _product(multiply: Tcgen05MmaOp, context: PassContext) -> _Product:
    role = role_of(multiply.operation)
    if role is None or role.opview.name != "multiply":
        raise Refusal("the products have no warp of their own")
    row = find_instruction(multiply.instruction)
    if row.is_scaled:
        raise Refusal("products with scales are those of one CTA")
    rows, columns = any_buffer_of(multiply.acc).shape
    pair = select_tensor_instruction(
        context.target, PAIR_MS[0], columns, row.lhs, row.rhs, row.acc, tf32=row.tf32, ctas=2
    )
    if pair is None or rows != pair.m // pair.ctas:
        raise Refusal(f"a pair has no instruction for {rows}x{columns} of each CTA")
    (lhs, lhs_load), (rhs, rhs_load) = _source(multiply.lhs), _source(multiply.rhs)
    if 0 not in axes_of(lhs_load):
        raise Refusal("the lhs of a product does not follow the CTA's place in the cluster")
    if 0 in axes_of(rhs_load):
        raise Refusal("the rhs of a product depends on the CTA's place in the pair")
    if made_by(rhs_load.map, MakeTensorMapOp) is None:
        raise Refusal("the rhs of a product comes in im2col mode, as a whole")
    _half(rhs)
    return _Product(multiply, pair, lhs, rhs, (lhs_load, rhs_load))


def _source(operand: ir.Value) -> tuple[AllocOp, TmaLoadOp]:
    """The ring of an operand and the copy that fills it."""
    slot = made_by(operand, SlotOp)
    ring = None if slot is None else made_by(slot.src, AllocOp)
    if ring is None:
        raise Refusal("an operand lies in no ring")
    readers = [user for slot in users(ring.result) for user in users(slot.result)]
    loads = of_kind(readers, TmaLoadOp)
    if len(loads) != 1 or len(of_kind(readers, TmaLoadOp, Tcgen05MmaOp)) < len(readers):
        raise Refusal("an operand is filled by more than one tensor copy")
    return ring, loads[0]


def _half(rhs: AllocOp) -> BufferType:
    """The type of a slot that holds half the columns of a ring's (k, n) tiles."""
    slot = buffer_of(rhs.result).slot()
    k, n = slot.shape
    contiguous = 1 if slot.layout.dims[1][0][1] == 1 else 0
    sizes = (k, n // 2)
    if n % 2 or swizzle_bytes(sizes[contiguous], slot.element) == 0:
        raise Refusal(f"half of {n} columns of rhs fill no swizzle")
    half = BufferType(sizes, slot.element, operand_layout(sizes, slot.element, contiguous))
    box_of(half)
    return half


class _Rewrite:
    """Makes the products of one kernel pairs' products."""

    def __init__(
        self,
        function: ir.Operation,
        products: Sequence[_Product],
        shape: tuple[int, int, int],
        context: PassContext,
    ) -> None:
        self._function = function
        self._shape = shape
        self._sharings: list[tuple[TmaPairLoadOp, Sharing]] = []
        self._products = products
        self._context = context
        self._body = function.regions[0].blocks[0]
        rings = [load.barrier for product in products for load in product.loads]
        self._rings: tuple[ir.Value, ...] = tuple(dict.fromkeys(rings))
        self._whole = OpSet(p.lhs for p in products)
        self._halved = OpSet(p.rhs for p in products)

    def run(self) -> int:
        """Rewrites copies, buffers, products, and what rings count, in that order; gives the number
        of slots."""
        with ir.InsertionPoint.at_block_begin(self._body), self._function.location:
            self._place = ClusterPositionOp.build(axis=0)
            if self._shape[0] > PAIR:
                self._place = binary("arith.andi", self._place, PAIR - 1)
            self._is_even = equal(self._place, 0)
            self._both, self._even = i32_constant(BOTH), i32_constant(EVEN)
            if prod(self._shape) > PAIR:
                own = ClusterMaskOp.build(axes=())
                self._even = binary("arith.shrui", own, self._place)
                self._both = binary("arith.muli", self._even, BOTH)
        stages = self._stages()
        for load in OpSet(x for p in self._products for x in p.loads):
            self._load(load, load.dst.owner.src.owner in self._halved)
        for alloc in self._whole:
            self._resize(alloc, buffer_of(alloc.result).slot(), stages)
        for alloc in self._halved:
            self._resize(alloc, _half(alloc), stages)
        for product in self._products:
            name = ir.StringAttr.get(product.row.name)
            product.multiply.instruction = name
        self._announce()
        self._hand_over(self._share())
        self._multiply_in_even()
        for ring in self._rings:
            ring.owner.slots = stages
        meet(self._function)
        return stages

    def _stages(self) -> int:
        """As many as fit now, unless the author demanded how many."""
        found = buffer_of(self._products[0].lhs.result).slots
        entries = self._context.report.decisions
        if any(e["about"] == "warp specialisation" and e.get("demanded") for e in entries):
            return found
        other = shared_bytes(self._function, without=[*self._whole, *self._halved])
        other += barrier_bytes(len(self._rings))
        other += max(buffer_of(alloc.result).alignment_bytes for alloc in self._whole)
        each = sum(buffer_of(alloc.result).slot_bytes for alloc in self._whole)
        each += sum(_half(alloc).slot_bytes for alloc in self._halved)
        return max(found, most_slots(each, other, self._context.target))

    def _load(self, load: TmaLoadOp, halved: bool) -> None:
        """A copy that tells the even CTA, of half the columns where they are shared."""
        tensor_map, at = load.map, list(load.coordinates)
        differs = axes_of(load)
        axes = tuple(n for n in (1, 2) if self._shape[n] > 1 and n not in differs)
        sharing = Sharing(self._shape, axes, halved)
        with ir.InsertionPoint(load.operation), load.operation.location:
            if halved:
                made = load.map.owner
                half = _half(load.dst.owner.src.owner)
                box, swizzle = box_of(half)
                with ir.InsertionPoint(made.operation):
                    tensor_map = MakeTensorMapOp.build(
                        made.array, box=box, dims=made.dims, swizzle=swizzle
                    )
                step = binary("arith.muli", self._place, half.shape[1])
                axis = made.dims[1]
                at[axis] = binary("arith.addi", at[axis], step)
            TmaPairLoadOp.build(tensor_map, load.dst, load.barrier, load.slot, at, cache=load.cache)
        views = list(load.operation.block.operations)
        before = views[[view.operation for view in views].index(load.operation) - 1]
        self._sharings.append((before, sharing))
        load.operation.erase()
        if halved and not list(made.result.uses):
            made.operation.erase()

    def _resize(self, alloc: AllocOp, slot: BufferType, slots: int) -> None:
        """Gives a buffer that many slots, and the views of these their types."""
        with ir.InsertionPoint(alloc.operation), alloc.operation.location:
            whole = AllocOp.build(results=[slot.with_slots(slots).type()])
        for use in list(alloc.result.uses):
            old = use.owner.opview
            with ir.InsertionPoint(old.operation), old.operation.location:
                new = SlotOp.build(whole, old.index)
            replace_op(old, new)
        alloc.operation.erase()

    def _announce(self) -> None:
        """The even CTA's full slots count the bytes of both."""
        for ring in self._rings:
            bytes_ = 2 * sum(buffer_of(load.dst).tile_bytes for load in users(ring, TmaPairLoadOp))
            for announce in users(ring, RingAnnounceOp):
                with ir.InsertionPoint(announce), only_if(self._is_even):
                    RingAnnounceOp.build(ring, announce.slot, bytes=bytes_)
                announce.operation.erase()

    def _share(self) -> dict[ir.Value, ir.Value]:
        """Lets each CTA load a part of what several pairs need. Gives, for each ring, the mask of
        the CTAs that fill its slots in this pair."""
        masks: dict[ir.Value, ir.Value] = {}
        pairs: dict[ir.Value, set[int]] = {}
        last = self._both.owner.operation
        for load, sharing in self._sharings:
            part = part_of(load, sharing.parts) if sharing.parts > 1 else None
            if part is None:
                continue
            turn = acquired_by(load)
            assert turn is not None  # a load role acquires its slots
            ring = turn.ring
            with ir.InsertionPoint(behind(last)), load.operation.location:
                mask, place = sharing.mask(self._place), sharing.place()
                # Where this is even: the CTAs that load for it, and for its odd neighbour.
                fill = binary("arith.muli", mask, BOTH)
                fill = binary("arith.ori", fill, masks.get(ring, self._both))
            masks[ring], last = fill, fill.owner.operation
            pairs.setdefault(ring, {0}).update(rank // PAIR for rank in sharing.ranks(0))
            load_part(load, part, place, mask, TmaPairMulticastOp)
            why = "they need the same tile"
            where = f"1/{sharing.parts} a CTA, multicast"
            self._context.report.add("cluster copy", self._function, where, why)
        for ring, found in pairs.items():
            ring.owner.releases = len(found)
        return masks

    def _hand_over(self, masks: dict[ir.Value, ir.Value]) -> None:
        """The end of products is heard in both CTAs, and by those that fill what is released; the
        even one hears when both have read a sum."""
        for op in find_ops(self._function, RingHandover):
            told = op.opview
            if told.by == PRODUCTS:
                mask = masks.get(told.ring, self._both)
            elif isinstance(told, RingReleaseOp) and self._is_acquired(told.ring):
                mask = self._even
            else:
                continue
            with ir.InsertionPoint(op), op.location:
                type(told).build(told.ring, told.slot, mask, by=told.by)
            op.erase()
        for role in self._roles():
            for turn in find_ops(role, RingAcquireOp):
                ring = turn.opview.ring.owner
                ring.releases *= PAIR

    def _is_acquired(self, ring: ir.Value) -> bool:
        """Whether the multiply role fills a ring."""
        acquiring = (role_of(turn.operation) for turn in users(ring, RingAcquireOp))
        return any(role in self._roles() for role in acquiring)

    def _roles(self) -> list[ir.Operation]:
        """The roles that multiply."""
        return [op for op in find_ops(self._function, RoleOp) if find_ops(op, Tcgen05MmaOp)]

    def _multiply_in_even(self) -> None:
        for role in self._roles():
            body = role.opview.body
            *own, end = [view.operation for view in body.operations]
            with ir.InsertionPoint(end), end.location, only_if(self._is_even) as place:
                for op in own:
                    op.move_before(place)
