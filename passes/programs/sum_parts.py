"""Which loop of a kernel several CTAs may share: each runs some of its iterations, and they merge
what each has summed, or found to be the least."""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, made_by, only_user
from tilec.dialects.demands import demanded
from tilec.dialects.effects import SIDE_EFFECTS
from tilec.dialects.gpu_tile import ClusterSendOp, SlotOp
from tilec.dialects.merges import Merge
from tilec.dialects.tile import DotOp
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.hardware.part_meeting import MOST_READ_BYTES, Meeting
from tilec.hardware.target import Feature, Target
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.demands.kernels import ctas_of, is_in_line, teams_of
from tilec.passes.programs.cut_tiles import find_cut
from tilec.passes.programs.merges import merges_of
from tilec.passes.rewriting.loops import carried_by, inits_of, trips_of, yielded_by
from tilec.passes.rewriting.refusals import attempt
from tilec.passes.rewriting.walk import find_ops, is_of, kernel_of
from tilec.terms.demands import PARTS, SUM_PARTS


def sum_parts_of(function: ir.Operation) -> int:
    """In how many parts a kernel's products are summed, each by a CTA."""
    return demanded(function, SUM_PARTS) or 1


def find_sum(function: ir.Operation) -> ir.Operation | None:
    """The loop of a kernel's own block that multiplies, itself or in loops of its own, if it is the
    only one; where none does, the only loop there is."""
    block = function.regions[0].blocks[0]
    every = [op.operation for op in block.operations if op.operation.name == "scf.for"]
    loops = [loop for loop in every if find_ops(loop, DotOp)] or every
    return loops[0] if len(loops) == 1 else None


def find_shared(loop: ir.Operation, parts: int) -> ir.Operation:
    """Of a loop whose sums are in parts, and the loops that sum for it, the one whose iterations
    the parts share: the outermost of which each gets as many, else the innermost, which has most.
    """
    while not (trips := trips_of(loop)) or trips % parts:
        inner = _inner_sum(loop)
        if inner is None:
            break
        loop = inner
    return loop


def whole_end(end: ir.Value) -> ir.Value:
    """The end of a loop from 0 of which one that ends at `end` has a part, as split-sums cuts it:
    (part + 1) * whole / parts, of a part below `parts`; else `end` itself."""
    divided = defining_op(end, "arith.divsi")
    product = None if divided is None else defining_op(divided.operands[0], "arith.muli")
    if divided is None or product is None:
        return end
    following, whole = product.operands
    added = defining_op(following, "arith.addi")
    if added is None or constant_of(added.operands[1]) != 1:
        return end
    part = made_by(added.operands[0], tile.StripeIdOp, tile.PartIdOp)
    if part is None:
        return end
    parts = ctas_of(kernel_of(part.operation))
    return whole if constant_of(divided.operands[1]) == parts else end


def why_whole(function: ir.Operation, target: Target, parts: int) -> str | None:
    """Says why no CTAs can sum so many parts of a kernel's products; None if they can."""
    return _why_no_sum(function) or _why_not_in_memory(function, target, parts)


def _why_no_sum(function: ir.Operation) -> str | None:
    """Says why none can sum any number of parts."""
    if is_in_line(function) or ctas_of(function) > 1 or teams_of(function) > 1:
        return "CTAs or clusters share the programs already"
    loop = find_sum(function)
    if loop is None:
        return "no loop, or more than one, sums outside of branches and other loops"
    own = merges_of(loop)
    if not own or not all(own):
        return "the loop carries what is no sum from zero, least or greatest in 32 bits or more"
    return _why_seen(function, loop)


def _why_not_in_memory(function: ir.Operation, target: Target, parts: int) -> str | None:
    """Says why parts that meet in memory would take too long; None where they would not, or are one
    cluster."""
    meeting = meeting_of(function, target)
    if meeting.is_short(parts):
        return None
    return (
        f"the last of {parts} CTAs would read {meeting.read_bytes(parts)} bytes of the others' "
        f"sums, more than {MOST_READ_BYTES}"
    )


