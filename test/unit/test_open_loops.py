"""Nests of loops whose inner one goes round once (pass open-loops), on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

OPEN = "none where it goes round once"


@tilec.kernel(grid=lambda x: x.shape[1])
def channel_moments(x: tl.array, sums: tl.array, places: tl.array, B: tl.const = tl.auto):
    """Sums of a channel's elements over images, and of their numbers in all images."""
    c = tl.program_id(0)
    total, number = tl.zeros((B,), tl.f32), tl.zeros((B,), tl.f32)
    for image in tl.range(0, x.shape[0]):
        first = image * x.shape[2]
        for p in tl.range(0, x.shape[2], B):
            at = p + tl.arange(B)
            v = tl.load(x, (image, c, p), B).to(tl.f32)
            total += v
            number += tl.where(at < x.shape[2], v * (first + at).to(tl.f32), 0.0)
    tl.store(sums, c, tl.sum(total))
    tl.store(places, c, tl.sum(number))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("images", "places"), [(0, 5), (1, 64), (21, 63), (9, 65), (3, 0), (17, 1)]
)
def test_sums_over_images(
    target: str, images: int, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No rounds, one, and more of either loop; as many images as are loaded at once, and one more
    or less."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng([images, places])
    x = rng.integers(-4, 5, (images, 3, places)).astype(np.float16)
    sums, numbers = (poisoned((3,), np.float32) for _ in range(2))
    channel_moments.check(x, sums, numbers, B=64)
    wide = x.transpose(1, 0, 2).reshape(3, -1).astype(np.float64)
    np.testing.assert_array_equal(sums, wide.sum(1))
    np.testing.assert_array_equal(numbers, (wide * np.arange(wide.shape[1])).sum(1))
    assert OPEN in str(channel_moments.report(x, sums, numbers, B=64))


@pytest.mark.parametrize("target", ["sm_90a"])
def test_sums_over_images_whose_rows_a_tile_of_the_compilers_choice_holds(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of single elements: several iterations load at once."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(5).integers(-4, 5, (37, 3, 99)).astype(np.float16)
    sums, numbers = (poisoned((3,), np.float32) for _ in range(2))
    channel_moments.check(x, sums, numbers)
    wide = x.transpose(1, 0, 2).reshape(3, -1).astype(np.float64)
    np.testing.assert_array_equal(sums, wide.sum(1))
    np.testing.assert_array_equal(numbers, (wide * np.arange(wide.shape[1])).sum(1))
    assert "iterations at once" in str(channel_moments.report(x, sums, numbers))
