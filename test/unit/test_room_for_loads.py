"""ptxas is told how many CTAs have to fit where that leaves registers for what a program loads at
once, and no launch waits for it (pass room-for-loads)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hopper_kernels import decisions

import tilec
import tilec.language as tl
from tilec.call import jit
from tilec.compile.assembler import assemble, locate_tool
from tilec.costs.machine import usual_machine
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target

SIZE = 3072
"""Elements of a row: six vectors of f32 in each of 128 threads, with those it is scaled by."""


@tilec.kernel(grid=lambda x: x.shape[0], num_warps=8)
def scaled(x: tl.array, weight: tl.array, y: tl.array, N: tl.const, SCALE: tl.const):
    """y = x weight, each row of length 1 in front of that with SCALE."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N)
    length = tl.sum(v * v) if SCALE else 1.0
    tl.store(y, (row, 0), v * tl.load(weight, 0, N) / tl.sqrt(length))


@tilec.kernel(grid=lambda x: x.shape[0])
def sum_in_a_loop(x: tl.array, y: tl.array, N: tl.const):
    """y: the sum of the rows of each matrix of x."""
    m = tl.program_id(0)
    total = tl.zeros((N,), tl.f32)
    for k in tl.range(x.shape[1]):
        total += tl.load(x, (m, k, 0), N).to(tl.f32)
    tl.store(y, (m, 0), total.to(y.dtype))


def room(kernel: CompiledKernel) -> list[int]:
    """The CTAs that have to fit, where the PTX says."""
    return [int(number) for number in re.findall(r"\.minnctapersm (\d+)", kernel.ptx)]


def compiled(rows: int | None, scale: bool = True, **promise: Any) -> CompiledKernel:
    """For so many rows, or any number."""
    arrays = ["x:f32[?,?:4;?:4,1]", "weight:f32[?:4]", "y:f32[?,?:4;?:4,1]"]
    sizes = None if rows is None else {"x": (rows, SIZE), "weight": (SIZE,), "y": (rows, SIZE)}
    constants = {"N": SIZE, "SCALE": scale}
    return scaled.compile(arrays, constants, target="sm_90a", sizes=sizes, **promise)


@pytest.mark.parametrize(("rows", "ctas"), [(1, [5]), (640, [5]), (672, [])])
def test_as_many_ctas_as_have_room_run_all_programs(rows: int, ctas: list[int]) -> None:
    """Of 256 threads with 48 registers, on 132 multiprocessors."""
    kernel = compiled(rows, at_most=True)
    assert room(kernel) == ctas
    assert len(decisions(kernel, "room")) == len(ctas)


def test_nobody_says_how_many_programs_there_are() -> None:
    """Then ptxas decides; and usual sizes alone are no promise."""
    assert compiled(None).suits[0] == 6
    assert room(compiled(None)) == room(compiled(1)) == []


def test_no_threads_meet() -> None:
    """Other warps compute meanwhile."""
    kernel = compiled(1, scale=False, at_most=True)
    assert (room(kernel), kernel.suits[0]) == ([], 0)


def test_calls_of_few_rows_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for all such numbers; results are the same."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    device = usual_machine(find_target("sm_90a"))
    there = scaled.on("emulator:check")
    rng = np.random.default_rng(5)
    kernels = []
    for assumed, rows in ((device.assumed, 2), ((), 2), ((), 7)):
        machine = type(device)(**{**vars(device), "assumed": assumed})
        monkeypatch.setattr(jit, "machine_of", lambda *_, found=machine: found)
        x, weight = rng.standard_normal((rows, 3000)), rng.standard_normal(3000)
        x, weight = x.astype(np.float32), weight.astype(np.float32)
        y = np.full_like(x, np.nan)
        there(x, weight, y, N=SIZE, SCALE=True)
        expected = x * weight / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        kernels.append(there.compiled(x, weight, y, N=SIZE, SCALE=True))
    assert [room(kernel) for kernel in kernels] == [[], [5], [5]]
    assert kernels[1] is kernels[2]


