"""Plays the roles of a kernel against each other, as far as their rings are concerned."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from mlir import ir

from tilec.dialects.gpu_tile import MakeRingOp, RoleOp
from tilec.dialects.gpu_tile.cluster import cluster_shape
from tilec.dialects.gpu_tile.role import total_warps
from tilec.passes.analysis.role_threads import runs_in_one_thread
from tilec.passes.checks.ring_player import PLAYED, Cluster, Enough, Player
from tilec.passes.checks.ring_scalars import Scalars
from tilec.passes.checks.ring_state import Broken, RingState
from tilec.passes.checks.ring_walk import Code
from tilec.passes.contract import PassContext
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import find_ops
from tilec.records import dataclass


@dataclass(frozen=True)
class _Running:
    """A player and what it has left to do; `role`: None where the whole CTA plays."""

    player: Player
    left: Iterator[ir.Operation]
    role: RoleOp | None = None

    def holds(self, rank: int, role: RoleOp) -> bool:
        """Whether it is a role of that CTA which has a warp of this one's."""
        if self.role is None or self.player.rank != rank:
            return False
        own, wanted = _warps(self.role), _warps(role)
        return own.start < wanted.stop and wanted.start < own.stop


def _warps(role: RoleOp) -> range:
    """The warps that run a role: others of one thread's pass by."""
    count = 1 if runs_in_one_thread(role) else role.warps
    return range(role.first_warp, role.first_warp + count)


def play(function: ir.Operation, context: PassContext, seed: int, steps: int) -> OpSet:
    """Plays all roles of a kernel in all CTAs of one cluster, for one set of made-up sizes; gives
    the ops that were played. `steps`: how many for a CTA; what comes behind is not looked at.

    Broken where the protocol is.
    """
    return _Play(function, context, seed, steps).run()


class _Play:
    def __init__(self, function: ir.Operation, context: PassContext, seed: int, steps: int) -> None:
        shape = cluster_shape(function)
        ctas = prod(shape)
        rings = [op.opview for op in find_ops(function, MakeRingOp)]
        states = [{ring.result: RingState(ring, ctas == 1) for ring in rings} for _ in range(ctas)]
        self._cluster = Cluster(states, context.target.warp_size, steps * ctas)
        self._code = Code(function, PLAYED)
        self._players: list[Player] = []
        self._running: list[_Running] = []
        threads = total_warps(function, context.num_warps) * context.target.warp_size
        body = function.regions[0].blocks[0]
        for rank in range(ctas):
            scalars = Scalars(rank, shape, seed)
            values = {a: scalars.argument(n) for n, a in enumerate(body.arguments)}
            self._start(Player(self._cluster, threads, self._code, scalars, values), body)

    def _start(self, player: Player, block: ir.Block, role: RoleOp | None = None) -> None:
        self._players.append(player)
        self._running.append(_Running(player, player.block(block), role))

    def run(self) -> OpSet:
        """See `play`."""
        try:
            while self._running:
                self._round()
            self._check_ends()
        except Enough:
            pass
        return self._cluster.played

    def _round(self) -> None:
        """Runs each player until it has to wait. Broken where nobody got any further."""
        before, waiting, left = self._cluster.steps, [], []
        for running in self._running:
            op = next(running.left, None)
            if op is not None:
                waiting.append(op)
                left.append(running)
        stuck = before == self._cluster.steps and len(left) == len(self._running)
        self._running = left
        self._begin_roles()
        if waiting and stuck and len(left) == len(self._running):
            self._give_up(waiting)

    def _give_up(self, waiting: list[ir.Operation]) -> None:
        """Raises Broken: nobody gets any further."""
        why = "waits for a slot that nobody passes on"
        held = (
            (role, each.role)
            for role, parent in self._cluster.begun
            for each in self._running
            if each.role is not None and each.holds(parent.rank, role)
        )
        for role, holder in held:
            shared = f"role '{role.name}' has warps of role '{holder.name}'"
            late = f"{why}: {shared}, and begins when that has ended"
            raise Broken(waiting[0], late, role.operation)
        others = [op for op in waiting if op != waiting[0]]
        raise Broken(waiting[0], why, others[0] if others else None)

    def _begin_roles(self) -> None:
        """Starts the roles that players have come to, behind those that still have their warps."""
        cluster = self._cluster
        begun, cluster.begun = cluster.begun, []
        for role, parent in begun:
            if any(running.holds(parent.rank, role) for running in self._running):
                cluster.begun.append((role, parent))
                continue
            threads = role.warps * cluster.warp_size
            values = dict(parent.values)
            player = Player(cluster, threads, self._code, parent.scalars, values)
            self._start(player, role.body, role)

    def _check_ends(self) -> None:
        for player in self._players:
            for turn, op in player.filling.items():
                state = self._cluster.ring(turn.ring, player.rank)
                heard = state.alone or state.filled or state.waited
                if state.fills and heard and player.fills(turn):
                    raise Broken(op, "acquires a slot that is never published")
            for turn, op in player.reading.items():
                if self._cluster.ring(turn.ring, player.rank).releases:
                    raise Broken(op, "waits for a slot that is never released")
        for state in (state for rings in self._cluster.rings for state in rings.values()):
            filled = sum(state.filled.values())
            if state.fills and state.releases and state.waited and filled != len(state.waited):
                *_, op = state.waited.values()
                raise Broken(op, f"reads {len(state.waited)} turns of {filled} that are filled")
