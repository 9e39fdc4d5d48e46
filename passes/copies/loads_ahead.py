"""Loads of a loop, issued an iteration ahead: they are under way while it works on those before.

Before:   scf.for %k = %lower to %upper step %s {
            %t = "tile.load"(%a, %m, %k) ...
            work on %t
          }
After:    %first = scf.if (%lower < %upper) { "tile.load"(%a, %m, %lower) } else { zeros }
          scf.for %k = %lower to %upper step %s iter_args(%t = %first) {
            %next = scf.if (%k + %s < %upper) { "tile.load"(%a, %m, %k + %s) } else { %t }
            work on %t
            scf.yield %next
          }

Threads that wait for what they load before they go on have nothing under way meanwhile. Who asks
says which loads, and where the next ones stand: in front of the work, as above (`issue_ahead`), in
registers of their own, or behind it (`issue_behind`), in those of the tiles before them:

            %at = select(%k + %s < %upper, %k + %s, %k)
            work on %t
            %next = "tile.load"(%a, %m, %at)

There the last iteration loads its own tiles again: a branch around the loads would be a place for
LLVM to move work behind.

Loads qualify whose addresses are known ahead. Not tiles of which a thread's elements come one by
one in less than a register: packing them for the next iteration would wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from mlir import ir

from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.tile import ArrayOp
from tilec.dialects.types import shape
from tilec.passes.analysis.addresses_ahead import address_ops
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.own_stores import own_stores
from tilec.passes.analysis.register_pressure import registers_of
from tilec.passes.rewriting.control import either
from tilec.passes.rewriting.free_ops import is_one_element
from tilec.passes.rewriting.loops import (
    behind,
    clone_mapped,
    find_loops,
    in_block,
    replace_yield,
    terminator,
    with_iteration_arguments,
)
from tilec.passes.rewriting.op_tables import OpSet, order_of
from tilec.passes.rewriting.refusals import attempt
from tilec.passes.rewriting.scalars import binary, constant, less, select
from tilec.passes.rewriting.values import replace_op
from tilec.records import dataclass


@dataclass(frozen=True)
class AheadLoads:
    """Loads and gathers of one loop's own body, what they take of a thread's registers, and the ops
    of the body that their addresses follow from."""

    loop: ir.Operation
    loads: tuple[ir.Operation, ...]
    registers: int
    addresses: tuple[ir.Operation, ...]

    @property
    def goes_by_numbers(self) -> bool:
        """Whether each iteration waits for numbers that say what else it loads, as of a row."""
        loads = (op for op in self.addresses if isinstance(op.opview, ArrayOp))
        return any(map(is_one_element, loads))

    @property
    def is_safe(self) -> bool:
        """Whether nothing in the loop writes what they read ahead, or orders accesses to it."""
        arrays = {load.opview.array for load in self.loads}
        own = own_stores(self.loop, self.loads)
        return read_ahead_hazard(self.loop, arrays, "the loop", own) is None


def ahead_loads(loop: ir.Operation, loads: Sequence[ir.Operation]) -> AheadLoads | None:
    """The loads as those that may come ahead; None if there are none, or one of their addresses is
    not known ahead."""
    addresses, _ = attempt(address_ops, loop, list(loads))
    if not loads or addresses is None:
        return None
    registers = sum(registers_of(load.results[0]) for load in loads)
    return AheadLoads(loop, tuple(loads), registers, tuple(addresses))


def find_ahead_loads(
    part: ir.Operation, room: int, apart: Collection[ir.Value]
) -> list[AheadLoads]:
    """The loops in a part of a kernel whose loads may be issued an iteration ahead, in `room`
    registers a thread, and which of them. `apart`: tiles whose elements have one each
    (`tiles_apart`), which are loaded where they are used, as scales, beside the others."""
    found = (
        ahead_loads(loop, [load for load in tile_loads(loop) if not are_apart([load], apart)])
        for loop in find_loops(part)
    )
    return [loads for loads in found if loads is not None and loads.registers <= room]


def tile_loads(loop: ir.Operation) -> list[ir.Operation]:
    """The loads and gathers of tiles in a loop's own body."""
    views = loop.regions[0].blocks[0].operations
    return [v.operation for v in views if isinstance(v, ArrayOp) and v.is_load and shape(v.tile)]


def number_loads(loop: ir.Operation) -> list[ir.Operation]:
    """The loads of one element in a loop's own body that tell no other load where it goes."""
    views = loop.regions[0].blocks[0].operations
    loads = [v.operation for v in views if isinstance(v, ArrayOp) and v.is_load]
    addresses = OpSet(op for load in loads for op in ops_behind(load.operands))
    return [load for load in loads if is_one_element(load) and load not in addresses]


def are_apart(loads: Sequence[ir.Operation], apart: Collection[ir.Value]) -> bool:
    """Whether one of the tiles that are loaded has a register for each of a thread's several
    elements."""
    tiles = [load.results[0] for load in loads if load.results[0] in apart]
    return any(layout_of(tile).num_values > 1 for tile in tiles)


