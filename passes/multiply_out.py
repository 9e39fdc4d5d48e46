"""multiply-out: products whose operands have scales get their instruction, or become plain dots.

Before:   %d = "tile.dot_scaled"(%a, %b, %c, %sa, %sb)
              {lhs_format = "e4m3", rhs_format = "e5m2", options = {}} : ...
After, where the target has an instruction that reads the scales, tcgen05.mma or mma.sync:
          %d = "tile.dot_scaled"(%a, %b, %c, %sa, %sb)
              {..., options = {instruction = "tcgen05.mx.m128n128k32.f32.e4m3.e5m2"}} : ...
After, elsewhere:
          %s = (2 ** (%sa - 127) as bf16)   %t = "tile.broadcast"(%s) ...   "tile.reshape"(%t) ...
          %x = arith.extf %a : ... to bf16   %l = arith.mulf %x, %t          (and %r of %b)
          %d = "tile.dot"(%l, %r, %c) {options = {}} : (bf16, bf16, f32)

bf16 has every product of a number of 8 bits or fewer and a scale, if the scale is not at the edge
of its range. Beside f16 both operands are f16, rounded from f32: bf16 has three bits fewer. Scales
that are the constant 1 are left out. tcgen05.mma comes in question where the accumulator is made of
whole ones in tensor memory and the scales fill whole pieces of the copy that brings them there;
numbers of 6 bits, and of 4 beside 8, become e4m3 in front of it, which holds them all. mma.sync has
the scales in registers and takes any m and n; numbers of 4 bits beside wider ones become e2m3 in
front of it, by a shift.
Does not handle: numbers of 6 bits as tcgen05.mma could read them itself, padded in shared memory;
scales of other blocks than the hardware's.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.tile.matmul import FORMATS
from tilec.dialects.types import element, shape, show, with_element, with_shape
from tilec.hardware.fragments import tensor_memory_layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import (
    scaled_widths,
    select_scaled_fragments,
    select_scaled_instruction,
)
from tilec.hardware.target import Feature
from tilec.hardware.tensor_tiles import SCALE_ROWS, SCALES_A_COLUMN
from tilec.passes.analysis.divisibility import number_of
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.dots.code_floats import E8M0, E8M0_ONE, decode, unpack, unpack_codes
from tilec.passes.rewriting.loops import enclosing_ops
from tilec.passes.rewriting.refusals import Refusal, attempt
from tilec.passes.rewriting.scalars import binary, create
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import find_ops

WIDER = {"e2m1": "e4m3", "e2m3": "e4m3", "e3m2": "e4m3"}
"""Formats of 8 bits that hold every number of a narrower one."""
WIDER_BYTES = {"e2m1": "e2m3"}
"""The same of formats that lie one a byte in registers."""
E2M1_SHIFT = 2
"""An e2m1 is an e2m3 without its last bits: both have a bias of 1."""
_WIDENED = {
    True: "narrower numbers widened to e4m3, exactly: beside 8 bits they would lie padded",
    False: "numbers of 4 bits shifted to where those of 6 have theirs, exactly",
}
"""What is said of operands whose format changes, by whether tensor memory has the sums."""


@tile_pass(requires=Level.TILE)
def multiply_out(module: ir.Module, context: PassContext) -> None:
    """Names the instruction of every product with scales, or multiplies its scales out."""
    for op in find_ops(module.operation, tile.DotScaledOp):
        dot = op.opview
        if "instruction" in dot.options:
            continue
        found, refused = attempt(_find, dot, context)
        if found is None:
            kind = _kind(dot)
            context.report.add("scales", op, f"multiplied out, in {kind}", refused)
            _multiply_out(dot, kind)
            continue
        dot.options = {"instruction": found.name}
        why = "the target multiplies these types"
        if (dot.lhs_format, dot.rhs_format) != found.formats:
            why = _WIDENED[found.is_tensor]
            _widen(dot, found)
        context.report.add("dot instruction", op, found.name, why)


def _find(dot: tile.DotScaledOp, context: PassContext) -> MmaInstruction:
    """The widest instruction with scales of whole tiles."""
    target = context.target
    if target.supports(Feature.MMA_SYNC_BLOCK_SCALE):
        _check_scales(dot)
        return _by_warps(dot, context)
    if not target.supports(Feature.TCGEN05):
        raise Refusal(f"{target.name} has no instruction with scales")
    if not context.allowance.tensor_memory:
        raise Refusal("tensor memory has no room for its sums")
    around = next((op.name for op in enclosing_ops(dot.operation) if op.name != "scf.for"), None)
    if around is not None:
        raise Refusal(f"it stands in '{around}'")
    _check_scales(dot)
    return _widest(dot, context)


def _check_scales(dot: tile.DotScaledOp) -> None:
    """Refuses a product whose two sides have different scales."""
    found = [
        (_block(scale, k_dim, dot), element(scale))
        for scale, k_dim in ((dot.lhs_scale, 1), (dot.rhs_scale, 0))
    ]
    if found[0] != found[1]:
        raise Refusal("the two sides have different scales")


def _block(scale: ir.Value, k_dim: int, dot: tile.DotScaledOp) -> int:
    """The number of elements along k that one scale is for."""
    return dot.depth // shape(scale)[k_dim]


def _widest(dot: tile.DotScaledOp, context: PassContext) -> MmaInstruction:
    """The widest instruction that adds up in tensor memory."""
    block, scale = _block(dot.lhs_scale, 1, dot), str(element(dot.lhs_scale))
    names = lhs, rhs = _beside(dot, WIDER)
    m, n = shape(dot.acc)
    if tensor_memory_layout((m, n), context.num_warps) is None:
        raise Refusal(
            f"{context.num_warps} warps cannot share {show((m, n))} as tensor memory holds it"
        )
    if m % SCALE_ROWS or n % SCALE_ROWS:
        raise Refusal(f"scales are copied for {SCALE_ROWS} rows, {show((m, n))} is no multiple")
    if dot.depth % (SCALES_A_COLUMN * block):
        raise Refusal(f"k = {dot.depth} is no multiple of {SCALES_A_COLUMN} blocks of {block}")
    for width in reversed([w for w in scaled_widths() if n % w == 0 and w % SCALE_ROWS == 0]):
        row = select_scaled_instruction(context.target, width, lhs, rhs, scale, block)
        if row is not None:
            return row
    raise _no_instruction(names, scale, block)


def _by_warps(dot: tile.DotScaledOp, context: PassContext) -> MmaInstruction:
    """The instruction that reads operands and scales as fragments."""
    block, scale = _block(dot.lhs_scale, 1, dot), str(element(dot.lhs_scale))
    names = lhs, rhs = _beside(dot, WIDER_BYTES)
    row = select_scaled_fragments(context.target, lhs, rhs, scale, block)
    if row is None:
        raise _no_instruction(names, scale, block)
    if dot.depth % row.k:
        raise Refusal(f"k = {dot.depth} is no multiple of the instruction's {row.k}")
    return row


def _no_instruction(names: tuple[str, str], scale: str, block: int) -> Refusal:
    sides = " by ".join(names)
    return Refusal(f"no instruction multiplies {sides} with a scale of {scale} per {block}")


def _beside(dot: tile.DotScaledOp, wider: Mapping[str, str]) -> tuple[str, str]:
    """The formats that are multiplied: two operands of 4 bits, or what they are widened to."""
    lhs, rhs = str(dot.lhs_format), str(dot.rhs_format)
    if (lhs, rhs) == ("e2m1", "e2m1"):
        return lhs, rhs
    return wider.get(lhs, lhs), wider.get(rhs, rhs)


def _widen(dot: tile.DotScaledOp, row: MmaInstruction) -> None:
    """Makes the instruction's formats of the operands that are narrower, in registers."""
    op = dot.operation
    sides = ((0, dot.lhs, dot.lhs_format, 1), (1, dot.rhs, dot.rhs_format, 0))
    with ir.InsertionPoint(op), op.location:
        for number, value, name, k_dim in sides:
            if name == row.formats[number]:
                continue
            if row.formats[number] == "e2m3":
                op.operands[number] = unpack_codes(value, k_dim, E2M1_SHIFT)
                continue
            numbers = _numbers(value, name, k_dim)
            e4m3 = with_element(numbers, ir.Float8E4M3FNType.get())
            op.operands[number] = create("arith.truncf", [numbers], e4m3)
    dot.lhs_format, dot.rhs_format = row.formats


