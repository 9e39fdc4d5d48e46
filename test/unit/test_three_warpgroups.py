"""Three warpgroups share a program's tiles: on the emulator, whole and refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import activated, decisions, demanded, gated, matmul_grid
from hypothesis import given
from hypothesis import strategies as st
from shares import modes
from test_warp_specialized import BYTES, assert_clean, assert_specialised, exact, normal, run

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples import attention as attention_example
from tilec.examples.matmul import PRECISIONS, draw, matmul, reference
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.layout import covers, parse_layout
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops.attention_kernel import attention
from tilec.passes.layouts.candidates import blocked_layout

BF16 = ml_dtypes.bfloat16
TARGET = find_target("sm_90a")


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with warpgroup instructions."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


def by_three(kernel: Kernel) -> Kernel:
    """The same kernel, computed by three warpgroups."""
    return kernel.demanding(num_warps=12)


def assert_by_three(kernel: CompiledKernel) -> None:
    """Twelve warps compute, four more are there for the loading one."""
    assert kernel.threads == 32 * 16
    (roles,) = decisions(kernel, "warp specialisation")
    assert " 12 computing, " in roles


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(192, 64), (384, 64), (128, 96), (64, 192)],
)
def test_tiles(rows: int, columns: int) -> None:
    """Dealt along the rows where they are three times 64, else along the columns."""
    a, b = normal(rows * 2 + 72, 136), normal(136, columns + 24, seed=1)
    kernel = run(by_three(matmul), [a, b], exact(a) @ exact(b), BM=rows, BN=columns, BK=64)
    assert_by_three(kernel)
    assert_specialised(kernel, "one group in flight")


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=2).map(tuple),
    st.integers(0, 1),
    st.sampled_from([1, 2, 4, 8]),
)
def test_blocked_layouts(shape: tuple[int, ...], contiguous: int, width: int) -> None:
    """Whatever its size, a tile is held whole by 384 threads, in vectors as by 128."""
    contiguous %= len(shape)
    third, whole = (blocked_layout(shape, contiguous, width, n) for n in (128, 384))
    assert whole.num_threads == 384
    assert covers(whole, shape)
    assert parse_layout(str(whole)) == whole
    assert third.num_values / 3 <= whole.num_values <= third.num_values


def test_rows_that_are_no_multiple_of_three_are_dealt() -> None:
    """80 rows of five times 16: two each for three warpgroups, the last past the end; three copies
    loaded three times as much (keys of a cross attention)."""
    whole = blocked_layout((80, 64), 1, 8, 384)
    assert whole == parse_layout("T(8,16,3):(8@1,1@0,32@0) V(8,2):(1@1,16@0)")


@pytest.mark.share(2)
@pytest.mark.parametrize("precision", BYTES)
def test_precisions(precision: str) -> None:
    row = PRECISIONS[precision]
    rng = np.random.default_rng(0)
    a = np.ascontiguousarray(draw(rng, (200, 176), row.inputs))
    b = np.asfortranarray(draw(rng, (176, 144), row.inputs))
    tiles = {"BM": 192, "BN": 48, "BK": 128 // BYTES[precision]}
    expected = reference(a, b)
    kernel = run(
        by_three(matmul), [a, b], expected, row.output, row.tolerance, PRECISION=row.dot, **tiles
    )
    assert_by_three(kernel)
    assert_clean(kernel)


def test_registers() -> None:
    """Each of the three has 160 a thread; ptxas wants no more, whatever the instruction's width."""
    specs = [f"{name}:bf16[?:8,?:8;?:8,1]" for name in "abc"]
    for rows, columns, widest in ((192, 256, 128), (192, 240, 80), (384, 128, 128)):
        kernel = by_three(matmul).compile(
            specs, {"BM": rows, "BN": columns, "BK": 64}, target=TARGET.name
        )
        assert "setmaxnreg.inc.sync.aligned.u32 160" in kernel.ptx
        (instruction,) = decisions(kernel, "dot instruction")
        assert instruction.startswith(f"wgmma.m64n{widest}k16")
        assert_clean(kernel)


def test_rows_that_no_tensor_map_describes() -> None:
    """Loads by cp.async or by themselves, stores in pieces: other layouts of the same threads."""
    a, b = normal(200, 75), normal(75, 101, seed=1)
    for roles in (True, False):
        kernel = run(
            by_three(demanded), [a, b], exact(a) @ exact(b), BM=192, BN=64, WARP_SPECIALIZE=roles
        )
        assert kernel.threads == 32 * (16 if roles else 12)


def test_work_between_load_and_product() -> None:
    a, b = normal(200, 136), normal(136, 104, seed=1)
    expected = np.maximum(exact(a), 0) ** 2 @ exact(b)
    constants = {"BM": 192, "BN": 64, "BK": 64, "WARP_SPECIALIZE": True}
    assert_by_three(run(by_three(activated), [a, b], expected, **constants))


def test_two_products_share_an_operand() -> None:
    a, b, g = normal(200, 136), normal(136, 72, seed=1), normal(136, 72, seed=2)
    expected = (exact(a) @ exact(b)) * (exact(a) @ exact(g))
    constants = {"BM": 192, "BN": 64, "WARP_SPECIALIZE": True}
    assert_by_three(run(by_three(gated), [a, b, g], expected, **constants))


