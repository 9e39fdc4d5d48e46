"""share-copies: the CTAs of a cluster each load a part of the tiles that all of them need.

Before:   "gpu_tile.role"() ({                                     (in a cluster of 2 x 1 programs)
            %slot = "gpu_tile.ring_acquire"(%ring, %count)
            "gpu_tile.ring_announce"(%ring, %slot) {bytes = 49152}
            "gpu_tile.tma_load"(%map_a, %a, %ring, %slot, %m, %k)
            "gpu_tile.tma_load"(%map_b, %b, %ring, %slot, %k, %n)      (%n is the same in both CTAs)
          }) {name = "load"}
          ... "gpu_tile.ring_release"(%ring, %slot) ...
After:      "gpu_tile.tma_load"(%map_a, ...)
            %half = "gpu_tile.view"(%b, 0, position * 128)
            "gpu_tile.tma_multicast"(%map_b, %half, %ring, %slot, %mask, %k, %n + position * 128)
          ... "gpu_tile.ring_release"(%ring, %slot, %mask) ...

1. A copy is shared along the cluster's axes on which nothing of it depends: neither its coordinates
   nor how often it runs.
2. A full slot still counts all bytes, whoever loaded them. A free one counts the readers of all
   CTAs that the slot's shared copies go to: they, or their products, release it in each of them.
   Where cp.async fills a slot beside them, each warp does: one arrival a warpgroup says that its
   products have read (`remote_arrive`), but does not order an earlier copy before the next one.
3. The cluster meets when its rings are made (expand-rings), and before it ends: nobody writes into
   the shared memory of a CTA that has not begun or is gone (`await-arrivals` may do without the
   second).

A demand for clusters that shares nothing is an error with the reason; where `tl.auto` chose them
the report says so.
Does not handle: copies outside a load role of specialize-warps, parts that are no whole boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import users
from tilec.dialects.gpu_tile import (
    ClusterMaskOp,
    ClusterPositionOp,
    RingAcquireOp,
    RingPublishOp,
    RingReleaseOp,
    RoleOp,
    TensorMapLoad,
    TmaLoadOp,
    TmaMulticastOp,
)
from tilec.dialects.gpu_tile.cluster import cluster_shape, ctas_alike
from tilec.dialects.gpu_tile.mbarrier import COPIES
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.passes.contract import Level, PassContext, kernel_pass, show_location
from tilec.passes.copies.shared_parts import Part, acquired_by, load_part, part_of
from tilec.passes.copies.tensor_copies import refused_tensor_copies
from tilec.passes.demands.kernels import chose_cluster
from tilec.passes.programs.cluster_alike import axes_of, meet
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.refusals import Refusal, attempt
from tilec.passes.rewriting.scalars import binary
from tilec.passes.rewriting.walk import find_ops
from tilec.records import dataclass


@kernel_pass(
    requires=Level.ALLOCATED,
    behind={
        "specialize-warps": "that makes the load role whose copies are shared",
        "insert-barriers": "syncs stand between the accesses of one CTA, whoever loaded for it",
    },
    rings=True,
)
def share_copies(function: ir.Operation, context: PassContext) -> None:
    """Multicasts what the CTAs of a cluster load alike."""
    shape = cluster_shape(function)
    copies = [op.opview for op in find_ops(function, TensorMapLoad)]
    if shape == (1, 1, 1) or any(copy.reaches_others() for copy in copies):
        return
    loads = [op for role in find_ops(function, RoleOp) for op in find_ops(role, TmaLoadOp)]
    planned = [(load, *attempt(_plan, load.opview, shape)) for load in loads]
    copies = [plan for _, plan, _ in planned if plan is not None]
    if not copies:
        reasons = [f"the copy at {show_location(op)} {why}" for op, _, why in planned]
        notes = reasons or refused_tensor_copies(context)
        why = "no copy is shared" if loads else "no tensor copies run ahead in warps of their own"
        if chose_cluster(function):
            context.report.add("cluster copy", function, "no", why)
            return
        raise error_at(function, f"cluster={shape} was asked for, but {why}", *notes)
    for load, plan, why in planned:
        about = "cluster copy"
        if plan is None:
            context.report.add(about, load, "each CTA its own", why)
        else:
            parts = _count(shape, plan.axes)
            context.report.add(
                about, load, f"1/{parts} a CTA, multicast", "they need the same tile"
            )
    masks = _Masks(function, shape)
    _arrive_everywhere(copies, masks)
    for copy in copies:
        _multicast(copy, masks)
    meet(function)


@dataclass
class _Copy:
    """A copy of a load role that CTAs share along `axes`, each one `part`; `turn`: which acquired
    its slot."""

    load: TmaLoadOp
    turn: RingAcquireOp
    axes: tuple[int, ...]
    part: Part


def _count(shape: Sequence[int], axes: Sequence[int]) -> int:
    """The number of CTAs of a cluster that differ along `axes` only."""
    return len(ctas_alike(tuple(shape), tuple(axes)))


# Which copies ------------------------------------------------------------------------------------


def _plan(load: TmaLoadOp, shape: tuple[int, int, int]) -> _Copy:
    """Plans how CTAs share a copy."""
    turn = acquired_by(load)
    if turn is None:
        raise Refusal("fills a slot that nobody acquires")
    if any(release.mask is not None for release in users(turn.ring, RingReleaseOp)):
        raise Refusal("goes to slots that other CTAs release already")
    differs = axes_of(load)
    axes = tuple(axis for axis in range(3) if shape[axis] > 1 and axis not in differs)
    if not axes:
        raise Refusal("depends on where in the cluster a CTA is")
    part = part_of(load, _count(shape, axes))
    if part is None:
        raise Refusal(f"is not made of {_count(shape, axes)} times as many whole boxes")
    return _Copy(load, turn, axes, part)


# The rewrite -------------------------------------------------------------------------------------


class _Masks:
    """Masks of CTAs and places among them, made once at a kernel's entry."""

    def __init__(self, function: ir.Operation, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self._entry = function.regions[0].blocks[0]
        self._location = function.location
        self._masks: dict[tuple[tuple[int, ...], ...], ir.Value] = {}
        self._places: dict[tuple[int, ...], ir.Value] = {}

    def mask(self, groups: set[tuple[int, ...]]) -> ir.Value:
        """The CTAs that are in one of the groups with this one; a group is known by its axes."""
        key = tuple(sorted(groups))
        if key not in self._masks:
            with ir.InsertionPoint.at_block_begin(self._entry), self._location:
                first, *others = [ClusterMaskOp.build(axes=axes) for axes in key]
                for other in others:
                    first = binary("arith.ori", first, other)
                self._masks[key] = first
        return self._masks[key]

    def members(self, groups: set[tuple[int, ...]]) -> int:
        """The number of CTAs that `mask` has."""
        return len({rank for axes in groups for rank in ctas_alike(self.shape, axes)})

    def place(self, axes: tuple[int, ...]) -> ir.Value:
        """This CTA's number in its group."""
        if axes not in self._places:
            with ir.InsertionPoint.at_block_begin(self._entry), self._location:
                number = None
                for axis in reversed(axes):
                    position = ClusterPositionOp.build(axis=axis)
                    if number is None:
                        number = position
                        continue
                    scaled = binary("arith.muli", number, self.shape[axis])
                    number = binary("arith.addi", scaled, position)
                assert number is not None
                self._places[axes] = number
        return self._places[axes]


def _arrive_everywhere(copies: Sequence[_Copy], masks: _Masks) -> None:
    """Rings count the readers of every CTA that a slot is filled for."""
    groups: dict[ir.Value, set[tuple[int, ...]]] = {}
    for copy in copies:
        groups.setdefault(copy.turn.ring, set()).add(copy.axes)
    for ring, own in groups.items():
        releases = users(ring, RingReleaseOp)
        by_warps = _are_copied(ring) and {release.by for release in releases} == {"warpgroup"}
        counted = ring.owner.releases * (WARPGROUP_WARPS if by_warps else 1)
        ring.owner.releases = counted * masks.members(own)
        for release in releases:
            with ir.InsertionPoint(release.operation), release.operation.location:
                by = "warp" if by_warps else release.by
                RingReleaseOp.build(ring, release.slot, masks.mask(own), by=by)
            release.operation.erase()


def _are_copied(ring: ir.Value) -> bool:
    """Whether cp.async brings something into a ring's slots."""
    return any(publish.by == COPIES for publish in users(ring, RingPublishOp))


def _multicast(copy: _Copy, masks: _Masks) -> None:
    mask, place = masks.mask({copy.axes}), masks.place(copy.axes)
    load_part(copy.load, copy.part, place, mask, TmaMulticastOp)
