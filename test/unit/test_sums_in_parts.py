"""Loops that only add up tiles, which CTAs of a cluster sum in parts, on the emulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

import tilec
import tilec.language as tl
from tilec.runtime.artefact import load, save


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1], B), y.shape[0]))
def add_images(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """y (channels, places): the sum over images of x (images, channels, places)."""
    i, c = tl.program_id(0) * B, tl.program_id(1)
    total = tl.zeros((B,), tl.i32 if x.dtype == tl.i32 else tl.f32)
    for image in tl.range(0, x.shape[0]):
        total += tl.load(x, (image, c, i), B).to(total.dtype)
    tl.store(y, (c, i), total)


@tilec.kernel(grid=lambda x, BN: tl.cdiv(x.shape[1], BN))
def moments(x: tl.array, means: tl.array, lengths: tl.array, BM: tl.const, BN: tl.const):
    """Two sums of one loop, reduced and joined behind it."""
    n = tl.program_id(0) * BN
    sums, squares = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for m in tl.range(0, x.shape[0], BM):
        v = tl.load(x, (m, n), (BM, BN)).to(tl.f32)
        sums, squares = sums + v, squares + v * v
    tl.store(means, n, tl.sum(sums, 0) / x.shape[0])
    tl.store(lengths, n, tl.sqrt(tl.sum(squares, 0)))


@pytest.fixture(autouse=True)
def _hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


@pytest.mark.parametrize(
    ("parts", "images", "dtype"),
    [(2, 37, np.float32), (4, 9, np.int32), (8, 5, np.float16), (8, 0, np.float32)],
)
def test_images_in_parts(parts: int, images: int, dtype: Any) -> None:
    """Of 5 images 3 of 8 parts have none; 143 places are 5 tiles, the last one ragged."""
    rng = np.random.default_rng(images)
    x = (rng.standard_normal((images, 3, 143)) * 9).astype(dtype)
    for mode in modes():
        y = np.full((3, 143), 77, np.int32 if dtype is np.int32 else np.float32)
        add_images.demanding(sum_parts=parts).on(f"emulator:{mode}")(x, y, B=32)
        np.testing.assert_allclose(y, x.astype(np.float64).sum(0), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("parts", "rows", "tile"), [(2, 300, (16, 64)), (8, 130, (32, 32))])
def test_two_sums_in_parts(parts: int, rows: int, tile: tuple[int, int]) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 150)).astype(np.float32)
    for mode in modes():
        means, lengths = (np.full(150, np.nan, np.float32) for _ in range(2))
        kernel = moments.demanding(sum_parts=parts).on(f"emulator:{mode}")
        kernel(x, means, lengths, BM=tile[0], BN=tile[1])
        np.testing.assert_allclose(means, x.mean(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(lengths, np.sqrt((x * x).sum(0)), rtol=1e-5)


def test_few_programs_are_summed_in_parts_and_many_are_not() -> None:
    """`tl.auto` chooses parts where the programs leave multiprocessors without work."""

    def compiled(images: int, channels: int, places: int) -> Any:
        return add_images.compile(
            ["x:f32[?,?,?:4]", "y:f32[?,?:4]"],
            target="sm_90a",
            sizes={"x": (images, channels, places), "y": (channels, places)},
        )

    few, many = compiled(4000, 24, 144), compiled(40, 3000, 3136)
    (told,) = decisions(few, "sums")
    assert told.startswith(("in 8 parts", "in 16 parts"))
    assert not decisions(many, "sums")


def test_few_programs_load_large_tiles_ahead() -> None:
    """16 KiB an iteration, which eight CTAs of a multiprocessor need not."""
    specs = ["x:f32[?,?:4]", "means:f32[?:4]", "lengths:f32[?:4]"]
    tile = {"BM": 64, "BN": 64}
    shared = moments.demanding(sum_parts=4).compile(specs, tile, target="sm_90a")
    assert decisions(shared, "loads")
    assert not decisions(moments.compile(specs, tile, target="sm_90a"), "loads")


def test_an_artefact_keeps_sixteen_parts(tmp_path: Path) -> None:
    """It was refused when it was loaded: clusters of 8 were the largest."""
    specs, tile = ["x:f32[?,?,?]", "y:f32[?,?]"], {"B": 32}
    made = add_images.demanding(sum_parts=16).compile(specs, tile, target="sm_90a")
    assert made.cluster == (16, 1, 1)
    save(tmp_path / "sums.tilec", [made])
    assert load(tmp_path / "sums.tilec") is not None
