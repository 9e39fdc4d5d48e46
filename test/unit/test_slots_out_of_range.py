"""A ring's slot that is none, known only when the kernel runs: the emulator stops at its line."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import FindingsError

PLACED = gpu.blocked((64,), warps=4, width=1)
MEMORY = gpu.tensor_memory((128, 32))
ROWS = gpu.tensor_rows(MEMORY, 4)


@tilec.kernel(grid=lambda x, y, first: 1, num_warps=4)
def through_a_ring(x: tl.array, y: tl.array, first: tl.i32):
    ring = gpu.alloc((64,), tl.f32, gpu.shared("(64):(1)"), slots=2)
    beside = gpu.alloc((64,), tl.f32, gpu.shared("(64):(1)"), slots=3)
    for i in tl.range(0, 2):
        beside.slot(i).store(gpu.load(x, (0,), (64,), PLACED))
        ring.slot(i).store(gpu.load(x, (64 * i,), (64,), PLACED))
    gpu.sync()
    for i in tl.range(0, 2):
        tl.store(y, (64 * i,), ring.slot(first + i).load(PLACED))


X = np.random.default_rng(0).standard_normal(128).astype(np.float32)


def line_of(words: str) -> int:
    """Where the kernel says it, in this file."""
    lines, start = inspect.getsourcelines(through_a_ring.fn)
    (found,) = (start + number for number, line in enumerate(lines) if words in line)
    return found


@pytest.mark.parametrize(("first", "slot"), [(1, 2), (-1, -1), (4, 4)])
def test_the_line_and_the_slot(first: int, slot: int) -> None:
    y = np.zeros_like(X)
    place = rf"{__name__}.py:{line_of('ring.slot(first + i)')}:"
    with pytest.raises(EmulatorError, match=rf"slot {slot} of a ring of 2, at .*{place}"):
        through_a_ring.on("emulator")(X, y, first)
    with pytest.raises(
        FindingsError, match=rf"slot: .*{place}.*slot {slot} of a ring of 2"
    ) as found:
        through_a_ring.check(X, y, first)
    assert [finding.kind for finding in found.value.findings] == ["slot"]


def test_slots_of_the_ring() -> None:
    y = np.zeros_like(X)
    through_a_ring.check(X, y, 0)
    np.testing.assert_array_equal(X, y)


def test_a_gpu_pays_nothing() -> None:
    """The number of slots stands in a comment."""
    ptx = through_a_ring.on("emulator").compiled(X, X, 0).ptx
    noted = [line.strip() for line in ptx.splitlines() if "slot.u32" in line]
    assert noted
    assert all(line.startswith("//@emulator slot.u32 %r") for line in noted)
    assert {line.split(", ", 1)[1] for line in noted} <= {"256, 2;", "256, 3;"}


@tilec.kernel(grid=lambda first: 1, num_warps=4)
def barriers(first: tl.i32):
    ring = gpu.barrier_init(128, slots=2)
    gpu.barrier_init(128, slots=4)  # beside it: an arrival there would stop nobody
    gpu.fence("barrier_init")
    gpu.sync()
    for i in tl.range(0, 2):
        gpu.barrier_arrive(ring, first + i)
    for i in tl.range(0, 2):
        gpu.barrier_wait(ring, i, False)


@tilec.kernel(grid=lambda y, first: 1, num_warps=4)
def in_tensor_memory(y: tl.array, first: tl.i32):
    ring = gpu.alloc_tensor_memory((128, 32), tl.f32, MEMORY, slots=2)
    for i in tl.range(0, 2):
        ring.slot(first + i).store(gpu.full((128, 32), 1.0 + i, tl.f32, ROWS))
    tl.store(y, (0, 0), ring.slot(1).load(ROWS))


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_barriers(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    barriers.check(0)
    with pytest.raises(EmulatorError, match="slot 2 of a ring of 2"):
        barriers.on("emulator")(1)


def test_tensor_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_100a")
    y = np.zeros((128, 32), np.float32)
    in_tensor_memory.on("emulator")(y, 0)
    assert (y == 2).all()
    with pytest.raises(EmulatorError, match="slot 2 of a ring of 2"):
        in_tensor_memory.on("emulator")(y, 1)


@tilec.kernel(grid=lambda y: 1, num_warps=4)
def a_constant_that_is_none(y: tl.array):
    ring = gpu.alloc((64,), tl.f32, gpu.shared("(64):(1)"), slots=2)
    at = 1
    for _ in tl.range(0, 1):
        at = at + 1
    ring.slot(at).store(gpu.load(y, (0,), (64,), PLACED))


def test_a_constant_after_all() -> None:
    """What the passes find to be constant is refused when the kernel is compiled."""
    with pytest.raises(CompileError, match="slot 2 of a ring of 2"):
        a_constant_that_is_none.on("emulator")(np.zeros(64, np.float32))
