"""Rows gathered by number, copied by a load role's cp.async beside tensor copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes
from test_producers import mutants

import tilec
import tilec.language as tl
from tilec.compile.assembler import assemble
from tilec.examples.convolution import reference
from tilec.examples.mixture_of_experts import arrange, multiply_by_experts
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError

WHO = {"sm_90a": (64, "4 loading warps, 4"), "sm_100a": (128, "2 loading warps, 1 multiplying, 4")}
"""By target: the rows of a tile that its widest instruction multiplies, and who loads them."""
BF16 = ml_dtypes.bfloat16


@pytest.fixture(params=WHO)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Targets that have tensor copies and roles."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


def assert_filled_by_role(kernel: CompiledKernel, target: str) -> None:
    """Undemanded: gathers run in warps of their own, and the products' ring has several slots."""
    (found,) = decisions(kernel, "warp specialisation")
    assert found.startswith(f"{WHO[target][1]} computing")
    assert "(tensor copies and gathers by cp.async run ahead" in found
    assert decisions(kernel, "producer")[0].startswith("cp.async of 16 bytes")
    assert "ld.global.v4" not in kernel.ptx
    assert assemble(kernel.ptx, find_target(target)).spills == 0


@pytest.mark.parametrize("depth", [40, 264])
def test_tokens_of_experts(depth: int, target: str) -> None:
    """One iteration, and more than the ring has slots; rows that are nobody's."""
    rng = np.random.default_rng(depth)
    rows = WHO[target][0]
    choice = np.array([rng.permutation([0, 2])[:1] for _ in range(70)])
    tokens = rng.standard_normal((70, depth)).astype(BF16)
    matrices = rng.standard_normal((3, depth, 72)).astype(BF16)
    weights = rng.random(70, np.float32)
    expected = np.einsum("tk,tkn->tn", tokens.astype(float), matrices[choice[:, 0]].astype(float))
    tiles = {"TOP": 1, "BM": rows, "BN": 64, "BK": 32}
    for mode in modes():
        products = poisoned((70, 72), np.float32)
        there = multiply_by_experts.on(f"emulator:{mode}")
        arguments = (tokens, matrices, *arrange(choice, 3, rows), weights, products)
        there(*arguments, **tiles)
        np.testing.assert_allclose(products, expected * weights[:, None], rtol=0, atol=1e-3)
    assert_filled_by_role(there.compiled(*arguments, **tiles), target)


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0] * y.shape[1], BM))
def mirrored(x: tl.array, w: tl.array, y: tl.array, PAD: tl.const, BM: tl.const, BK: tl.const = 32):
    """y[i, q] = sum of x[i, q + PAD - s] @ w[s] over s: a window whose distances are negative."""
    row = tl.program_id(0) * BM + tl.arange(BM)[:, None]
    image, q = row // y.shape[1], row % y.shape[1]
    acc = tl.zeros((BM, 64), tl.f32)
    blocks = tl.cdiv(x.shape[2], BK)
    for step in tl.range(0, w.shape[0] * blocks):
        s, k = step // blocks, step % blocks * BK
        rows = tl.gather(x, (image, q + PAD - s, k + tl.arange(BK)[None, :]))
        acc = tl.dot(rows, tl.load(w, (s, k, 0), (BK, 64)), acc)
    tl.scatter(y, (image, q, tl.arange(64)[None, :]), acc.to(y.dtype))


