"""What a program loads behind its products, as a bias or what they are added to, is under way while
they multiply: on the emulator, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checked_calls import assert_right, empty, matmul_grid, normal

import tilec
import tilec.language as tl

RINGS = ("sm_90a", "sm_100a")
"""Targets whose products wait for rings."""


@tilec.kernel(grid=matmul_grid)
def added(
    a: tl.array, b: tl.array, c: tl.array, bias: tl.array, residual: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c = a @ b + bias + residual."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    acc = acc + tl.load(bias, n, BN).to(tl.f32)[None, :]
    tl.store(c, (m, n), (acc + tl.load(residual, (m, n), (BM, BN)).to(tl.f32)).to(c.dtype))


@tilec.kernel(grid=matmul_grid)
def updated(
    a: tl.array, b: tl.array, c: tl.array, seen: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c += a @ b; seen = 2 c, as a second load finds it."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc + tl.load(c, (m, n), (BM, BN)))
    tl.store(seen, (m, n), 2 * tl.load(c, (m, n), (BM, BN)))


def hoisted(kernel: Any, arguments: list[Any]) -> int:
    """How many loads the report says are in front."""
    return kernel.report(*arguments).count("in front of what threads wait for")


@pytest.mark.parametrize("target", RINGS)
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("k", [40, 64 * 7 + 8])
def test_what_products_are_added_to(
    target: str, persistent: bool, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ragged tiles; k of one step, and around the slots of the ring."""
    monkeypatch.setenv("TILEC_TARGET", target)
    a, b, bias, residual = normal(330, k), normal(k, 136, seed=1), normal(136), normal(330, 136)
    kernel = added.demanding(persistent=persistent)
    arguments = [a, b, empty(330, 136), bias, residual]
    expected = a.astype(float) @ b.astype(float) + bias.astype(float) + residual.astype(float)
    assert_right(kernel, arguments, {2: expected})
    assert hoisted(kernel, arguments) == 2


@pytest.mark.parametrize("target", RINGS)
def test_what_is_written_between_is_read_behind(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first load of c goes in front of the products, the second reads what is stored."""
    monkeypatch.setenv("TILEC_TARGET", target)
    a, b, c = normal(330, 456), normal(456, 136, seed=1), np.ones((330, 136), np.float32)
    arguments = [a, b, c, empty(330, 136).astype(np.float32)]
    total = a.astype(float) @ b.astype(float) + 1
    assert hoisted(updated, arguments) == 1
    assert_right(updated.demanding(persistent=True), arguments, {2: total, 3: 2 * total})


def test_registers_bound_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two warpgroups' threads hold 128 sums of a 128 x 256 tile and the bias, but not 128 more."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    wide = [np.ones((256, 512), np.float32), normal(512), np.ones((256, 512), np.float32)]
    arguments = [normal(256, 512), normal(512, 512, seed=1), *wide]
    text = added.report(*arguments, BM=128, BN=256, BK=64)
    assert text.count("in front of what threads wait for") == 1
