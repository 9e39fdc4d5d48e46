"""Left operands that are computed between load and product (`passes.computed_lhs`): their tiles
come by tensor copies as they lie in memory, and the warpgroups that multiply compute them."""

from __future__ import annotations

import numpy as np
import pytest
from hopper_kernels import activated, decisions, matmul_grid
from test_warp_specialized import BF16, FP8, assert_clean, exact, normal, run, stages

import tilec
import tilec.language as tl
from tilec.executable.kernel import CompiledKernel


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with warpgroup instructions."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


SMALL = {"BM": 64, "BN": 64, "BK": 64}


def assert_computed(kernel: CompiledKernel, products: str = "one group in flight") -> None:
    """The load role has only tensor copies to issue; the products' left operands are registers."""
    assert stages(kernel) >= 2
    found = decisions(kernel, "dot operand")
    assert any(one.startswith("lhs in registers, from") for one in found), found
    assert not any(one.startswith("lhs in ") and "buffer" in one for one in found)
    assert decisions(kernel, "matrix instructions")[0].startswith(products)
    assert_clean(kernel)


@pytest.mark.parametrize(
    ("warps", "constants"),
    [
        (4, {"BM": 64, "BN": 128, "BK": 64}),
        (4, {"BM": 128, "BN": 64, "BK": 32}),
        (8, {"BM": 128, "BN": 64, "BK": 128}),
        (8, {"BM": 64, "BN": 128, "BK": 48}),  # warpgroups share the rows; three steps along k
        (12, {"BM": 192, "BN": 64, "BK": 64}),
    ],
)
def test_tiles_and_warps(warps: int, constants: dict[str, int]) -> None:
    a, b = normal(200, 272), normal(272, 136)
    squared = (np.maximum(a.astype(np.float32), 0) ** 2).astype(BF16)
    expected = exact(squared) @ exact(b)
    kernel = run(activated.demanding(num_warps=warps), [a, b], expected, **constants)
    assert_computed(kernel)


def test_one_step_along_k_is_finished_in_each_iteration() -> None:
    a, b = normal(72, 80), normal(80, 72)
    squared = (np.maximum(a.astype(np.float32), 0) ** 2).astype(BF16)
    kernel = run(activated, [a, b], exact(squared) @ exact(b), BM=64, BN=64, BK=16)
    assert_computed(kernel, "finished in each iteration")


def test_programs_in_turn() -> None:
    a, b = normal(200, 136), normal(136, 136)
    squared = (np.maximum(a.astype(np.float32), 0) ** 2).astype(BF16)
    kernel = run(
        activated.demanding(num_warps=4, consumers="pingpong"),
        [a, b], exact(squared) @ exact(b), WARP_SPECIALIZE=True, **SMALL,
    )  # fmt: skip
    assert_computed(kernel)


@tilec.kernel(grid=matmul_grid)
def converted(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, PRECISION: tl.const = "ieee",
):  # fmt: skip
    """c = (a + a converted to what b is) @ b."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.i32 if b.dtype == tl.i8 else tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        x = tl.load(a, (m, k), (BM, BK))
        x = x.to(tl.f32) if a.dtype == tl.f8e4m3 else x
        acc = tl.dot((x + x).to(b.dtype), tl.load(b, (k, n), (BK, BN)), acc, PRECISION)
    tl.store(c, (m, n), acc.to(c.dtype))


CONVERSIONS = {
    "f32 to bf16": (np.float32, BF16, "ieee"),
    "f32 to tf32": (np.float32, np.float32, "tf32"),
    "f16 to f16": (np.float16, np.float16, "ieee"),
    "bf16 to e4m3": (BF16, FP8, "ieee"),
    "e4m3 to f16": (FP8, np.float16, "ieee"),
    "s8 to s8": (np.int8, np.int8, "ieee"),
    "s8 to bf16": (np.int8, BF16, "ieee"),
    "s32 to s8": (np.int32, np.int8, "ieee"),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("rows_first", [False, True])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name: str, rows_first: bool) -> None:
    """Elements of one size read as fragments of those of another, k or m contiguous."""
    source, target, precision = CONVERSIONS[name]
    rng = np.random.default_rng(1)
    shapes = ((80, 176), (176, 80))
    whole = np.dtype(source).kind == "i"
    a, b = (rng.integers(-20, 20, s) if whole else rng.standard_normal(s) for s in shapes)
    a = np.asarray(a.astype(source), order="F" if rows_first else "C")
    b = b.astype(target)
    b = b if np.dtype(target).itemsize == 2 else np.asarray(b, order="F")
    with np.errstate(over="ignore"):
        doubled = (a.astype(np.float32) * 2).astype(target)
    kernel = run(
        converted, [a, b], exact(doubled) @ exact(b),
        dtype=np.int32 if target is np.int8 else np.float32, PRECISION=precision, **SMALL,
    )  # fmt: skip
    assert_computed(kernel)


@tilec.kernel(grid=matmul_grid)
def dequantised(
    a: tl.array, scale: tl.array, zero: tl.array, group: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c = ((a - zero by column) * scale by row * group by row and BK columns) @ b up to column
    a.shape[1] - 3."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    rows = tl.load(scale, (m,), (BM,))
    for k in tl.range(0, a.shape[1], BK):
        x = tl.load(a, (m, k), (BM, BK)).to(tl.f32)
        x = (x - tl.load(zero, (k,), (BK,))[None, :]) * rows[:, None]
        x = x * tl.load(group, (m, k // BK), (BM, 1))
        x = tl.where((k + tl.arange(BK) < a.shape[1] - 3)[None, :], x, 0.0)
        acc = tl.dot(x.to(b.dtype), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@pytest.mark.parametrize("warps", [4, 8])
def test_rows_columns_and_numbers_beside_the_tile(warps: int) -> None:
    """What every part needs a part of, and what it needs whole, from in and outside the loop."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(-128, 128, (136, 208), dtype=np.int8), normal(208, 72)
    scale, zero = (normal(n, seed=s, dtype=np.float32) for n, s in ((136, 3), (208, 4)))
    group = normal(136, 4, seed=5, dtype=np.float32)
    wide = (a - exact(zero)) * exact(scale)[:, None] * np.repeat(exact(group), 64, 1)[:, :208]
    wide[:, -3:] = 0
    kernel = run(
        dequantised.demanding(num_warps=warps), [a, scale, zero, group, b],
        wide.astype(BF16).astype(np.float64) @ exact(b), BM=64, BN=16 * warps, BK=64,
    )  # fmt: skip
    assert_computed(kernel)


