"""select-mma: each dot gets the instruction that will run it.

Before:   %d = "tile.dot"(%a, %b, %c) {options = {}} :
              (tensor<64x32xf8E5M2>, tensor<32x64xf8E5M2>, tensor<64x64xf32>) -> tensor<64x64xf32>
After (no fp8 mma.sync):
          %x = arith.extf %a : tensor<64x32xf8E5M2> to tensor<64x32xf16>   ...
          %d = "tile.dot"(%x, %y, %c) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : ...
An instruction that adds up in tensor memory or one of a warpgroup comes first where the target has
it, the accumulator consists of whole ones, and its operands can lie in shared memory as the
instruction reads them. Three warpgroups (12 warps) share a tile of such instructions only.
Does not handle: a choice between several instructions for the same types; the table's order
decides. Batched dots on these instructions; sums in tensor memory in the condition of a loop.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile.role import entry_registers
from tilec.dialects.types import element, shape, show, with_element
from tilec.hardware.fragments import tensor_memory_layout, warpgroup_widths
from tilec.hardware.mma_instruction import WARPGROUP_THREADS, MmaInstruction
from tilec.hardware.mma_shapes import (
    TENSOR_MS,
    WGMMA_M,
    find_instruction,
    select_instruction,
    select_tensor_instruction,
    select_warpgroup_instruction,
    tensor_ns,
)
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.hardware.target import Feature
from tilec.hardware.tensor_memory import COLUMN_BITS, blocked_tensor_memory
from tilec.messages.diagnostics import CompileError
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import teams_of
from tilec.passes.dots.computed_lhs import ComputedOperands, memory_run
from tilec.passes.dots.written_out import report_written_out
from tilec.passes.layouts.panels import panel_elements
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import why_no_counter
from tilec.passes.rewriting.refusals import Refusal, attempt, refuse
from tilec.passes.rewriting.scalars import create
from tilec.passes.rewriting.walk import find_ops
from tilec.passes.roles.registers import PRODUCT_REGISTERS

WIDER = {"f8E4M3FN": ir.F16Type, "f8E5M2": ir.F16Type}
"""Element types that another holds exactly: what an input is widened to where the target lacks
it."""


@kernel_pass(requires=Level.TILE, ensures=Level.SELECTED)
def select_mma(function: ir.Operation, context: PassContext) -> None:
    """Names the instruction of every dot, widening inputs the target cannot multiply."""
    dots = [op.opview for op in find_ops(function, tile.DotOp)]
    if not dots and _is_third(context):
        raise _third_refused(function, "it multiplies nothing", context)
    room = _registers_for_products(function, context)
    computed = ComputedOperands(function, context)
    for dot in dots:
        if dot.scales:
            _check_chosen(dot, context)
            continue
        _select(dot, room, computed, context)
    report_written_out(dots, context)


def _is_third(context: PassContext) -> bool:
    """Whether the number of warps is no power of two: three warpgroups, or twice, four times as
    many."""
    return context.num_warps & (context.num_warps - 1) != 0


def _third_refused(op: ir.Operation, reason: str, context: PassContext) -> CompileError:
    help_ = "help: take a power of two, or tiles of which each warpgroup gets whole m64 parts"
    return error_at(op, f"num_warps={context.num_warps} was asked for, but {reason}", help_)


def _check_chosen(dot: tile.DotScaledOp, context: PassContext) -> None:
    """CompileError where three warpgroups cannot share what multiply-out has chosen."""
    row = find_instruction(dot.options["instruction"])
    if _is_third(context) and not row.reads_buffers:
        raise _third_refused(dot.operation, _no_warpgroups(context), context)


def _no_warpgroups(context: PassContext) -> str:
    return f"{context.target.name} has no instructions of warpgroups"


def _find(dot: tile.DotOp, context: PassContext) -> MmaInstruction | None:
    lhs, rhs, acc = (str(element(v)) for v in (dot.lhs, dot.rhs, dot.acc))
    tf32 = dot.options.get("precision") == "tf32"
    return select_instruction(context.target, lhs, rhs, acc, tf32=tf32)


def _find_wide(dot: tile.DotOp, room: int, context: PassContext) -> MmaInstruction:
    """The widest warpgroup instruction of whole tiles for a dot."""
    lhs, rhs, acc = (str(element(v)) for v in (dot.lhs, dot.rhs, dot.acc))
    tf32 = dot.options.get("precision") == "tf32"
    sizes, depth = shape(dot.acc), shape(dot.lhs)[-1]
    if not (widths := warpgroup_widths(sizes, context.num_warps)):
        raise Refusal(f"{show(sizes)} is not made of m64 parts for {context.num_warps} warps")
    panel = panel_elements(sizes[1], element(dot.rhs))
    fits = [n for n in widths if n * WGMMA_M // WARPGROUP_THREADS <= room]
    # A narrower one than there could be must not begin inside a panel of the rhs.
    whole = [n for n in fits if fits == widths or not panel or n % panel == 0]
    for n in whole:
        row = select_warpgroup_instruction(context.target, n, lhs, rhs, acc, tf32=tf32)
        if row is None:
            continue
        if depth % row.k:
            raise Refusal(f"k = {depth} is no multiple of the instruction's {row.k}")
        return row
    if not whole:
        raise Refusal(f"{widths[-1]} columns take more registers than a thread begins with")
    raise Refusal(f"no warpgroup instruction multiplies {lhs}, {rhs} and {acc}")


def _registers_for_products(function: ir.Operation, context: PassContext) -> int:
    """Accumulators of one instruction that a thread may have: ptxas holds it against the registers
    that a thread has at the kernel's start, with a warpgroup that loads where there is room."""
    warps = teams_of(function) * context.num_warps + WARPGROUP_WARPS
    threads = min(warps * context.target.warp_size, context.target.max_threads)
    return entry_registers(context.target, threads) - PRODUCT_REGISTERS


