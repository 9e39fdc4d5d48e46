"""Loads of a role's loops, issued an iteration ahead: they are under way while the role stores what
it loaded before.

Before:   scf.for %k = %lower to %upper step %s {
            %t = "tile.load"(%a, %m, %k) ...
            wait for a free slot ...   "gpu_tile.buffer_store"(f(%t))
          }
After:    %first = scf.if (%lower < %upper) { "tile.load"(%a, %m, %lower) } else { zeros }
          scf.for %k = %lower to %upper step %s iter_args(%t = %first) {
            %next = scf.if (%k + %s < %upper) { "tile.load"(%a, %m, %k + %s) } else { %t }
            wait for a free slot ...   "gpu_tile.buffer_store"(f(%t))
            scf.yield %next
          }

A role whose threads wait for what they load before they store it has nothing under way while they
compute, store and wait for a slot.

A loop qualifies if all its loads do, and there is room for what they load twice. Not tiles whose
elements come one by one in less than a register: packing them for the next iteration would wait for
them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.dialects.tile import ArrayOp
from tilec.dialects.types import shape
from tilec.passes.analysis.addresses_ahead import address_ops
from tilec.passes.analysis.register_pressure import registers_of
from tilec.passes.rewriting.loops import (
    clone_mapped,
    find_loops,
    replace_yield,
    terminator,
    with_iteration_arguments,
)
from tilec.passes.rewriting.scalars import binary, constant, less


@dataclass(frozen=True)
class AheadLoads:
    """The loads and gathers of one loop's body, what they take of a thread's registers, and the ops
    of the body that their addresses follow from."""

    loop: ir.Operation
    loads: tuple[ir.Operation, ...]
    registers: int
    addresses: tuple[ir.Operation, ...]


def find_ahead_loads(
    role: ir.Operation, room: int, apart: Collection[ir.Value]
) -> list[AheadLoads]:
    """The loops in a role whose loads may be issued an iteration ahead, in `room` registers a
    thread. `apart`: tiles whose elements have a register each (`tiles_apart`)."""
    found = []
    for loop in find_loops(role):
        loads = [v.operation for v in loop.regions[0].blocks[0].operations if _is_tile_load(v)]
        registers = sum(registers_of(load.results[0]) for load in loads)
        addresses = address_ops(loop, loads)
        fits = registers <= room and not any(load.results[0] in apart for load in loads)
        if loads and fits and not isinstance(addresses, str):
            found.append(AheadLoads(loop, tuple(loads), registers, tuple(addresses)))
    return found


def _is_tile_load(view: ir.OpView) -> bool:
    return isinstance(view, ArrayOp) and view.is_load and bool(shape(view.tile))


def issue_ahead(found: AheadLoads) -> None:
    """Rewrites one loop."""
    _, upper, step = list(found.loop.operands)[:3]
    loop, carried = _with_first(found)
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(found.loads[0]), loop.location:
        ahead = binary("arith.addi", body.arguments[0], step)
        # Not zeros again: LLVM would move what is computed from the tile to where it is loaded.
        following = _loaded(found, ahead, upper, body, carried)
    _hand_on(found, body, carried, following)


def issue_at_end(found: AheadLoads) -> None:
    """Rewrites one loop so that an iteration ends with the next one's loads, behind all that uses
    its own, whose registers they take. The last iteration loads its own again: a branch around the
    loads would be a place for LLVM to move those uses behind."""
    _, upper, step = list(found.loop.operands)[:3]
    loop, carried = _with_first(found)
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(terminator(body)), loop.location:
        now = body.arguments[0]
        ahead = binary("arith.addi", now, step)
        at = ir.Operation.create(
            "arith.select", results=[now.type], operands=[less(ahead, upper), ahead, now]
        ).results[0]
        following = _copied(found, at, body)
    _hand_on(found, body, carried, following)


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
    """Has the body use what is carried, and carry what follows."""
    for load, tile in zip(found.loads, carried, strict=True):
        load.results[0].replace_all_uses_with(tile)
        load.erase()
    last = terminator(body)
    replace_yield(last, [*list(last.operands)[: -len(carried)], *following])


def _copied(found: AheadLoads, at: ir.Value, body: ir.Block) -> list[ir.Value]:
    """What the iteration at `at` loads, which there must be."""
    mapped = {body.arguments[0]: at}
    for op in (*found.addresses, *found.loads):
        clone_mapped(op, mapped)
    return [mapped[load.results[0]] for load in found.loads]


def _loaded(
    found: AheadLoads,
    at: ir.Value,
    upper: ir.Value,
    body: ir.Block,
    otherwise: Sequence[ir.Value],
) -> list[ir.Value]:
    """Loads what the iteration at `at` needs. Where there is no such iteration, nobody vouches for
    its addresses: the values are `otherwise` then."""
    types = [load.results[0].type for load in found.loads]
    branch = ir.Operation.create("scf.if", results=types, operands=[less(at, upper)], regions=2)
    there, nowhere = (region.blocks.append() for region in branch.regions)
    with ir.InsertionPoint(there):
        ir.Operation.create("scf.yield", operands=_copied(found, at, body))
    with ir.InsertionPoint(nowhere):
        ir.Operation.create("scf.yield", operands=list(otherwise))
    return list(branch.results)
