"""remove-layout-conversions: conversions that need not be.

Before:   %c = "gpu_tile.convert_layout"(%constant) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
After:    %constant = arith.constant dense<0.0> : tensor<128xf32, #b>

A conversion of a value that costs nothing to make (constant, splat, iota) is made in the wanted
layout; a conversion of a conversion starts from the first value; one between equal layouts goes.
Does not handle: rematerialising computation (components already keep it in one layout).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import ConvertLayoutOp
from tilec.dialects.types import encoding
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.walk import find_ops

_FREE = ("arith.constant", "tensor.splat", "tile.iota")


@tile_pass(requires=Level.LAYOUTS, ensures=Level.LAYOUTS)
def remove_layout_conversions(module: ir.Module, context: PassContext) -> None:
    """Folds conversions into what makes their operand."""
    conversions = [op.opview for op in find_ops(module.operation, ConvertLayoutOp)]
    for conversion in conversions:
        _fold(conversion)


def _fold(conversion: ConvertLayoutOp) -> None:
    source = conversion.src
    while isinstance(source.owner, ConvertLayoutOp):
        source = source.owner.src
    result = conversion.result
    if encoding(source) == encoding(result):
        result.replace_all_uses_with(source)
    elif not isinstance(source.owner, ir.Block) and source.owner.name in _FREE:
        result.replace_all_uses_with(_remade(source.owner.operation, result, conversion.operation))
    elif source != conversion.src:
        conversion.operation.operands[0] = source
        return
    else:
        return
    conversion.operation.erase()


def _remade(maker: ir.Operation, result: ir.Value, before: ir.Operation) -> ir.Value:
    attributes = dict(maker.attributes.items())
    if maker.name == "arith.constant":
        splat = attributes["value"].get_splat_value()
        attributes["value"] = ir.DenseElementsAttr.get_splat(result.type, splat)
    return ir.Operation.create(
        maker.name,
        results=[result.type],
        operands=list(maker.operands),
        attributes=attributes,
        ip=ir.InsertionPoint(before),
        loc=maker.location,
    ).results[0]