def _find_in_tensor_memory(dot: tile.DotOp, context: PassContext) -> MmaInstruction:
    """The widest instruction of whole tiles that adds up in tensor memory."""
    lhs, rhs, acc = (str(element(v)) for v in (dot.lhs, dot.rhs, dot.acc))
    tf32 = dot.options.get("precision") == "tf32"
    sizes, depth = shape(dot.acc), shape(dot.lhs)[-1]
    refuse(why_no_counter(dot.operation))
    if tensor_memory_layout(sizes, context.num_warps) is None:
        raise Refusal(
            f"{context.num_warps} warps cannot share {show(sizes)} as tensor memory holds it"
        )
    m = next(m for m in TENSOR_MS if sizes[0] % m == 0)
    for n in reversed([n for n in tensor_ns(m, lhs) if sizes[1] % n == 0]):
        row = select_tensor_instruction(context.target, m, n, lhs, rhs, acc, tf32=tf32)
        if row is None:
            continue
        if depth % row.k:
            raise Refusal(f"k = {depth} is no multiple of the instruction's {row.k}")
        try:
            blocked_tensor_memory(sizes, (m, n), COLUMN_BITS)
        except ValueError as error:
            raise Refusal(str(error)) from error
        return row
    raise Refusal(f"no instruction adds {lhs} times {rhs} up in tensor memory as {acc}")


def _select(dot: tile.DotOp, room: int, computed: ComputedOperands, context: PassContext) -> None:
    """Names the instruction of a dot. `room`: accumulators of one warpgroup instruction that a
    thread may have."""
    row, why = None, ""
    if context.target.supports(Feature.WGMMA):
        row, why = attempt(_find_wide, dot, room, context)
    elif context.target.supports(Feature.TCGEN05) and context.allowance.tensor_memory:
        row, why = attempt(_find_in_tensor_memory, dot, context)
    why = why or "the target multiplies these types"
    if row is None and _is_third(context):
        by_warpgroups = context.target.supports(Feature.WGMMA)
        reason = why if by_warpgroups else _no_warpgroups(context)
        raise _third_refused(dot.operation, reason, context)
    if row is not None and row.is_warpgroup:
        row, why = _paired(dot, row, why, computed, context)
    row = row or _find(dot, context)
    if row is None:
        narrow = str(element(dot.lhs))
        _widen(dot)
        row = _find(dot, context)
        why = f"{context.target.name} has no instruction for {narrow}: inputs widened, exactly"
    if row is None:
        types = ", ".join(str(element(v)) for v in (dot.lhs, dot.rhs, dot.acc))
        raise error_at(dot.operation, f"{context.target.name} has no way to multiply {types}")
    dot.options = {**dot.options, "instruction": row.name}
    context.report.add("dot instruction", dot.operation, row.name, why)


def _paired(
    dot: tile.DotOp, row: MmaInstruction, why: str, computed: ComputedOperands, context: PassContext
) -> tuple[MmaInstruction, str]:
    """The instruction for an lhs that lies across k, in a type that is read along k only: in
    registers, with rows in pairs. Else the one there is."""
    found = select_warpgroup_instruction(
        context.target, row.n, row.lhs, row.rhs, row.acc, tf32=row.tf32, paired=True
    )
    if found is None or memory_run(dot.lhs) != 0 or not computed.qualifies(dot, found):
        return row, why
    return found, "the lhs lies across k, and comes from shared memory by registers"


def _widen(dot: tile.DotOp) -> None:
    for index, value in enumerate((dot.lhs, dot.rhs)):
        wider = WIDER.get(str(element(value)))
        if wider is None:
            continue
        with ir.InsertionPoint(dot.operation), dot.operation.location:
            cast = create("arith.extf", [value], with_element(value, wider.get()))
        dot.operation.operands[index] = cast
