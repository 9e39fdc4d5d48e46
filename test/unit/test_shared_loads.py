"""Clusters that `tl.auto` chooses: for which sizes and kernels, and that results are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_kernels import decisions

import tilec
import tilec.language as tl
from tilec.call.call_class import class_of
from tilec.call.jit import Kernel
from tilec.call.shared_code import SharedCode
from tilec.call.specialization import Specialization, specialize
from tilec.call.tile_choice import Tiles
from tilec.costs.launch_work import launch_work
from tilec.costs.machine import usual_machine
from tilec.dialects.context import make_context
from tilec.examples.matmul import matmul
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.runtime.arrays import ArrayView

HOPPER = find_target("sm_90a")
H200 = usual_machine(HOPPER)
ALONE, DOWN, ACROSS = (1, 1), (2, 1), (1, 2)


def tiles_of(c: Any, BM: int, BN: int) -> Any:
    """A program a tile of c."""
    return tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)


@tilec.kernel(grid=tiles_of)
def product(
    a: tl.array, b: tl.array, beside: tl.array, c: tl.array, WAY: tl.const = "added",
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """c = a @ b + beside, or what its `WAY` changes of that."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, tl.minimum(a.shape[1], m + BM) if WAY == "uneven" else a.shape[1], BK):
        left = tl.load(a, (m, k), (BM, BK))
        if WAY == "computed":
            left = tl.maximum(left, 0.0)
        acc = tl.dot(left, tl.load(b, (k, n), (BK, BN)), acc)
    if WAY == "counted":
        rows, columns = m + tl.arange(BM)[:, None], n + tl.arange(BN)[None, :]
        tl.atomic_add(beside, (rows, columns), acc.to(beside.dtype))
    if WAY == "printed":
        tl.print("m", m)
    other = tl.load(c if WAY == "in place" else beside, (m, n), (BM, BN)).to(tl.f32)
    tl.store(c, (m, n), (acc + other).to(c.dtype))


def views(m: int, n: int, k: int, dtype: str = "f16", out: str = "f16") -> dict[str, ArrayView]:
    """Row-major arrays of a product, without memory."""
    shapes = {"a": (m, k), "b": (k, n), "beside": (m, n), "c": (m, n)}
    types = {"a": dtype, "b": dtype, "beside": out, "c": out}
    return {x: ArrayView(0, s, (s[1], 1), types[x], ("host", 0)) for x, s in shapes.items()}


def asked(kernel: Kernel, arrays: dict[str, ArrayView], **constants: Any) -> Specialization:
    """What a call asks for, without its class."""
    named = {p.name: arrays[p.name] for p in kernel.parameters if p.kind != "const"}
    given = {p.name: p.default for p in kernel.parameters if p.kind == "const"}
    return specialize(kernel.parameters, {**given, **named, **constants})


def order(kernel: Kernel, *sizes: int, **constants: Any) -> list[Tiles]:
    """The choices of `tl.auto` on an H200, the first in front."""
    arrays = views(*sizes)
    wanted = asked(kernel, arrays, **constants)
    call = class_of(wanted.parameters, arrays, H200)
    return kernel._programs.choices(wanted, HOPPER).order(call)


def test_rows_that_begin_inside_of_lines_are_loaded_by_two() -> None:
    """5000 elements of f16 are 78 lines and an eighth: L2 reads a line more for each row."""
    odd = order(matmul, 5000, 5000, 5000)
    assert odd[0].cluster == DOWN
    assert odd[0].reasons["clusters of programs"].startswith("2 x 1: ")
    assert {tiles.cluster for tiles in odd} == {ALONE, DOWN, ACROSS}
    even = order(matmul, 5120, 5120, 5120)
    assert even[0].cluster == ALONE
    assert "clusters of programs" not in even[0].reasons
    assert all(x.cluster != DOWN for x in order(matmul, 64, 5000, 5000))  # a row of programs


