"""prefetch-loads: what a loop loads into registers is loaded iterations ahead.

Before:   scf.for %t = %lower to %upper step %s iter_args(%h) {
            %x = "tile.load"(%a, %t) ...   work on %x and %h   "tile.store"(...)
          }
After:    %x0, %x1 = scf.if (%lower < %end) { "tile.load"(%a, %lower), (%a, %lower + %s) } else 0
          scf.for %t = %lower to %end step 2 %s iter_args(%h, %v0 = %x0, %v1 = %x1) {
            %at = select(%t + 2 %s < %end, %t + 2 %s, %t)
            %y0 = "tile.load"(%a, %at)   %y1 = "tile.load"(%a, %at + %s)
            work on %v0 and %h   "tile.store"(...)
            work on %v1 ...      "tile.store"(...)
            scf.yield %.., %y0, %y1
          }
          scf.if (%end < %upper) { ... }    (what is left: all loads, then an scf.if an iteration)

A loop that walks along a sequence does little in an iteration, and waits for what it loads there:
ptxas moves no load across a store, and unrolls few loops. Copies into buffers would need a barrier
an iteration. On an H200 a selective scan (8 x 1024 steps of 1024 channels) takes 230 us for 884.

1. Of the tiles that a loop loads itself those qualify whose addresses follow from its counter, if
   nothing in it writes what a later iteration reads (`copies/loads_ahead.py`): what works in place
   stores where it has loaded, and goes on.
2. A loop in which no warp waits for another is unrolled, if what it loads is little, as often as
   hides the latency (`copies/iterations_ahead.py`): the loads for the next time stand in front of
   the work. Numbers that say nothing of where others are come with them. Behind the last use of
   the tiles before, the loads would need no registers of their own. But a warp has six counters to
   wait for loads with, and ptxas gives all of these the same one: whoever waits for the first tile
   of an iteration would wait for the last load as well (selective scans 161 us for 136 and 314 for
   262, a recurrence of 2048 channels 391 for 353, H200). What is left of the iterations is written
   out behind its loads: a row of 6 steps is nothing but that. Where iterations only add up, or
   hand nothing on, and there are many programs, two are loaded at once (`OF_MANY`), of sums large
   tiles, too. Of few programs
   large tiles come ahead, too, and elements one by one (6.) more at once: a kernel for any number
   says up to how many another is faster (`suit_more`). Sums of 120000 rows of 56 f32 in 64 parts,
   tiles of 32 x 64, take 9.8 us for 28.5, over 25 images of 511 x 61 bf16 3.0 for 4.9 (H200).
3. In a loop of products loads run one iteration ahead, issued in their place: what no ring brings
   (fp8 that goes through registers to be transposed, 4096 cubed, 384 us for 460; decays and values
   of a chunked recurrence, 75 for 88). So do numbers of rows that the loop gathers: it would wait
   for both, one behind the other (attention to a table of tokens, 131 us for 175).
4. Where a role keeps rings full, what is multiplied comes ahead by them. What else the computing
   role loads, as scales of products, waits behind the tensor cores: it comes an iteration ahead,
   too, small tiles first, as far as the role's threads have registers. The loads stand behind the
   last use of those before, in their registers: decays that an iteration begins with are under way
   while it multiplies, scales that it ends with while the next one does.
5. Past the last iteration the same tiles are loaded again: no access is wild, and nobody uses them.
6. Tiles whose elements come one by one in less than a register are not carried: packing them for
   the next turn would wait for them. A turn of the unrolled loop begins with its own loads. So do
   those of loops that begin and end where memory says, if they go by numbers, and wait twice for
   each row: what has few rows is done with what is left, which loads a row or two in vain. So do
   short steps (`SHORT_WORDS`) that whole warps add up, if they begin and end where memory says.
Does not handle: such tiles in loops of products or of gathers in turn; loops over programs without
rings, or whose programs two sets of warps take in turn; loads in branches; what other roles load;
beside rings, gathers and loads at addresses that are loaded. Without roles, large tiles, of which
many programs of a multiprocessor have enough under way (rows in tiles of 8192 elements: 0.97 to
1.07 times as fast); loops that begin and end where memory says, maybe soon, and do not go by
numbers (rows of sparse matrices: 0.60 to 1.04). One that only ends there qualifies (parts of split
attention, joined in 3.1 us for 6.0). Loops along rows of arrays that a tile holds, which go round
once (cross-entropy of 14460 rows of 128: 4.4 us for 6.6, of 200000 of 160 62 for 72); where memory
says how long rows are, some may be long (one of 20000 elements among 60000 takes 167 us for 90,
H200).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.effects import is_product
from tilec.dialects.gpu_tile import RingWaitOp, RoleOp
from tilec.dialects.gpu_tile.role import entry_registers, total_warps
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.dialects.op import TileOp
from tilec.dialects.tile import ArrayOp, LoadOp
from tilec.hardware.sizes import WARP_SIZE
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.placement import shared_bytes
from tilec.passes.analysis.register_pressure import most_live_registers, tiles_apart
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.iterations_ahead import (
    MOST_TIMES,
    OF_MANY,
    carries,
    has_several_vectors,
    iterations_ahead,
    iterations_at_once,
    only_adds,
)
from tilec.passes.copies.loads_ahead import (
    AheadLoads,
    ahead_loads,
    are_apart,
    behind_uses,
    issue_all,
    issue_behind,
    number_loads,
    tile_loads,
)
from tilec.passes.demands.kernels import (
    HOLDS_ROWS,
    MANY,
    ctas_of,
    programs_per_sm,
    suit_few,
    suit_more,
    teams_of,
)
from tilec.passes.layouts.components import tile_bytes
from tilec.passes.programs.program_relations import have_uneven_loops, read_their_length
from tilec.passes.rewriting.loops import find_loops, is_inside, is_program_loop
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.unrolling import unroll, write_out
from tilec.passes.rewriting.walk import find_ops, is_of, uses_behind
from tilec.passes.roles.parts import Part, parts_of
from tilec.passes.roles.registers import COMPUTE_REGISTERS

AHEAD = "tile.loads_ahead"
"""Attribute of the loops that this pass has written: it leaves them when it meets them again."""
LITTLE_BYTES = 4096
"""Of all tiles that an iteration loads: a multiprocessor needs some 30 KB under way for its share
of an H200's memory (4.8 TB/s over 132, for 800 ns), which eight CTAs with such tiles have."""
FEW_CTAS = 8
"""Of a multiprocessor, that have enough under way so; fewer load larger tiles ahead, too. Lengths
of 512 columns of 20000 f32, in 8 parts of 32 x 64, take 60 us one by one (H200)."""
ENOUGH = FEW_CTAS * LITTLE_BYTES
"""Bytes that a multiprocessor has under way so."""
SHORT_WORDS = 4
"""Registers of a thread that an iteration of a loop that may end soon loads at most: rows of a
sparse matrix, 60000 of 200, take 55.9 us in steps of 32, four at once, one by one 75.4, in steps of
64 65.9 and 74.7; but of 416, two at once, 79.2 (H200)."""
LEAST_REGISTERS, MOST_REGISTERS = 8, 32
"""Of a thread, the second where many programs' loops hand nothing on, and of a computing role's,
for what is under way: so many always, and so many where CTAs that share a multiprocessor leave its
threads more than they hold (recurrences over chunks with decays on an H200, 32 for 8: 98 us for
142, 119 for 159, 194 for 219)."""


