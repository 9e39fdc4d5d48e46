"""Products whose programs two sets of warps take in turn: results, and when that is chosen."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.costs.dot_work import Memory
from tilec.costs.machine import machine_of
from tilec.hardware.target import find_target
from tilec.ops import product_launch, tile_choice
from tilec.ops.tile_choice import TileChoice, choose_tiles
from tilec.runtime.device import device
from tilec.terms.tile_sizes import USUAL_SIDE

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
ALONG_K = Memory(1, 128), Memory(0, 128)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("dtype", "out", "is_transposed", "error"),
    [
        (BF16, BF16, False, 4e-3),
        (np.float16, np.float32, True, 1e-6),
        (np.float32, np.float32, True, 2e-3),
        (E4M3, np.float16, True, 1e-3),
        (np.float16, E4M3, False, 7e-2),
        (np.int8, np.int32, True, 0.0),
    ],
)
def test_products_in_turn(
    dtype: Any, out: Any, is_transposed: bool, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The widest tile, in which a warpgroup has most registers, past both ends; b along k or n."""
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    depth = tile_choice.K_BYTES // np.dtype(dtype).itemsize
    columns = max(tile_choice.TURN_COLUMNS)
    choice = TileChoice(USUAL_SIDE, columns, depth, 1, 1.0, in_turn=True)
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    launched: list[Kernel] = []
    found_kernel = product_launch.kernel_on

    def kernel_on(*where: Any) -> Kernel:
        launched.append(found_kernel(*where))
        return launched[-1]

    monkeypatch.setattr(product_launch, "kernel_on", kernel_on)
    rng = np.random.default_rng(1)
    k = 2 * depth + 16
    shapes = (150, k), ((k, 208) if not is_transposed else (208, k))
    if dtype is np.int8:
        a, b = (rng.integers(-128, 128, shape, dtype=dtype) for shape in shapes)
    else:
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    b = b.T if is_transposed else b
    precision = {"precision": "tf32"} if dtype is np.float32 else {}
    found = tilec.ops.matmul(a, b, out_dtype=out, **precision)
    expected = wide(a) @ wide(b)
    assert np.abs(wide(found) - expected).max() <= error * np.abs(expected).max()
    assert launched[-1].demands()["consumers"] == "pingpong"


def tiles(m: int, n: int, k: int, target: str = "sm_90a", **named: Any) -> TileChoice | None:
    machine = machine_of(device("emulator"), find_target(target))
    memories, batch = named.pop("memories", ALONG_K), named.pop("batch", 1)
    dtype = named.pop("dtype", tl.bf16)
    return choose_tiles(m, n, k, batch, dtype, "tf32", machine, 1, *memories, **named)


@pytest.mark.parametrize("dtype", [tl.bf16, tl.f8e4m3])
def test_they_are_chosen_where_they_win(dtype: Any) -> None:
    """As measured (test/bench/results/turns-*.json): for 8 of 2048^3 a little, at k = 512 a
    tenth."""
    for m, n, k, batch in ((2048, 2048, 2048, 8), (8192, 8192, 2048, 1), (8192, 8192, 512, 1)):
        found = tiles(m, n, k, is_plain=True, dtype=dtype, batch=batch)
        assert found is not None
        assert found.in_turn
        assert (found.rows, found.columns) == (128, 192)


def test_where_they_are_not_chosen() -> None:
    """At 4096^3 they lose: six rounds of three quarters of a tile where 128 x 256 take four."""
    for choice in (
        tiles(4096, 4096, 4096, is_plain=True),
        tiles(8192, 8192, 512),
        tiles(8192, 8192, 512, is_plain=True, most_ctas=1),
        tiles(8192, 8192, 512, is_plain=True, memories=(Memory(1, 2),) * 2),
        tiles(8192, 8192, 512, "sm_80", is_plain=True),
        tiles(8192, 8192, 512, "sm_100a", is_plain=True),
        tiles(512, 512, 512, is_plain=True),
        tiles(9792, 15232, 240, is_plain=True, dtype=tl.f8e4m3),  # two steps: stores are waited for
        tiles(3712, 10624, 96, is_plain=True),
    ):
        assert choice is None or not choice.in_turn
