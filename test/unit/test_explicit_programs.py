"""Kernels by hand that ask for their next program (cluster launch control)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shares import MODES
from test_explicit_kernels import changed

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.language import gpu
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import FindingsError


@tilec.kernel(grid=lambda y, ROWS: tl.cdiv(y.shape[0], ROWS), num_warps=4, persistent="dynamic")
def copy(x: tl.array, y: tl.array, ROWS: tl.const = 128):
    """y = x; a CTA copies parts until none is left."""
    answer = gpu.alloc((4,), tl.i32, gpu.padded((4,)))
    asked = gpu.barrier_init(count=1)
    gpu.fence("barrier_init")
    gpu.sync()
    rows = gpu.layout("T(128):(1@0) V():()")
    program = gpu.cta_id()
    more = True
    count = 0
    while more:
        _, parity = gpu.ring_position(count, slots=1)
        asked.expect(0, bytes=16)
        gpu.next_program(answer, asked, 0)
        at = (program * ROWS,)
        tl.store(y, at, gpu.load(x, at, (ROWS,), rows))
        asked.wait(0, parity)
        more, program, _, _ = gpu.next_program_read(answer)
        gpu.sync()  # the answer is read
        count += 1


def check(kernel: Kernel, mode: str) -> None:
    """A launch of 8 programs, the last one ragged."""
    x = np.arange(1000, dtype=np.float32)
    y = np.full_like(x, np.nan)
    kernel.on(f"emulator:{mode}")(x, y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("mode", MODES)
def test_every_program_runs(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_100a")
    check(copy, mode)


@pytest.mark.parametrize(
    ("old", "new"),
    [("        asked.wait(0, parity)\n", ""), ("        gpu.sync()  # the answer is read\n", "")],
    ids=["the answer is not awaited", "the answer is overwritten"],
)
def test_what_the_author_forgot_is_found(
    old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_100a")
    with pytest.raises((FindingsError, EmulatorError)):
        check(changed(tmp_path, copy, (old, new)), "check")
