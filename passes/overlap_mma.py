"""overlap-mma: the next iteration's matrix instructions start before this one's are finished.

Before:   scf.for %k ... iter_args(%acc = %zero) {
            %p = "gpu_tile.wgmma_fence"(%acc)   %q = "gpu_tile.wgmma"(%a, %b, %p)
            %r = "gpu_tile.wgmma_wait"(%q) {pending = 0 : i32}
            "gpu_tile.ring_release"(%ring, %slot)
            scf.yield %r
          }
After:    %p = "gpu_tile.wgmma_fence"(%zero)
          %last = scf.for %k ... iter_args(%acc = %p) {
            %q = "gpu_tile.wgmma"(%a, %b, %acc)
            %r = "gpu_tile.wgmma_wait"(%q) {pending = 1 : i32}        (the one before is finished)
            scf.if %k > %lower { "gpu_tile.ring_release"(%ring, the slot before) }
            scf.yield %r
          }
          scf.if %lower < %upper { "gpu_tile.ring_release"(%ring, the last slot) }
          %acc = "gpu_tile.wgmma_wait"(%last) {pending = 0 : i32}

With an lhs in registers, in two parts (`computed_lhs`), each group's registers are written again
while the other part multiplies:
Before:   %x0 = ...   %q0 = "gpu_tile.wgmma"(%x0, ...)
          %x1 = ...   %q1 = "gpu_tile.wgmma"(%x1, ...)
After:    %x0 = ...   %q0 = "gpu_tile.wgmma"(%x0, ...)   wait {pending = 1}, slot released
          %x1 = ...   %q1 = "gpu_tile.wgmma"(%x1, ...)   wait {pending = 1}

Products in a branch, of blocks that some iterations skip: the group stays in flight where it
is not taken, too, and a turn before this one exists where the ring's count has grown since the
loop's entry.

An accumulator qualifies if it goes through matrix instructions only, from the loop's entry to its
yield, or through a branch past them, and every buffer they read is a slot that is released: it then
is one iteration later, when its readers are known to be done. Or threads that multiply fill the
slots by cp.async, behind the wait (pipeline-loops).
Of several accumulators (gates, the real and the imaginary part) an iteration issues all products,
then waits for those of the one before: {pending = 2 : i32}. So it does of several products that add
to one accumulator.
Does not handle: accumulators that anything else touches in the loop, buffers ordered by a sync,
several accumulators one of which is multiplied from registers or in a branch, one group that reads
registers which its iteration computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mlir import ir

from tilec.dialects.def_use import defining_op, only_use, traced, users
from tilec.dialects.gpu_tile import (
    ConvertLayoutOp,
    RingReleaseOp,
    RingSlotOp,
    RingWaitOp,
    ThreadCopy,
    WgmmaFenceOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.dialects.tile import TransposeOp
from tilec.dialects.types import is_tile
from tilec.passes.analysis.carried_products import Links, links_of
from tilec.passes.analysis.issue_order import ring_turn
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.control import only_if
from tilec.passes.rewriting.loops import behind, carried_by, find_loops, is_inside, terminator
from tilec.passes.rewriting.refusals import Refusal, attempt
from tilec.passes.rewriting.scalars import binary, less
from tilec.passes.rewriting.values import replace_op, replace_uses
from tilec.passes.rewriting.walk import find_ops
from tilec.records import dataclass


@tile_pass(
    requires=Level.BUFFERS,
    behind={
        "specialize-warps": "that gives slots back behind waits, which this moves",
        "rotate-dots": "products in flight across the back edge are not rotated",
    },
    rings=True,
)
def overlap_mma(module: ir.Module, context: PassContext) -> None:
    """Keeps one group of warpgroup instructions in flight across the back edge of loops."""
    for loop in find_loops(module):
        chains, refused = attempt(_find_chains, loop)
        if chains:
            why = "slots of the ring it reads are released"
            if not any(chain.releases for chain in chains):
                why = "copies into slots that it reads stand behind the wait for it"
            groups = _groups_of(chains)
            told = "one group in flight" if groups == 1 else f"{groups} groups in flight"
            context.report.add("matrix instructions", loop, told, why)
            _overlap(loop, chains)
        elif refused:
            context.report.add("matrix instructions", loop, "finished in each iteration", refused)
        elif _skips_products(loop):
            context.report.add("matrix instructions", loop, "finished in each iteration", _SKIPPED)


_SKIPPED = "iterations skip them by 'if'; in a loop over a list of the others they would overlap"


def _skips_products(loop: ir.Operation) -> bool:
    """Whether iterations choose between products that a carried tile takes part in, and passing the
    tile on."""
    body = loop.regions[0].blocks[0]
    tiles = [(n, a) for n, a in enumerate(list(body.arguments)[1:]) if is_tile(a)]
    past = [found for n, a in tiles if (found := _passed_by(a, n, body)) is not None]
    return any(find_ops(block.owner, WgmmaOp) for block, _ in past)


@dataclass
class _Chain:
    """The way of one accumulator through an iteration. `number`: that of the loop-carried value.

    `releases`: of the slots that its instructions read, with their turns. `branch`: the scf.if that
    they stand in, if they do. `between`: waits, each with the fence behind it, between two of them.
    """

    number: int
    branch: ir.Operation | None
    fence: WgmmaFenceOp
    multiplies: list[WgmmaOp]
    between: list[tuple[WgmmaWaitOp, WgmmaFenceOp]]
    wait: WgmmaWaitOp
    releases: list[tuple[RingReleaseOp, RingSlotOp | RingWaitOp]]


def _find_chains(loop: ir.Operation) -> list[_Chain]:
    """The loop's accumulators in flight."""
    body = loop.regions[0].blocks[0]
    ways: list[tuple[int, ir.Block, Links]] = []
    for number, argument in enumerate(list(body.arguments)[1:]):
        if not is_tile(argument):
            continue
        block, last = _passed_by(argument, number, body) or (body, number)
        # The fence alone reads it, wherever others might, and the way past the products.
        if len(list(argument.uses)) != (1 if block == body else 2):
            continue
        links = links_of(argument, block, last)
        if links is not None:
            ways.append((number, block, links))
    found: list[_Chain] = []
    for number, block, links in ways:
        waits = [other[-1] for _, beside, other in ways if beside == block]
        releases = _releases(links[1], waits, body)
        branch = None if block == body else block.owner
        found.append(_Chain(number, branch, *links, releases))
    if len(found) > 1 and not all(_is_plain(chain) for chain in found):
        raise Refusal("several accumulators, and operands in registers, or a branch around them")
    return found