@tilec.kernel(grid=matmul_grid)
def combined(
    a: tl.array, g: tl.array, b: tl.array, d: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c = (a * g^T) @ b + (a * g^T) @ d: two tiles make one operand of two products."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    first, second = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        x = tl.load(a, (m, k), (BM, BK)) * tl.load(g, (k, m), (BK, BM)).T
        first = tl.dot(x, tl.load(b, (k, n), (BK, BN)), first)
        second = tl.dot(x, tl.load(d, (k, n), (BK, BN)), second)
    tl.store(c, (m, n), (first + second).to(c.dtype))


def test_two_tiles_and_two_products() -> None:
    a, g, b, d = normal(80, 144), normal(144, 80), normal(144, 72), normal(144, 72, seed=1)
    product = exact((a * g.T).astype(BF16))
    kernel = run(combined, [a, g, b, d], product @ exact(b) + product @ exact(d), **SMALL)
    assert_computed(kernel, "finished in each iteration")
    found = decisions(kernel, "dot operand")
    assert sum(one.startswith("lhs in registers, from") for one in found) == 2


@tilec.kernel(grid=matmul_grid)
def both_computed(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c = -a @ relu(b): the right operand goes through the load role's registers."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, warp_specialize=True):
        right = tl.maximum(tl.load(b, (k, n), (BK, BN)), 0.0)
        acc = tl.dot(-tl.load(a, (m, k), (BM, BK)), right, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def test_right_operands_go_through_shared_memory() -> None:
    a, b = normal(80, 144), normal(144, 72)
    kernel = run(both_computed, [a, b], -exact(a) @ np.maximum(exact(b), 0), **SMALL)
    assert decisions(kernel, "producer")[0].startswith("loads and stores")
    found = decisions(kernel, "dot operand")
    assert any(one.startswith("lhs in registers, from") for one in found), found


@tilec.kernel(grid=matmul_grid)
def refused(
    a: tl.array, table: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, KIND: tl.const = "",
):  # fmt: skip
    """Operands that do not qualify."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    before, row = tl.load(a, (m, 0), (BM, BK)), tl.load(table, (0,), (BK,))
    for k in tl.range(0, a.shape[1], BK):
        if KIND == "padding":
            x = tl.load(a, (m, k), (BM, BK), padding=1.0) - 1.0
        else:
            x = tl.load(a, (m, k), (BM, BK))
        if KIND == "outside":
            x = x + before
        if KIND == "both ways":
            x = x * row[:, None] * row[None, :]
        if KIND == "gather":
            x = x * tl.gather(table, (tl.abs(x).to(tl.i32),))
        if KIND == "sum":
            x = x - tl.sum(x, 1)[:, None].to(x.dtype)
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("padding", "padding is 1"),
        ("outside", "a tile along k comes from outside the loop"),
        ("both ways", "a tile along k comes from outside the loop"),
        ("gather", "'tile.gather' stands between load and product"),
        ("sum", "'tile.reduce' stands between load and product"),
    ],
)
def test_what_does_not_qualify_is_reported_and_right(kind: str, why: str) -> None:
    a, table, b = normal(64, 128), normal(8, seed=1), normal(128, 64)
    x = exact(a)
    if kind == "padding":
        x = exact((a - BF16(1)).astype(BF16))
    if kind == "outside":
        x = exact(np.concatenate([a[:, :64] + a[:, :64], a[:, 64:] + a[:, :64]], 1).astype(BF16))
    if kind == "both ways":
        row = np.concatenate([table, np.zeros(56, BF16)])
        x = exact((a * row[:, None]).astype(BF16) * np.tile(row, 2))
    if kind == "gather":
        x = exact((a * table[np.abs(a).astype(np.int32)]).astype(BF16))
    if kind == "sum":
        sums = np.repeat(a.astype(np.float32).reshape(64, 2, 64).sum(2).astype(BF16), 64, 1)
        x = exact((a - sums).astype(BF16))
    kernel = run(refused, [a, table, b], x @ exact(b), tolerance=3e-2, KIND=kind, **SMALL)
    assert any(
        one.startswith(f"lhs not in registers ({why}") for one in decisions(kernel, "dot operand")
    ), decisions(kernel, "dot operand")
