"""transpose-products: a dot whose rhs lies across k, as no instruction reads it, becomes the dot of
the transposes.

Before:   scf.for %k ... iter_args(%sum = %zero) -> (tensor<128x256xf32>) {
            %x = "tile.load"(%a, %m, %k)   %y = "tile.load"(%b, %k, %n)    (both row-major, f32)
            %d = "tile.dot"(%x, %y, %sum) {options = {precision = "tf32"}}
            scf.yield %d }
After:    %last = scf.for %k ... iter_args(%sum = %zero) -> (tensor<256x128xf32>) {
            %x = "tile.load"(%a, %m, %k)   %y = "tile.load"(%b, %k, %n)
            %l = "tile.transpose"(%y)      %r = "tile.transpose"(%x)
            %d = "tile.dot"(%l, %r, %sum) {options = {precision = "tf32"}}
            scf.yield %d }
          %sum = "tile.transpose"(%last)

Warpgroup instructions read an rhs of 4-byte elements along k only, but they take an lhs from
registers (`dots/computed_lhs.py`). Transposes cost nothing: layouts follow them.
Does not handle: sums that anything but the dot uses in its loop, elements of 1 byte, dots that no
warpgroup instructions multiply as they stand.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import constant_attribute, only_use
from tilec.dialects.types import element, shape
from tilec.hardware.fragments import warpgroup_widths
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import select_warpgroup_instruction
from tilec.hardware.target import Feature
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.dots.computed_lhs import ComputedOperands, memory_run
from tilec.passes.rewriting.loops import (
    behind,
    replace_yield,
    terminator,
    with_iteration_arguments,
    without_iteration_argument,
)
from tilec.passes.rewriting.values import again
from tilec.passes.rewriting.walk import find_ops

ALONG_COLUMNS = 1
"""The axis that neighbours in memory lie along, of a matrix of rows."""
TRANSPOSED = (1, 0)
"""The permutation of axes that transposes a matrix."""


@kernel_pass(requires=Level.TILE, needs=Feature.WGMMA)
def transpose_products(function: ir.Operation, context: PassContext) -> None:
    """Turns dots whose rhs can come to registers where it becomes the lhs."""
    for op in find_ops(function, tile.DotOp):
        number, row = _carried(op.opview), _instruction(op.opview, context)
        if number is not None and row is not None and _lies_by_rows(op.opview):
            _turn(op.opview, row, number, ComputedOperands(function, context), context)


def _carried(dot: tile.DotOp) -> int | None:
    """The number of the loop-carried value that is the sum of `dot`, and of nothing else; None
    without one."""
    block = dot.operation.block
    if block.owner.name != "scf.for" or dot.scales:
        return None
    use = only_use(dot.result)
    if use is None or use.owner.operation != terminator(block) or only_use(dot.acc) is None:
        return None
    number = use.operand_number
    return number if dot.acc == block.arguments[1 + number] else None


def _lies_by_rows(dot: tile.DotOp) -> bool:
    """Whether both operands are loaded from rows: the lhs along k, the rhs across."""
    return all(
        len(shape(side)) == 2 and memory_run(side) == ALONG_COLUMNS for side in (dot.lhs, dot.rhs)
    )


def _instruction(dot: tile.DotOp, context: PassContext) -> MmaInstruction | None:
    """The instruction that multiplies the transposes, with the lhs in registers; None without it,
    or where no warpgroups would multiply `dot` itself."""
    lhs, rhs, acc = (str(element(value)) for value in (dot.lhs, dot.rhs, dot.acc))
    tf32, sizes = dot.options.get("precision") == "tf32", shape(dot.acc)
    found = [warpgroup_widths(each, context.num_warps) for each in (sizes, sizes[::-1])]
    if not all(found):
        return None
    row = select_warpgroup_instruction(
        context.target, found[1][0], lhs, rhs, acc, tf32=tf32, paired=True
    )
    return row if row is not None and shape(dot.lhs)[-1] % row.k == 0 else None


def _turn(
    dot: tile.DotOp,
    row: MmaInstruction,
    number: int,
    computed: ComputedOperands,
    context: PassContext,
) -> None:
    """Rewrites `dot`, the sum of the loop-carried value `number`, if its turn qualifies."""
    with ir.InsertionPoint(dot.operation), dot.operation.location:
        operands = [tile.TransposeOp.build(x, permutation=TRANSPOSED) for x in (dot.rhs, dot.lhs)]
        sum_ = tile.TransposeOp.build(dot.acc, permutation=TRANSPOSED)
        transposed = tile.DotOp.build(*operands, sum_, options=dot.options)
    reason = computed.refusal(transposed.owner, row)
    if reason is None:
        context.report.add("product", dot.operation, "of the transposes", "its rhs lies across k")
        _carry_transposed(dot, transposed.owner, number)
        return
    if reason:
        context.report.add("product", dot.operation, "not of the transposes", reason)
    for value in (transposed, sum_, *operands):
        value.owner.operation.erase()


def _carry_transposed(dot: tile.DotOp, transposed: tile.DotOp, number: int) -> None:
    """Has the loop carry the transposed sum."""
    loop, sum_ = dot.operation.block.owner, transposed.acc
    with ir.InsertionPoint(loop), dot.operation.location:
        start = _transposed(loop.operands[3 + number])
    loop, (carried,) = with_iteration_arguments(loop, [start])
    sum_.replace_all_uses_with(carried)
    sum_.owner.operation.erase()
    last = terminator(loop.regions[0].blocks[0])
    values = [*list(last.operands)[:-1], transposed.result]
    values[number] = loop.regions[0].blocks[0].arguments[1 + number]
    replace_yield(last, values)
    dot.operation.erase()
    new = without_iteration_argument(loop, number)
    with ir.InsertionPoint(behind(new)), transposed.operation.location:
        total = tile.TransposeOp.build(new.results[len(new.results) - 1], permutation=TRANSPOSED)
    loop.results[number].replace_all_uses_with(total)
    loop.erase()


def _transposed(value: ir.Value) -> ir.Value:
    """The transpose of `value`; of a constant tile, which is full of one number, a constant."""
    known = constant_attribute(value)
    transposed = tile.TransposeOp.build(value, permutation=TRANSPOSED)
    if known is None:
        return transposed
    type_ = transposed.type
    transposed.owner.operation.erase()
    return again(value.owner, [], type_)
