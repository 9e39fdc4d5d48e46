"""Two sets of computing warps that take the programs of a CTA in turn: on the emulator, whole and
refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import (
    activated,
    batched,
    decisions,
    demanded,
    gated,
    matmul_grid,
    two_loops,
)
from rotated_kernels import perceptron
from shares import modes
from test_grouped_gemm import multiply as multiply_groups
from test_warp_specialized import assert_clean, exact, normal, run

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples import attention as attention_example
from tilec.examples.grouped_gemm import grouped_gemm
from tilec.examples.matmul import matmul
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops.attention_kernel import attention

BF16 = ml_dtypes.bfloat16
TARGET = find_target("sm_90a")
SMALL = {"BM": 64, "BN": 64, "BK": 32}


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target whose roles can take turns."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


def in_turn(kernel: Kernel, **demands: Any) -> Kernel:
    """The same kernel, two sets of 4 warps taking its programs in turn."""
    return kernel.demanding(**{"num_warps": 4, "consumers": "pingpong", **demands})


def assert_in_turn(kernel: CompiledKernel, warps: int = 4) -> None:
    """Two sets of `warps` and a warpgroup for the loading warp; the report says so."""
    assert kernel.threads == 32 * (2 * warps + 4)
    assert decisions(kernel, "consumers") == [
        f"ping-pong: 2 x {warps} warps take programs in turn (the author's demand)"
    ]
    (roles,) = decisions(kernel, "warp specialisation")
    assert f" {2 * warps} computing, " in roles


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (328, 136, 104),  # 18 ragged programs, several for each set of warps of a CTA
        (320, 72, 40),  # 10, rings that never come round
        (64, 64, 64),  # one: the other set has none
        (320, 320, 0),  # no product at all: turns are taken all the same
    ],
)
def test_products(m: int, n: int, k: int) -> None:
    a, b = normal(m, k), normal(k, n, seed=1)
    expected = exact(a) @ exact(b) if k else np.zeros((m, n))
    tolerance = 1e-2 if k else 1.0
    assert_in_turn(run(in_turn(matmul), [a, b], expected, tolerance=tolerance, **SMALL))


@pytest.mark.parametrize("stages", [2, 5])
def test_rings_that_turn_at_other_times_than_programs(stages: int) -> None:
    """A program's first slot is another one each time; with a wait for a parity only, whoever
    came before his turn would be let through."""
    a, b = normal(328, 32 * 7), normal(32 * 7, 72, seed=1)
    kernel = run(in_turn(demanded), [a, b], exact(a) @ exact(b), STAGES=stages, **SMALL)
    assert_in_turn(kernel)


def test_two_warpgroups_a_set() -> None:
    a, b = normal(520, 72), normal(72, 136, seed=1)
    kernel = run(in_turn(matmul, num_warps=8), [a, b], exact(a) @ exact(b), BM=128, BN=64, BK=32)
    assert_in_turn(kernel, 8)
    assert_clean(kernel)


def test_the_tiles_it_is_for() -> None:
    """The registers of two sets hold 64 x 256 sums each; ptxas spills nothing."""
    specs = [f"{name}:bf16[?:8,?:8;?:8,1]" for name in "abc"]
    for tiles in ({"BM": 64, "BN": 256}, {"BM": 128, "BN": 128}):
        kernel = in_turn(matmul).compile(specs, {**tiles, "BK": 64}, target=TARGET.name)
        assert_in_turn(kernel)
        assert_clean(kernel)


def test_batches() -> None:
    a, b = normal(3, 136, 72), normal(3, 72, 72, seed=1)
    assert_in_turn(run(in_turn(batched), [a, b], exact(a) @ exact(b), **SMALL))


@pytest.mark.parametrize("sizes", [[65, 0, 24, 7, 136, 1], [1]])
def test_groups(sizes: list[int]) -> None:
    """Where programs differ in how often their loops run, and find that in memory."""
    for mode in modes():
        kernel = in_turn(grouped_gemm).on(f"emulator:{mode}")
        multiply_groups(kernel, sizes, 72, 136, BM=64, BN=32, BK=64)


def test_loops_behind_each_other_and_products_side_by_side() -> None:
    a, b, g = normal(200, 72), normal(72, 136, seed=1), normal(72, 136, seed=2)
    twice = run(in_turn(two_loops), [a, b], 2 * (exact(a) @ exact(b)), **SMALL)
    assert_in_turn(twice)
    expected = (exact(a) @ exact(b)) * (exact(a) @ exact(g))
    assert_in_turn(run(in_turn(gated), [a, b, g], expected, WARP_SPECIALIZE=True, **SMALL))


def test_work_between_load_and_product() -> None:
    """The load role's warps fill by loads and stores."""
    a, b = normal(200, 72), normal(72, 136, seed=1)
    expected = np.maximum(exact(a), 0) ** 2 @ exact(b)
    assert_in_turn(run(in_turn(activated), [a, b], expected, WARP_SPECIALIZE=True, **SMALL))


