"""verify-ops: runs every op's own rules, after MLIR's structural verifier.

Dynamic ops have no verifier hook in MLIR 22, so their `check()` runs here, after each pass.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.diagnostics import CompileError
from tilec.dialects.op import TileOp
from tilec.dialects.types import is_tile
from tilec.passes.locations import error_at

MAX_ELEMENTS = 1 << 20
"""Largest tile: sixteen times what the registers of an SM hold."""


def verify_ops(module: ir.Module) -> None:
    """CompileError carrying one error per op that breaks its rules."""
    errors = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if isinstance(view, TileOp):
            wrong = view.check_attributes() or _check_tiles(op) or view.check()
            if wrong:
                errors.append(error_at(op, f"'{op.name}' op {wrong}"))
        return ir.WalkResult.ADVANCE

    with module.context, ir.Location.unknown():
        module.operation.walk(visit)
    if errors:
        raise CompileError.group(errors)


def _check_tiles(op: ir.Operation) -> str | None:
    for value in [*op.operands, *op.results]:
        if is_tile(value) and not value.type.has_static_shape:
            return f"tiles must have a static shape, found {value.type}"
        if is_tile(value) and 0 in value.type.shape:
            return f"tiles must not be empty, found {value.type}"
        if is_tile(value) and prod(value.type.shape) > MAX_ELEMENTS:
            return f"tiles have at most {MAX_ELEMENTS} elements, found {value.type}"
    return None