@tilec.kernel(grid=lambda y: y.shape[0], num_warps=2, device="emulator:check")
def sum_numbered(x: tl.array, places: tl.array, y: tl.array, TOP: tl.const, N: tl.const):
    """y: the sums of TOP rows of x each, which `places` numbers."""
    t = tl.program_id(0)
    total = tl.zeros((N,), tl.f32)
    for k in tl.static_range(TOP):
        total += tl.load(x, (tl.load(places, (t, k), ()), 0), N).to(tl.f32)
    tl.store(y, (t, 0), total.to(y.dtype))


def test_more_than_ptxas_leaves_room_for_where_no_threads_meet() -> None:
    """It took 32 registers and spilled 64 bytes."""
    arrays = ["x:f16[?,?:8;?:8,1]", "places:i32[?,?;?,1]", "y:f16[?,?:8;?:8,1]"]
    for top, ctas in ((8, [16]), (2, [])):
        kernel = sum_numbered.compile(arrays, {"TOP": top, "N": 640}, target="sm_90a")
        assert room(kernel) == ctas
        if locate_tool("ptxas"):
            assert assemble(kernel.ptx, find_target("sm_90a")).spills == 0
    rng = np.random.default_rng(8)
    x, places = rng.integers(0, 9, (50, 640)).astype(np.float16), rng.integers(0, 50, (7, 8))
    y = np.full((7, 640), np.nan, np.float16)
    sum_numbered(x, places.astype(np.int32), y, TOP=8, N=640)
    np.testing.assert_array_equal(y, x[places].sum(1))


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[2], B), x.shape[0]))
def channel_norm(
    x: tl.array, weight: tl.array, bias: tl.array, y: tl.array, C: tl.const, B: tl.const
):
    i, image = tl.program_id(0) * B, tl.program_id(1)
    v = tl.load(x, (image, 0, i), (C, B)).to(tl.f32)
    v = v - tl.sum(v, 0) / C
    scale = tl.rsqrt(tl.sum(v * v, 0) / C + 1e-6)
    w, b = (tl.load(each, 0, C).to(tl.f32)[:, None] for each in (weight, bias))
    tl.store(y, (image, 0, i), (v * scale * w + b).to(y.dtype))


def test_elements_from_addresses_of_their_own_are_not_counted_on() -> None:
    """Seven CTAs were to fit, and 152 bytes were spilled."""
    arrays = ["x:f16[?,?:8,?;?,?,1]", "weight:f16[?:8]", "bias:f16[?:8]", "y:f16[?,?:8,?;?,?,1]"]
    image = (219, 376, 53)
    sizes = {"x": image, "weight": (376,), "bias": (376,), "y": image}
    constants = {"C": 376, "B": 16}
    kernel = channel_norm.compile(arrays, constants, target="sm_90a", sizes=sizes, at_most=True)
    assert room(kernel) == []
    if locate_tool("ptxas"):
        assert assemble(kernel.ptx, find_target("sm_90a")).spills == 0


def test_loops_that_walk_have_their_own_way() -> None:
    arrays = ["x:bf16[?,?,?:8;?:8,?:8,1]", "y:bf16[?,?:8;?:8,1]"]
    kernel = sum_in_a_loop.compile(arrays, {"N": 4096}, target="sm_90a")
    assert (room(kernel), kernel.suits) == ([], (5, 16))  # as far as prefetch-loads goes


def test_loads_in_a_while_are_looked_at() -> None:
    """They ended the compiler: a loop that carries nothing has no first counter to ask."""

    @tilec.kernel(grid=lambda x: x.shape[0])
    def shared(x: tl.array, turns: tl.array, y: tl.array, N: tl.const):
        row = tl.program_id(0)
        while tl.atomic_add(turns, row, -1) > 0:
            v = tl.load(x, (row, 0), N)
            tl.store(y, (row, 0), v / tl.sum(v))

    x = np.random.default_rng(3).random((3, SIZE), np.float32)
    y, turns = np.zeros_like(x), np.array([2, 0, 1], np.int32)
    shared.on("emulator")(x, turns, y, SIZE)
    np.testing.assert_allclose(y.sum(1), [1, 0, 1], rtol=1e-4)
    specs = ["x:f32[?,?:4]", "turns:i32[?]", "y:f32[?,?:4]"]
    for target in ("sm_90a", "sm_120a"):
        shared.compile(specs, {"N": SIZE}, target=target)
