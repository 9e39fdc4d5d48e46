"""Which upstream ops are elementwise on tiles."""

from __future__ import annotations

from mlir import ir

ELEMENTWISE = ("arith.", "math.")


def is_elementwise(op: ir.Operation) -> bool:
    """Whether each result element depends only on the operands' elements at its coordinates."""
    return op.name.startswith(ELEMENTWISE)