def may_share(target: str = "sm_90a", kernel: Kernel = product, **constants: Any) -> bool:
    """Whether the compiler may choose clusters for a kernel."""
    found = find_target(target)
    tiles = kernel._programs.choices(asked(kernel, views(512, 512, 512), **constants), found)
    program = tiles._program((("BM", 128), ("BN", 128), ("BK", 64)), make_context)
    assert program is not None
    return program.may_share


def test_which_kernels_may() -> None:
    assert may_share()
    for way in ("uneven", "computed", "counted", "printed", "in place"):
        assert not may_share(WAY=way), way
    for target in ("sm_80", "sm_100a"):
        assert not may_share(target), target
    for demands in ({"cluster": (1, 2)}, {"persistent": False}, {"consumers": "pingpong"}):
        assert not may_share(kernel=product.demanding(**demands)), demands


def test_what_clusters_load() -> None:
    """Programs of a column share b, of a row a; a third program of three is in a cluster, too."""
    arrays = views(3 * 128, 4 * 256, 640)
    wanted = asked(matmul, arrays)
    tiles = matmul._programs.choices(wanted, HOPPER)
    program = tiles._program((("BM", 128), ("BN", 256), ("BK", 64)), make_context)
    assert program is not None
    a, b = 2 * 128 * 64, 2 * 64 * 256
    for cluster, nbytes, programs in (
        (ALONE, a + b, 12),
        (DOWN, a + b // 2, 16),
        (ACROSS, a // 2 + b, 12),
    ):
        work = launch_work(program, arrays, cluster=cluster).work
        assert work.loops[0].global_bytes == work.loops[0].line_bytes == nbytes
        assert work.loops[0].staged_bytes == a + b
        assert (work.programs, work.cluster) == (programs, cluster[0] * cluster[1])


def test_a_kernel_in_clusters_is_another() -> None:
    """One that was compiled for clusters does not serve a class that has the same tiles alone."""
    sizes, why = (("B", 64),), {"B": "64: why"}
    pairs, alone = Tiles(sizes, why, cluster=DOWN), Tiles(sizes, why)
    code, made = SharedCode(), []

    def compiling(cluster: tuple[int, int, int]) -> Any:
        def made_so() -> CompiledKernel:
            made.append(cluster)
            return CompiledKernel(
                *("k", "sm_90a", "", (), None, 128, 0, 32),
                constants={"B": 64},
                report={"decisions": []},
                cluster=cluster,
            )

        return made_so

    assert code.find("key", [pairs, alone], compiling((2, 1, 1))).cluster == (2, 1, 1)
    assert code.find("key", [alone, pairs], compiling((1, 1, 1))).cluster == (1, 1, 1)
    assert code.find("key", [pairs], compiling((1, 1, 1))).cluster == (2, 1, 1)
    assert made == [(2, 1, 1), (1, 1, 1)]
    code.find("refused", [pairs, alone], compiling((1, 1, 1)))
    assert code.find("refused", [pairs], compiling((2, 1, 1))).cluster == (2, 1, 1)


@pytest.mark.parametrize("rows", [190, 128])
def test_a_program_past_the_grid_stores_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the choice itself: three programs of 64 rows in clusters of two, and what is added."""
    monkeypatch.setattr("tilec.call.auto_tiles.AutoTiles.order", chosen)
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(rows)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((rows, 200), (200, 72)))
    beside = rng.standard_normal((rows, 72)).astype(np.float16)
    c = poisoned(beside.shape, np.float16)
    there = product.on("emulator:check")
    there(a, b, beside, c)
    kernel = there.compiled(a, b, beside, c)
    assert kernel.cluster == (2, 1, 1)
    assert "multicast" in kernel.ptx
    assert decisions(kernel, "clusters") == [
        "2 x 1 x 1 programs (they load together what they share)"
    ]
    right = a.astype(np.float64) @ b.astype(np.float64) + beside
    assert np.abs(c - right).max() <= 2e-3 * np.abs(right).max()


def chosen(*_: Any) -> list[Tiles]:
    """Small tiles in clusters of two rows."""
    values = (("BM", 64), ("BN", 64), ("BK", 64))
    return [Tiles(values, {"clusters of programs": "2 x 1: why"}, cluster=DOWN)]