def test_pixels_below_a_window(target: str) -> None:
    """Indices that are computed anew in every iteration; pixels outside the image."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 1, 59, 40)).astype(np.float16)
    w = rng.standard_normal((1, 3, 40, 72)).astype(np.float16)
    expected = reference(x, w[:, ::-1], 1, 1)[:, 1]  # the row of the image itself
    tiles = {"PAD": 1, "BM": WHO[target][0]}
    for mode in modes():
        y = poisoned(expected.shape, np.float16)
        there = mirrored.on(f"emulator:{mode}")
        there(x[:, 0], w[0], y, **tiles)
        kept = expected[..., :64]
        np.testing.assert_allclose(y[..., :64].astype(float), kept, rtol=0, atol=1e-1)
    assert_filled_by_role(there.compiled(x[:, 0], w[0], y, **tiles), target)


@tilec.kernel(grid=lambda c, BM: tl.cdiv(c.shape[0], BM))
def weigh_rows(w: tl.array, x: tl.array, numbers: tl.array, c: tl.array, BM: tl.const):
    """c = w @ x[numbers]; rows whose number is a multiple of three count as zeros."""
    m = tl.program_id(0) * BM
    acc = tl.zeros((BM, 64), tl.f32)
    for k in tl.range(0, w.shape[1], 32, stages=3):
        number = tl.load(numbers, k, 32)[:, None]
        rows = tl.gather(x, (number, tl.arange(64)[None, :]), mask=number % 3 != 0)
        acc = tl.dot(tl.load(w, (m, k), (BM, 32)), rows, acc)
    tl.store(c, (m, 0), acc)


@tilec.kernel(grid=lambda c, BM: tl.cdiv(c.shape[0], BM))
def compare_rows(w: tl.array, x: tl.array, numbers: tl.array, c: tl.array, BM: tl.const):
    """c = w @ x[numbers].T"""
    m = tl.program_id(0) * BM
    number = tl.load(numbers, 0, 64)[:, None]
    acc = tl.zeros((BM, 64), tl.f32)
    for k in tl.range(0, w.shape[1], 32):
        rows = tl.gather(x, (number, k + tl.arange(32)[None, :]))
        acc = tl.dot(tl.load(w, (m, k), (BM, 32)), rows.T, acc)
    tl.store(c, (m, 0), acc)


def rows_of(x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """x[numbers] in float64, zeros for what is outside."""
    there = (numbers >= 0) & (numbers < len(x))
    return np.where(there[:, None], x[numbers * there].astype(float), 0)


def test_numbers_that_are_loaded_in_the_loop(target: str) -> None:
    """They come an iteration ahead. Some are outside, some masked off, the last tile is ragged."""
    rng, rows = np.random.default_rng(1), WHO[target][0]
    w, x = rng.standard_normal((rows + 8, 456)).astype(BF16), rng.standard_normal((50, 64))
    x, numbers = x.astype(BF16), rng.integers(-5, 60, 456).astype(np.int32)
    expected = w.astype(float) @ np.where(numbers[:, None] % 3, rows_of(x, numbers), 0)
    for mode in modes():
        c = poisoned(expected.shape, np.float32)
        there = weigh_rows.demanding(persistent=True).on(f"emulator:{mode}")
        there(w, x, numbers, c, BM=rows)
        np.testing.assert_allclose(c, expected, rtol=0, atol=1e-3)
    made = there.compiled(w, x, numbers, c, BM=rows)
    assert_filled_by_role(made, target)
    assert "loads an iteration ahead" in " ".join(decisions(made, "producer"))


def test_rows_that_lie_along_k(target: str) -> None:
    """The transpose between gather and product is one of the numbers."""
    rng, rows = np.random.default_rng(2), WHO[target][0]
    w, x = rng.standard_normal((rows + 8, 264)).astype(BF16), rng.standard_normal((50, 264))
    x, numbers = x.astype(BF16), rng.integers(-5, 60, 64).astype(np.int32)
    expected = w.astype(float) @ rows_of(x, numbers).T
    for mode in modes():
        c = poisoned(expected.shape, np.float32)
        there = compare_rows.on(f"emulator:{mode}")
        there(w, x, numbers, c, BM=rows)
        np.testing.assert_allclose(c, expected, rtol=0, atol=1e-3)
    assert_filled_by_role(there.compiled(w, x, numbers, c, BM=rows), target)


def test_the_emulator_finds_what_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fence, an arrival or a wait left out, an arrival too many or too few."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(3)
    w, x = rng.standard_normal((64, 456)).astype(BF16), rng.standard_normal((50, 456))
    x, numbers = x.astype(BF16), rng.integers(0, 50, 64).astype(np.int32)
    expected = w.astype(float) @ rows_of(x, numbers).T
    c = poisoned(expected.shape, np.float32)
    made = compare_rows.on("emulator").compiled(w, x, numbers, c, BM=64)

    def found(ptx: str) -> bool:
        """Whether a run has an error, a warning, or wrong sums."""
        gpu = EmulatorDevice("check")
        c[...] = np.nan
        try:
            gpu.launch(gpu.load(replace(made, ptx=ptx)), [w, x, numbers, c], 1)
        except (FindingsError, EmulatorError):
            return True
        return bool(capsys.readouterr().err) or not np.allclose(c, expected, rtol=0, atol=1e-3)

    assert not found(made.ptx)
    unseen = [what for what, ptx in mutants(made.ptx) if not found(ptx)]
    # The arrival behind the loop gives back the last slot, which a next program would wait for.
    assert len(unseen) == 1
    assert "mbarrier.arrive" in unseen[0]
