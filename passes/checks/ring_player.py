"""What the warps of one role do with the slots of rings, and what they may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cache
from typing import Any

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.def_use import made_by
from tilec.dialects.effects import read_late_by, written_by
from tilec.dialects.gpu_tile import BufferView, RingHandover, RingTurn, TensorMapLoad
from tilec.dialects.gpu_tile.ring import COPIES, PRODUCTS, THREADS
from tilec.dialects.gpu_tile.types import (
    buffer_of,
    is_buffer,
    is_tensor_buffer,
)
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.passes.checks.ring_scalars import Scalars
from tilec.passes.checks.ring_state import Broken, RingState, Turn
from tilec.passes.checks.ring_walk import Code, Walk
from tilec.passes.rewriting.op_tables import OpSet
from tilec.records import dataclass


class Enough(Exception):
    """Raised when as many steps were played as are allowed."""


@dataclass
class Cluster:
    """What the roles of all CTAs of a cluster have in common. `rings`: by rank. `steps`: how many
    are left. `begun`: roles that began, and where; `played`: the ops that were."""

    rings: list[dict[ir.Value, RingState]]
    warp_size: int
    steps: int
    played: OpSet = field(default_factory=OpSet)
    begun: list[tuple[gpu_tile.RoleOp, Player]] = field(default_factory=list)

    @property
    def ctas(self) -> int:
        """The number of CTAs of the cluster."""
        return len(self.rings)

    def ring(self, ring: ir.Value, rank: int) -> RingState:
        """A ring in the CTA of a rank."""
        return self.rings[rank][ring]

    def step(self) -> None:
        """Counts an op or an iteration."""
        self.steps -= 1
        if self.steps < 0:
            raise Enough


@dataclass(frozen=True)
class Part:
    """A slot, counted by hand, of a buffer of no ring; None where the number is not followed."""

    buffer: ir.Value
    slot: int | None


Place = Turn | Part | ir.Value
"""A turn's slot, or a buffer of no ring."""


