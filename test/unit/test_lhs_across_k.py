"""Left operands of tf32 that are contiguous along m: tensor copies bring them as they lie, and
warpgroups read them into registers, with neighbouring rows in a thread (`MmaInstruction.paired`).
Right operands that lie so become left ones, of the transposed product
(`passes.transpose_products`).
"""

from __future__ import annotations

import numpy as np
import pytest
from hopper_kernels import decisions, matmul_grid
from test_computed_operands import assert_computed
from test_warp_specialized import exact, normal, run, stages

import tilec
import tilec.language as tl
from tilec.executable.kernel import CompiledKernel
from tilec.ops import product_launch
from tilec.ops.tile_choice import TileChoice

TOLERANCE = 2e-3


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with warpgroup instructions."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


@tilec.kernel(grid=matmul_grid)
def product(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 32,
    STAGES: tl.const = None, TRANSPOSED: tl.const = False,
):  # fmt: skip
    """c = a @ b, or a^T @ b."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, b.shape[0], BK, stages=STAGES):
        x = tl.load(a, (k, m), (BK, BM)).T if TRANSPOSED else tl.load(a, (m, k), (BM, BK))
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc, "tf32")
    tl.store(c, (m, n), acc.to(c.dtype))


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """a contiguous along m, b along k."""
    a, b = normal(k, m, dtype=np.float32), normal(n, k, seed=1, dtype=np.float32)
    return a.T, b.T


def is_paired(kernel: CompiledKernel) -> bool:
    """Whether threads have neighbouring rows."""
    (found,) = decisions(kernel, "dot instruction")
    return ".tf32.tf32.paired (" in found


@pytest.mark.parametrize(
    ("warps", "constants"),
    [
        (4, {"BM": 64, "BN": 136, "BK": 32}),
        (4, {"BM": 128, "BN": 64, "BK": 16}),
        (8, {"BM": 128, "BN": 256, "BK": 32, "STAGES": 3}),
        (8, {"BM": 256, "BN": 64, "BK": 24}),  # three steps along k
        (8, {"BM": 64, "BN": 128, "BK": 48}),  # warpgroups share the rows; three panels along k
        (12, {"BM": 192, "BN": 24, "BK": 64}),
    ],
)
def test_tiles_and_warps(warps: int, constants: dict[str, int]) -> None:
    a, b = operands(140, 76, 100)
    kernel = run(
        product.demanding(num_warps=warps), [a, b], exact(a) @ exact(b), np.float32, TOLERANCE,
        **constants,
    )  # fmt: skip
    assert is_paired(kernel)
    assert_computed(kernel)
    assert stages(kernel) == constants.get("STAGES", stages(kernel))


@pytest.mark.share(2)
@pytest.mark.parametrize("demands", [{}, {"persistent": True}, {"cluster": (2, 1)}])
@pytest.mark.parametrize("rows_first", [False, True])
def test_results_of_either_order(rows_first: bool, demands: dict[str, object]) -> None:
    """Threads write two rows at once where those are neighbours in memory, else the copy engine
    writes boxes."""
    a, b = operands(140, 76, 68)
    expected = exact(a) @ exact(b)
    there = product.demanding(**demands).on("emulator:check")
    c = np.full(expected.shape, np.nan, np.float32, order="F" if rows_first else "C")
    there(a, b, c, BM=128, BN=64)
    np.testing.assert_allclose(c, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())
    kernel = there.compiled(a, b, c, BM=128, BN=64)
    assert is_paired(kernel)
    if rows_first:
        assert decisions(kernel, "memory access")[0].startswith("8-byte stores")
    else:
        assert decisions(kernel, "tensor store")[0].startswith("TMA")


def test_a_tile_that_is_transposed_back() -> None:
    """A transposed tile of rows along m lies across k, too."""
    a, b = operands(140, 72, 100)
    kernel = run(product, [a.T, b], exact(a) @ exact(b), np.float32, TOLERANCE, TRANSPOSED=True)
    assert is_paired(kernel)
    assert_computed(kernel)


def test_one_step_along_k() -> None:
    a, b = operands(136, 72, 100)
    kernel = run(product, [a, b], exact(a) @ exact(b), np.float32, TOLERANCE, BK=8)
    assert is_paired(kernel)
    assert_computed(kernel, "finished in each iteration")


def test_rows_that_no_copy_can_bring() -> None:
    """An odd number of rows: their columns begin anywhere, and tiles come along k."""
    a, b = operands(137, 72, 100)
    kernel = run(product, [a, b], exact(a) @ exact(b), np.float32, TOLERANCE)
    assert not is_paired(kernel)
    found = decisions(kernel, "dot operand")
    assert found[0].startswith("lhs not in registers (the stride of dimension 1"), found


def test_operands_along_k_stay_in_shared_memory() -> None:
    a, b = operands(136, 72, 100)
    kernel = run(
        product, [np.ascontiguousarray(a), b], exact(a) @ exact(b), np.float32, TOLERANCE
    )  # fmt: skip
    assert not is_paired(kernel)
    assert not any("lhs" in one and "registers" in one for one in decisions(kernel, "dot operand"))


def test_sums_in_a_tile_too_large_for_registers() -> None:
    """Beside 192 sums a thread has no room for the halves of an operand."""
    a, b = operands(136, 72, 68)
    kernel = run(
        product.demanding(num_warps=4), [a, b], exact(a) @ exact(b), np.float32, TOLERANCE,
        BM=128, BN=192, BK=64,
    )  # fmt: skip
    assert not is_paired(kernel)


@pytest.mark.share(2)
@pytest.mark.parametrize("rows_first", [False, True])
@pytest.mark.parametrize(
    ("warps", "constants"),
    [
        (4, {"BM": 64, "BN": 128}),
        (8, {"BM": 192, "BN": 64}),  # warpgroups share the 64 columns, which are rows now
        (8, {"BM": 64, "BN": 192, "BK": 24, "STAGES": 2}),
    ],
)
def test_right_operands_become_left_ones(
    warps: int, constants: dict[str, int], rows_first: bool
) -> None:
    """A loop over rows by rows adds up the transposed product (transpose-products)."""
    a, b = normal(140, 100, dtype=np.float32), normal(100, 204, seed=1, dtype=np.float32)
    expected = exact(a) @ exact(b)
    there = product.demanding(num_warps=warps).on("emulator:check")
    c = np.full(expected.shape, np.nan, np.float32, order="F" if rows_first else "C")
    there(a, b, c, **constants)
    np.testing.assert_allclose(c, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())
    kernel = there.compiled(a, b, c, **constants)
    assert decisions(kernel, "product") == ["of the transposes (its rhs lies across k)"]
    assert is_paired(kernel)
    assert_computed(kernel)


def test_right_operands_that_no_copy_can_bring() -> None:
    a, b = normal(72, 68, dtype=np.float32), normal(68, 133, seed=1, dtype=np.float32)
    kernel = run(product, [a, b], exact(a) @ exact(b), np.float32, TOLERANCE)
    (found,) = decisions(kernel, "product")
    assert found.startswith("not of the transposes (the stride of dimension 0"), found


@tilec.kernel(grid=matmul_grid)
def two_sums(
    a: tl.array, b: tl.array, d: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 32,
):  # fmt: skip
    """c = max(a @ b + 1, 0) * (a @ d): two sums of one loop, one of which starts as ones."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    first, second = tl.full((BM, BN), 1.0, tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        x = tl.load(a, (m, k), (BM, BK))
        first = tl.dot(x, tl.load(b, (k, n), (BK, BN)), first, "tf32")
        second = tl.dot(x, tl.load(d, (k, n), (BK, BN)), second, "tf32")
    tl.store(c, (m, n), tl.maximum(first, 0.0) * second)


def test_two_sums_of_one_loop() -> None:
    a, b, d = (normal(*s, seed=i, dtype=np.float32) for i, s in enumerate(
        ((72, 68), (68, 132), (68, 132))))  # fmt: skip
    expected = np.maximum(exact(a) @ exact(b) + 1, 0) * (exact(a) @ exact(d))
    kernel = run(two_sums, [a, b, d], expected, np.float32, 2 * TOLERANCE)
    assert len(decisions(kernel, "product")) == 2


@pytest.mark.parametrize("splits", [1, 3])
def test_the_product_of_rows_by_rows(splits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tilec.ops.matmul` of row-major arrays computes the transposed product, epilogue included."""
    choice = TileChoice(64, 64, 32, splits, 1.0, is_transposed=True)
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    a, b = normal(72, 132, dtype=np.float32), normal(132, 140, seed=1, dtype=np.float32)
    bias, rows = normal(140, dtype=np.float32), normal(72, dtype=np.float32)
    found = tilec.ops.matmul(a, b, precision="tf32", bias=bias, row_scale=rows, activation="relu")
    expected = np.maximum(exact(a) @ exact(b) * exact(rows)[:, None] + exact(bias), 0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * expected.max())
