"""One program of a kernel on the emulator, and random arrays for it."""

from __future__ import annotations

import numpy as np

import tilec

EMULATOR = "emulator"


def run(kernel: tilec.call.jit.Kernel, *arguments: object, **named: object) -> None:
    """Launches one program on the emulator."""
    kernel.on(EMULATOR)[1](*arguments, **named)


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def i32(*shape: int, low: int = -50, high: int = 50, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape, dtype=np.int32)
