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


def test_loops_that_walk_have_their_own_way() -> None:
    arrays = ["x:bf16[?,?,?:8;?:8,?:8,1]", "y:bf16[?,?:8;?:8,1]"]
    kernel = sum_in_a_loop.compile(arrays, {"N": 4096}, target="sm_90a")
    assert ".minnctapersm" not in kernel.ptx
