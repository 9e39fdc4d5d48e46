"""Loops whose ends, conditions and steps come from memory or from what they have computed, around,
inside and in front of products: on the emulator, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checked_calls import assert_right, empty, matmul_grid, normal
from target_names import MAIN

import tilec
import tilec.language as tl

PERSISTENT: dict[str, Any] = {"persistent": True}
EIGHT: dict[str, Any] = {"num_warps": 8}


@pytest.fixture(params=MAIN, autouse=True)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


@tilec.kernel(grid=lambda c, BM: tl.cdiv(c.shape[0], BM))
def until(
    a: tl.array, b: tl.array, c: tl.array, limit: tl.array, BM: tl.const = 64, BK: tl.const = 32
):
    """Adds products until the sum of the tile passes a limit of its program."""
    p = tl.program_id(0)
    acc = tl.zeros((BM, 64), tl.f32)
    most = tl.load(limit, p, ())
    k = 0
    while (k < a.shape[1]) & (tl.sum(tl.abs(acc)) < most):
        acc = tl.dot(tl.load(a, (p * BM, k), (BM, BK)), tl.load(b, (k, 0), (BK, 64)), acc)
        k += BK
    tl.store(c, (p * BM, 0), acc)


@pytest.mark.parametrize("demands", [{}, PERSISTENT, EIGHT])
def test_a_condition_that_sums_what_the_loop_multiplies(demands: dict[str, Any]) -> None:
    """The condition's exchange of the next program follows that of the last condition."""
    a, b = normal(330, 200), normal(200, 64, seed=1)
    limit = np.array([0, 500, 30000, 1e9, 9000, 1], np.float32)
    expected = np.zeros((330, 64))
    for p, most in enumerate(limit):
        rows, k = slice(64 * p, 64 * p + 64), 0
        while k < 200 and np.abs(expected[rows]).sum() < most:
            expected[rows] += a[rows, k : k + 32].astype(float) @ b[k : k + 32].astype(float)
            k += 32
    assert_right(until.demanding(**demands), [a, b, empty(330, 64), limit], {2: expected})


def product_of_rows(a: Any, x: Any, m: Any, BM: int, STAGES: int | None) -> Any:
    """Rows of a @ x, by a loop."""
    acc = tl.zeros((BM, 16), tl.f32)
    for k in tl.range(0, a.shape[1], 32, stages=STAGES):
        acc = tl.dot(tl.load(a, (m, k), (BM, 32)), tl.load(x, (k, 0), (32, 16)), acc)
    return acc


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0], BM))
def halve(
    a: tl.array, x: tl.array, y: tl.array, n: tl.array, BM: tl.const = 64, STAGES: tl.const = None
):
    """A condition that runs a loop of products itself."""
    m, i, scale = tl.program_id(0) * BM, 0, 1.0
    while tl.max(tl.abs(product_of_rows(a, x, m, BM, STAGES))) * scale > 1.0:
        scale = scale * 0.5
        i += 1
    tl.store(y, (m, 0), product_of_rows(a, x, m, BM, STAGES) * scale)
    tl.store(n, tl.program_id(0), i)


@pytest.mark.share(2)
@pytest.mark.parametrize("stages", [None, 3])
def test_a_ring_in_a_condition(stages: int | None) -> None:
    a, x = normal(330, 200), normal(200, 16, seed=1)
    expected, count = a.astype(float) @ x.astype(float), np.zeros(6)
    for p in range(6):
        tile = expected[64 * p : 64 * p + 64]
        while np.abs(tile).max() > 1:
            tile *= 0.5
            count[p] += 1
    arguments = [a, x, empty(330, 16), empty(6, dtype=np.int32)]
    assert_right(
        halve.demanding(persistent=True), arguments, {2: expected, 3: count}, STAGES=stages
    )


