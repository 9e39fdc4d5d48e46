"""What is behind a loop that CTAs sum in parts and needs a sum whole: each has a stripe of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples.running import poisoned

SIDE, DEPTH = 64, 200
"""One program; four parts of a ragged loop."""


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def finished(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    marks: tl.array,
    WAY: tl.const,
    BM: tl.const = SIDE,
    BN: tl.const = SIDE,
):
    """c = f(a @ b); marks[i] = 1 where `WAY` stores at a place that the sum says."""
    tl.static_assert(BM == SIDE and BN == SIDE, "what is divided by depends on the tile")
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums, columns = tl.zeros((BM, BN), tl.f32), tl.zeros((BN,), tl.f32)
    for k in tl.range(0, a.shape[1], 32):
        right = tl.load(b, (k, n), (32, BN))
        sums = tl.dot(tl.load(a, (m, k), (BM, 32)), right, sums)
        if WAY == "two sums":
            columns += tl.sum(right.to(tl.f32), axis=0)
    if WAY == "two sums":
        sums = sums - columns[None, :]
    if WAY == "by the greatest":
        sums = sums / tl.max(tl.abs(sums))
    if WAY == "by both sides":
        sums = sums / (tl.max(sums, 0, keepdims=True) * tl.max(sums, 1, keepdims=True))
    if WAY == "columns":
        sums = sums / tl.max(tl.abs(sums), 0, keepdims=True)
    if WAY == "sign of all":
        sums = tl.where(tl.sum(sums) > 0, sums, -sums)
    if WAY == "a load's place":
        sums = sums * tl.load(a, (tl.argmax(tl.max(sums, 1), 0), 0), ()).to(tl.f32)
    tl.store(c, (m, n), sums)
    if WAY == "a store's place":
        tl.store(marks, (tl.sum((sums > 0).to(tl.i32)),), 1)


def expected(a: np.ndarray, b: np.ndarray, way: str) -> tuple[np.ndarray, np.ndarray]:
    """c and marks."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    sums, marks = a @ b, np.zeros(SIDE * SIDE + 1)
    if way == "a store's place":
        marks[(sums > 0).sum()] = 1
    finish = {
        "two sums": lambda: sums - b.sum(0),
        "by the greatest": lambda: sums / np.abs(sums).max(),
        "by both sides": lambda: sums / (sums.max(0) * sums.max(1, keepdims=True)),
        "columns": lambda: sums / np.abs(sums).max(0),
        "sign of all": lambda: sums if sums.sum() > 0 else -sums,
        "a load's place": lambda: sums * a[sums.max(1).argmax(), 0],
    }
    return finish.get(way, lambda: sums)(), marks


WHOLE = (
    *("two sums", "by the greatest", "by both sides"),
    *("sign of all", "a load's place", "a store's place"),
)


def check(kernel: Kernel, way: str, mode: str = "check", **constants: object) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((SIDE, DEPTH), (DEPTH, SIDE)))
    c, marks = poisoned((SIDE, SIDE), np.float32), np.zeros(SIDE * SIDE + 1, np.int32)
    kernel.on(f"emulator:{mode}")(a, b, c, marks, WAY=way, **constants)
    right, places = expected(a, b, way)
    np.testing.assert_allclose(c, right, atol=1e-4 * np.abs(right).max())
    np.testing.assert_array_equal(marks, places)


def no_cluster(kernel: Kernel, dtypes: str, constants: dict[str, object]) -> str:
    """Why parts that meet in memory are no cluster, on sm_90a."""
    names = [one.name for one in kernel.parameters if one.kind == "array"]
    ranks = ["?;1" if name == "marks" else "?,?:8;?:8,1" for name in names]
    specs = [f"{n}:{d}[{r}]" for n, d, r in zip(names, dtypes.split(), ranks, strict=True)]
    (found,) = decisions(kernel.compile(specs, constants, target="sm_90a"), "sums")
    assert "which meet in memory" in found
    return found.partition("these are no cluster: ")[2].removesuffix(")")


