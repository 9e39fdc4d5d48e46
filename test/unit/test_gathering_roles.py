"""Rows gathered by number, filled in by a load role beside tensor copies, an iteration ahead."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

from tilec.compile.assembler import assemble
from tilec.examples.convolution import convolve, reference
from tilec.examples.mixture_of_experts import arrange, multiply_by_experts
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target

TARGET = find_target("sm_90a")
BF16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with warpgroup instructions."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


def assert_filled_by_role(kernel: CompiledKernel) -> None:
    """Undemanded: gathers run in warps of their own, and the products' ring has several slots."""
    (found,) = decisions(kernel, "warp specialisation")
    assert found.startswith("4 loading warps")
    assert "(tensor copies and loads and stores run ahead" in found
    assert "loads an iteration ahead" in " ".join(decisions(kernel, "producer"))
    assert decisions(kernel, "matrix instructions")[0].startswith("one group in flight")
    assert assemble(kernel.ptx, TARGET).spills == 0


@pytest.mark.parametrize("depth", [40, 264])
def test_tokens_of_experts(depth: int) -> None:
    """One iteration, and more than the ring has slots; rows that are nobody's."""
    rng = np.random.default_rng(depth)
    choice = np.array([rng.permutation([0, 2])[:1] for _ in range(70)])
    tokens = rng.standard_normal((70, depth)).astype(BF16)
    matrices = rng.standard_normal((3, depth, 72)).astype(BF16)
    weights = rng.random(70, np.float32)
    expected = np.einsum("tk,tkn->tn", tokens.astype(float), matrices[choice[:, 0]].astype(float))
    tiles = {"TOP": 1, "BM": 64, "BN": 64, "BK": 32}
    for mode in modes():
        products = poisoned((70, 72), np.float32)
        there = multiply_by_experts.on(f"emulator:{mode}")
        arguments = (tokens, matrices, *arrange(choice, 3, 64), weights, products)
        there(*arguments, **tiles)
        np.testing.assert_allclose(products, expected * weights[:, None], rtol=0, atol=1e-3)
    assert_filled_by_role(there.compiled(*arguments, **tiles))


def test_pixels_below_a_window() -> None:
    """Indices that are computed anew in every iteration; pixels outside the image."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 9, 40)).astype(np.float16)
    w = rng.standard_normal((3, 2, 40, 72)).astype(np.float16)
    expected = reference(x, w, 1, 1)
    tiles = {"PAD": 1, "BM": 64, "BN": 64, "BK": 32}
    for mode in modes():
        y = poisoned(expected.shape, np.float16)
        there = convolve.on(f"emulator:{mode}")
        there(x, w, y, **tiles)
        np.testing.assert_allclose(y.astype(float), expected, rtol=0, atol=1e-1)
    assert_filled_by_role(there.compiled(x, w, y, **tiles))
