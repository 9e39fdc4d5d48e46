"""A compiled product launched as it is, and with its PTX broken in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilec.call.jit import Kernel
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError


@dataclass(frozen=True)
class LaunchedProduct:
    """c = a @ b in bf16 by a compiled kernel of so many programs."""

    kernel: CompiledKernel
    a: np.ndarray
    b: np.ndarray
    programs: tuple[int, int, int]

    def check(self) -> None:
        """In check mode; within 1 % of the largest. FindingsError, EmulatorError."""
        device, c = EmulatorDevice("check"), output(self.a, self.b)
        device.launch(device.load(self.kernel), [self.a, self.b, c], self.programs)
        expected = self.a.astype(np.float64) @ self.b.astype(np.float64)
        most = np.abs(expected).max()
        np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=1e-2 * most)

    def assert_found(self, broken: Callable[[str], str], message: str) -> None:
        """The PTX that `broken` makes of the kernel's differs, and its launch ends with `message`,
        a pattern."""
        text = broken(self.kernel.ptx)
        assert text != self.kernel.ptx
        with pytest.raises((FindingsError, EmulatorError), match=message):
            replace(self, kernel=replace(self.kernel, ptx=text)).check()


def launched(
    kernel: Kernel, target: str, a: np.ndarray, b: np.ndarray, programs: tuple[int, int, int],
    **constants: Any,
) -> LaunchedProduct:  # fmt: skip
    """Compiled for a target of the emulator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEC_TARGET", target)
        compiled = kernel.on("emulator").compiled(a, b, output(a, b), **constants)
    return LaunchedProduct(compiled, a, b, programs)


def output(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A poisoned array for a @ b."""
    return poisoned((a.shape[0], b.shape[1]), ml_dtypes.bfloat16)
