"""Grouped products: every row gets its group's matrix, whatever the sizes; also in roles."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples import grouped_gemm as example
from tilec.examples.grouped_gemm import (
    arrange_tiles,
    arranged_gemm,
    find_tile,
    grouped_gemm,
    grouped_products,
)

SPECS = ["a:f16[?:8,?:8;?:8,1]", "b:f16[?,?:8,?:8;?:8,?:8,1]", "c:f16[?:8,?:8;?:8,1]"]


def multiply(kernel: Any, sizes: list[int], n: int, k: int, **constants: int) -> None:
    rng = np.random.default_rng(sum(sizes))
    ends = np.cumsum(sizes, dtype=np.int32)
    a = rng.standard_normal((sum(sizes), k)).astype(np.float16)
    b = rng.standard_normal((len(sizes), k, n)).astype(np.float16)
    c = np.full((sum(sizes), n), np.nan, np.float16)
    kernel(a, b, c, ends, **constants)
    for end, size, matrix in zip(ends, sizes, b, strict=True):
        expected = a[end - size : end].astype(float) @ matrix.astype(float)
        found = c[end - size : end].astype(float)
        scale = np.max(np.abs(expected), initial=1.0)
        assert np.max(np.abs(found - expected), initial=0.0) <= 1e-3 * scale


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_groups_of_any_size(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    on_emulator = grouped_gemm.on("emulator")
    for sizes in ([1], [0, 0, 3], [64, 64], [65, 0, 1, 130], [0, 7, 0]):
        multiply(on_emulator, sizes, 40, 72, BM=64, BN=32, BK=64)


@pytest.mark.parametrize(
    ("sizes", "n", "chosen"),
    [
        ([65, 0, 1, 130], 40, ("grouped_gemm", {})),
        ([63, 0, 40, 20], 136, ("grouped_gemm", {})),
        ([150, 0, 30, 60], 72, ("arranged_gemm", {"BM": 64})),
        ([370, 0, 30], 72, ("arranged_gemm", {"BM": 128})),
        ([280, 0], 72, ("arranged_gemm", {"BM": 128})),
        ([3], 136, ("grouped_gemm", {})),
        ([1, 0, 2, 3, 0, 1, 1, 2, 1], 136, ("arranged_gemm", {"BM": 64})),
    ],
)
def test_the_kernel_and_its_tile_follow_the_mean_group(
    sizes: list[int], n: int, chosen: tuple[str, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    asked: list[tuple[str, dict[str, int]]] = []

    def launched(kernel: Any, *arrays: np.ndarray, **tile: int) -> None:
        asked.append((kernel.name, tile))
        kernel.on("emulator")(*arrays, **tile)

    for kernel in (grouped_gemm, arranged_gemm):
        monkeypatch.setattr(example, kernel.name, partial(launched, kernel))
    monkeypatch.setattr(example, "LITTLE_WORK", 200 * 72 * 72)
    monkeypatch.setattr(example, "MANY_TILES", 9)
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    multiply(grouped_products, sizes, n, 72)
    assert asked == [chosen]


def test_tiles_follow_sizes_though_memory_says_how_long_programs_are() -> None:
    """Few columns, few rows, many: as long as the loop counts, which programs without rows skip;
    and as many as have rows, one a group of few."""
    found = []
    for groups, rows, n, k in ((6, 1694, 96, 7784), (8, 128, 4096, 4096), (8, 8192, 4096, 4096)):
        sizes = {"a": (rows, k), "b": (groups, k, n), "c": (rows, n), "ends": (groups,)}
        specs = [*SPECS, "ends:i32[?;1]"]
        chosen = grouped_gemm.compile(specs, {}, target="sm_90a", sizes=sizes).constants
        found.append((chosen["BM"], chosen["BN"]))
    assert found == [(64, 128), (64, 128), (128, 256)]


def test_no_groups_are_no_work() -> None:
    multiply(grouped_products, [], 8, 72)


def arranged(mode: str) -> Any:
    """Lists the tiles, in small pieces, then multiplies them."""

    def call(a: Any, b: Any, c: Any, ends: Any, **constants: int) -> None:
        tiles = np.full((-(-len(a) // constants["BM"]) + len(ends) + 1, 3), -7, np.int32)
        arrange_tiles.on(mode)(ends, tiles, BM=constants["BM"], GROUPS=4, ROWS=2)
        arranged_gemm.on(mode)(a, b, c, tiles, GROUP=2, **constants)

    return call


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_listed_tiles_of_groups_of_any_size(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    for sizes in ([1], [3, 0, 70, 64, 0, 0, 5, 1, 9, 200, 0]):
        multiply(arranged("emulator:check"), sizes, 72, 136, BM=64, BN=32, BK=64)


def test_programs_share_operands_and_whole_tiles_leave_by_the_copy_engine() -> None:
    """Though the matrix of a program is found in memory, and the rows of a group may end early."""
    for kernel, array in ((grouped_gemm, "ends:i32[?;1]"), (arranged_gemm, "tiles:i32[?,?;?,1]")):
        compiled = kernel.compile([*SPECS, array], {"BM": 128, "BN": 256}, target="sm_90a")
        decided = {entry["about"]: entry["chosen"] for entry in compiled.report["decisions"]}
        assert decided["tensor store"] == "TMA"
        assert decided["warp specialisation"].endswith("4 stages")
        assert decided.get("program order", "groups of 8 rows") == "groups of 8 rows"
        stays = "persistent CTAs share them" if kernel is arranged_gemm else "one a CTA"
        assert decided["programs"] == stays


def test_every_tile_of_every_group_is_found_once() -> None:
    """Random sizes, some empty: the tiles of a group cover its rows, no others have any."""

    @tilec.kernel(grid=lambda found: (found.shape[0],))
    def find(ends: tl.array, found: tl.array, BM: tl.const = 16):
        group, first, stop = find_tile(ends, tl.program_id(0), BM)
        for place, value in enumerate((group, first, stop)):
            tl.store(found, (tl.program_id(0), place), value.to(tl.i32))

    rng = np.random.default_rng(3)
    for groups in (1, 2, 7, 64, 65):
        sizes = rng.integers(0, 40, groups) * (rng.random(groups) < 0.7)
        ends = np.cumsum(sizes, dtype=np.int32)
        found = np.zeros((-(-ends[-1] // 16) + groups + 3, 3), np.int32)
        find.on("emulator")(ends, found)
        tiles = [tuple(row) for row in found.tolist() if row[1] < row[2]]
        expected = [
            (group, first, end)
            for group, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True))
            for first in range(end - size, end, 16)
        ]
        assert tiles == expected


def test_the_loading_role_finds_the_groups_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads where groups end, one thread for all; nothing races."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    constants = {"BM": 64, "BN": 32, "BK": 64}
    compiled = grouped_gemm.compile([*SPECS, "ends:i32[?;1]"], constants, target="sm_90a")
    decided = {entry["about"]: entry["chosen"] for entry in compiled.report["decisions"]}
    assert decided["warp specialisation"].startswith("1 loading warp, 4 computing")
    multiply(grouped_gemm.on("emulator:check"), [65, 0, 24, 7], 40, 136, **constants)


def test_what_the_kernel_writes_is_not_loaded_ahead() -> None:
    @tilec.kernel(grid=lambda c: 1)
    def moving(a: tl.array, b: tl.array, c: tl.array, at: tl.array):
        m = tl.load(at, (0,), ())
        acc = tl.zeros((64, 32), tl.f32)
        for k in tl.range(0, a.shape[1], 64):
            acc = tl.dot(tl.load(a, (m, k), (64, 64)), tl.load(b, (k, 0), (64, 32)), acc)
        tl.store(c, (m, 0), acc.to(c.dtype))
        tl.store(at, (0,), m + 64)

    specs = [SPECS[0], "b:f16[?:8,?:8;?:8,1]", SPECS[2], "at:i32[?;1]"]
    decisions = moving.compile(specs, {}, target="sm_90a").report["decisions"]
    (decided,) = [entry for entry in decisions if entry["about"] == "warp specialisation"]
    assert decided["chosen"] == "no"
    assert "writes an array that a copy reads" in decided["why"]