def _is_plain(chain: _Chain) -> bool:
    """Whether products read shared memory alone, in all iterations."""
    return chain.branch is None and all(is_buffer(one.lhs) for one in chain.multiplies)


def _groups_of(chains: list[_Chain]) -> int:
    """How many groups an iteration leaves in flight: its own, but of those that read registers,
    which each write again, the last alone."""
    if not all(_is_plain(chain) for chain in chains):
        return 1
    return sum(len(chain.multiplies) for chain in chains)


def _passed_by(argument: ir.Value, number: int, body: ir.Block) -> tuple[ir.Block, int] | None:
    """The block of an scf.if in the body that computes a carried value anew, where the other passes
    it on as it is, and the number of the result; None without."""
    given = terminator(body).operands[number]
    owner = defining_op(given, "scf.if")
    if owner is None or owner.block != body:
        return None
    result = next(n for n, r in enumerate(owner.results) if r == given)
    blocks = [region.blocks[0] for region in owner.regions]
    past = [terminator(block).operands[result] == argument for block in blocks]
    alone = only_use(given) is not None and sorted(past) == [False, True]
    return (blocks[past.index(False)], result) if alone else None


def _releases(
    multiplies: list[WgmmaOp], waits: Sequence[WgmmaWaitOp], body: ir.Block
) -> list[tuple[RingReleaseOp, RingSlotOp | RingWaitOp]]:
    """The releases of the slots that the instructions read, with their turns, but of those that
    nobody has to give back."""
    turns: list[RingSlotOp | RingWaitOp] = []
    for multiply in multiplies:
        for operand in (multiply.lhs, multiply.rhs):
            if not is_buffer(operand):
                continue
            turn = ring_turn(operand)
            if turn is None:
                raise Refusal("an operand lies in no ring that is released")
            if turn not in turns:
                turns.append(turn)
    if _overwrites(multiplies, body):
        raise Refusal("an operand comes from registers that the next iteration overwrites")
    found, block = [], multiplies[0].operation.block
    for turn in (one for one in turns if block != body or not _is_filled_behind(one, waits)):
        releases = [one for one in users(turn.slot, RingReleaseOp) if one.operation.block == block]
        if len(releases) != 1 or turn.count.owner != body:
            raise Refusal("an operand lies in no ring that is released")
        if turn.slots < 2:  # the next copy waits for a slot that is returned too late for it
            raise Refusal("the ring it reads has one slot")
        found.append((releases[0], turn))
    return found