@kernel_pass(
    requires=Level.BUFFERS,
    behind={
        "specialize-warps": "that says what a role loads itself, and how many registers it has",
        "rotate-dots": "a product that needs what is carried is not rotated",
        "overlap-mma": "it counts the values that a loop carries",
    },
)
def prefetch_loads(function: ir.Operation, context: PassContext) -> None:
    """Loads ahead what the loops of computing threads load into registers."""
    roles = [op.opview for op in find_ops(function, RoleOp)]
    for role in roles:
        if role.name == "compute":
            _load_beside_rings(role, function, context)
    if roles:
        return
    (part,) = parts_of(function, context)
    go_round_once = _go_round_once(function)
    for loop in find_loops(function):
        found = _find(loop)
        if found is None or (go_round_once and _walk_along_rows(found)):
            continue
        apart = are_apart(found.loads, tiles_apart(function, part.block))
        soon = read_their_length(function) and _begin_in_memory(found)
        times, at_once = _times(function, part, found, (apart, soon), context)
        if times:
            _prefetch(found, times, at_once, context)


def _go_round_once(function: ir.Operation) -> bool:
    """Whether tiles hold all rows that loops walk along."""
    return HOLDS_ROWS in function.attributes and not have_uneven_loops(function)


def _walk_along_rows(found: AheadLoads) -> bool:
    """Whether a loop loads tiles that may begin further on in their rows in each iteration."""
    loads = of_kind(found.loads, LoadOp)
    if len(loads) < len(found.loads):
        return True
    for load in loads:
        dim = contiguous_dim(load.src, load.dims)
        if dim is not None and is_inside(load.offsets[load.dims[dim]], found.loop):
            return True
    return False


