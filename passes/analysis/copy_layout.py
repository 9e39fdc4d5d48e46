"""Which elements of a buffer each thread copies by cp.async."""

from __future__ import annotations

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.hardware.layout import Layout
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.contract import PassContext
from tilec.passes.layouts.candidates import blocked_layout
from tilec.passes.rewriting.walk import role_of


def copy_layout(op: gpu_tile.CpAsyncOp, context: PassContext) -> Layout:
    """Which elements of its buffer each thread of the CTA, or of the role around it, copies:
    vectors of `bytes`, coalesced."""
    role = role_of(op.operation)
    warps = context.num_warps if role is None else role.opview.warps
    num_threads = context.target.warp_size << (warps.bit_length() - 1)  # layouts: powers of two
    buffer = buffer_of(op.dst)
    run = contiguous_dim(op.src, op.dims) or 0
    width = op.bytes // buffer.element_bytes
    return blocked_layout(buffer.shape, run, width, num_threads, narrow=False)
