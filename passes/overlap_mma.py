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
Does not handle: accumulators that anything else touches in the loop, buffers ordered by a sync,
loops with several such accumulators (their groups in flight together took 84 us for 56, four gates
of 2048 x 1024 x 1024, 12.3 for 15.4, a low-rank update: H200), one group that reads registers which
its iteration computes.
"""

from __future__ import annotations

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
from tilec.passes.analysis.carried_products import links_of
from tilec.passes.analysis.issue_order import ring_turn
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.dots.issued_products import ROTATED
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
        chain, refused = attempt(_find_chain, loop)
        if chain is not None:
            why = "slots of the ring it reads are released"
            if not chain.releases:
                why = "copies into slots that it reads stand behind the wait for it"
            context.report.add("matrix instructions", loop, "one group in flight", why)
            _overlap(loop, chain)
        elif context.report.has("matrix instructions", loop, ROTATED):
            continue  # that line says how its products run
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
    they stand in, if they do.
    """

    number: int
    branch: ir.Operation | None
    fence: WgmmaFenceOp
    multiplies: list[WgmmaOp]
    wait: WgmmaWaitOp
    releases: list[tuple[RingReleaseOp, RingSlotOp | RingWaitOp]]


def _find_chain(loop: ir.Operation) -> _Chain | None:
    """The loop's accumulator in flight; None without candidates."""
    body = loop.regions[0].blocks[0]
    found: list[_Chain] = []
    for number, argument in enumerate(list(body.arguments)[1:]):
        if not is_tile(argument):
            continue
        block, last = _passed_by(argument, number, body) or (body, number)
        # The fence alone reads it, wherever others might, and the way past the products.
        if len(list(argument.uses)) != (1 if block == body else 2):
            continue
        links = links_of(argument, block, last)
        if links is None:
            continue
        fence, multiplies, wait = links
        releases = _releases(multiplies, wait, body)
        branch = None if block == body else block.owner
        found.append(_Chain(number, branch, fence, multiplies, wait, releases))
    if len(found) > 1:
        raise Refusal("several accumulators are in flight")
    return found[0] if found else None


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
    multiplies: list[WgmmaOp], wait: WgmmaWaitOp, body: ir.Block
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
    for turn in (one for one in turns if block != body or not _is_filled_behind(one, wait)):
        releases = [one for one in users(turn.slot, RingReleaseOp) if one.operation.block == block]
        if len(releases) != 1 or turn.count.owner != body:
            raise Refusal("an operand lies in no ring that is released")
        if turn.slots < 2:  # the next copy waits for a slot that is returned too late for it
            raise Refusal("the ring it reads has one slot")
        found.append((releases[0], turn))
    return found


def _is_filled_behind(turn: RingSlotOp | RingWaitOp, wait: WgmmaWaitOp) -> bool:
    """Whether threads copy into the ring of a turn, and in each iteration behind its `wait`: nobody
    has to give back the slot of the turn before, which is read no more there."""
    made, ops = turn.ring.owner.opview, list(wait.operation.block.operations)
    copies = [ops.index(copy) for copy in ops if isinstance(copy, ThreadCopy)]
    alone = isinstance(turn, RingSlotOp) and not made.releases and not made.fills
    return alone and bool(copies) and min(copies) > ops.index(wait)


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


def _overlap(loop: ir.Operation, chain: _Chain) -> None:
    init = loop.operands[3 + chain.number]
    with ir.InsertionPoint(loop), chain.fence.operation.location:
        started = WgmmaFenceOp.build(init)
    _carry_pending(loop, chain, started)
    with ir.InsertionPoint(chain.wait.operation), chain.wait.operation.location:
        flying = WgmmaWaitOp.build(chain.wait.acc, results=[chain.wait.acc.type], pending=1)
    replace_op(chain.wait, flying)
    if chain.branch is not None:
        _give_pending(chain.branch)
    following = behind(loop)
    with ir.InsertionPoint(following), loop.location:
        done = WgmmaWaitOp.build(loop.results[chain.number], results=[init.type], pending=0)
    uses = [u for u in loop.results[chain.number].uses if u.owner.operation != done.owner.operation]
    replace_uses(uses, done)
    waited = _wait_between(chain.multiplies)
    for release, turn in chain.releases:
        count = ir.BlockArgument(turn.count).arg_number - 1
        place = release.operation if waited is None else behind(waited)
        with ir.InsertionPoint(place), release.operation.location:
            _release_before(release, turn.count, _has_run(loop, turn.count, chain))
        with ir.InsertionPoint(following), release.operation.location:
            reached = loop.results[count]
            _release_before(release, reached, _has_run(loop, reached, chain))
        release.operation.erase()


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
