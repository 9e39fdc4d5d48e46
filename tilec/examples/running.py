"""Runs the examples on NumPy arrays: on the first GPU, else on the CPU emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilec


def launch(kernel: Callable[..., Any], *arguments: Any, **constants: Any) -> None:
    """Calls `kernel` on the default device; on a GPU the arrays are copied there and back."""
    device = tilec.device()
    if device.kind == "emulator":
        kernel(*arguments, **constants)
        return
    placed = [device.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
    kernel(*placed, **constants)
    for host, array in zip(arguments, placed, strict=True):
        if isinstance(host, np.ndarray) and host.flags.writeable:
            device.copy_back(array, host)


def poisoned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An output array in which nothing looks like a result: NaN, or the largest integer."""
    dtype = np.dtype(dtype)
    fill = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else np.nan
    return np.full(shape, fill, dtype)


def compare(name: str, found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Prints the largest error relative to the largest value; SystemExit if above `tolerance`."""
    wide = np.asarray(found, np.float64)
    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    error = float(np.max(np.abs(wide - expected), initial=0.0)) / scale
    right = error <= tolerance  # NaN is not
    print(f"{name:32} largest error {error:.2e} {'ok' if right else 'WRONG'}")
    if not right:
        raise SystemExit(1)
