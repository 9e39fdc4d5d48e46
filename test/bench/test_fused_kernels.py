"""The benched products with work of their own: specialised as demanded, right in late and check
mode, whatever the sizes."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fused_kernels import (
    activated_product,
    arranged_groups,
    dequantised_product,
    gated_product,
    searched_groups,
)
from grouped_cases import SEARCHED, grouped_cases, uneven_case

from tilec.call.jit import Kernel
from tilec.examples import grouped_gemm as example
from tilec.examples.grouped_gemm import listed_tiles
from tilec.examples.running import poisoned

BF16 = ml_dtypes.bfloat16
SMALL = {"BM": 64, "BN": 64, "BK": 64, "STAGES": 3, "WARP_SPECIALIZE": True}


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


def drawn(*shape: int) -> np.ndarray:
    """Random values."""
    return np.random.default_rng(shape).standard_normal(shape).astype(BF16)


def wide(x: np.ndarray) -> np.ndarray:
    """As float64."""
    return x.astype(np.float64)


def check(kernel: Kernel, arguments: list[np.ndarray], expected: np.ndarray, roles: str) -> None:
    """Runs in both modes and compares; `roles`: how the report's line on roles begins."""
    for mode in ("late", "check"):
        there = kernel.on(f"emulator:{mode}")
        c = poisoned(expected.shape, BF16)
        there(*arguments, c, **SMALL)
        np.testing.assert_allclose(wide(c), expected, rtol=0, atol=1e-2 * np.abs(expected).max())
    decided: list[dict[str, Any]] = there.compiled(*arguments, c, **SMALL).report["decisions"]
    (found,) = [d["chosen"] for d in decided if d["about"] == "warp specialisation"]
    assert found.startswith(roles)
    assert "3 stages" in found


def test_elementwise_work_in_front_of_a_product() -> None:
    a, b = drawn(136, 208), drawn(208, 72)
    expected = np.maximum(wide(a), 0) @ wide(b)
    check(activated_product, [a, b], expected, "1 loading warp,")
    narrow = np.random.default_rng(0).integers(-128, 128, a.shape, dtype=np.int8)
    check(dequantised_product, [narrow, b], wide(narrow) @ wide(b), "1 loading warp,")


def test_two_products_that_share_an_operand() -> None:
    a, b, g = drawn(136, 208), drawn(208, 72), drawn(208, 72)[::-1].copy()
    gate = wide(a) @ wide(g)
    expected = gate / (1 + np.exp(-gate)) * (wide(a) @ wide(b))
    check(gated_product, [a, b, g], expected, "1 loading warp,")


def test_groups_of_rows() -> None:
    a, b = drawn(137, 200), drawn(4, 200, 72)
    ends = np.array([65, 65, 66, 137], np.int32)
    parts = np.split(wide(a), ends[:-1])
    expected = np.concatenate([rows @ wide(matrix) for rows, matrix in zip(parts, b, strict=True)])
    check(searched_groups, [a, b, ends], expected, "1 loading warp,")
    tiles = listed_tiles(ends, 137, SMALL["BM"])
    check(arranged_groups, [a, b, tiles], expected, "1 loading warp,")


def test_syncs_that_come_and_go_in_branches() -> None:
    """A sync may lie in memory where one lay that `insert-barriers` has taken away."""
    a, b, ends = drawn(261, 350), drawn(9, 350, 294), np.arange(29, 262, 29, dtype=np.int32)
    kernel = searched_groups.demanding(num_warps=8, persistent=True)
    kernel.on("emulator").compiled(a, b, ends, poisoned((261, 294), BF16), BM=256, BN=32, BK=64)


def test_groups_of_a_case_are_all_its_rows() -> None:
    for case in (uneven_case(), *grouped_cases()):
        ends = case.group_ends
        assert ends == sorted(ends)
        assert ends[-1] == case.shape[0]


def test_a_case_launches_what_the_example_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for case in (uneven_case(), *grouped_cases()):
        asked: list[tuple[str, dict[str, int]]] = []

        def launched(kernel: str, *arrays: object, asked: list[Any] = asked, **tile: int) -> None:
            asked.append((kernel, tile))

        for kernel in ("grouped_gemm", "arranged_gemm", "arrange_tiles"):
            monkeypatch.setattr(example, kernel, partial(launched, kernel))
        a, b, ends, c = (spec.view() for spec in case.arrays)
        example.grouped_products(a, b, c, np.zeros(ends.shape, np.int32))
        kernel, tile = asked[-1]
        default = case.variants[0]
        assert dict(default.constants or ()) == tile
        assert (default.kernel == SEARCHED) == (kernel == "grouped_gemm")