def _kind(dot: tile.DotScaledOp) -> ir.Type:
    """What the product is multiplied out in: bf16 holds no f16."""
    is_half = "f16" in (dot.lhs_format, dot.rhs_format)
    return ir.F16Type.get() if is_half else ir.BF16Type.get()


def _multiply_out(dot: tile.DotScaledOp, kind: ir.Type) -> None:
    with ir.InsertionPoint(dot.operation), dot.operation.location:
        lhs = _scaled((dot.lhs, dot.lhs_format), dot.lhs_scale, 1, kind)
        rhs = _scaled((dot.rhs, dot.rhs_format), dot.rhs_scale, 0, kind)
        result = tile.DotOp.build(lhs, rhs, dot.acc)
    replace_op(dot, result)


def _scaled(operand: tuple[ir.Value, str], scale: ir.Value, k_dim: int, kind: ir.Type) -> ir.Value:
    """Multiplies an operand, of a format, with its scales: in bf16, or in f32 and rounded to f16.
    `k_dim`: its dimension that is summed over."""
    value, name = operand
    if _is_one(scale) and element(value) == kind:
        return value
    numbers = _numbers(value, name, k_dim)
    if not _is_one(scale):
        sizes, blocks = shape(numbers), shape(scale)[k_dim]
        factors = decode(scale, E8M0) if str(element(scale)) == "i8" else _wide(scale, "e4m3")
        apart = [*sizes[:k_dim], blocks, sizes[k_dim] // blocks, *sizes[k_dim + 1 :]]
        dims = (0, 1) if k_dim else (0, 2)
        spread = tile.BroadcastOp.build(factors, results=[with_shape(factors, apart)], dims=dims)
        spread = tile.ReshapeOp.build(spread, results=[with_shape(factors, sizes)])
        if name == "f16":
            spread = create("arith.extf", [spread], numbers.type)
        numbers = binary("arith.mulf", numbers, spread)
    return numbers if element(numbers) == kind else _as_f16(numbers)


def _is_one(scale: ir.Value) -> bool:
    """Whether all scales are the constant 1."""
    return number_of(scale) == E8M0_ONE


def _as_f16(numbers: ir.Value) -> ir.Value:
    f32 = with_element(numbers, ir.F32Type.get())
    wide = numbers if numbers.type == f32 else create("arith.extf", [numbers], f32)
    return create("arith.truncf", [wide], with_element(numbers, ir.F16Type.get()))


def _numbers(value: ir.Value, name: str, k_dim: int) -> ir.Value:
    """The numbers of an operand as bf16; those of f16 as f32."""
    return unpack(value, k_dim) if FORMATS[name].pack > 1 else _wide(value, name)


def _wide(value: ir.Value, name: str) -> ir.Value:
    bf16 = with_element(value, ir.BF16Type.get())
    if name == "bf16":
        return value
    if name == "f16":
        return create("arith.extf", [value], with_element(value, ir.F32Type.get()))
    if FORMATS[name].element == "i8":
        return decode(value, name)
    return create("arith.extf", [value], bf16)
