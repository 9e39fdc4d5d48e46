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
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.hardware.target import Target
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.vector_width import access_width, element_bytes
from tilec.passes.contract import Report
from tilec.passes.demands import kernels as demands
from tilec.passes.programs.packing import why_alone
from tilec.passes.programs.program_relations import have_uneven_loops
from tilec.passes.rewriting.free_ops import is_scalar, stays_in_thread
from tilec.passes.rewriting.loops import innermost_loop
from tilec.passes.rewriting.walk import all_ops, find_ops, ops_named
from tilec.passes.rows.stripes import count_stripes

LANES = 8
"""Which read 128 bytes at once, a line, 16 bytes each. For 200000 rows of 64 f32 to 209324 of 160
bf16 16 took 1.0 to 1.5 times as long, 4 1.0 to 1.2 times (softmax, cross-entropy, H200)."""
MOST_BYTES, MOST_ELEMENTS = 512, 256
"""Of all that a program loads, and of its largest tile: 209324 rows of 160 bf16 take 64 us for 92
in whole warps, 53717 of 187, which go to fp8, 15.6 for 22.8, 886948 of 128 with their weights 124
for 127; 100000 of 384 42 for 43, but 68628 of 256 with weights 22.0 for 20.7 (H200). Rows of sparse
matrices, which wait for what memory says four times each, without loads ahead: 134138 of 5 elements
11.4 us for 19.9, 60000 of 0 to 24 7.6 for 11.2; but 60000 of which one in 256 has 768 24 for 17."""
CROWD = 64
"""Programs a multiprocessor: as many warps as it holds run so many side by side. Rows of 145 bf16
take 2.4 us for 2.0 if there are 200, 3.6 for 3.5 of 4000, 4.4 for 4.8 of 8448 (softmax, H200)."""
_OTHERS = (tile.StoreOp, tile.ReduceOp, tile.ProgramIdOp, tile.NumProgramsOp, tile.AssumeOp)
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
    i32 = ir.IntegerType.get_signless(32)
    if demands.programs_per_sm(function) > CROWD:
        function.attributes[demands.LANES] = ir.IntegerAttr.get(i32, LANES)
        why = f"there are many programs, which load {bytes_} bytes"
        report.add("lanes", function, str(LANES), why, lanes=LANES)
    else:
        function.attributes[demands.CROWD] = ir.IntegerAttr.get(i32, CROWD)


def _why_whole(function: ir.Operation) -> str | None:
    """What only a whole warp does, or does better; None if nothing."""
    if not find_ops(function, tile.ReduceOp):
        return "no lanes meet"
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