def _is_filled_behind(turn: RingSlotOp | RingWaitOp, waits: Sequence[WgmmaWaitOp]) -> bool:
    """Whether threads copy into the ring of a turn, and in each iteration behind its `waits`, the
    last of which will be that for the products before: nobody has to give back the slot of the
    turn before, which is read no more there."""
    made, ops = turn.ring.owner.opview, list(waits[0].operation.block.operations)
    copies = [ops.index(copy) for copy in ops if isinstance(copy, ThreadCopy)]
    alone = isinstance(turn, RingSlotOp) and not made.releases and not made.fills
    return alone and bool(copies) and min(copies) > max(map(ops.index, waits))


def _overwrites(multiplies: list[WgmmaOp], body: ir.Block) -> bool:
    """Whether an iteration writes registers of the last group, in flight across the back edge,
    before its own first group is issued: only behind that one is the last group waited for."""
    _, lhs = traced(multiplies[-1].lhs, ConvertLayoutOp, TransposeOp)  # the same registers
    if not is_tile(lhs) or not is_inside(lhs, body.owner):
        return False
    block = multiplies[0].operation.block
    made = defining_op(lhs)
    if made is None or made.block != block:
        return True
    ops = [view.operation for view in block.operations]
    return made in ops[: ops.index(multiplies[0].operation)]


def _overlap(loop: ir.Operation, chains: list[_Chain]) -> None:
    inits = [loop.operands[3 + chain.number] for chain in chains]
    for chain, init in zip(chains, inits, strict=True):
        with ir.InsertionPoint(loop), chain.fence.operation.location:
            started = WgmmaFenceOp.build(init)
        _carry_pending(loop, chain, started)
    flying = _wait_for_earlier(chains)
    following = behind(loop)
    for chain, init in zip(chains, inits, strict=True):
        if chain.branch is not None:
            _give_pending(chain.branch)
        result = loop.results[chain.number]
        with ir.InsertionPoint(following), loop.location:
            done = WgmmaWaitOp.build(result, results=[init.type], pending=0)
        uses = [use for use in result.uses if use.owner.operation != done.owner.operation]
        replace_uses(uses, done)
    waited = _wait_between(chains[0].multiplies)
    for release, turn, chain in _all_releases(chains):
        count = ir.BlockArgument(turn.count).arg_number - 1
        place = _later(release.operation, behind(flying if waited is None else waited), waited)
        with ir.InsertionPoint(place), release.operation.location:
            _release_before(release, turn.count, _has_run(loop, turn.count, chain))
        with ir.InsertionPoint(following), release.operation.location:
            reached = loop.results[count]
            _release_before(release, reached, _has_run(loop, reached, chain))
        release.operation.erase()


