"""room-for-loads: ptxas is told how many CTAs have to fit, where that leaves loads registers.

Before:   func.func @k(...) attributes {tile.kernel, tile.programs_per_sm = 2 : i32}
            %x = "tile.load"(%a, %row, %c0) ...      %w = "tile.load"(%b, %c0) ...
            ... "gpu_tile.warp_reduce"(%x) ...
After:    func.func @k(...) attributes {tile.kernel, tile.room_for = 2 : i32, ...}

ptxas spares registers so that a multiprocessor holds all the warps that it can: of six vectors of
16 bytes that a thread loads one behind the other it asks for three, waits for them, adds them up,
and asks for the next. Told how many CTAs have to fit (`.minnctapersm`) it leaves the loads where
they stand, as far as the registers reach that so many CTAs leave. Where no fewer CTAs fit for that
than before, or than the launch has, that costs nothing.

1. No role loads, and programs do not share CTAs. A block loads at least `LOADED` registers of a
   thread at once, and threads meet behind that: else other warps compute meanwhile. No tiles of
   several rows are loaded element by element, each from an address of its own.
2. So many CTAs fit in any case, by what lives at once: one more would not, by `UNSURE` registers,
   and these have as many to spare.
3. Else as many as leave a thread `ROOMY` registers, where a launch has no more programs. A kernel
   for any number says up to how many programs another is faster (`suit_more`).

RMS norm of 286 rows of 16384 bf16 takes 7.8 us for 8.9, cross-entropy of 10 of 256496 10.8 for
11.7; layer norms of 130 rows of 5000 f32 3.4 for 4.1, of 20 of 8192 bf16 2.5 for 2.7, of 600 of
4096 f16 4.3 for 4.5. Where no threads meet, `SPILLED` registers are too many for ptxas, which
spills instead of taking more: sums of 8 rows of 640 f16 by number, 900 programs, take 4.0 us for
7.6. With fewer CTAs than there are programs, two for three, 366 rows of 8192 took 5.2 for 4.4, 659
of 4566 f32 10.4 for 9.3, 2000 of 4096 22.8 for 18.2 (H200).
Does not handle: loads in loops that walk along arrays, which `prefetch-loads` issues ahead.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.effects import is_product
from tilec.dialects.gpu_tile import CtaIdOp, WarpReduceOp, WarpScanOp
from tilec.dialects.gpu_tile.role import RoleOp, entry_registers
from tilec.dialects.op import TileOp
from tilec.dialects.tile import ArrayOp, ScanOp
from tilec.dialects.types import shape
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.register_pressure import (
    most_live_registers,
    registers_of,
    tiles_apart,
)
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import (
    MANY,
    ROOM_FOR,
    programs_per_cta,
    programs_per_sm,
    suit_more,
)
from tilec.passes.rewriting.loops import find_loops, innermost_loop, is_program_loop
from tilec.passes.rewriting.walk import all_ops, find_ops, is_of

LOADED = 16
"""Registers of a thread for what a block loads, beside which 32 have no room for addresses."""
SPILLED = 32
"""The same where no threads meet, and no loop walks: ptxas keeps a multiprocessor full of CTAs
whatever it takes. With room, sums of 8 rows of 896 bf16, 600 programs, take 3.5 us for 4.8, of 512
f16, 3000 of one warp, 6.9 for 6.7 (H200)."""
UNSURE = 8
"""Registers by which ptxas takes more or fewer than are counted: of 20 kernels of rows it took 1
fewer to 14 more, and two that have room took 32 and 59 more (sm_90a, ptxas 13.5)."""
ROOMY = 48
"""Registers of a thread that have room for what loads: layer norms took so many, or more."""

_MEETING = (WarpReduceOp, WarpScanOp, ScanOp)


@kernel_pass(
    requires=Level.ALLOCATED,
    behind={"load-early": "what is loaded beside a row is loaded with it"},
)
def room_for_loads(function: ir.Operation, context: PassContext) -> None:
    """Leaves ptxas registers for all that a program loads at once, where CTAs do not."""
    if programs_per_cta(function) > 1 or not _loads_much(function):
        return
    live = most_live_registers(function.regions[0].blocks[0])
    ctas, why = _fitting(live, context), "so many fit, and have registers for what is loaded"
    if not ctas and not find_ops(function, *_MEETING):
        ctas, why = _roomy(live, context), "so many have registers for what is loaded"
    if not ctas:
        ctas, programs = _roomy(live, context), programs_per_sm(function)
        why = f"launches have at most {programs} programs for each, which load much at once"
        if ctas and not programs:
            suit_more(function, ctas)
        if not 0 < programs <= ctas:
            return
    i32 = ir.IntegerType.get_signless(32)
    function.attributes[ROOM_FOR] = ir.IntegerAttr.get(i32, ctas)
    context.report.add("room", function, f"for {ctas} CTAs a multiprocessor", why, ctas=ctas)


def _fitting(live: int, context: PassContext) -> int:
    """How many CTAs fit for certain, and no more do, by their registers; 0 where that is not
    certain."""
    ctas = _ctas_with(live + UNSURE, context)
    is_certain = ctas == _ctas_with(live - UNSURE, context) < _ctas_with(1, context)
    return ctas if is_certain else 0


def _roomy(live: int, context: PassContext) -> int:
    """How many CTAs have room for loads; 0 for none."""
    return min(MANY, _ctas_with(max(ROOMY, live + UNSURE), context))


def _ctas_with(registers: int, context: PassContext) -> int:
    """The most CTAs of a multiprocessor that leave a thread so many registers."""
    target, threads = context.target, context.num_threads
    most = target.threads_per_sm // threads
    counts = range(most, 0, -1)
    return next((n for n in counts if entry_registers(target, threads, n) >= registers), 0)


def _loads_much(function: ir.Operation) -> bool:
    """Whether what a program loads at once, before threads meet, would be waited for in parts."""
    products = (op for op in find_ops(function, TileOp) if is_product(op.opview))
    if find_ops(function, RoleOp) or any(products):
        return False
    apart = tiles_apart(function, function.regions[0].blocks[0])
    loaded: dict[ir.Block, int] = {}
    for op in all_ops(function):
        view = op.opview
        if isinstance(view, ArrayOp) and view.is_load and shape(view.tile) and _is_once(op):
            if op.results[0] in apart and sum(size > 1 for size in shape(view.tile)) > 1:
                return False
            loaded[op.block] = loaded.get(op.block, 0) + registers_of(op.results[0])
    if find_ops(function, *_MEETING):
        return max(loaded.values(), default=0) >= LOADED
    walks = not all(map(is_program_loop, find_loops(function)))
    return not walks and max(loaded.values(), default=0) >= SPILLED


def _is_once(op: ir.Operation) -> bool:
    """Whether a program does an op at most once: no loop is around it but one over programs."""
    loop = innermost_loop(op)
    if loop is None:
        return True
    begins = [loop.operands[0]] if loop.name == "scf.for" else []
    return any(is_of(each, CtaIdOp) for each in ops_behind(begins))
