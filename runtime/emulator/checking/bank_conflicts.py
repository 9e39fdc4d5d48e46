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
    if not row.size:
        return 0
    rows = int(row.max()) + 1
    distinct = np.sort(phase * rows + row)  # np.unique takes several times as long
    distinct = distinct[_begins(distinct)]
    index = np.cumsum(_begins(distinct // rows)) - 1
    bank = distinct % rows % groups
    counts = np.bincount(index * groups + bank, minlength=(int(index[-1]) + 1) * groups)
    return int((counts.reshape(-1, groups).max(1) - 1).sum())


def _begins(numbers: np.ndarray) -> np.ndarray:
    """Where another number than the one before stands; the first does. np.diff and np.append take
    longer than all the rest."""
    begins = np.ones(numbers.size, np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=begins[1:])
    return begins