@tilec.kernel(grid=matmul_grid)
def stairs(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 32,
):  # fmt: skip
    """c = sum of a[:, : i * BK] @ b[: i * BK] for i up to the program's number."""
    row = tl.program_id(0)
    m, n = row * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for i in tl.range(row + 1):
        for k in tl.range(0, i * BK, BK):
            acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def test_loops_in_loops() -> None:
    """Of other lengths in every program: who passes by counts the inner ones by a formula."""
    a, b = normal(328, 160), normal(160, 136, seed=1)
    expected = np.zeros((328, 136))
    for row in range(6):
        rows = slice(64 * row, 64 * row + 64)
        for i in range(row + 1):
            expected[rows] += exact(a)[rows, : 32 * i] @ exact(b)[: 32 * i]
    assert_in_turn(run(in_turn(stairs, persistent=True), [a, b], expected))


def test_clusters() -> None:
    a, b = normal(520, 72), normal(72, 136, seed=1)
    kernel = run(in_turn(matmul, cluster=2), [a, b], exact(a) @ exact(b), **SMALL)
    assert_in_turn(kernel)
    assert any("multicast" in one for one in decisions(kernel, "cluster copy"))


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    """Rings of several loops and of what a program loads once; loops that end elsewhere."""
    q, k, v = (normal(1, 3, 136, 32, seed=seed) for seed in range(3))
    expected = attention_example.reference(q, k, v, causal=causal, scale=0.125)
    for mode in modes():
        o = poisoned(q.shape, BF16)
        there = in_turn(attention, persistent=True).on(f"emulator:{mode}")
        there(q, k, v, o, 0.125, D=32, CAUSAL=causal, BM=64, BN=32)
        np.testing.assert_allclose(exact(o), expected, rtol=0, atol=2e-2)
    assert_in_turn(there.compiled(q, k, v, o, 0.125, D=32, CAUSAL=causal, BM=64, BN=32))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[0], BM), 3))
def weighted(
    q: tl.array, k: tl.array, c: tl.array, weight: tl.array, BM: tl.const = 64, BN: tl.const = 32
):
    """Rows of relu(q @ k^T) @ k, q held by a program, by a number of its head."""
    m, head = tl.program_id(0) * BM, tl.program_id(1)
    x, scale = tl.load(q, (m, 0), (BM, 64)), tl.load(weight, head, ())
    acc = tl.zeros((BM, 64), tl.f32)
    for n in tl.range(0, k.shape[0], BN):
        keys = tl.load(k, (n, 0), (BN, 64))
        acc = tl.dot(tl.maximum(tl.dot(x, keys.T) * scale, 0.0).to(q.dtype), keys, acc)
    tl.store(c, (head, m, 0), acc.to(c.dtype), dims=(1, 2))


def test_a_number_of_each_program_is_loaded_by_who_runs_it() -> None:
    """Loaded a program ahead it would be the other set's."""
    q, k = normal(200, 64), normal(136, 64, seed=1)
    weight = np.array([0.1, -0.2, 0.3], np.float32)
    score = np.maximum(exact(q) @ exact(k).T * weight[:, None, None], 0)
    expected = score @ exact(k)
    for mode in modes():
        c = poisoned(expected.shape, np.float32)
        there = in_turn(weighted, persistent=True).on(f"emulator:{mode}")
        there(q, k, c, weight)
        np.testing.assert_allclose(c, expected, rtol=0, atol=1e-2 * np.abs(expected).max())
    assert_in_turn(there.compiled(q, k, c, weight))


def test_cooperative_changes_nothing() -> None:
    specs = [f"{name}:bf16[?:8,?:8;?:8,1]" for name in "abc"]
    plain, named = (
        kernel.compile(specs, {**SMALL}, target=TARGET.name)
        for kernel in (matmul, matmul.demanding(consumers="cooperative"))
    )
    assert plain.ptx == named.ptx
    assert decisions(plain, "consumers") == []


