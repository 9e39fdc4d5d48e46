"""Runs the examples on NumPy arrays: on the first GPU, else on the CPU emulator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tilec
from tilec.hardware.target import TARGETS, Feature


def launch(kernel: Callable[..., Any], *arguments: Any, **constants: Any) -> None:
    """Calls `kernel` on the default device; on a GPU the arrays, and those of lists, are copied
    there and back."""
    device = tilec.device()
    if device.kind == "emulator":
        kernel(*arguments, **constants)
        return
    placed = [_copied(device, argument) for argument in arguments]
    kernel(*placed, **constants)
    for host, array in zip(arguments, placed, strict=True):
        pairs = zip(host, array, strict=True) if isinstance(host, list) else [(host, array)]
        for one, copy in pairs:
            if isinstance(one, np.ndarray) and one.flags.writeable:
                device.copy_back(copy, one)


def _copied(device: Any, argument: Any) -> Any:
    if isinstance(argument, list):
        return [device.array(one) for one in argument]
    return device.array(argument) if isinstance(argument, np.ndarray) else argument


@contextmanager
def emulated_target(*features: Feature) -> Iterator[None]:
    """The emulator runs kernels for a target that has one of `features`, by TILEC_TARGET.

    That of the environment where it has it, else the first that does.
    """
    named = os.environ.get("TILEC_TARGET")
    able = [name for name, target in TARGETS.items() if any(map(target.supports, features))]
    if tilec.device().kind == "emulator" and named not in able:
        os.environ["TILEC_TARGET"] = able[0]
    try:
        yield
    finally:
        os.environ.pop("TILEC_TARGET", None)
        if named is not None:
            os.environ["TILEC_TARGET"] = named


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
