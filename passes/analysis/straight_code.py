"""Which ops lie in one block of instructions: ptxas brings those of an element together there."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from tilec.dialects.gpu_tile import BufferLoadOp, ConvertLayoutOp
from tilec.dialects.tile import AssumeOp, LoadOp, ReshapeOp, TransposeOp
from tilec.passes.rewriting.free_ops import is_scalar, stays_in_thread
from tilec.passes.rewriting.walk import is_of, is_pure

_STRAIGHT = (AssumeOp, BufferLoadOp, ConvertLayoutOp, LoadOp, ReshapeOp, TransposeOp)
"""Ops that neither branch nor wait for other threads."""


def bends(ops: Iterable[ir.Operation]) -> dict[ir.Value, int]:
    """Of each result of ops in a row, how many of those in front of it end a block of
    instructions."""
    found, count = {}, 0
    for op in ops:
        count += not _is_straight(op)
        found.update(dict.fromkeys(op.results, count))
    return found


def _is_straight(op: ir.Operation) -> bool:
    """Whether an op leaves its neighbours in one block of instructions."""
    computes = is_pure(op) or stays_in_thread(op) or is_scalar(op) or op.name == "tensor.extract"
    return computes or is_of(op, *_STRAIGHT)
