"""Kernels whose tiles hold the rows that their loops walk along: such a loop goes round once.

Before:   %m = scf.for %k = %c0 to %columns step %c8192 iter_args(%h = %lowest) {
            %x = "tile.load"(%a, %row, %k) {padding = -inf} ...
            %r = "tile.reduce"(%x) ...
            scf.yield max(%h, %r)
          }
          scf.for %k = %c0 to %columns step %c8192 {
            %x = "tile.load"(%a, %row, %k) {padding = 0} ...
            "tile.store"(exp(%x - %m), %a, %row, %k)
          }
After:    %x = "tile.load"(%a, %row, %c0) {padding = -inf} ...
          %m = max(%lowest, "tile.reduce"(%x) ...)
          "tile.store"(exp(%x - %m), %a, %row, %c0)

The row is read once, stays in registers, and may be wrapped (pass wrap-rows) or spread over a
cluster (pass spread-rows), as one that its author loads in a tile.

1. The body of each loop takes its place, at its first step.
2. A load of what an earlier one in its block has loaded goes, if nothing between writes that array.
   Its padding may be another if that shows nowhere: where what is computed of it, element by
   element, is stored where it came from.
3. A single element of an array that rows are stored to is loaded in front of the first reduction:
   other stripes of the row may have been stored when all have been reduced.
Does not handle: loads in different blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.effects import whole_of, written_by
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.types import is_tile, shape
from tilec.passes.analysis.dependence import needed_inside
from tilec.passes.rewriting.free_ops import is_scalar
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.op_tables import OpMap, order_of
from tilec.passes.rewriting.walk import all_ops, find_ops, is_of, uses_behind

_ANYWHERE = (tile.FenceOp, tile.InlinePtxOp)
"""Ops that may write, or wait for what others write, to any array."""


def hold_rows(function: ir.Operation, loops: Sequence[ir.Operation]) -> None:
    """Puts the bodies of loops of a kernel, each of which goes round exactly once, in their places,
    and lets them load what they share once."""
    for loop in loops:
        _straighten(loop)
    for block in {op.block: None for op in find_ops(function, tile.LoadOp)}:
        _load_once(block)
        _load_numbers_early(block)


def _straighten(loop: ir.Operation) -> None:
    low, _, _, *inits = loop.operands
    body = loop.regions[0].blocks[0]
    for argument, value in zip(body.arguments, (low, *inits), strict=True):
        argument.replace_all_uses_with(value)
    *ops, _ = [view.operation for view in body.operations]
    for op in ops:
        op.move_before(loop)
    yielded = list(terminator(body).operands)
    for result, value in zip(loop.results, yielded, strict=True):
        result.replace_all_uses_with(value)
    loop.erase()


def _load_once(block: ir.Block) -> None:
    known: list[tile.LoadOp] = []
    for view in list(block.operations):
        op = view.operation
        same = next((load for load in known if _serves(load, op)), None)
        if same is not None:
            op.results[0].replace_all_uses_with(same.result)
            op.erase()
            continue
        known = [load for load in known if not _writes(op, load.src)]
        if isinstance(view, tile.LoadOp):
            known.append(view)


def _serves(known: tile.LoadOp, op: ir.Operation) -> bool:
    """Whether an op loads what another load has loaded, as far as that shows."""
    load = op.opview
    if not is_of(op, tile.LoadOp) or load.result.type != known.result.type:
        return False
    if (load.src, *load.rectangle) != (known.src, *known.rectangle):
        return False
    if load.operation.attributes["options"] != known.operation.attributes["options"]:
        return False
    is_alike = load.operation.attributes["padding"] == known.operation.attributes["padding"]
    return is_alike or _returns(load)


def _returns(load: tile.LoadOp) -> bool:
    """Whether all that is computed of a loaded tile, element by element, is stored where it came
    from: nobody sees then what was loaded for elements beyond the array."""
    back = (load.src, *load.offsets, *load.dims)

    def passed_on(use: ir.OpOperand) -> Iterable[ir.Value]:
        op = use.owner.operation
        return op.results if is_elementwise(op) and all(map(is_tile, op.results)) else ()

    def is_seen(use: ir.OpOperand) -> bool:
        view = use.owner.opview
        if isinstance(view, tile.StoreOp):
            return (view.dst, *view.rectangle) != back
        return not passed_on(use)

    return not any(map(is_seen, uses_behind(load.result, passed_on)))


def _writes(op: ir.Operation, array: ir.Value) -> bool:
    """Whether an op, or one inside it, may write an array."""
    return any(
        is_of(each, *_ANYWHERE) or whole_of(array) in written_by(each.opview)
        for each in all_ops(op)
    )


def _load_numbers_early(block: ir.Block) -> None:
    """Moves loads of single elements of what is stored later in front of the first reduction."""
    order = order_of(view.operation for view in block.operations)
    first = next((op for op in order if is_of(op, tile.ReduceOp)), None)
    if first is None:
        return
    for op in list(order):
        if order[op] > order[first] and is_of(op, tile.LoadOp):
            makers = _makers(op, first, order)
            if prod(shape(op.opview.result)) == 1 and makers is not None:
                for maker in makers:
                    maker.move_before(first)


def _makers(
    load: ir.Operation, first: ir.Operation, order: OpMap[int]
) -> list[ir.Operation] | None:
    """A load, behind the scalar ops that say what it loads, as they stand behind `first`; None
    where it cannot stand in front of that."""
    between = [op for op in order if order[first] <= order[op] < order[load]]
    if any(_writes(op, load.opview.src) for op in between):
        return None
    needed = [op for op in needed_inside(load.operands, load.block) if order[op] >= order[first]]
    able = all(is_scalar(op) or op.name == "tensor.extract" for op in needed)
    return [*needed, load] if able else None