def meeting_of(function: ir.Operation, target: Target) -> Meeting:
    """How CTAs that sum parts of a kernel meet, if they can sum parts of it."""
    loop = find_sum(function)
    assert loop is not None  # else nothing sums
    sums, ends = (sum(map(_bits, values)) // 8 for values in (loop.results, sum_ends(loop)[0]))
    return Meeting(tuple(clusters_that_sum(function, target)), sums, ends)


def _bits(value: ir.Value) -> int:
    """Of a tile, or a number."""
    if is_tile(value):
        return prod(shape(value)) * bit_width(element(value))
    return bit_width(value.type)


def sum_ends(loop: ir.Operation) -> tuple[list[ir.Value], list[ir.Operation]]:
    """The values to which all that a loop sums comes behind it, as small as sums of parts may be
    merged, and the ops that make these of the loop's results: reductions that merge, too."""
    ends: list[ir.Value] = []
    between: list[ir.Operation] = []
    for end, merge in zip(list(loop.results), merges_of(loop), strict=True):
        while merge is not None and (op := _reduced(end, merge)) is not None:
            between.append(op)
            end = op.results[0]
        ends.append(end)
    return ends, between


def is_read(loop: ir.Operation) -> bool:
    """Whether anything comes of what a loop sums."""
    return any(list(end.uses) for end in sum_ends(loop)[0])


def _reduced(value: ir.Value, merge: Merge) -> ir.Operation | None:
    """The reduction that is all that becomes of a value, if it does what merging parts does."""
    user = only_user(value)
    if merge.by is not None or user is None or not is_of(user.operation, tile.ReduceOp):
        return None
    op = user.operation
    body = [view.operation for view in op.regions[0].blocks[0].operations]
    is_same = len(op.results) == 1 and len(body) == 2 and body[0].name == merge.op
    return op if is_same and op.block == value.owner.operation.block else None


def why_uncut(function: ir.Operation, target: Target, parts: int) -> str | None:
    """Says why what is behind the loop does not come in so many stripes, a CTA of a cluster
    each."""
    if parts == 1:
        return None
    if not target.supports(Feature.CLUSTERS):
        return f"{target.name} has no clusters"
    if parts > target.ctas_per_cluster or parts & (parts - 1):
        most = target.ctas_per_cluster
        return f"a cluster on {target.name} has a power of two CTAs, {most} at most"
    if not target.sums_in_clusters:
        return f"all warps of a CTA on {target.name} give its tensor memory back together"
    loop = find_sum(function)
    assert loop is not None  # else nothing sums
    if not all(is_tile(value) for value in loop.results):
        return "a number that the loop adds up comes in no stripes"
    return attempt(find_cut, list(loop.results), ops_behind(loop), parts)[1] or None


def clusters_that_sum(function: ir.Operation, target: Target) -> list[int]:
    """How many CTAs may be a cluster that sums parts of a kernel's products, which they can sum in
    parts. What comes in so many stripes comes in each divisor of that."""
    most = target.ctas_per_cluster if target.supports(Feature.CLUSTERS) else 1
    few = [n for n in PARTS if 1 < n <= most]
    while few and why_uncut(function, target, few[-1]) is not None:
        few.pop()
    return few


def parts_that_sum(function: ir.Operation, target: Target) -> list[int]:
    """The numbers of parts, each a cluster, in which a kernel's products can be summed, if there
    are any others than one."""
    clusters = [] if _why_no_sum(function) is not None else clusters_that_sum(function, target)
    return [1, *clusters] if clusters else []


def meeting_in_memory(function: ir.Operation, target: Target) -> Meeting | None:
    """How CTAs meet that sum any number of parts of a kernel's only loop of products, or of any;
    None where it has loops in loops, or no such."""
    loop = find_sum(function)
    if loop is None or _why_no_sum(function) is not None or _inner_sum(loop) is not None:
        return None
    return meeting_of(function, target)


def ops_behind(loop: ir.Operation) -> list[ir.Operation]:
    """The ops between a loop and the end of the kernel."""
    block = [view.operation for view in loop.block.operations]
    return block[block.index(loop) + 1 : -1]


def comes_in_turns(function: ir.Operation) -> bool:
    """Whether parts of several sums come to one buffer, one after the other: shared memory is
    short."""
    sends = [op.opview for op in find_ops(function, ClusterSendOp)]
    slots = [defining_op(send.dst, SlotOp.OPERATION_NAME) for send in sends]
    buffers = [slot.operands[0] for slot in slots if slot is not None]
    return len(set(buffers)) < len(buffers)


def _why_seen(function: ir.Operation, loop: ir.Operation) -> str | None:
    """Says what other programs, or the host, would notice of a part up to the end of the loop."""
    for view in function.regions[0].blocks[0].operations:
        effects = find_ops(view.operation, tile.StoreOp, tile.ScatterOp, *SIDE_EFFECTS)
        if effects:
            return f"each part would run '{effects[0].name}'"
        if view.operation == loop:
            break
    return None


def _inner_sum(loop: ir.Operation) -> ir.Operation | None:
    """The loop that adds all that a loop sums, if there is one."""
    inner = defining_op(yielded_by(loop)[0], "scf.for")
    if inner is None or inits_of(inner) != carried_by(loop):
        return None
    return inner if list(inner.results) == yielded_by(loop) else None