def _find(loop: ir.Operation) -> AheadLoads | None:
    """What of a loop's loads may come ahead."""
    if is_program_loop(loop) or AHEAD in loop.attributes:
        return None
    found = ahead_loads(loop, _known_ahead(loop))
    return found if found is not None and found.is_safe else None


def _known_ahead(loop: ir.Operation) -> list[ir.Operation]:
    loads = tile_loads(loop) if _multiplies(loop) else [*tile_loads(loop), *number_loads(loop)]
    return [load for load in loads if ahead_loads(loop, [load]) is not None]


def _multiplies(loop: ir.Operation) -> bool:
    return any(is_product(op.opview) for op in find_ops(loop, TileOp))


def _times(
    function: ir.Operation,
    part: Part,
    found: AheadLoads,
    at_once: tuple[bool, bool],
    context: PassContext,
) -> tuple[int, bool]:
    """How many iterations ahead loads come, and the body gets; 0 where it is not worthwhile; and
    whether they come at once, in front of the work. `at_once`: whether they have to, as elements
    are apart, or as the loop may end soon."""
    apart, soon = at_once
    loop, words, held = found.loop, found.registers, part.peak(function).registers
    room = part.registers - held
    if words > room:
        return 0, False
    if soon and _is_short(found, context):
        return iterations_at_once(found, room, are_few=False), True
    if _multiplies(loop) or _lead_on(found):
        return 0 if apart else 1, False
    if not _is_alone(loop) or (soon and not found.goes_by_numbers):
        return 0, False
    bytes_ = sum(tile_bytes(load.results[0]) for load in found.loads)
    programs, small = programs_per_sm(function), bytes_ * _ctas(function) <= ENOUGH
    if not soon and OF_MANY * words <= room and _suits_many(found, small=small):
        if programs > MANY:
            return OF_MANY, True
        suit_few(function, MANY)
    few = ENOUGH // bytes_
    if apart or soon:
        few = min(MANY, few // MOST_TIMES) if small else few
        times = iterations_at_once(found, room, are_few=0 < programs <= few)
    else:
        few = 0 if small else few
        times = iterations_ahead(found, room, held, context.target)
    if few and times > 1 and not programs:
        suit_more(function, few)
    return times if small and times > 1 else 0, apart or soon


def _suits_many(found: AheadLoads, *, small: bool) -> bool:
    """Whether many programs had better load `OF_MANY` iterations at once."""
    if number_loads(found.loop):
        return False
    if only_adds(found.loop):
        return not (small and has_several_vectors(found))
    few_words = OF_MANY * found.registers <= MOST_REGISTERS
    return small and few_words and not carries(found.loop)


def _is_short(found: AheadLoads, context: PassContext) -> bool:
    """Whether a loop only adds up what has few elements in each lane of a whole warp: parts of one,
    whose programs go different ways, take turns."""
    is_warp = context.num_warps == 1 and context.lanes == WARP_SIZE
    is_little = found.registers <= SHORT_WORDS
    return is_warp and is_little and only_adds(found.loop) and _is_alone(found.loop)


def _ctas(function: ir.Operation) -> int:
    """CTAs of a multiprocessor, as far as is known: of programs that CTAs share there are few."""
    ctas = ctas_of(function)
    return min(FEW_CTAS, programs_per_sm(function) * ctas or (1 if ctas > 1 else FEW_CTAS))


def _lead_on(found: AheadLoads) -> bool:
    """Whether other loads of the loop go where these say."""
    ours = OpSet(found.loads)
    others = [load for load in tile_loads(found.loop) if load not in ours]
    return any(op in ours for load in others for op in ops_behind(load.operands))


def _begin_in_memory(found: AheadLoads) -> bool:
    """Whether memory says where a loop begins, or what it loads, as of rows of sparse matrices: of
    those most are short."""
    ops = (*found.addresses, *found.loads)
    outside = [v for op in ops for v in op.operands if not is_inside(v, found.loop)]
    deciding = (*found.addresses, *ops_behind([found.loop.operands[0], *outside]))
    return any(is_of(op, ArrayOp) for op in deciding)


def _is_alone(loop: ir.Operation) -> bool:
    """Whether no warp of a loop waits for another, and there is no other loop in it."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        meets = any(map(is_buffer, op.operands))
        if op != loop and (meets or op.name in ("scf.for", "scf.while")):
            found.append(op)
        return ir.WalkResult.ADVANCE

    loop.walk(visit)
    return not found


def _prefetch(found: AheadLoads, times: int, at_once: bool, context: PassContext) -> None:
    _report(found, times, context, "at once" if at_once else "ahead")
    found.loop.attributes[AHEAD] = ir.UnitAttr.get(found.loop.context)
    if times == 1:
        issue_behind(found, lambda load: load)
        return
    loop = unroll(found.loop, times)
    unrolled = ahead_loads(loop, _known_ahead(loop))
    if unrolled is None:
        raise InternalError("an unrolled loop has none of its loads")
    body = [view.operation for view in unrolled.loop.regions[0].blocks[0].operations]
    if at_once:
        early = (*unrolled.addresses, *unrolled.loads)
        first = next(op for op in body if op not in OpSet(early))
        for op in early:
            op.move_before(first)
    else:
        issue_behind(unrolled, lambda _: body[0])
    write_out(found.loop, times - 1, lambda counters: issue_all(found, counters))


def _report(found: AheadLoads, times: int, context: PassContext, when: str = "ahead") -> None:
    ahead = f"{times} iterations {when}" if times > 1 else "an iteration ahead"
    why = f"{times * found.registers} registers a thread hold what is under way"
    context.report.add("loads", found.loop, ahead, why)


def _load_beside_rings(role: RoleOp, function: ir.Operation, context: PassContext) -> None:
    """Applies rule 4 to the loops of a computing role."""
    room = None
    for loop in find_loops(role.operation):
        if is_program_loop(loop) and teams_of(function) > 1:
            continue  # the next program is another set's of warps
        near = _near(loop)
        if near and room is None:  # of the role as it came: what counts its registers takes long
            room = _room(role, function, context)
        found = _chosen(loop, near, room) if room is not None else None
        if found is not None:
            _report(found, 1, context)
            issue_behind(found, behind_uses)


def _room(role: RoleOp, function: ir.Operation, context: PassContext) -> int:
    """Registers of a thread of the computing role for what is under way."""
    target = context.target
    threads = total_warps(function, context.num_warps) * target.warp_size
    ctas = target.ctas_beside(shared_bytes(function))
    here = role.registers or entry_registers(target, threads, ctas)
    taken = most_live_registers(role.body) + COMPUTE_REGISTERS
    return max(LEAST_REGISTERS, min(MOST_REGISTERS, here - taken))


def _near(loop: ir.Operation) -> list[AheadLoads]:
    """Of a loop that waits for rings: each of its loads that may come ahead, and waits for none of
    its addresses."""
    body = loop.regions[0].blocks[0].operations
    if not of_kind(body, RingWaitOp):
        return []
    loads = [view.operation for view in of_kind(body, LoadOp) if _is_needed(view.result)]
    alone = filter(None, (ahead_loads(loop, [load]) for load in loads))
    return [each for each in alone if each.is_safe and not of_kind(each.addresses, LoadOp)]


def _chosen(loop: ir.Operation, near: list[AheadLoads], room: int) -> AheadLoads | None:
    """Those that so many registers have room for, small ones first, in the loop's order."""
    chosen = OpSet()
    for found in sorted(near, key=lambda found: found.registers):
        if found.registers <= room:
            chosen.update(found.loads)
            room -= found.registers
    body = loop.regions[0].blocks[0].operations
    return ahead_loads(loop, [view.operation for view in body if view.operation in chosen])


def _is_needed(value: ir.Value) -> bool:
    """Whether more than ops without effect follow from a value: the computing role still has the
    addresses of copies that others issue."""
    uses = uses_behind(value, lambda use: use.owner.results)
    return any(not use.owner.results for use in uses)
