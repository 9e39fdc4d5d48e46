"""select-mma: each dot gets the instruction that will run it.

Before:   %d = "tile.dot"(%a, %b, %c) {options = {}} :
              (tensor<64x32xf8E5M2>, tensor<32x64xf8E5M2>, tensor<64x64xf32>) -> tensor<64x64xf32>
After (no fp8 mma.sync):
          %x = arith.extf %a : tensor<64x32xf8E5M2> to tensor<64x32xf16>   ...
          %d = "tile.dot"(%x, %y, %c) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : ...
An instruction that adds up in tensor memory or one of a warpgroup comes first where the target has
it, the accumulator consists of whole ones, and its operands can lie in shared memory as the
instruction reads them.
Does not handle: a choice between several instructions for the same types; the table's order
decides. Batched dots on these instructions; sums in tensor memory where something else than scf.for
stands around the dot.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.types import element, shape, show, with_element
from tilec.fragments import tensor_memory_layout, warpgroup_widths
from tilec.mma_shapes import (
    TENSOR_MS,
    MmaInstruction,
    select_instruction,
    select_tensor_instruction,
    select_warpgroup_instruction,
    tensor_ns,
)
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.locations import error_at
from tilec.passes.loops import enclosing_ops
from tilec.passes.walk import find_ops
from tilec.target import Feature
from tilec.tensor_memory import COLUMN_BITS, blocked_tensor_memory

WIDER = {"f8E4M3FN": ir.F16Type, "f8E5M2": ir.F16Type}
"""Element types that another holds exactly: what an input is widened to where the target lacks
it."""


@tile_pass(requires=Level.TILE, ensures=Level.SELECTED)
def select_mma(module: ir.Module, context: PassContext) -> None:
    """Names the instruction of every dot, widening inputs the target cannot multiply."""
    dots = [op.opview for op in find_ops(module.operation, tile.DotOp)]
    for dot in dots:
        if isinstance(dot, tile.DotScaledOp):
            continue  # multiply-out has chosen
        _select(dot, context)


def _find(dot: tile.DotOp, context: PassContext) -> MmaInstruction | None:
    lhs, rhs, acc = (str(element(v)) for v in (dot.lhs, dot.rhs, dot.acc))
    tf32 = dot.options.get("precision") == "tf32"
    return select_instruction(context.target, lhs, rhs, acc, tf32=tf32)


def _find_wide(dot: tile.DotOp, context: PassContext) -> MmaInstruction | str:
    """The widest warpgroup instruction of whole tiles for a dot, or why there is none."""
    lhs, rhs, acc = (str(element(v)) for v in (dot.lhs, dot.rhs, dot.acc))
    tf32 = dot.options.get("precision") == "tf32"
    sizes, depth = shape(dot.acc), shape(dot.lhs)[-1]
    if not (widths := warpgroup_widths(sizes, context.num_warps)):
        return f"{show(sizes)} is not made of m64 parts for {context.num_warps} warps"
    for n in widths:
        row = select_warpgroup_instruction(context.target, n, lhs, rhs, acc, tf32=tf32)
        if row is None:
            continue
        if depth % row.k:
            return f"k = {depth} is no multiple of the instruction's {row.k}"
        return row
    return f"no warpgroup instruction multiplies {lhs}, {rhs} and {acc}"


def _find_in_tensor_memory(dot: tile.DotOp, context: PassContext) -> MmaInstruction | str:
    """The widest instruction of whole tiles that adds up in tensor memory, or why there is none."""
    lhs, rhs, acc = (str(element(v)) for v in (dot.lhs, dot.rhs, dot.acc))
    tf32 = dot.options.get("precision") == "tf32"
    sizes, depth = shape(dot.acc), shape(dot.lhs)[-1]
    around = next((op.name for op in enclosing_ops(dot.operation) if op.name != "scf.for"), None)
    if around is not None:
        return f"it stands in '{around}'"
    if tensor_memory_layout(sizes, context.num_warps) is None:
        return f"{context.num_warps} warps cannot share {show(sizes)} as tensor memory holds it"
    m = next(m for m in TENSOR_MS if sizes[0] % m == 0)
    for n in reversed([n for n in tensor_ns(m, lhs) if sizes[1] % n == 0]):
        row = select_tensor_instruction(context.target, m, n, lhs, rhs, acc, tf32=tf32)
        if row is None:
            continue
        if depth % row.k:
            return f"k = {depth} is no multiple of the instruction's {row.k}"
        try:
            blocked_tensor_memory(sizes, (m, n), COLUMN_BITS)
        except ValueError as error:
            return str(error)
        return row
    return f"no instruction adds {lhs} times {rhs} up in tensor memory as {acc}"


def _select(dot: tile.DotOp, context: PassContext) -> None:
    row, why = None, "the target multiplies these types"
    if context.target.supports(Feature.WGMMA):
        row, why = _either(_find_wide(dot, context), why)
    elif context.target.supports(Feature.TCGEN05):
        row, why = _either(_find_in_tensor_memory(dot, context), why)
    row = row or _find(dot, context)
    if row is None:
        narrow = str(element(dot.lhs))
        _widen(dot)
        row = _find(dot, context)
        why = f"{context.target.name} has no instruction for {narrow}: inputs widened, exactly"
    if row is None:
        types = ", ".join(str(element(v)) for v in (dot.lhs, dot.rhs, dot.acc))
        raise error_at(dot.operation, f"{context.target.name} has no way to multiply {types}")
    dot.operation.attributes["options"] = ir.DictAttr.get(
        {
            **{entry.name: entry.attr for entry in dot.operation.attributes["options"]},
            "instruction": ir.StringAttr.get(row.name),
        }
    )
    context.report.add("dot instruction", dot.operation, row.name, why)


def _either(found: MmaInstruction | str, why: str) -> tuple[MmaInstruction | None, str]:
    """What was found and why, or nothing and the reason."""
    return (None, found) if isinstance(found, str) else (found, why)


def _widen(dot: tile.DotOp) -> None:
    for index, value in enumerate((dot.lhs, dot.rhs)):
        wider = WIDER.get(str(element(value)))
        if wider is None:
            continue
        with ir.InsertionPoint(dot.operation), dot.operation.location:
            cast = ir.Operation.create(
                "arith.extf", results=[with_element(value, wider.get())], operands=[value]
            )
        dot.operation.operands[index] = cast.results[0]