def _wait_for_earlier(chains: list[_Chain]) -> ir.Operation:
    """Has an iteration wait, behind its last product, for those of the one before. Gives the
    wait."""
    ops = [view.operation for view in chains[0].wait.operation.block.operations]
    *others, last = sorted(chains, key=lambda chain: ops.index(chain.wait.operation))
    groups = _groups_of(chains)
    for chain in chains:
        for wait, fence in chain.between:
            replace_op(fence, wait.acc)
            wait.operation.erase()
    for chain in others:
        replace_op(chain.wait, chain.wait.acc)
    with ir.InsertionPoint(last.wait.operation), last.wait.operation.location:
        flying = WgmmaWaitOp.build(last.wait.acc, results=[last.wait.acc.type], pending=groups)
    replace_op(last.wait, flying)
    return flying.owner.operation


def _all_releases(
    chains: list[_Chain],
) -> list[tuple[RingReleaseOp, RingSlotOp | RingWaitOp, _Chain]]:
    """The releases of the slots that products read, each once."""
    found: list[tuple[RingReleaseOp, RingSlotOp | RingWaitOp, _Chain]] = []
    for chain in chains:
        found += [(*one, chain) for one in chain.releases if one[0] not in [x[0] for x in found]]
    return found


def _later(
    release: ir.Operation, behind_wait: ir.Operation, waited: ir.Operation | None
) -> ir.Operation:
    """The op in front of which a slot of the turn before is released: where this turn's is, but
    behind the wait for its readers, or right behind the first of several (`waited`)."""
    if waited is not None:
        return behind_wait
    ops = [view.operation for view in release.block.operations]
    return max(release, behind_wait, key=ops.index)


def _carry_pending(loop: ir.Operation, chain: _Chain, started: ir.Value) -> None:
    """Has a loop carry its accumulator pending, from `started` on; the fence inside goes."""
    argument = loop.regions[0].blocks[0].arguments[1 + chain.number]
    loop.operands[3 + chain.number] = started
    for value in (argument, loop.results[chain.number]):
        value.set_type(started.type)
    replace_op(chain.fence, argument)


def _has_run(loop: ir.Operation, count: ir.Value, chain: _Chain) -> ir.Value:
    """Whether the products of a loop have been issued before, where its ring's `count`, one of the
    loop's carried values or its results, has come to that."""
    lower, upper, _, *inits = loop.operands
    inside = defining_op(count) is None
    if chain.branch is None:
        return less(lower, loop.regions[0].blocks[0].arguments[0] if inside else upper)
    values = carried_by(loop) if inside else list(loop.results)
    return less(inits[values.index(count)], count)


def _give_pending(branch: ir.Operation) -> None:
    """Has an scf.if give a loop's accumulator as its blocks yield it by now, pending."""
    yielded = terminator(branch.regions[0].blocks[0]).operands
    for result, value in zip(branch.results, yielded, strict=True):
        result.set_type(value.type)


def _wait_between(multiplies: list[WgmmaOp]) -> ir.Operation | None:
    """Puts waits between groups whose operands lie in registers: behind each group but the last one
    for the group before it, whose registers may be written then. Gives the first wait."""
    if all(is_buffer(multiply.lhs) for multiply in multiplies):
        return None
    waits = []
    for multiply, following in pairwise(multiplies):
        with ir.InsertionPoint(behind(multiply.operation)), multiply.operation.location:
            flying = WgmmaWaitOp.build(multiply.result, results=[multiply.result.type], pending=1)
        following.acc = flying
        waits.append(flying.owner.operation)
    return waits[0] if waits else None


def _release_before(release: RingReleaseOp, count: ir.Value, exists: ir.Value) -> None:
    """Releases the slot of the turn before the `count`-th, where the i1 `exists` says that there is
    one."""
    with only_if(exists):
        before = binary("arith.subi", count, 1)
        slot = RingSlotOp.build(release.ring, before)
        RingReleaseOp.build(release.ring, slot, by=release.by)
