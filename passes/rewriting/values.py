"""What rewrites put in the place of values and ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op


def replace_op(op: ir.Operation | ir.OpView, *values: ir.Value) -> None:
    """Has `values` stand for the results of an op, which goes."""
    for old, new in zip(op.operation.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.operation.erase()


def replace_uses(uses: Iterable[ir.OpOperand], value: ir.Value) -> None:
    """Has some readers of a value, `uses` of it, read another."""
    for use in list(uses):
        use.owner.operation.operands[use.operand_number] = value


def retype(value: ir.Value, type_: ir.Type) -> None:
    """Gives a tile another type; a constant one stays full of its number."""
    value.set_type(type_)
    made = defining_op(value, "arith.constant")
    if made is not None:
        splat = made.attributes["value"].get_splat_value()
        made.attributes["value"] = ir.DenseElementsAttr.get_splat(type_, splat)


def round_alone(total: ir.Value) -> None:
    """Keeps an addition of floats whose operands change places from being part of an fma: each
    place would round the other's product only, and they would hold unlike sums."""
    if total.owner.name == "arith.addf":
        total.owner.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<none>")


def again(op: ir.Operation, operands: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """Makes an op once more at the current insertion point, with a result of another type (see
    `retype`)."""
    copy = op.clone(ir.InsertionPoint.current).operation
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    retype(copy.results[0], type_)
    return copy.results[0]


def with_body(results: Sequence[ir.Value], source: ir.Operation) -> list[ir.Value]:
    """Gives the op that defines `results` a copy of the source's region."""
    copy = source.clone()
    copy.regions[0].blocks[0].append_to(results[0].owner.regions[0])
    copy.erase()
    return list(results)
