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
    rows = int(row.max(initial=0)) + 1
    distinct = np.unique(phase * rows + row)
    phases, index = np.unique(distinct // rows, return_inverse=True)
    bank = distinct % rows % groups
    counts = np.bincount(index.reshape(-1) * groups + bank, minlength=phases.size * groups)
    return int((counts.reshape(-1, groups).max(1) - 1).sum())