def issue_ahead(found: AheadLoads) -> None:
    """Rewrites one loop so that an iteration begins with the next one's loads."""
    _, upper, step = list(found.loop.operands)[:3]
    loop, carried = _with_first(found)
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(found.loads[0]), loop.location:
        ahead = binary("arith.addi", body.arguments[0], step)
        # Not zeros again: LLVM would move what is computed from the tile to where it is loaded.
        following = _loaded(found, ahead, upper, body, carried)
    _hand_on(found, body, carried, following)


def issue_behind(
    found: AheadLoads, place_of: Callable[[ir.Operation], ir.Operation] | None = None
) -> None:
    """Rewrites one loop so that the next iteration's loads stand each in front of `place_of` this
    one's, behind all that uses it, or all at the end; the last iteration loads its own again."""
    _, upper, step = list(found.loop.operands)[:3]
    loop, carried = _with_first(found)
    body = loop.regions[0].blocks[0]
    order = [view.operation for view in body.operations]
    ends = [order[-1] if place_of is None else place_of(load) for load in found.loads]
    places = dict(enumerate(map(order.index, ends)))
    at = body.arguments[0]
    with ir.InsertionPoint(order[-1] if place_of is None else order[0]), loop.location:
        ahead = binary("arith.addi", at, step)
        ahead = select(less(ahead, upper), ahead, at)
    mapped = {at: ahead}
    for place in sorted(set(places.values())):
        loads = [found.loads[number] for number in places if places[number] == place]
        with ir.InsertionPoint(order[place]), loop.location:
            _copy(loop, loads, mapped)
    _hand_on(found, body, carried, [mapped[load.results[0]] for load in found.loads])


def behind_uses(load: ir.Operation) -> ir.Operation:
    """The op behind the last that uses a loaded tile, whose registers are free from there on."""
    block = load.block
    order = order_of(view.operation for view in block.operations)
    users = [in_block(use.owner.operation, block) for use in load.results[0].uses]
    last = max(users, key=lambda user: order[user])
    return last if last == terminator(block) else behind(last)


def issue_all(found: AheadLoads, counters: Sequence[ir.Value]) -> list[Mapping[ir.Value, ir.Value]]:
    """Writes the loads of the iterations at `counters` one behind the other, of which there is the
    first; for one that there is not its own again. Gives, for each iteration, what is in place of
    the loads and of what their addresses follow from."""
    first, upper = counters[0], found.loop.operands[1]
    argument = found.loop.regions[0].blocks[0].arguments[0]
    mapped = [{argument: first}]
    mapped += [{argument: select(less(at, upper), at, first)} for at in counters[1:]]
    for ops in (found.addresses, found.loads):  # what addresses wait for is asked for at once
        for op in ops:
            for one in mapped:
                clone_mapped(op, one)
    return [{old: new for old, new in one.items() if old != argument} for one in mapped]


def _with_first(found: AheadLoads) -> tuple[ir.Operation, list[ir.Value]]:
    """The loop with what it loads carried, loaded for its first iteration in front of it."""
    lower, upper = list(found.loop.operands)[:2]
    with ir.InsertionPoint(found.loop), found.loop.location:
        nothing = [constant(load.results[0].type, 0) for load in found.loads]
        first = _loaded(found, lower, upper, found.loop.regions[0].blocks[0], nothing)
    return with_iteration_arguments(found.loop, first)


def _hand_on(
    found: AheadLoads, body: ir.Block, carried: Sequence[ir.Value], following: Sequence[ir.Value]
) -> None:
    """Has the body use what is carried, and carry what follows; what only the loads needed goes."""
    for load, tile in zip(found.loads, carried, strict=True):
        replace_op(load, tile)
    last = terminator(body)
    replace_yield(last, [*list(last.operands)[: -len(carried)], *following])
    for op in reversed(found.addresses):
        if not any(use for result in op.results for use in result.uses):
            op.erase()


def _copy(
    loop: ir.Operation, loads: Sequence[ir.Operation], mapped: dict[ir.Value, ir.Value]
) -> None:
    """Copies loads, and the ops that their addresses follow from, those that `mapped` has not."""
    for op in (*address_ops(loop, list(loads)), *loads):
        if op.results[0] not in mapped:
            clone_mapped(op, mapped)


def _loaded(
    found: AheadLoads,
    at: ir.Value,
    upper: ir.Value,
    body: ir.Block,
    otherwise: Sequence[ir.Value],
) -> list[ir.Value]:
    """Loads what the iteration at `at` needs. Where there is no such iteration, nobody vouches for
    its addresses: the values are `otherwise` then."""

    def load() -> list[ir.Value]:
        mapped = {body.arguments[0]: at}
        for op in (*found.addresses, *found.loads):
            clone_mapped(op, mapped)
        return [mapped[load.results[0]] for load in found.loads]

    return either(less(at, upper), load, lambda: otherwise)
