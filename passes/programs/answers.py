"""How many answers to requests for programs a CTA keeps, and what they take (request-programs)."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile.launch_control import answer_buffer
from tilec.dialects.gpu_tile.mbarrier import BARRIER_BYTES
from tilec.passes.demands.kernels import is_dynamic

SLOTS = 3
"""Answers that are kept: of the role that runs ahead by two programs, and of the one behind it."""


def answer_bytes(function: ir.Operation) -> int:
    """Bytes of shared memory that request-programs will take for a kernel."""
    if not is_dynamic(function):
        return 0
    with function.context:
        buffer = answer_buffer(SLOTS)
    return buffer.size_bytes + buffer.alignment_bytes + 2 * SLOTS * BARRIER_BYTES
