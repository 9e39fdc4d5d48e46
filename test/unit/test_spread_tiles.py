"""Programs without reductions, spread over CTAs with a vector a thread (pass spread-rows)."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned
from tilec.examples.vector_add import vector_add
from tilec.executable.kernel import CompiledKernel
from tilec.passes.rows.stripes import LEAST_WARPS

VECTOR = ["x:f32[?:4]", "y:f32[?:4]", "z:f32[?:4]"]


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[0], B), 2))
def counted(x: tl.array, firsts: tl.array, programs: tl.array, B: tl.const):
    """In place, elements times their numbers; and once a program, where it began."""
    i, plane = tl.program_id(0) * B, tl.program_id(1)
    v = tl.load(x, (i, plane), (B, 1))
    tl.store(x, (i, plane), v * (i + tl.arange(B))[:, None].to(tl.f32))
    tl.store(firsts, (tl.program_id(0), plane), i.to(tl.i32))
    tl.store(programs, (tl.program_id(0), plane), tl.num_programs(0).to(tl.i32))


def compiled(tile: int, target: str = "sm_80", warps: int | None = None) -> CompiledKernel:
    """Vector addition in tiles of so many elements."""
    kernel = vector_add if warps is None else vector_add.demanding(num_warps=warps)
    return kernel.compile(VECTOR, {"B": tile}, target=target)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("tile", "stripes"), [(1024, 1), (2048, 2), (16384, 16), (5120, 5), (4224, 4), (65536, 64)]
)
def test_a_vector_a_thread(tile: int, stripes: int, target: str) -> None:
    kernel = compiled(tile, target)
    assert kernel.launched((7, 5, 3), 0) == (7 * stripes, 5, 3)
    assert kernel.threads == 32 * LEAST_WARPS
    assert kernel.cluster == (1, 1, 1)


@pytest.mark.parametrize(("warps", "stripes"), [(2, 4), (16, 2)])
def test_warps_that_the_author_demands_are_those_of_a_part(warps: int, stripes: int) -> None:
    kernel = compiled(4096, warps=warps)
    assert (kernel.threads, kernel.stripes) == (32 * warps, stripes)


@pytest.mark.parametrize("size", [1, 4096, 10001])
def test_sums(size: int) -> None:
    """Programs that end inside their first stripe and inside others."""
    x, y = np.random.default_rng(size).standard_normal((2, size), dtype=np.float32)
    z = poisoned((size,), np.float32)
    vector_add.check(x, y, z, B=8192)
    np.testing.assert_array_equal(z, x + y)


def test_numbers_of_programs_and_elements() -> None:
    """Programs are what the author's grid says; what is stored once is stored by one stripe."""
    given = np.random.default_rng(1).standard_normal((2, 9000), dtype=np.float32).T
    x = given.copy(order="K")
    firsts, programs = poisoned((3, 2), np.int32), poisoned((3, 2), np.int32)
    counted.check(x, firsts, programs, B=4096)
    np.testing.assert_array_equal(x, given * np.arange(9000, dtype=np.float32)[:, None])
    np.testing.assert_array_equal(firsts, [[0, 0], [4096, 4096], [8192, 8192]])
    assert (programs == 3).all()
    assert "spread over 4 CTAs" in str(counted.report(x, firsts, programs, B=4096))


def test_a_grid_that_the_caller_gives_counts_programs() -> None:
    """Here two of three programs."""
    x, y = np.random.default_rng(2).standard_normal((2, 12288), dtype=np.float32)
    z = np.zeros(12288, np.float32)
    vector_add(x, y, z, B=4096, grid=(2,))
    np.testing.assert_array_equal(z, np.where(np.arange(12288) < 8192, x + y, 0))


def test_more_ctas_than_a_launch_has() -> None:
    with pytest.raises(ValueError, match=r"grid \(1073741824, 1, 1\), 4 CTAs a program, has too"):
        compiled(4096).launched((1 << 30, 1, 1), 0)