A, B, C = normal(72, 72), normal(72, 72, seed=1), normal(72, 72)
OTHER = 'consumers="pingpong" was asked for, but '
REFUSALS: dict[str, tuple[Kernel, dict[str, Any], str]] = {
    "one program a CTA": (
        in_turn(demanded, persistent=False), SMALL,
        "the kernel is not persistent: a CTA has one program only",
    ),
    "no roles": (
        in_turn(demanded), {**SMALL, "WARP_SPECIALIZE": False},
        r"no loop fills buffers[\s\S]* no tensor copy: warp_specialize=False",
    ),
    "no warps left": (
        in_turn(demanded, num_warps=16), {"BM": 256}, "2 times 16 warps leave none for loading"
    ),
    "no whole warpgroups": (
        in_turn(demanded, num_warps=2, persistent=True), SMALL, "no loop fills buffers that other"
    ),
    "too many registers": (
        in_turn(demanded), {"BM": 128, "BN": 256},
        r"its tiles take \d+ registers a thread at once, which has 232",
    ),
    "too many registers for four warpgroups": (
        in_turn(demanded, num_warps=8), {"BM": 128, "BN": 256},
        r"its tiles take \d+ registers a thread at once, which has 112",
    ),
    "one stage": (in_turn(demanded), {**SMALL, "STAGES": 1}, "one stage was asked for"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_demands_that_cannot_be_met(name: str) -> None:
    kernel, constants, reason = REFUSALS[name]
    with pytest.raises(CompileError, match=OTHER + reason) as caught:
        kernel.on("emulator").compiled(A, B, C, **constants)
    assert f"def {kernel.name}" in str(caught.value)


@pytest.mark.parametrize(
    ("target", "demands", "reason"),
    [
        ("sm_80", {}, "sm_80 does not move registers between warps"),
        ("sm_100a", {}, "products in tensor memory run under the end of the program before"),
        ("sm_100a", {"persistent": "dynamic"}, "CTAs ask for their programs"),
    ],
)
def test_other_targets(
    target: str, demands: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    with pytest.raises(CompileError, match=OTHER + reason):
        in_turn(demanded, **demands).on("emulator").compiled(A, B, C, BM=128, BN=64, BK=32)


def test_two_products_in_tensor_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no role of their own: computing warps issue them."""
    monkeypatch.setenv("TILEC_TARGET", "sm_100a")
    reason = "its products in tensor memory are counted through all programs of a CTA"
    with pytest.raises(CompileError, match=OTHER + reason) as caught:
        in_turn(perceptron).on("emulator").compiled(A, B, B, C, D=64, BM=64, BN=32)
    assert "def perceptron" in str(caught.value)


@tilec.kernel(consumers="pingpong")
def multiplied_gathers(
    x: tl.array, y: tl.array, rows: tl.array, z: tl.array, scale: tl.array, o: tl.array
):
    """The load role gathers columns in the inner loop, the computing warps rows behind it, beside
    a number that a copy of its own brings."""
    m = tl.program_id(0) * 128
    inner, outer = tl.zeros((64, 64), tl.f32), tl.zeros((128, 64), tl.f32)
    along, program = m + tl.arange(128), tl.program_id(0)
    for _ in tl.range(0, y.shape[0], 64, stages=2):
        for k in tl.range(0, x.shape[1], 64, warp_specialize=True):
            columns = tl.gather(y, (along[:, None], tl.load(rows, (0,), (64,))[None, :]))
            product = tl.dot(tl.load(x, (m, k), (64, 128), dims=(1, 0)), columns)
            inner = inner * tl.load(scale, (program,), ()) + product
        z_tile = tl.gather(z, (tl.load(rows, (m,), (128,))[:, None], along[None, :]))
        product = tl.dot(z_tile, tl.clamp(outer, -2, 2).to(tl.bf16))
        outer = outer * tl.load(scale, (program,), ()) + product
    tl.store(o, (m, 0), outer + tl.cat((inner, inner), 0))


def test_a_barrier_at_which_the_computing_warps_arrive() -> None:
    """Of a ring that they fill: its slots would need two sets' arrivals."""
    o, rows, scale = poisoned((72, 64), np.float32), np.zeros(72, np.int32), np.ones(1, np.float32)
    with pytest.raises(CompileError, match=OTHER + "the warps that compute arrive at a barrier"):
        multiplied_gathers.on("emulator").compiled(A, B, rows, C, scale, o)


def test_other_words() -> None:
    message = 'consumers must be "cooperative" or "pingpong", found the constant 2'
    with pytest.raises(CompileError, match=message):
        demanded.demanding(consumers=2).on("emulator").compiled(A, B, C)
