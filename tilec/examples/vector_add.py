"""Elementwise sum of two vectors."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda z, B: tl.cdiv(z.shape[0], B))
def vector_add(x: tl.array, y: tl.array, z: tl.array, B: tl.const = 1024):
    """z = x + y, B elements per program."""
    i = tl.program_id(0) * B
    tl.store(z, i, (tl.load(x, i, B) + tl.load(y, i, B)).to(z.dtype))