@tilec.kernel(grid=matmul_grid)
def finished(
    a: tl.array, b: tl.array, bias: tl.array, c: tl.array,
    BM: tl.const = 192, BN: tl.const = 64, BK: tl.const = 64, AXIS: tl.const = 1,
):  # fmt: skip
    """c = x / max|x| - running sum of x along the axis / 64, with x = a @ b + bias."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    x = acc + tl.load(bias, (n,), (BN,))[None, :]
    top = tl.max(tl.abs(x), AXIS)
    top = top[:, None] if AXIS else top[None, :]
    tl.store(c, (m, n), x / top - tl.cumsum(x, AXIS) / 64)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("rows", "columns"), [(192, 32), (64, 192)])
def test_sums_over_what_the_three_hold(rows: int, columns: int, axis: int) -> None:
    """Reductions and scans along the dimension that is dealt out, and along the other."""
    a, b = normal(rows, 72), normal(72, columns, seed=1)
    bias = normal(columns, seed=2, dtype=np.float32)
    x = exact(a) @ exact(b) + bias
    expected = x / np.abs(x).max(axis, keepdims=True) - np.cumsum(x, axis) / 64
    constants = {"BM": rows, "BN": columns, "AXIS": axis}
    assert_by_three(run(by_three(finished), [a, b, bias], expected, np.float32, **constants))


@tilec.kernel(grid=matmul_grid)
def summed(
    a: tl.array, b: tl.array, sums: tl.array, c: tl.array,
    BM: tl.const = 192, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c = a @ b; sums += c's columns' sums, by atomics of a tile that all three hold."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.atomic_add(sums, (n + tl.arange(BN),), tl.sum(acc, 0))
    tl.store(c, (m, n), acc.to(c.dtype))


def test_copies_count_once() -> None:
    a, b = normal(200, 72), normal(72, 64, seed=1)
    expected, sums = exact(a) @ exact(b), np.zeros(64, np.float32)
    kernel = run(by_three(summed), [a, b, sums], expected, BN=32)
    assert kernel.threads >= 32 * 12
    once_each = len(modes()) * expected.sum(0)
    np.testing.assert_allclose(sums, once_each, rtol=0, atol=1e-3 * np.abs(once_each).max())


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    q, k, v = (normal(1, 2, 264, 64, seed=seed) for seed in range(3))
    expected = attention_example.reference(q, k, v, causal=causal, scale=0.125)
    for mode in modes():
        o = poisoned(q.shape, BF16)
        there = by_three(attention).on(f"emulator:{mode}")
        there(q, k, v, o, 0.125, D=64, CAUSAL=causal, BM=192, BN=64)
        np.testing.assert_allclose(exact(o), expected, rtol=0, atol=2e-2)
    assert_by_three(there.compiled(q, k, v, o, 0.125, D=64, CAUSAL=causal, BM=192, BN=64))


@tilec.kernel(grid=1)
def doubled(x: tl.array, y: tl.array):
    """y = 2 x: nothing that warpgroups do together."""
    tl.store(y, (0,), 2 * tl.load(x, (0,), (384,)))


A, B, C = normal(72, 72), normal(72, 72, seed=1), normal(72, 72)
X = np.zeros(384, np.float32)
REFUSALS: dict[str, tuple[Kernel, list[Any], dict[str, Any], str, str]] = {
    "no thirds": (
        demanded, [A, B, C], {"BM": 128, "BN": 64}, "acc = tl.dot(",
        r"num_warps=12 was asked for, but 128x64 is not made of m64 parts for 12 warps",
    ),
    "no whole instruction": (
        demanded, [A, B, C], {"BM": 192, "BN": 20}, "acc = tl.dot(",
        r"num_warps=12 was asked for, but 192x20 is not made of m64 parts",
    ),
    "other types": (
        matmul, [np.zeros((72, 72)), np.zeros((72, 72)), np.zeros((72, 72))], {"BM": 192},
        "acc = tl.dot(", r"num_warps=12 was asked for, but no warpgroup instruction multiplies f64",
    ),
    "no product": (
        doubled, [X, X], {}, "def doubled", r"num_warps=12 was asked for, but it multiplies nothing"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_dealt(name: str) -> None:
    kernel, arrays, constants, line, message = REFUSALS[name]
    with pytest.raises(CompileError, match=message) as caught:
        by_three(kernel).on("emulator").compiled(*arrays, **constants)
    assert line in str(caught.value)


def test_other_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    for target in ("sm_80", "sm_100a"):
        monkeypatch.setenv("TILEC_TARGET", target)
        message = f"num_warps=12 was asked for, but {target} has no instructions of warpgroups"
        with pytest.raises(CompileError, match=message):
            by_three(demanded).on("emulator").compiled(A, B, C, BM=192)


def test_other_numbers() -> None:
    with pytest.raises(CompileError, match=r"a power of two up to 32, or 12 for three warpgroups"):
        demanded.demanding(num_warps=6).on("emulator").compiled(A, B, C)
