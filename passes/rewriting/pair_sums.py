"""What two neighbours come to, for both of them: an exchange of places.

Before:   %p = arith.mulf %x, %left   %s = "tile.reduce"(%p) (add) {axis = 1} : 8x2x4 -> 8x4
          %b = "tile.broadcast"(%s) {dims = [0, 2]} : 8x4 -> 8x2x4      (and so with %right)
After:    %y = "tile.exchange"(%x) {axis = 1, mask = 1}
          %p = arith.mulf %x, %left   %q = arith.mulf %y, %left'   %b = arith.addf %p, %q

Sorts in Triton's language, torch.compile's among them, find what stands left and right of a pair as
sums of each times 0 or 1. What follows from coordinates alone (`%left`) is computed for the other
place, so that both sums take one exchange of `%x`: a shuffle where there were two, to the bit. Of
integers the one times 1 is picked.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import constant_element, defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile import BroadcastOp, ExchangeOp, IotaOp, ReduceOp, ReshapeOp
from tilec.dialects.types import encoding, is_tile, shape
from tilec.passes.rewriting.loops import behind
from tilec.passes.rewriting.scalars import binary, compare, constant, select
from tilec.passes.rewriting.values import again, replace_op, round_alone
from tilec.passes.rewriting.walk import find_ops

_COMMUTES = (
    *("arith.addf", "arith.addi", "arith.mulf", "arith.muli", "arith.xori", "arith.andi"),
    *("arith.ori", "arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi"),
)


def exchange_pair_sums(scope: ir.Operation) -> None:
    """Rewrites reductions of two elements that come back to both, where tiles have no layouts."""
    others = _Others()
    for op in find_ops(scope, BroadcastOp):
        broadcast, reduce = op.opview, op.opview.src.owner
        combine = _combination(reduce) if isinstance(reduce, ReduceOp) else None
        if combine is None or encoding(broadcast.result) is not None:
            continue
        whole, axis = reduce.inputs[0], reduce.axis
        kept = [d for d in range(len(shape(whole))) if d != axis]
        if whole.type == broadcast.result.type and list(broadcast.dims) == kept:
            with ir.InsertionPoint(op), op.location:
                replace_op(op, _both(combine, whole, axis, others))


def _both(combine: ir.Operation, whole: ir.Value, axis: int, others: _Others) -> ir.Value:
    """What each pair comes to, in both places."""
    product = defining_op(whole)
    picked = None if product is None else _picked(product, axis)
    if picked is not None and combine.name == "arith.addi":
        place, value, is_first = picked
        pair = [value, others.of(value, axis)]
        return select(compare("ne", place, 0), *(reversed(pair) if is_first else pair))
    total = again(combine, [whole, others.of(whole, axis)], whole.type)
    if picked is None:
        round_alone(total)
    return total


def _combination(reduce: ReduceOp) -> ir.Operation | None:
    """The op that alone combines two elements, whichever comes first."""
    if len(reduce.inputs) != 1 or shape(reduce.inputs[0])[reduce.axis] != 2:
        return None
    block = reduce.operation.regions[0].blocks[0]
    ops = [view.operation for view in block.operations]
    if len(ops) != 2 or ops[0].name not in _COMMUTES:
        return None
    return ops[0] if list(ops[0].operands) == list(block.arguments) else None


def _picked(product: ir.Operation, axis: int) -> tuple[ir.Value, ir.Value, bool] | None:
    """Of a product in which one of each pair is multiplied by 1 and the other by 0: the
    coordinates, what is multiplied, and whether the first is picked. None of others."""
    if product.name not in ("arith.muli", "arith.mulf"):
        return None
    for number, factor in enumerate(product.operands):
        place = _place(factor, axis)
        if place is not None:
            return place[0], product.operands[1 - number], place[1]
    return None


def _place(value: ir.Value, axis: int | None) -> tuple[ir.Value, bool] | None:
    """The coordinates of two along `axis`, of a tile that holds these, or, if it says so, those the
    other way round; None of others."""
    op = defining_op(value)
    if op is None or axis is None:
        return None
    view = op.opview
    if isinstance(view, IotaOp):
        return (value, False) if view.axis == axis else None
    if isinstance(view, BroadcastOp):
        found = _place(view.src, list(view.dims).index(axis)) if axis in view.dims else None
    elif isinstance(view, ReshapeOp):
        found = _place(view.src, _same_axis(view, axis))
    elif op.name in ("arith.sitofp", "arith.uitofp"):
        found = _place(op.operands[0], axis)
    else:
        known = constant_element(op.operands[0]) if op.name == "arith.subi" else None
        flips = known is not None and known.value == 1
        found = _place(op.operands[1], axis) if flips else None
        return None if found is None else (found[0], not found[1])
    return None if found is None else (again(op, [found[0]], value.type), found[1])


class _Others:
    """What the other element of each pair is: of each tile and axis made once."""

    def __init__(self) -> None:
        self._found: dict[tuple[ir.Value, int], ir.Value] = {}
        self._coordinates: dict[tuple[ir.Value, int], ir.Value | None] = {}

    def of(self, value: ir.Value, axis: int) -> ir.Value:
        """A tile of the other elements along `axis`."""
        if (value, axis) not in self._found:
            self._found[value, axis] = self._other(value, axis)
        return self._found[value, axis]

    def _other(self, value: ir.Value, axis: int) -> ir.Value:
        owner = defining_op(value)
        place = (
            ir.InsertionPoint.at_block_begin(value.owner)
            if owner is None
            else ir.InsertionPoint(behind(owner))
        )
        if owner is not None and is_elementwise(owner) and len(owner.results) == 1:
            parts = [self._of_coordinates(operand, axis) for operand in owner.operands]
            if any(part is not None for part in parts):
                pairs = zip(owner.operands, parts, strict=True)
                others = [self.of(v, axis) if part is None else part for v, part in pairs]
                with place:
                    return again(owner, others, value.type)
        with place:
            return ExchangeOp.build(value, axis=axis, mask=1)

    def _of_coordinates(self, value: ir.Value, axis: int) -> ir.Value | None:
        """The same of a tile that follows from coordinates, or is the same for both; None of
        others."""
        if not is_tile(value) or constant_element(value) is not None:
            return value
        if (value, axis) not in self._coordinates:
            owner = defining_op(value)
            found = None if owner is None else self._followed(owner, value, axis)
            self._coordinates[value, axis] = found
        return self._coordinates[value, axis]

    def _followed(self, owner: ir.Operation, value: ir.Value, axis: int) -> ir.Value | None:
        view = owner.opview
        at: int | None
        with ir.InsertionPoint(behind(owner)):
            if isinstance(view, IotaOp):
                one = constant(value.type, 1)
                return binary("arith.xori", value, one) if view.axis == axis else value
            if isinstance(view, BroadcastOp):
                at = list(view.dims).index(axis) if axis in view.dims else None
                if at is None or shape(view.src)[at] == 1:
                    return value
                operands = [self._of_coordinates(view.src, at)]
            elif isinstance(view, ReshapeOp):
                at = _same_axis(view, axis)
                operands = [None if at is None else self._of_coordinates(view.src, at)]
            elif is_elementwise(owner) and len(owner.results) == 1:
                operands = [self._of_coordinates(v, axis) for v in owner.operands]
            else:
                return None
            found = [operand for operand in operands if operand is not None]
            return again(owner, found, value.type) if len(found) == len(operands) else None


def _same_axis(reshape: ReshapeOp, axis: int) -> int | None:
    """The dimension that `axis` was before axes of one element came or went."""
    before, after = shape(reshape.src), shape(reshape.result)
    dims = [d for d, size in enumerate(before) if size > 1]
    if [before[d] for d in dims] != [size for size in after if size > 1] or after[axis] == 1:
        return None
    return dims[sum(size > 1 for size in after[:axis])]
