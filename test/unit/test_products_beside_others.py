"""Loops of products that use a tile twice, meet another loop's rings, leave iterations out or sum
over windows, by one demand after the other: on the emulator, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checked_calls import assert_right, empty, matmul_grid, normal
from target_names import MAIN

import tilec
import tilec.language as tl

PERSISTENT: dict[str, Any] = {"persistent": True}
IN_TURN: dict[str, Any] = {"consumers": "pingpong", "num_warps": 4}
pytestmark = pytest.mark.share(2)


@pytest.fixture(params=MAIN, autouse=True)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


@tilec.kernel(grid=matmul_grid)
def with_gram(
    a: tl.array, b: tl.array, c: tl.array, d: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, STAGES: tl.const = 3,
):  # fmt: skip
    """c = a @ b and, of each 64 rows, d = a @ a^T: a tile straight and transposed."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc, gram = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BM), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES):
        x = tl.load(a, (m, k), (BM, BK))
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc)
        gram = tl.dot(x, x.T, gram)
    tl.store(c, (m, n), acc)
    if n == 0:
        tl.store(d, (m, 0), gram)


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 4, 7])
def test_a_tile_straight_and_transposed(trips: int) -> None:
    """Around the slots of the ring, which has three."""
    a, b = normal(330, max(0, 64 * trips - 40)), normal(max(0, 64 * trips - 40), 136, seed=1)
    gram = np.zeros((330, 64))
    for m in range(0, 330, 64):
        tile = a[m : m + 64].astype(float)
        gram[m : m + 64, : len(tile)] = tile @ tile.T
    expected = {2: a.astype(float) @ b.astype(float), 3: gram}
    arguments = [a, b, empty(330, 136), empty(330, 64)]
    assert_right(with_gram.demanding(**PERSISTENT), arguments, expected)


@tilec.kernel(grid=lambda ends, c, BM, BN: (
    ends.shape[0], tl.cdiv(c.shape[1], BM), tl.cdiv(c.shape[2], BN)
))  # fmt: skip
def by_groups(
    x: tl.array, y: tl.array, ends: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 32, STAGES: tl.const = None,
):  # fmt: skip
    """x^T @ y of each group of rows, as windows."""
    g, m, n = tl.program_id(0), tl.program_id(1) * BM, tl.program_id(2) * BN
    first = tl.load(ends, g - 1, ())
    size = tl.load(ends, g, ()) - first
    left, right = (tl.window(each, (first, 0), (size, None)) for each in (x, y))
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, size, BK, stages=STAGES):
        acc = tl.dot(tl.load(left, (k, m), (BK, BM)).T, tl.load(right, (k, n), (BK, BN)), acc)
    tl.store(c, (g, m, n), acc, dims=(1, 2))


BY_GROUPS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (MAIN, PERSISTENT),
    (("sm_90a",), {"sum_parts": 4}),
)


@pytest.mark.parametrize(("targets", "demands"), BY_GROUPS)
def test_windows_that_are_summed_over(
    targets: tuple[str, ...], demands: dict[str, Any], target: str
) -> None:
    """Groups without a row, of one, and of more than a ring holds; behind the last are NaN."""
    if target not in targets:
        pytest.skip("the demand is another target's")
    ends = np.cumsum([0, 1, 31, 32, 97, 200, 5], dtype=np.int32)
    x, y = normal(367, 136), normal(367, 72, seed=1)
    x[366] = y[366] = np.nan
    expected = np.zeros((7, 136, 72))
    for g, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
        expected[g] = x[first:end].astype(float).T @ y[first:end].astype(float)
    arguments = [x, y, ends, empty(7, 136, 72)]
    assert_right(by_groups.demanding(**demands), arguments, {3: expected}, STAGES=3)