class Player(Walk):
    """The warps of a role (or all of a kernel's) in the CTA of `rank`.

    `filling`: turns that it acquired, and `told` how it has published them; `reading`: those that
    it waited for and has not released. `issued`: what tensor cores may still read, turns and
    buffers, oldest group first; `multiplying`: what products in tensor memory may still read or
    write, and `ended` how many of these each published turn tells the end of. `copying`: turns that
    cp.async may still fill.
    """

    def __init__(
        self,
        cluster: Cluster,
        threads: int,
        code: Code,
        scalars: Scalars,
        values: dict[ir.Value, Any],
    ) -> None:
        super().__init__(code, scalars, values)
        self.cluster, self.rank, self.threads = cluster, scalars.rank, threads
        self.filling: dict[Turn, ir.Operation] = {}
        self.told: set[tuple[Turn, str]] = set()
        self.reading: dict[Turn, ir.Operation] = {}
        self.issued: list[list[Place]] = []
        self.multiplying: list[Place] = []
        self.ended: dict[Turn, int] = {}
        self.done = 0
        self.copying: set[Turn] = set()

    def play(self, op: ir.Operation) -> Iterator[ir.Operation]:
        """See `Walk`."""
        self.cluster.step()
        self.cluster.played.add(op)
        view = op.opview
        if isinstance(view, RingTurn):
            yield from self._turn(view)
        else:
            _way_of(type(view))(self, view)

    def count(self) -> None:
        """See `Walk`."""
        self.cluster.step()

    def _begin(self, view: gpu_tile.RoleOp) -> None:
        self.cluster.begun.append((view, self))

    def _announce(self, view: gpu_tile.RingAnnounceOp) -> None:
        turn = self._slot_of(view.slot, view.operation)
        ring = self.cluster.ring(view.ring, self.rank)
        ring.announce(turn.slot, view.bytes, view.operation)

    def _ask(self, view: gpu_tile.NextProgramOp) -> None:
        for rank in range(self.cluster.ctas):
            bytes_ = buffer_of(view.answer).size_bytes
            self._bring(view.barrier, view.slot, bytes_, rank, view.operation)

    def _store(self, view: gpu_tile.BufferStoreOp) -> None:
        self._fill(view.dst, view.operation)

    def _copy_by_threads(self, view: gpu_tile.ThreadCopy) -> None:
        self._fill(view.dst, view.operation)
        place = self._place(view.dst)
        if isinstance(place, Turn):
            self.copying.add(place)

    def _end_copies(self, view: gpu_tile.CpAsyncWaitOp) -> None:
        if not view.pending:
            self.copying.clear()

    def _issue(self, view: gpu_tile.WgmmaOp) -> None:
        self.issued.append(self._read(read_late_by(view), view.operation))

    def _finish(self, view: gpu_tile.WgmmaWaitOp) -> None:
        self.issued = self.issued[len(self.issued) - view.pending :] if view.pending else []

    def _turn(self, view: Any) -> Iterator[ir.Operation]:
        op, ring = view.operation, self.cluster.ring(view.ring, self.rank)
        count = self.number(view.count)
        turn = Turn(view.ring, count, ring.slots)
        used = next(iter(view.slot.uses), None) is not None
        if isinstance(view, gpu_tile.RingAcquireOp):
            while not ring.may_acquire(count, op):
                yield op
            if used:
                ring.acquired[count] = self.filling[turn] = op
        elif isinstance(view, gpu_tile.RingWaitOp):
            while not ring.is_full(count, op, previous=view.previous):
                yield op
            if not view.previous:
                ring.waited[count] = op
            ended = Turn(view.ring, count - ring.slots * view.previous, ring.slots)
            self._hear(self.ended.get(ended, 0))
            if used:
                self.reading[turn] = op
        self.values[view.slot] = turn

    def _pass_on(self, view: RingHandover) -> None:
        op, turn = view.operation, self._slot_of(view.slot, view.operation)
        times = self._times(view.by)
        mask = 1 << self.rank if view.mask is None else self.number(view.mask)
        publishes = isinstance(view, gpu_tile.RingPublishOp)
        state = self.cluster.ring(view.ring, self.rank)
        both = state.releases and state.fills
        if publishes:
            if both and not self.fills(turn):
                raise Broken(op, "publishes a slot that it has not acquired")
            if turn in self.copying and view.by != COPIES:
                raise Broken(op, "publishes a slot that copies may still fill")
            self.copying.discard(turn)
            self.told.add((turn, view.by))
            if view.by == PRODUCTS:
                self.ended[turn] = self.done + len(self.multiplying)
        elif self.reading.pop(turn, None) is None and both:
            raise Broken(op, "releases a slot that it has not waited for")
        if not publishes and view.by != PRODUCTS and turn in self._still_read():
            raise Broken(op, "releases a slot that products may still read")
        for rank in range(self.cluster.ctas):
            if mask >> rank & 1:
                ring = self.cluster.ring(view.ring, rank)
                (ring.publish if publishes else ring.release)(turn.slot, times, op)

    def _times(self, by: str) -> int:
        if by in ("thread", COPIES):
            return self.threads
        warps = self.threads // self.cluster.warp_size
        return {"warp": warps, "warpgroup": warps // WARPGROUP_WARPS}.get(by, 1)

    def _slot_of(self, slot: ir.Value, op: ir.Operation) -> Turn:
        turn = self.values.get(slot)
        if not isinstance(turn, Turn):
            raise Broken(op, "names a slot that is no turn's of a ring")
        return turn

    def _view(self, view: Any) -> None:
        place = self._place(view.src)
        if isinstance(view, gpu_tile.SlotOp):
            slot = self.values.get(view.index)
            place = slot if isinstance(slot, Turn) else Part(place, slot)
        self.values[view.result] = place

    def _place(self, buffer: ir.Value) -> Place:
        """The turn whose slot a buffer is, or the whole buffer."""
        return self.values.get(buffer, buffer)

    def _still_read(self) -> list[Place]:
        return [place for group in self.issued for place in group] + self.multiplying

    def _hear(self, ended: int) -> None:
        """Forgets the places of all products up to number `ended`, which are over."""
        if ended > self.done:
            self.multiplying = self.multiplying[ended - self.done :]
            self.done = ended

    def _multiply(self, view: Any) -> None:
        """Products into tensor memory, whose sums nobody may touch before they are done."""
        op = view.operation
        self.multiplying += self._read(read_late_by(view), op)
        (target,) = map(self._place, written_by(view))
        if (target, PRODUCTS) in self.told:
            raise Broken(op, "adds to a slot that it has published")
        self.multiplying.append(target)

    def _load(self, view: Any) -> None:
        self._read([view.src], view.operation)
        if is_tensor_buffer(view.src) and self._place(view.src) in self.multiplying:
            raise Broken(view.operation, "reads what products may still write")

    def _read(self, buffers: list[ir.Value], op: ir.Operation) -> list[Place]:
        found = [self._place(b) for b in buffers if is_buffer(b) or is_tensor_buffer(b)]
        for turn in (place for place in found if isinstance(place, Turn)):
            state = self.cluster.ring(turn.ring, self.rank)
            if state.fills and turn not in self.reading and turn.number not in state.waited:
                raise Broken(op, "reads a slot that was not waited for")
            if state.fills and state.releases and turn not in self.reading:
                last = state.last_release.get(turn.slot)
                raise Broken(op, "reads a slot that it has released", last)
        return found

    def fills(self, turn: Turn) -> bool:
        """Whether a turn was acquired here, and is not full."""
        state = self.cluster.ring(turn.ring, self.rank)
        return turn in self.filling and state.filled[turn.slot] <= turn.number // turn.slots

    def _fill(self, buffer: ir.Value, op: ir.Operation) -> None:
        turn = self._place(buffer)
        if any(_same_memory(turn, place) for place in self._still_read()):
            raise Broken(op, "writes what products may still read")
        if not isinstance(turn, Turn):
            return
        state = self.cluster.ring(turn.ring, self.rank)
        if state.releases and state.fills and not self.fills(turn):
            why = "fills a slot that it has not acquired, or that is full"
            raise Broken(op, why, state.acquired.get(turn.number))
        late = {
            gpu_tile.BufferStoreOp: THREADS,
            gpu_tile.CpAsyncOp: (COPIES,),
            gpu_tile.CpAsyncGatherOp: (COPIES,),
        }
        if any((turn, by) in self.told for by in late.get(type(op.opview), ())):
            raise Broken(op, "fills a slot that it has published")

    def _copy(self, view: Any) -> None:
        op = view.operation
        self._fill(view.dst, op)
        bytes_ = buffer_of(view.dst).tile_bytes
        mask = 1 << self.rank if view.mask is None else self.number(view.mask)
        for rank in range(self.cluster.ctas):
            if mask >> rank & 1:
                self._bring(view.barrier, view.slot, bytes_, rank & ~1 if view.PAIRED else rank, op)

    def _bring(
        self, ring: ir.Value, slot: ir.Value, bytes_: int, rank: int, op: ir.Operation
    ) -> None:
        if made_by(ring, gpu_tile.MakeRingOp) is not None:
            self.cluster.ring(ring, rank).bring(self._slot_of(slot, op).slot, bytes_, op)

    def _answer(self, view: gpu_tile.NextProgramReadOp) -> None:
        """Programs enough that the ring of answers comes round; none more without a ring."""
        (turn,) = self._read([view.answer], view.operation)
        number, most = (turn.number, 2 * turn.slots) if isinstance(turn, Turn) else (0, 0)
        self.values[view.there] = int(number < most)
        for place in (view.x, view.y, view.z):
            self.values[place] = number


def _same_memory(one: Place, other: Place) -> bool:
    """Whether two places lie in the same memory, as two turns of one slot do."""
    if isinstance(one, Turn) and isinstance(other, Turn):
        return (one.ring, one.slot) == (other.ring, other.slot)
    if isinstance(one, Part) and isinstance(other, Part):
        return one == other and one.slot is not None
    return one == other


@cache
def _way_of(kind: type) -> Callable[[Player, Any], None]:
    """Finds how ops of a class are played: as the class itself says, or one that it derives
    from."""
    return next(_PLAYED[each] for each in kind.__mro__ if each in _PLAYED)


_PLAYED: dict[type, Callable[[Player, Any], None]] = {
    gpu_tile.RoleOp: Player._begin,
    gpu_tile.RingAnnounceOp: Player._announce,
    RingHandover: Player._pass_on,
    gpu_tile.NextProgramOp: Player._ask,
    gpu_tile.NextProgramReadOp: Player._answer,
    gpu_tile.BufferStoreOp: Player._store,
    gpu_tile.ThreadCopy: Player._copy_by_threads,
    gpu_tile.CpAsyncWaitOp: Player._end_copies,
    gpu_tile.BufferLoadOp: Player._load,
    gpu_tile.BufferGatherOp: Player._load,
    gpu_tile.TmaStoreOp: Player._load,
    gpu_tile.WgmmaOp: Player._issue,
    gpu_tile.WgmmaWaitOp: Player._finish,
    gpu_tile.Tcgen05MmaOp: Player._multiply,
    gpu_tile.Tcgen05CopyOp: Player._multiply,
    BufferView: Player._view,
    TensorMapLoad: Player._copy,
}
PLAYED = (RingTurn, *_PLAYED)
"""The ops that are played."""
