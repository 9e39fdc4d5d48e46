"""spread-rows: a row that one CTA cannot hold is spread over the CTAs of a cluster.

Before:   %x = "tile.load"(%a, %row, %c0) ... -> tensor<131072xf32>
          %m = "tile.reduce"(%x) ({...}) {axis = 0 : i32} : ... -> tensor<f32>
          "tile.store"(%m, %b, %row) ...
After:    (tile.stripes = 8 : i32 of the kernel: each program is run by so many CTAs)
          %stripe = "tile.stripe_id"()
          %from = %c0 + %stripe * 16384
          %x = "tile.load"(%a, %row, %from) ... -> tensor<16384xf32>
          %mine = "tile.reduce"(%x) ({...}) {axis = 0 : i32} : ... -> tensor<f32>
          %all = "tile.gather_stripes"(%mine) : (tensor<f32>) -> tensor<8xf32>
          %m = "tile.reduce"(%all) ({...}) {axis = 0 : i32} : ... -> tensor<f32>
          scf.if (%stripe == 0) { "tile.store"(%m, %b, %row) ... }

The row is read from memory once, and stays in the registers of the cluster; what its stripes have
reduced goes through their shared memory (`split-reductions`, distributed shared memory).

1. The kernel holds tiles of one row alone, longer than a CTA can hold (`rows/stripes.py`: how
   many CTAs, and what forbids it), and does nothing with them but load, store, compute, repeat one
   element, reduce, and scan.
2. Every tile of the row becomes one of a stripe; accesses and iotas begin at its first column.
3. What each stripe has reduced is gathered and reduced again; all stripes have the result.
4. Each stripe scans its own, and combines that with what the stripes in front come to
   (`rows/scanned_stripes.py`).
5. What is stored of a reduction, the first stripe stores.
6. Rows that a CTA holds are spread where launches have so few programs that each has several
   multiprocessors; a kernel for any number says that another is faster for few.

Does not handle: several rows a program; rows reduced in loops or branches; kernels with effects
beside stores, or that read what they store elsewhere. A scan and a reduction of the same elements
meet once each.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import of_kind
from tilec.dialects.types import shape, with_shape
from tilec.messages.diagnostics import InternalError
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import STRIPES, stripes_of, suit_spread
from tilec.passes.rewriting.control import run_only_if
from tilec.passes.rewriting.loops import behind
from tilec.passes.rewriting.scalars import binary, equal
from tilec.passes.rewriting.values import replace_uses, retype
from tilec.passes.rewriting.walk import find_ops
from tilec.passes.rows.row_edits import begin_at, move_columns
from tilec.passes.rows.row_kernels import RowKernel, find_rows, is_row, row_axis
from tilec.passes.rows.scanned_stripes import as_shape, gathered, scan_stripes
from tilec.passes.rows.stripes import count_stripes, suits_few


@kernel_pass(requires=Level.TILE, behind={"dissolve-windows": "rows are counted in whole arrays"})
def spread_rows(function: ir.Operation, context: PassContext) -> None:
    """Spreads rows that one CTA cannot hold over the CTAs of a cluster."""
    rows = find_rows(function)
    if rows is None:
        return
    stripes, why = count_stripes(function, context.target, context.num_warps)
    if suits_few(function, rows, context.target):
        suit_spread(function)
    if stripes == stripes_of(function):
        return
    meet = bool(of_kind(rows.ops, tile.Combining))
    chosen = f"each spread over {stripes} CTAs" + (", a cluster" if meet else "")
    context.report.add("rows", function, chosen, why, stripes=stripes)
    with function.location:
        _spread(function, rows, stripes)


def _spread(function: ir.Operation, rows: RowKernel, stripes: int) -> None:
    size = rows.size // stripes
    function.attributes[STRIPES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), stripes)
    results = [op for op in find_ops(function, tile.StoreOp) if not is_row(op.opview.value)]
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        stripe = tile.StripeIdOp.build()
        first = binary("arith.muli", stripe, size)
        is_first = equal(stripe, 0)
    for access in rows.accesses:
        axis = row_axis(access, rows.size)
        if axis is None:
            raise InternalError("a row that is spread has neighbours in memory")
        with ir.InsertionPoint(access.operation), access.operation.location:
            begin_at(access, axis, binary("arith.addi", access.offsets[axis], first))
    for op in rows.ops:
        _cut(op, rows.size, size)
    move_columns(rows.ops, size, first, lambda columns, by: binary("arith.addi", columns, by))
    for view in of_kind(rows.ops, tile.ReduceOp):
        _reduce_stripes(view, stripes)
    for view in of_kind(rows.ops, tile.ScanOp):
        scan_stripes(view, stripe, stripes)
    for op in results:
        run_only_if(is_first, op)


def _cut(op: ir.Operation, whole: int, size: int) -> None:
    """Gives an op's rows the size of a stripe."""
    for result in filter(is_row, op.results):
        sizes = tuple(size if each == whole else each for each in shape(result))
        retype(result, with_shape(result, sizes))


def _reduce_stripes(op: tile.ReduceOp, stripes: int) -> None:
    """Reduces what the stripes have reduced."""
    uses = [list(value.uses) for value in op.outputs]
    with ir.InsertionPoint(behind(op.operation)), op.operation.location:
        parts = gathered(op.outputs, stripes)
        final = op.operation.clone().opview
        final.axis = 0
        for number, value in enumerate(parts):
            final.operation.operands[number] = value
        results = []
        for value, result in zip(op.outputs, final.outputs, strict=True):
            result.set_type(with_shape(value, ()))
            results.append(as_shape(result, shape(value)))
    for found, result in zip(uses, results, strict=True):
        replace_uses(found, result)
