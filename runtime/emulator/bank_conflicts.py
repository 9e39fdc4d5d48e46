"""Shared-memory bank conflicts: 32 banks of 4 bytes, wide accesses in phases of 128 bytes."""

from __future__ import annotations

import numpy as np


def conflicts(offsets: np.ndarray, size: int, lanes: np.ndarray) -> int:
    """Extra passes of one access: per phase, the most distinct rows that one bank serves, less 1.

    offsets: byte offsets of the lanes; lanes: their flat numbers; size: bytes per lane. 8-byte
    accesses go in two phases of 16 lanes, 16-byte ones in four of 8 (CUDA programming guide).
    """
    width = min(max(size, 4), 16)
    groups = 128 // width
    row = offsets.reshape(-1) // width
    phase = lanes.reshape(-1) // groups if width > 4 else lanes.reshape(-1) >> 5
    pairs = np.unique(np.stack([phase, row]), axis=1)
    phases, index = np.unique(pairs[0], return_inverse=True)
    counts = np.zeros((phases.size, groups), np.int64)
    np.add.at(counts, (index.reshape(-1), pairs[1] % groups), 1)
    return int((counts.max(1) - 1).sum())
