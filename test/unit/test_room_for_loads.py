"""ptxas is told that one CTA has to fit where a program loads much at once, and holds little else:
else it waits for the loads in parts, to spare registers."""

from __future__ import annotations

import pytest

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x: x.shape[0])
def sum_of_rows(x: tl.array, y: tl.array, TOP: tl.const, N: tl.const):
    """y: the sum of TOP rows of each matrix of x."""
    m = tl.program_id(0)
    total = tl.zeros((N,), tl.f32)
    for k in tl.static_range(TOP):
        total += tl.load(x, (m, k, 0), N).to(tl.f32)
    tl.store(y, (m, 0), total.to(y.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def scaled(x: tl.array, weight: tl.array, y: tl.array, N: tl.const, SCALE: tl.const):
    """y = x weight, each row of length 1 in front of that with SCALE."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N)
    length = tl.sum(v * v) if SCALE else 1.0
    tl.store(y, (row, 0), v * tl.load(weight, 0, N) / tl.sqrt(length))


@tilec.kernel(grid=lambda x: x.shape[0])
def sum_in_a_loop(x: tl.array, y: tl.array, N: tl.const):
    """The same of all rows."""
    m = tl.program_id(0)
    total = tl.zeros((N,), tl.f32)
    for k in tl.range(x.shape[1]):
        total += tl.load(x, (m, k, 0), N).to(tl.f32)
    tl.store(y, (m, 0), total.to(y.dtype))


@pytest.mark.parametrize(("top", "has_room"), [(1, False), (8, True)])
def test_many_loads_at_once(top: int, has_room: bool) -> None:
    arrays = ["x:bf16[?,?,?:8;?:8,?:8,1]", "y:bf16[?,?:8;?:8,1]"]
    kernel = sum_of_rows.compile(arrays, {"TOP": top, "N": 4096}, target="sm_90a")
    assert (".minnctapersm 1\n" in kernel.ptx) == has_room


@pytest.mark.parametrize("meets", [True, False])
def test_fewer_where_threads_meet(meets: bool) -> None:
    """Six vectors of f32: other warps compute meanwhile where no threads meet."""
    rows = [f"{name}:f32[?,?:4;?:4,1]" for name in ("x", "y")]
    arrays = [rows[0], "weight:f32[?:4]", rows[1]]
    kernel = scaled.demanding(num_warps=8)
    compiled = kernel.compile(arrays, {"N": 3072, "SCALE": meets}, target="sm_90a")
    assert (".minnctapersm 1\n" in compiled.ptx) == meets


def test_loops_that_walk_have_their_own_way() -> None:
    arrays = ["x:bf16[?,?,?:8;?:8,?:8,1]", "y:bf16[?,?:8;?:8,1]"]
    kernel = sum_in_a_loop.compile(arrays, {"N": 4096}, target="sm_90a")
    assert ".minnctapersm" not in kernel.ptx
