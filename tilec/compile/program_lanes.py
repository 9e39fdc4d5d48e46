"""How many lanes of a warp run a program of one warp: fewer than all where its rows are short.

A warp issues an instruction for 32 lanes, whether they hold elements of a short row or not, and
what a program does once, as addresses, reductions' last steps and the arithmetic of scalars, it
does for one row. Four programs of 8 lanes share all that.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import SECTOR_BYTES, VECTOR_BYTES
from tilec.hardware.target import Target
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.index_runs import index_run
from tilec.passes.analysis.vector_width import access_width, element_bytes
from tilec.passes.contract import Report
from tilec.passes.demands import kernels as demands
from tilec.passes.programs.packing import why_alone
from tilec.passes.programs.program_relations import have_uneven_loops
from tilec.passes.rewriting.free_ops import is_scalar, stays_in_thread
from tilec.passes.rewriting.loops import innermost_loop
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import all_ops, find_ops, ops_named
from tilec.passes.rows.stripes import count_stripes

LANES = 8
"""Which read 128 bytes at once, a line, 16 bytes each. For 200000 rows of 64 f32 to 209324 of 160
bf16 16 took 1.0 to 1.5 times as long, 4 1.0 to 1.2 times (softmax, cross-entropy, H200).

Shorter rows have a lane for each 16 bytes: 387480 groups of 32 f16, to i8, take 13.0 us in 4 lanes
each, 17.3 in 8, 246007 of 32 bf16 9.2 and 12.1."""
LANE_ACCESSES = 4
"""Of a row's tile that a lane of more has at most, where 16 bytes are no access since rows begin
anywhere: 46736 rows of 53 bf16 take 6.5 us in 16 lanes, 9.3 in 8 and 14.8 in 4, 33333 of 90, in
words, 5.7 in 16, 6.1 to 6.5 in 8; of 107 bf16 25000 take 5.6 in 32, 6.8 in 16, 10.1 in 8, of 153
f16 50000 11.6, 15.5 and 24.4, of 101 f32 30000 8.5, 8.7 and 12.6, of 47 f16 90000 10.6, 7.8 and 9.6
(H200)."""
HALF_FULL = 2
"""Times as many of a tile of rows that memory ends: it has twice what they have in the mean."""
MOST_BYTES, MOST_ELEMENTS = 512, 256
"""Of all that a program loads, and of its largest tile: 209324 rows of 160 bf16 take 64 us for 92
in whole warps, 53717 of 187, which go to fp8, 15.6 for 22.8, 886948 of 128 with their weights 124
for 127; 100000 of 384 42 for 43, but 68628 of 256 with weights 22.0 for 20.7 (H200). Rows of sparse
matrices, which wait for what memory says four times each, without loads ahead: 134138 of 5 elements
11.4 us for 19.9, 60000 of 0 to 24 7.6 for 11.2; but 60000 of which one in 256 has 768 24 for 17."""
CROWD = 64
"""Programs of `LANES` a multiprocessor: as many warps as it holds run so many side by side; twice
as many of half as many lanes. Rows of 145 bf16
take 2.4 us for 2.0 if there are 200, 3.6 for 3.5 of 4000, 4.4 for 4.8 of 8448 (softmax, H200)."""
ROUNDS, MOST_ALONE = 3, 192
"""Times as many, and bytes at most, where no lanes meet, and no program waits for where its rows
are: warps have little to do for a row but to wait for it, and share more waiting so only from the
third round on, if a row leaves them idle. Gated halves of 130000 rows of 72 f16, in tiles of 96,
take 17.3 us for 21.1, of 70000 of 88 bf16 12.0 for 12.6, of 31000 of 64 5.3 for 6.0, of 200000 of
33 f16 19.0 for 25.0; but of 40000 of 120, in tiles of 128, 10.4 for 9.4, of 45000 of 56 f32 10.5
for 9.7, of 19588 of 64 f16, in 4 lanes, 4.8 for 4.3, of 7000 of 96 4.1 for 3.3 (H200)."""
_OTHERS = (tile.StoreOp, tile.ReduceOp, tile.ProgramIdOp, tile.NumProgramsOp, tile.AssumeOp)
_BY_INDEX = (tile.GatherOp, tile.ScatterOp)
_LOOPS = ("scf.for", "scf.while")
_CONTROL = ("scf.", "func.", "tensor.extract", "gpu.yield", "arith.constant")


def choose_lanes(function: ir.Operation, target: Target, report: Report) -> None:
    """Writes on a kernel of one warp how many lanes run a program where there are many and these
    are fewer than all; where nobody knows how many, from which number on it were so."""
    bytes_ = _loaded_bytes(function)
    reason = why_alone(function) or _why_whole(function)
    if reason is not None or bytes_ > MOST_BYTES or count_stripes(function, target, 1)[0] > 1:
        return
    if _fills_warp(function, target.warp_size):
        return
    lanes = _fitting_lanes(function)
    if lanes >= target.warp_size:
        return
    i32, crowd = ir.IntegerType.get_signless(32), CROWD * LANES // lanes
    if not (find_ops(function, tile.ReduceOp) or _waits_for_places(function)):
        if bytes_ > MOST_ALONE:
            return
        crowd *= ROUNDS
    if demands.programs_per_sm(function) > crowd:
        function.attributes[demands.LANES] = ir.IntegerAttr.get(i32, lanes)
        why = f"there are many programs, which load {bytes_} bytes"
        report.add("lanes", function, str(lanes), why, lanes=lanes)
    else:
        function.attributes[demands.CROWD] = ir.IntegerAttr.get(i32, crowd)


def _fitting_lanes(function: ir.Operation) -> int:
    """As many lanes as the rows of a program have accesses, `LANES` at most; as many more as read
    two sectors at once, where each had more than `LANE_ACCESSES`."""
    facts, found = Divisibility(function), 0
    each = LANE_ACCESSES * (HALF_FULL if have_uneven_loops(function) else 1)
    accesses = [op.opview for op in find_ops(function, tile.LoadOp, tile.StoreOp, *_BY_INDEX)]
    longest = max((prod(shape(one.tile)) for one in accesses), default=1)
    for one in accesses:
        if 1 < prod(shape(one.tile)) == longest:
            indexed = isinstance(one, _BY_INDEX)
            width = index_run(one, facts)[1] if indexed else access_width(one, facts)[0]
            sectors = 2 * SECTOR_BYTES // (width * element_bytes(one.array))
            row = power_above(-(-longest // width))
            found = max(found, min(row, max(LANES, min(sectors, row // each))))
    return found or LANES


def _why_whole(function: ir.Operation) -> str | None:
    """What only a whole warp does, or does better; None if nothing."""
    if demands.HOLDS_ROWS not in function.attributes and ops_named(function, _LOOPS):
        return "loops walk along rows, which may be long"
    meets_in_loop = any(map(innermost_loop, find_ops(function, tile.ReduceOp)))
    if meets_in_loop and have_uneven_loops(function):
        return "memory says how often lanes meet in a loop"
    for op in all_ops(function):
        known = isinstance(op.opview, _OTHERS) or op.name.startswith(_CONTROL)
        if not (known or is_scalar(op) or stays_in_thread(op)):
            return f"{op.name} takes whole warps"
        for value in filter(is_tile, op.results):
            if sum(size > 1 for size in shape(value)) > 1:
                return "tiles are no rows"
            if prod(shape(value)) > MOST_ELEMENTS:
                return "its rows are long"
    return None


def _waits_for_places(function: ir.Operation) -> bool:
    """Whether single numbers that a program loads say where its rows are. Lanes of a warp that wait
    twice for memory, for as many programs as share it, wait for more at once: 100001 sums of two of
    20000 rows of 64 f16 take 8.1 us in 8 lanes each, 12.3 in whole warps, 9900 of 8890 of 84 bf16
    3.5 and 4.2, 99000 rows of 64 f16 out of sequences 7.7 and 10.7 (H200)."""
    loads = find_ops(function, tile.LoadOp)
    rows = [op for op in loads if shape(op.opview.result)]
    places = OpSet(op for op in loads if not shape(op.opview.result))
    return any(op in places for row in rows for op in ops_behind(row.operands))


def _fills_warp(function: ir.Operation, lanes: int) -> bool:
    """Whether a row is a whole vector of each of so many lanes, all of which have work then: 200000
    rows of 256 f16 take 57.4 us in 8 lanes each, 54.1 in whole warps (softmax, H200)."""
    facts = Divisibility(function)
    for op in find_ops(function, tile.LoadOp):
        size = element_bytes(op.opview.src)
        fills = prod(shape(op.opview.result)) * size >= lanes * VECTOR_BYTES
        if fills and access_width(op.opview, facts)[0] * size == VECTOR_BYTES:
            return True
    return False


def _loaded_bytes(function: ir.Operation) -> int:
    """Of the largest tile that a program loads of each array; single numbers are none."""
    largest: dict[ir.Value, int] = {}
    for op in find_ops(function, tile.LoadOp):
        moved = op.opview.result
        if not shape(moved):
            continue
        bytes_ = prod(shape(moved)) * max(8, bit_width(element(moved))) // 8
        largest[op.opview.src] = max(bytes_, largest.get(op.opview.src, 0))
    return sum(largest.values())