@tilec.kernel(grid=matmul_grid)
def in_two_loops(
    a: tl.array, b: tl.array, c: tl.array, d: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 32,
):  # fmt: skip
    """A second loop that goes on with half the sum, as far as a property of the sum says."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    odd = tl.sum((acc > 0).to(tl.i32)) % 2
    more = acc * 0.5
    for k in tl.range(0, tl.where(odd == 0, a.shape[1], a.shape[1] // 2), BK):
        more = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), more)
    tl.store(c, (m, n), acc)
    tl.store(d, (m, n), more)


def test_a_sum_that_says_how_far_the_next_loop_goes() -> None:
    a, b = normal(200, 232), normal(232, 136, seed=1)
    first = a.astype(float) @ b.astype(float)
    half = a[:, :128].astype(float) @ b[:128].astype(float)
    second = first * 1.5
    for m, n in np.ndindex(4, 3):
        tile = np.s_[64 * m : 64 * m + 64, 64 * n : 64 * n + 64]
        if (first[tile] > 0).sum() % 2:
            second[tile] = first[tile] / 2 + half[tile]
    arguments = [a, b, empty(200, 136), empty(200, 136)]
    assert_right(in_two_loops.demanding(**PERSISTENT), arguments, {2: first, 3: second})


@tilec.kernel(grid=matmul_grid)
def sparse(
    a: tl.array, b: tl.array, keep: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """Blocks of k that a table keeps, up to one that is negative."""
    i = tl.program_id(0)
    m, n = i * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        kept = tl.load(keep, (i, k // BK), ())
        if kept < 0:
            break
        if kept == 0:
            continue
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@pytest.mark.parametrize("demands", [PERSISTENT, {"num_warps": 8}])
def test_blocks_that_are_left_out(demands: dict[str, Any]) -> None:
    a, b = normal(330, 520), normal(520, 72, seed=1)
    keep = np.random.default_rng(2).integers(0, 2, (6, 9)).astype(np.int32)
    keep[0], keep[1], keep[2, 3], keep[4, 0] = 0, 1, -1, -1
    expected = np.zeros((330, 72))
    for i, row in enumerate(keep):
        rows = slice(64 * i, 64 * i + 64)
        for k, kept in enumerate(row):
            if kept < 0:
                break
            block = slice(64 * k, 64 * k + 64)
            expected[rows] += kept * (a[rows, block].astype(float) @ b[block].astype(float))
    assert_right(sparse.demanding(**demands), [a, b, keep, empty(330, 72)], {3: expected})


@tilec.kernel(grid=matmul_grid)
def finished(
    a: tl.array, b: tl.array, r: tl.array, bias: tl.array, c: tl.array, t: tl.array, top: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 32,
):  # fmt: skip
    """A product with bias and residual, stored straight and transposed, and its rows' maxima."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    biases, acc = tl.load(bias, n, BN), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    y = acc + biases[None, :] + tl.load(r, (m, n), (BM, BN)).to(tl.f32)
    tl.store(c, (m, n), y.to(c.dtype))
    tl.store(t, (n, m), y.T.to(t.dtype))
    inside = (n + tl.arange(BN))[None, :] < c.shape[1]
    most = tl.max(tl.where(inside, y, -tl.inf), 1)
    tl.atomic_max(top, m + tl.arange(BM), tl.floor(most * 0.25).to(tl.i32))


@pytest.mark.parametrize("demands", [PERSISTENT, IN_TURN])
def test_what_is_done_with_a_sum(demands: dict[str, Any], target: str) -> None:
    if demands is IN_TURN and target != "sm_90a":
        pytest.skip("two sets of warps take turns on Hopper")
    a, b, r = normal(330, 72), normal(72, 200, seed=1), normal(330, 200, seed=2)
    bias = normal(200, seed=3, dtype=np.float32)
    expected = a.astype(float) @ b.astype(float) + bias + r
    most = np.floor(expected.max(1) * 0.25)
    arguments = [a, b, r, bias, *(empty(*s, dtype=np.float16) for s in ((330, 200), (200, 330)))]
    arguments.append(empty(330, dtype=np.int32))
    right = {4: expected, 5: expected.T, 6: most}
    assert_right(finished.demanding(**demands), arguments, right)
