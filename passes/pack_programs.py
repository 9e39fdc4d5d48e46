"""pack-programs: programs of one warp share a CTA, which takes one after the other.

Before:   %row = "tile.program_id"() {axis = 0 : i32}
          ... the kernel, in one warp ...
After:    (tile.persistent, tile.programs_per_cta = 8 : i32 of the kernel: so many warps a CTA)
          %step = "gpu_tile.num_ctas"() * "gpu_tile.programs_in_cta"()
          %apart = "gpu_tile.cta_id"() + "gpu_tile.num_ctas"() * "gpu_tile.program_in_cta"()
          %side = "gpu_tile.cta_id"() * "gpu_tile.programs_in_cta"() + "gpu_tile.program_in_cta"()
          %mine = select(2 * %step < the product of num_programs, %side, %apart)
          scf.for %row = %mine to the product of num_programs step %step {
            ... the kernel ...
          }

A multiprocessor holds at most 32 CTAs, with one warp each half of the warps that it has room for
(CUDA C++ Programming Guide, "Compute Capabilities"), and takes 80 ns or so to begin one: rows of
256 f16, a program each, ran at 0.4 of the speed of memory on an H200. So 8 warps share a CTA, stay,
and take as many programs as there are, one behind the other.

1. Each warp does what a CTA did: threads count from 0 in it, it meets alone, and has its own part
   of shared memory (`allocate-shared` says how much a program takes).
2. The launch says how many CTAs there are, and how many warps each has: for few programs one on
   each multiprocessor (`CompiledKernel.launched`).
3. Of few programs neighbours are on different multiprocessors, of many in one CTA, which then
   works on neighbouring memory (`MANY_ROUNDS`).
4. Programs that wait for programs of lower numbers keep a CTA each: a warp might have to run the
   lower one later. Where memory says how long a program takes, a warp with several long ones would
   end last, so more CTAs share the programs than run side by side (`UNEVEN_ROUNDS`).
5. Which program of a grid of two axes it is, one division says; of three axes two.
6. Programs that have a part of a warp (`tile.lanes`) share warps as well; the parts of a warp meet
   each by themselves.
7. Programs that load much, once, have a CTA each (`LONG_BYTES`).

Does not handle: programs of several warps, and those with rings, roles or tensor copies.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects.gpu_tile import AllocOp, CtaIdOp, NumCtasOp, NumProgramsInCtaOp, ProgramInCtaOp
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.dialects.tile import ArrayOp, Combining, ExchangeOp, NumProgramsOp, ProgramIdOp
from tilec.dialects.types import bit_width, element, shape
from tilec.executable.kernel import MOST_PROGRAMS
from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import (
    PERSISTENT,
    PROGRAM_LIMIT,
    PROGRAMS_PER_CTA,
    ROUNDS,
    lanes_of,
    most_programs,
    programs_per_cta,
)
from tilec.passes.programs.packing import why_alone
from tilec.passes.programs.program_relations import have_uneven_loops
from tilec.passes.rewriting.control import for_loop
from tilec.passes.rewriting.loops import innermost_loop
from tilec.passes.rewriting.scalars import as_type, binary, constant, less, select
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import find_ops

WARPS = 8
"""Of a CTA: eight such fill a multiprocessor of 64 warps, and one whose threads hold 255 registers
still has room for one (65536 in all)."""
LONG_BYTES = 4096
"""That a program loads in front of all else: in 80 ns a multiprocessor of an H200 moves 2.9 KB, so
that the next CTA has begun before they have come, and 32 programs wait for more than memory needs
to be busy. Means of 32 rows of 64 bf16, 8192 programs, take 9.7 us so and 12.2 in warps that take
one after the other, which load nothing ahead (Triton 9.9). Where threads meet more than once they
wait for each other: that takes more warps than a multiprocessor has CTAs."""
REACHED = 1 << 20
"""Programs beyond the last that counting may come to: CTAs that run side by side, times `WARPS` and
`UNEVEN_ROUNDS`, with room to spare (148 multiprocessors with 8 such CTAs come to 75776)."""
MANY_ROUNDS = 2
"""Programs of each warp, from which on neighbours are side by side: what a CTA reads and writes at
one time is one piece of memory then. 365314 rows of 256 bf16 take 98.6 us for 101.1 (RMS norm),
69190 of 128 11.4 for 12.1, 200000 of 64 f16 16.9 for 17.5 (softmax), 53717 of 187 bf16 14.6 for
15.8 (to fp8); of 20 launches none was longer by more than 0.7 % (H200)."""
UNEVEN_ROUNDS = 8
"""Times as many CTAs as run side by side, of whole warps whose loops end where memory says: later
ones begin where the first to be done were. 50000 rows of a sparse matrix, of 1500 elements one in
64 and the others of 20, take 33.8 us for 51.6, 30000 of 0 to 652 77.1 for 82.3 (in 4 rounds 42.9
and 77.1), 94403 of 0 to 42 in 4 rounds 18.4 for 19.0; parts of warps take up to 1.24 times as long
so (H200)."""


@kernel_pass(
    requires=Level.BUFFERS,
    behind={"split-conversions": "what crosses warps goes through buffers by then"},
)
def pack_programs(function: ir.Operation, context: PassContext) -> None:
    """Lets CTAs run several programs of one warp side by side, and one behind the other."""
    if context.num_warps == 1 and programs_per_cta(function) == 1:
        programs, reason = _programs(function, context)
        if programs > 1:
            _pack(function, context, programs)
        elif lanes_of(function) < WARP_SIZE:
            raise context.broken(function, f"a part of a warp runs each program: {reason}")
        context.report.add("programs in a CTA", function, str(programs), reason)


def _programs(function: ir.Operation, context: PassContext) -> tuple[int, str]:
    """How many programs a CTA runs side by side, and why."""
    reason = why_alone(function)
    if reason is not None:
        return 1, reason
    loaded = _loaded_once(function)
    if loaded >= LONG_BYTES and len(find_ops(function, Combining, ExchangeOp)) <= 1:
        return 1, f"each loads {loaded} bytes: the next CTA begins meanwhile"
    buffers = sum(buffer_of(op.results[0]).size_bytes for op in find_ops(function, AllocOp))
    programs = WARPS * WARP_SIZE // lanes_of(function)
    while lanes_of(function) < WARP_SIZE and not context.target.fits_twice(programs * buffers):
        programs //= 2
    if not context.target.fits_twice(programs * buffers):
        return 1, f"buffers of {buffers} bytes each"
    return programs, "a multiprocessor holds more warps than CTAs, and none has to be launched"


def _loaded_once(function: ir.Operation) -> int:
    """Bytes of the tiles that a program loads outside of loops; 0 if it has loops that load."""
    loads = [op for op in find_ops(function, ArrayOp) if op.opview.is_load]
    if any(innermost_loop(op) is not None for op in loads):
        return 0
    tiles = [op.opview.tile for op in loads]
    return sum(prod(shape(tile)) * bit_width(element(tile)) for tile in tiles) // 8


def _pack(function: ir.Operation, context: PassContext, programs: int) -> None:
    index, entry = ir.IndexType.get(), function.regions[0].blocks[0]
    *body, _ = [view.operation for view in entry.operations]
    ids = find_ops(function, ProgramIdOp)
    with ir.InsertionPoint.at_block_begin(entry), function.location:
        x, y, z = (NumProgramsOp.build(axis=axis) for axis in range(3))
        cta, ctas, own, warps = (
            as_type(op.build(), index)
            for op in (CtaIdOp, NumCtasOp, ProgramInCtaOp, NumProgramsInCtaOp)
        )
        step, others = binary("arith.muli", ctas, warps), binary("arith.muli", y, z)
        axes = {op.opview.axis for op in ids}
        total = x if axes <= {0} else binary("arith.muli", x, y if axes <= {0, 1} else others)
        apart = binary("arith.addi", cta, binary("arith.muli", ctas, own))
        side = binary("arith.addi", binary("arith.muli", cta, warps), own)
        is_many = less(binary("arith.muli", step, constant(index, MANY_ROUNDS)), total)
        first = select(is_many, side, apart)
        if axes <= {0}:
            # Programs along the others do all the same: no division says which this is.
            end, places = _walk(first, x, step, others)
        else:
            end, places = _walk(first, total, step, z if axes <= {0, 1} else None)
            with ir.InsertionPoint(end):
                row = binary("arith.divui", places[0], x)
                places = [binary("arith.remui", places[0], x), row]
                if not axes <= {0, 1}:
                    rows = [binary(name, row, y) for name in ("arith.remui", "arith.divui")]
                    places = [places[0], *rows]
    for op in body:
        op.move_before(end)
    for op in ids:
        replace_op(op, places[op.opview.axis])
    i32 = ir.IntegerType.get_signless(32)
    function.attributes[PERSISTENT] = ir.BoolAttr.get(True)
    function.attributes[PROGRAMS_PER_CTA] = ir.IntegerAttr.get(i32, programs)
    if lanes_of(function) == WARP_SIZE and have_uneven_loops(function):
        function.attributes[ROUNDS] = ir.IntegerAttr.get(i32, UNEVEN_ROUNDS)
    if context.index_bits == 32:
        most = min(most_programs(function), MOST_PROGRAMS - REACHED)
        function.attributes[PROGRAM_LIMIT] = ir.IntegerAttr.get(i32, most)


def _walk(
    first: ir.Value, total: ir.Value, step: ir.Value, times: ir.Value | None
) -> tuple[ir.Operation, list[ir.Value]]:
    """A loop over the programs that a warp takes, all that so many times; its end, and what counts
    in it."""
    if times is not None:
        index = first.type
        zero, one = constant(index, 0), constant(index, 1)
        _, block = for_loop([zero, times, one])
        with ir.InsertionPoint(block):
            inner = _walk(first, total, step, None)
            ir.Operation.create("scf.yield")
        return inner
    _, block = for_loop([first, total, step])
    with ir.InsertionPoint(block):
        return ir.Operation.create("scf.yield"), [block.arguments[0]]
