"""What only stores a product's sum: other products of its block need not wait for that."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from tilec.dialects.effects import SIDE_EFFECTS, read_by, written_by
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import ConvertLayoutOp
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.dialects.tile import StoreOp
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import is_of


def storing(value: ir.Value, block: ir.Block) -> list[ir.Operation]:
    """The ops of a block that follow from a value, in order, if all of it is stored there; none if
    anything else becomes of it."""
    found, pending = OpSet(), [value]
    while pending:
        for use in pending.pop().uses:
            op = use.owner.operation
            if op.block != block or not (is_of(op, StoreOp, ConvertLayoutOp) or is_elementwise(op)):
                return []
            if op not in found:
                found.add(op)
                pending += op.results
    return [view.operation for view in block.operations if view.operation in found]


def may_pass(ops: Iterable[ir.Operation]) -> bool:
    """Whether a store may come behind ops instead of in front of them: none accesses an array, or
    does what others notice."""
    return not any(
        len(op.regions)
        or isinstance(op.opview, SIDE_EFFECTS)
        or not all(map(is_buffer, (*read_by(op.opview), *written_by(op.opview))))
        for op in ops
    )
