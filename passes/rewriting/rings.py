"""Rings as rewrites make them."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.gpu_tile import MakeRingOp
from tilec.passes.rewriting.loops import behind
from tilec.passes.rewriting.walk import kernel_of


def make_ring(
    inside: ir.Operation, *, slots: int = 1, fills: int = 0, releases: int = 0
) -> ir.Value:
    """A new ring at the entry of the kernel around an op, behind those that it has."""
    function = kernel_of(inside)
    body = function.regions[0].blocks[0]
    first = next(iter(body.operations)).operation
    rings = of_kind(body.operations, MakeRingOp)
    with ir.InsertionPoint(behind(rings[-1].operation) if rings else first), inside.location:
        return MakeRingOp.build(slots=slots, fills=fills, releases=releases)
