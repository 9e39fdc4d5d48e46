"""Threads read what the copy engine brings and then overwrites: check mode asks for the fence, or
for the product that takes what was read."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hopper_kernels import activated
from tma_copies import aligned

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.hardware.ring_stages import MOST_STAGES
from tilec.language import gpu
from tilec.passes import insert_fences
from tilec.passes.roles import rings
from tilec.runtime.emulator import Finding
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError


@tilec.kernel(grid=1, num_warps=8)
def column_sums(x: tl.array, y: tl.array, FENCE: tl.const, SLOTS: tl.const = 2):
    """y = the sums of x's columns: a role loads rows, 64 at a time, four warps add them up."""
    tiles = gpu.make_tensor_map(x, (64, 32))
    ring = gpu.alloc((64, 32), tl.f32, gpu.swizzled((64, 32), tl.f32), slots=SLOTS)
    full = gpu.barrier_init(count=1, slots=SLOTS)
    empty = gpu.barrier_init(count=4, slots=SLOTS)
    gpu.fence("barrier_init")
    gpu.sync()
    with gpu.role("load", first_warp=4, warps=4):
        for step in tl.range(tl.cdiv(x.shape[0], 64)):
            slot, parity = gpu.ring_position(step, slots=SLOTS)
            empty.wait(slot, ~parity)
            full.expect(slot, bytes=ring.bytes)
            gpu.tma_load(tiles, ring.slot(slot), full, slot, (step * 64, 0))
    with gpu.role("add", first_warp=0, warps=4):
        layout = gpu.blocked((64, 32), warps=4)
        total = gpu.zeros((64, 32), tl.f32, layout)
        for step in tl.range(tl.cdiv(x.shape[0], 64)):
            slot, parity = gpu.ring_position(step, slots=SLOTS)
            full.wait(slot, parity)
            total = total + ring.slot(slot).load(layout)
            if FENCE:
                gpu.fence("async_shared")
            empty.arrive(slot, per="warp")
        tl.store(y, (0, 0), total)


def findings_of(kernel: Kernel, *arrays: np.ndarray, **constants: Any) -> tuple[Finding, ...]:
    """What check mode says of a kernel for sm_90a; its result is in the last of the arrays."""
    anew = tilec.kernel(kernel.fn, grid=1, **kernel.demands())  # knows no compiled code
    compiled = anew.on("emulator").compiled(*arrays, **constants)
    device = EmulatorDevice("check")
    try:
        device.launch(device.load(compiled), arrays, 1)
    except FindingsError as error:
        return error.findings
    return ()


def unfenced(found: tuple[Finding, ...]) -> bool:
    """Whether there are errors, all of them reads that no fence follows."""
    kinds = {(f.kind, f.severity, "generic proxy still reads" in f.missing) for f in found}
    return kinds == {("missing proxy fence", "error", True)}


@pytest.fixture(autouse=True)
def hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    monkeypatch.setenv("TILEC_CACHE", "0")


def test_an_author_is_told_of_the_fence() -> None:
    x = aligned(np.random.default_rng(0).standard_normal((320, 32)).astype(np.float32))
    y = np.zeros((64, 32), np.float32)
    assert findings_of(column_sums, x, y, FENCE=True) == ()
    np.testing.assert_allclose(y, x.reshape(5, 64, 32).sum(0), rtol=1e-5, atol=1e-5)
    assert unfenced(findings_of(column_sums, x, y, FENCE=False))


def test_slots_of_fragments_are_given_back_behind_their_products() -> None:
    """Either `rings` does that, or `insert-fences` fences; with neither an H200 overwrote rows."""
    rng, deep = np.random.default_rng(0), 64 * (MOST_STAGES + 3)  # whatever ring it gets wraps
    a, b = (aligned(rng.standard_normal(s).astype(np.float16)) for s in ((64, deep), (deep, 64)))
    arrays = a, b, np.zeros((64, 64), np.float32)
    assert findings_of(activated, *arrays, WARP_SPECIALIZE=True) == ()
    with mock.patch.object(rings, "products_of", return_value=[]):
        assert unfenced(findings_of(activated, *arrays, WARP_SPECIALIZE=True))
        with mock.patch.object(insert_fences, "products_of", return_value=[]):
            assert findings_of(activated, *arrays, WARP_SPECIALIZE=True) == ()
