"""Shared-memory swizzles of TMA, wgmma and tcgen05: an XOR on address bits (PTX ISA 5.5.6).

128-byte mode: bits 4..6 ^= bits 7..9; 64-byte mode: bits 4..5 ^= bits 7..8; 32-byte mode: bit 4 ^=
bit 7. The absolute shared address counts.
"""

from __future__ import annotations

import numpy as np

_MASKS = {0: 0, 32: 1, 64: 3, 128: 7}
# 128-byte span with 32-byte atoms: bits 5..6 ^= bits 7..8.
WIDE_ATOM = 129


def swizzle_chunks(chunk: np.ndarray, span: int) -> np.ndarray:
    """Numbers of 16-byte chunks (address / 16), permuted as a swizzle of `span` bytes does."""
    if span == WIDE_ATOM:
        return chunk ^ (((chunk >> 3) & 3) << 1)
    mask = _MASKS[span]
    return chunk ^ ((chunk >> 3) & mask) if mask else chunk
