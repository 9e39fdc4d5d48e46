"""How many CTAs run each program of a kernel, each its stripe of a row.

Several where the row is too long for the registers of one: they are a cluster and meet to reduce or
scan it. And where nothing is reduced: one vector a thread and array, in CTAs of 256 threads, is as
fast as a copy whatever is computed. On an H200 tiles of 4096 f32, two vectors a thread, take 0.7 to
2 % longer, of 16384, eight, 1.5 to 5 % (one or two inputs) and 44 % (four inputs, three results).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import of_kind
from tilec.dialects.effects import SIDE_EFFECTS, whole_of
from tilec.hardware.sizes import PORTABLE_CTAS, SECTOR_BYTES, VECTOR_BYTES
from tilec.hardware.target import Feature, Target
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.vector_width import element_bytes
from tilec.passes.demands.kernels import (
    MOST_STRIPES,
    STRIPES,
    few_of,
    is_in_line,
    programs_per_sm,
    sms_per_program,
    stripes_of,
)
from tilec.passes.layouts.op_costs import words
from tilec.passes.rewriting.loops import are_alternatives, enclosing_ops
from tilec.passes.rewriting.op_tables import order_of
from tilec.passes.rewriting.walk import find_ops, is_of
from tilec.passes.rows.row_kernels import RowKernel, find_rows, is_row, row_axis
from tilec.passes.rows.scanned_stripes import why_whole
from tilec.passes.rows.wrapped_rows import may_wrap

LONGEST_ROW = 32768
"""Words of a row that one CTA holds: 32 of the 64 that each of 1024 threads has."""
BEST_STRIPE = 16384
"""Words of a stripe while a cluster has room for more CTAs: two share a multiprocessor then, and
one loads while the other waits."""
LEAST_STRIPE = 2048
"""Words of a stripe where few programs leave multiprocessors idle: of less, CTAs of a cluster would
wait for each other as long as for it. Not timed."""
SPARED = 12288
"""Words of a row, fewer of which each CTA has if a row of few is shared, from which on that is
worth the meeting. Of 10 rows of 16384 f16 (softmax) 14336 are 2.4 us for 3.0, 12288 2.4, 8192 2.93;
15040 of 48 rows of 30000 f32 6.7 for 7.3; 22560 of 16 of 30000 bf16 (layer norm) 3.3 for 5.0; but
10048 of 40 of 20000 f32 (to fp8) 3.12 for 3.04, 6144 of 30 of 8192 f16 2.37 for 2.28 (H200)."""
LEAST_WARPS = 8
"""Of the CTAs that a program without reductions is spread over."""
_ACCESSES = (tile.LoadOp, tile.GatherOp, tile.StoreOp)


def count_stripes(function: ir.Operation, target: Target, num_warps: int) -> tuple[int, str]:
    """Decides how many CTAs of `num_warps` run a program, and why: 1 where its row is not too long,
    or cannot be spread."""
    rows = find_rows(function)
    if rows is None or STRIPES in function.attributes:
        return stripes_of(function), "no row that could be spread"
    if of_kind(rows.ops, tile.Combining):
        stripes, why = _stripes_that_meet(rows, few_of(function) or _spare(function, rows))
    elif rows.size <= LONGEST_ROW and may_wrap(rows, Divisibility(function)):
        return 1, "its vectors are aligned where it is whole"
    else:
        stripes, why = _stripes_apart(rows, num_warps, target.warp_size)
    reason = None if stripes == 1 else _why_alone(function, rows, stripes, target)
    return (stripes, why) if reason is None else (1, reason)


def is_kept(function: ir.Operation, target: Target) -> bool:
    """Whether a kernel is of one row alone, which a CTA keeps, or the CTAs of a cluster."""
    rows = find_rows(function)
    if rows is None:
        return False
    return _words(rows) <= LONGEST_ROW * count_stripes(function, target, 1)[0]


def suits_few(function: ir.Operation, rows: RowKernel, target: Target) -> bool:
    """Whether CTAs had better share one of the `rows` of a kernel for any number of programs, where
    these are few."""
    if programs_per_sm(function) or few_of(function):
        return False
    meets = bool(of_kind(rows.ops, tile.Combining)) and _is_worth(rows, PORTABLE_CTAS)
    return meets and _why_alone(function, rows, 2, target) is None


def _spare(function: ir.Operation, rows: RowKernel) -> int:
    """How many CTAs may share each of a few long rows; 0 where these are not few, or not long."""
    spare = sms_per_program(function)
    return spare if _is_worth(rows, spare) else 0


def _is_worth(rows: RowKernel, stripes: int) -> bool:
    return _words(rows) - _words(rows) // stripes >= SPARED


def _divides(rows: RowKernel, stripes: int) -> bool:
    """Whether each stripe of a row begins where a sector does, of elements of a byte, too."""
    return rows.size % (stripes * SECTOR_BYTES) == 0


def _words(rows: RowKernel) -> int:
    values = [value for op in rows.ops for value in op.results if is_row(value)]
    return rows.size * max((words(value) for value in values), default=1)


def _stripes_that_meet(rows: RowKernel, few: int) -> tuple[int, str]:
    size, stripes = _words(rows), 1
    while 2 * stripes <= few and 2 * stripes * LEAST_STRIPE <= size:
        if size <= LONGEST_ROW and not _divides(rows, 2 * stripes):
            break
        stripes *= 2
    if size <= LONGEST_ROW and few:
        return stripes, f"there are few programs, of {size} words each"
    if size <= LONGEST_ROW:
        return 1, f"a CTA holds {size} words"
    while stripes < PORTABLE_CTAS and stripes * BEST_STRIPE < size:
        stripes *= 2
    return stripes, f"{size} words are too many for one"


def _stripes_apart(rows: RowKernel, num_warps: int, lanes: int) -> tuple[int, str]:
    bytes_ = max((rows.size * element_bytes(a.array) for a in rows.accesses), default=1)
    each = max(num_warps, LEAST_WARPS) * lanes * VECTOR_BYTES
    most = min(MOST_STRIPES, bytes_ // each)
    whole = (n for n in range(most, 1, -1) if rows.size % (n * SECTOR_BYTES) == 0)
    return next(whole, 1), f"a vector of {VECTOR_BYTES} bytes a thread and array"


def _why_alone(function: ir.Operation, rows: RowKernel, stripes: int, target: Target) -> str | None:
    meetings = of_kind(rows.ops, tile.Combining)
    reductions = [view.operation for view in meetings]
    if reductions and not target.supports(Feature.CLUSTERS):
        return f"{target.name} has no clusters"
    if is_in_line(function):
        return "the author shares programs among CTAs in another way"
    if not _divides(rows, stripes):
        return f"{rows.size} elements are no multiple of {stripes * SECTOR_BYTES}"
    if any(row_axis(access, rows.size) is None for access in rows.accesses):
        return "its elements are no neighbours in memory"
    if any(op.block != reductions[0].block for op in reductions[1:]):
        return "several branches reduce it"
    around = [op for each in rows.ops for op in enclosing_ops(each)]
    if any(op.name != "scf.if" for op in around):
        return "a loop moves or reduces it"
    reasons = (_why_apart(view) for view in meetings)
    return next(filter(None, reasons), None) or _why_seen(function)


def _why_apart(meeting: tile.Combining) -> str | None:
    """What forbids that stripes reduce or scan a row each for itself first; None if nothing."""
    if isinstance(meeting, tile.ScanOp):
        return why_whole(meeting)
    return "a reduction leaves a row" if any(map(is_row, meeting.outputs)) else None


def _why_seen(function: ir.Operation) -> str | None:
    """Says what other stripes, or the host, would notice of a stripe; None if nothing. All stripes
    take the same branches: what any of them stores, all have read before."""
    effects = find_ops(function, tile.ScatterOp, *SIDE_EFFECTS)
    if effects:
        return f"each stripe would run '{effects[0].name}'"
    accesses = [op.opview for op in find_ops(function, *_ACCESSES)]
    for store in accesses:
        if isinstance(store, tile.StoreOp):
            whole = whole_of(store.dst)
            others = [other for other in accesses if whole_of(other.array) == whole]
            if not all(_is_alike(store, other) or _is_apart(store, other) for other in others):
                return "stripes would see what others of them write"
    return None


def _is_alike(store: tile.StoreOp, other: tile.LoadOp | tile.GatherOp | tile.StoreOp) -> bool:
    """Whether an access to the array of a store is to the same row of it, or stores a result,
    too."""
    if isinstance(other, tile.GatherOp) or is_row(other.tile) != is_row(store.value):
        return False
    if not is_row(store.value):
        return isinstance(other, tile.StoreOp)
    return (*store.offsets, *store.dims) == (*other.offsets, *other.dims)


def _is_apart(store: tile.StoreOp, other: tile.LoadOp | tile.GatherOp | tile.StoreOp) -> bool:
    """Whether an access is done before any stripe stores: the other branch has it, or it is to a
    single element, and all meet between, to reduce the row."""
    if are_alternatives(store.operation, other.operation):
        return True
    if is_row(other.tile) or other.operation.block != store.operation.block:
        return False
    order = order_of(view.operation for view in store.operation.block.operations)
    first, last = order[other.operation], order[store.operation]
    meetings = [op for op in order if is_of(op, tile.ReduceOp, tile.ScanOp)]
    return other.is_load and any(first < order[op] < last for op in meetings)