@tilec.kernel(grid=matmul_grid)
def layers(
    a: tl.array, b: tl.array, following: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, STAGES: tl.const = 2,
):  # fmt: skip
    """A list of layers in memory, each a loop of products with a ring."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    g = tl.load(following, tl.program_id(0), ())
    while g >= 0:
        for k in tl.range(0, a.shape[2], 32, stages=STAGES):
            acc = tl.dot(tl.load(a, (g, m, k), (BM, 32)), tl.load(b, (g, k, n), (32, BN)), acc)
        acc = acc * 0.5
        g = tl.load(following, g + 6, ())
    tl.store(c, (m, n), acc)


@pytest.mark.share(2)
@pytest.mark.parametrize("demands", [PERSISTENT, {"consumers": "pingpong", "num_warps": 4}])
def test_rings_in_a_loop_along_a_list(demands: dict[str, Any], target: str) -> None:
    if "consumers" in demands and target != "sm_90a":
        pytest.skip("two sets of warps take turns on Hopper")
    following = np.array([0, 3, -1, 1, 2, 4, 2, -1, 4, 1, -1], np.int32)
    a, b = normal(5, 330, 104), normal(5, 104, 136, seed=1)
    expected = np.zeros((330, 136))
    for p in range(6):
        rows, g = slice(64 * p, 64 * p + 64), following[p]
        while g >= 0:
            expected[rows] += a[g, rows].astype(float) @ b[g].astype(float)
            expected[rows] *= 0.5
            g = following[g + 6]
    arguments = [a, b, following, empty(330, 136)]
    assert_right(layers.demanding(**demands), arguments, {3: expected})


@tilec.kernel(grid=matmul_grid)
def by_parts(
    a: tl.array, b: tl.array, length: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, STAGES: tl.const = 3,
):  # fmt: skip
    """A loop with a ring in a branch of a loop in a branch."""
    i = tl.program_id(0)
    m, n = i * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    if i != 2:
        for g in tl.range(a.shape[0]):
            end = tl.load(length, (g, i), ())
            if end > 0:
                for k in tl.range(0, end, 32, stages=STAGES):
                    left = tl.load(a, (g, m, k), (BM, 32))
                    acc = tl.dot(left, tl.load(b, (g, k, n), (32, BN)), acc)
            else:
                acc = acc - 1.0
    tl.store(c, (m, n), acc)


@pytest.mark.share(2)
def test_rings_in_branches_of_loops() -> None:
    length = 32 * np.random.default_rng(2).integers(-1, 5, (4, 6)).astype(np.int32)
    length[2], length[3, 0] = 128, 0
    a, b = normal(4, 330, 136), normal(4, 136, 72, seed=1)
    expected = np.zeros((330, 72))
    for (g, p), end in np.ndenumerate(length):
        rows = slice(64 * p, 64 * p + 64)
        if p != 2:
            more = a[g, rows, :end].astype(float) @ b[g, :end].astype(float) if end > 0 else -1
            expected[rows] += more
    kernel = by_parts.demanding(persistent=True)
    assert_right(kernel, [a, b, length, empty(330, 72)], {3: expected})


@tilec.kernel(grid=matmul_grid)
def leaps(
    a: tl.array, b: tl.array, leap: tl.array, c: tl.array, BM: tl.const = 64, BN: tl.const = 64
):
    """A loop over k whose steps memory says."""
    m, n, k = tl.program_id(0) * BM, tl.program_id(1) * BN, 0
    acc = tl.zeros((BM, BN), tl.f32)
    while k < a.shape[1]:
        acc = tl.dot(tl.load(a, (m, k), (BM, 32)), tl.load(b, (k, n), (32, BN)), acc)
        k += 32 * tl.load(leap, k // 32, ())
    tl.store(c, (m, n), acc)


@pytest.mark.share(2)
def test_steps_that_memory_says() -> None:
    a, b, leap = normal(200, 250), normal(250, 72, seed=1), np.array([1, 2, 0, 1, 3, 0, 0, 1])
    expected, k = np.zeros((200, 72)), 0
    while k < 250:
        expected += a[:, k : k + 32].astype(float) @ b[k : k + 32].astype(float)
        k += 32 * leap[k // 32]
    arguments = [a, b, leap.astype(np.int32), empty(200, 72)]
    assert_right(leaps.demanding(persistent=True), arguments, {3: expected})


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def settle(x: tl.array, y: tl.array, n: tl.array, R: tl.const = 4, N: tl.const = 96):
    """A condition that scans and reduces, and a body that sorts."""
    r, i = tl.program_id(0) * R, 0
    t = tl.load(x, (r, 0), (R, N))
    while tl.max(tl.cumsum(tl.abs(t), 1)) > 10.0:
        t = (t - tl.sort(t, 1) * 0.5) * 0.5
        i += 1
    tl.store(y, (r, 0), t)
    tl.store(n, tl.program_id(0), i)


@pytest.mark.share(2)
@pytest.mark.parametrize("demands", [EIGHT, PERSISTENT])
def test_exchanges_in_condition_and_body(demands: dict[str, Any]) -> None:
    x = normal(14, 96, dtype=np.float32)
    expected, count = np.zeros((16, 96)), np.zeros(4)
    expected[:14] = x
    for p in range(4):
        tile = expected[4 * p : 4 * p + 4]
        while np.abs(tile).sum(1).max() > 10:
            tile[:] = (tile - np.sort(tile, 1) * 0.5) * 0.5
            count[p] += 1
    arguments = [x, empty(14, 96), empty(4, dtype=np.int32)]
    assert_right(settle.demanding(**demands), arguments, {1: expected[:14], 2: count}, 1e-5)


@tilec.kernel(grid=lambda head: head.shape[0])
def chains(head: tl.array, following: tl.array, rows: tl.array, out: tl.array, N: tl.const = 40):
    """Sums rows along a list, each up to its first tile of zeros."""
    p = tl.load(head, tl.program_id(0), ())
    total = tl.zeros((N,), tl.f32)
    while p >= 0:
        j, size = 0, 1.0
        while (j < rows.shape[1]) and (size != 0.0):
            t = tl.load(rows, (p, j), (1, N)).reshape((N,))
            size = tl.sum(tl.abs(t))
            total += t
            j += N
        p = tl.load(following, p, ())
    tl.store(out, (tl.program_id(0), 0), total[None, :])


def test_loops_in_loops_along_a_list() -> None:
    rows = np.random.default_rng(0).integers(-3, 4, (12, 160)).astype(np.float32)
    rows[3, 40:80] = rows[5, :40] = rows[:, 130:] = 0
    following = np.array([3, 5, 7, -1, 8, -1, 2, 9, 10, -1, 11, -1], np.int32)
    head, out = np.array([0, 1, -1, 6, 4, 5], np.int32), np.zeros((6, 40))
    for g, p in enumerate(head):
        while p >= 0:
            for tile in rows[p].reshape(4, 40):
                out[g] += tile
                if not tile.any():
                    break
            p = following[p]
    arguments = [head, following, rows[:, :130].copy(), empty(6, 40)]
    assert_right(chains.demanding(**PERSISTENT), arguments, {3: out}, 0)