NO_STRIPES = "what is behind the loop does not come in 4 stripes of the sum"
PRODUCT = "f16 f16 f32 i32"
"""Of a, b, c and marks."""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("way", WHOLE)
def test_a_sum_that_is_needed_whole_meets_in_memory(
    way: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster each CTA has added up its part of k for all the tile, and all of k for its
    stripe alone; in memory the CTA that comes last has all of it."""
    monkeypatch.setenv("TILEC_TARGET", target)
    kernel = finished.demanding(sum_parts=4)
    for mode in modes():
        check(kernel, way, mode)
    assert no_cluster(kernel, PRODUCT, {"WAY": way}) == NO_STRIPES


@pytest.mark.parametrize("way", WHOLE)
def test_automatic_parts_leave_it_whole(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a demand one program with a long loop comes in parts wherever it can."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    check(finished, way, BM=tl.auto, BN=tl.auto)


def test_columns_that_are_needed_whole_are_cut_the_other_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    check(finished.demanding(sum_parts=4), "columns")


@tilec.kernel(grid=1)
def marked(a: tl.array, b: tl.array, c: tl.array, marks: tl.array):
    """marks[7] = 1 where more than a third of the sums are above 0; of a stripe no more than a
    quarter can be."""
    sums = tl.zeros((SIDE, SIDE), tl.f32)
    for k in tl.range(0, a.shape[1], 32):
        sums = tl.dot(tl.load(a, (0, k), (SIDE, 32)), tl.load(b, (k, 0), (32, SIDE)), sums)
    tl.store(c, (0, 0), sums)
    if tl.sum((sums > 0).to(tl.i32)) > SIDE * SIDE // 3:
        tl.store(marks, (7,), 1)


@pytest.mark.parametrize("demands", [{}, {"sum_parts": 4}], ids=["free", "demanded"])
@pytest.mark.parametrize("sign", [1, -1], ids=["taken", "not taken"])
def test_sums_decide_branches_where_they_are_whole(
    sign: int, demands: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(6)
    a, b = (rng.random(s).astype(np.float16) for s in ((SIDE, DEPTH), (DEPTH, SIDE)))
    kernel = marked.demanding(**demands)
    for mode in modes():
        c, marks = poisoned((SIDE, SIDE), np.float32), np.zeros(9, np.int32)
        kernel.on(f"emulator:{mode}")(a, (sign * b).astype(np.float16), c, marks)
        np.testing.assert_allclose(c, sign * a.astype(float) @ b.astype(float), rtol=1e-4)
        assert marks.tolist() == [0] * 7 + [int(sign > 0), 0]
    if demands:
        assert no_cluster(kernel, PRODUCT, {}) == NO_STRIPES


@tilec.kernel(grid=1)
def in_place(x: tl.array, c: tl.array, d: tl.array, WAY: tl.const, B: tl.const = 64):
    """c += the sum of x's blocks of B rows, or f of it."""
    acc = tl.zeros((B, 32), tl.f32)
    for i in tl.range(0, x.shape[0], B):
        acc += tl.load(x, (i, 0), (B, 32))
    old = tl.load(c, (0, 0), (B, 32))
    if WAY == "all of it":
        acc = acc / tl.max(old)
    if WAY == "rows":
        acc = acc / tl.max(old, 1, keepdims=True)
    if WAY == "another":
        beside = tl.load(d, (0, 0), (B, 32))
        acc = acc + beside
        tl.store(d, (0, 0), beside + 1.0)
    tl.store(c, (0, 0), acc + old)


@pytest.mark.parametrize("parts", [4, 20])
@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("plain", None),
        ("rows", None),
        ("all of it", NO_STRIPES),
        ("another", "what is behind the loop reads elsewhere in an array that it writes"),
    ],
)
def test_no_stripe_reads_what_another_one_writes(
    way: str, reason: str | None, parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each CTA of a cluster stores its stripe when it has that; nobody waits for the others."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(parts)
    x, (old, beside) = rng.random((1000, 32), np.float32), rng.random((2, 64, 32), np.float32)
    sums = np.concatenate([x, np.zeros((24, 32))]).reshape(-1, 64, 32).sum(0)
    finish = {
        "all of it": lambda: sums / old.max(),
        "rows": lambda: sums / old.max(1, keepdims=True),
        "another": lambda: sums + beside,
    }
    kernel = in_place.demanding(sum_parts=parts)
    for mode in modes():
        c, d = old.copy(), beside.copy()
        kernel.on(f"emulator:{mode}")(x, c, d, WAY=way)
        np.testing.assert_allclose(c, finish.get(way, lambda: sums)() + old, rtol=1e-5)
        np.testing.assert_array_equal(d, beside + np.float32(way == "another"))
    if reason is not None and parts == 4:
        assert no_cluster(kernel, "f32 f32 f32", {"WAY": way}) == reason


@tilec.kernel(grid=1)
def unread(x: tl.array, seen: tl.array, WAY: tl.const, B: tl.const = 64):
    """A sum that nobody reads; x = 1 + x, and `seen` counts who did so."""
    acc = tl.zeros((B,), tl.f32)
    for i in tl.range(0, x.shape[0], B):
        acc += tl.load(x, (i,), (B,))
    if WAY == "reduced":
        tl.sum(acc)
    tl.store(x, (0,), tl.load(x, (0,), (B,)) + 1.0)
    tl.atomic_add(seen, (0,), 1)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("parts", [4, 20])
@pytest.mark.parametrize("way", ["", "reduced"])
def test_the_first_cta_does_the_rest_where_nobody_reads_a_sum(
    way: str, parts: Any, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    before = np.random.default_rng(parts).random(1000, np.float32)
    kernel = unread.demanding(sum_parts=parts)
    for mode in modes():
        x, seen = before.copy(), np.zeros(1, np.int32)
        kernel.on(f"emulator:{mode}")(x, seen, WAY=way)
        np.testing.assert_array_equal(x, np.append(before[:64] + 1, before[64:]))
        assert seen[0] == 1
    found = kernel.compile(["x:f32[?;1]", "seen:i32[?;1]"], {"WAY": way}, target=target)
    how = f"none: the first of {parts} CTAs does the rest (nothing reads them)"
    assert decisions(found, "sums") == [how]
