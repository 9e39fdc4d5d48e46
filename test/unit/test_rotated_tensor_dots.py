"""Loops with products in tensor memory and work between them, rotated: no attention among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_kernels import decisions
from rotated_kernels import (
    BF16,
    chunked,
    draw,
    expected_of,
    fading,
    gated,
    perceptron,
    squares,
    tied,
)
from shares import modes

import tilec
from tilec import language as tl
from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target

TARGET = find_target("sm_100a")
OTHER_SLOT, SAME_SLOT = "into another slot", "when this one's was loaded"


@pytest.fixture(autouse=True)
def on_blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with tensor memory."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


@tilec.kernel(grid=lambda y: tl.cdiv(y.shape[0], 64))
def weighted(x: tl.array, w: tl.array, scales: tl.array, y: tl.array):
    """y = the sum over blocks of w of relu(x) w^T, each times its scale: one product, whose left
    side threads store once a program."""
    m = tl.program_id(0) * 64
    tx = tl.maximum(tl.load(x, (m, 0), (64, 64)), 0.0)
    acc = tl.zeros((64, 32), tl.f32)
    for n in tl.range(0, w.shape[0], 32):
        acc += tl.dot(tx, tl.load(w, (n, 0), (32, 64)).T) * tl.load(scales, n // 32, ())
    tl.store(y, (m, 0), acc)


def run(kernel: Kernel, arguments: list[np.ndarray], sizes: dict[str, int]) -> Any:
    """Runs in check mode, by turns in late mode; within 1 % of the largest. Returns what ran."""
    expected = expected_of(kernel, arguments, sizes["BN"])
    for mode in modes():
        y = poisoned(expected.shape, BF16)
        there = kernel.on(f"emulator:{mode}")
        there(*arguments, y, **sizes)
        most = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(y.astype(np.float64), expected, rtol=0, atol=2e-2 * most)
    return there.compiled(*arguments, y, **sizes)


SMALL = {"D": 64, "BM": 64, "BN": 32}


@pytest.mark.share(2)
@pytest.mark.parametrize("hidden", [0, 40, 456])
@pytest.mark.parametrize("kernel", [perceptron, fading, gated, squares], ids=lambda one: one.name)
def test_any_number_of_blocks(kernel: Kernel, hidden: int) -> None:
    """None, one and a part of one, more than the rings have slots; rows that fill no tile."""
    weights = {perceptron: 2, fading: 2, gated: 3, squares: 1}[kernel]
    arguments = [draw(72, 56), *(draw(hidden, 56, seed=n) for n in range(weights))]
    compiled = run(kernel, arguments, SMALL)
    (how,) = decisions(compiled, "matrix instructions")
    assert how.startswith("rotated")
    assert OTHER_SLOT in how
    assert f"{int(kernel is not squares)} awaited" in how
    assert assemble(compiled.ptx, TARGET).spills == 0


@pytest.mark.parametrize("hidden", [40, 456])
def test_one_tile_for_two_products(hidden: int) -> None:
    """Straight and transposed: the slot is free when both have read it, however late that is."""
    compiled = run(tied, [draw(72, 56), draw(hidden, 56, seed=1)], SMALL)
    (how,) = decisions(compiled, "matrix instructions")
    assert "1 awaited" in how


@pytest.mark.parametrize("length", [40, 856])
def test_a_tile_has_arrived_before_its_first_reader(length: int) -> None:
    """The product that is awaited later is not the first to read the values."""
    compiled = run(chunked, [draw(length, 64, seed=n) for n in range(3)], SMALL)
    (how,) = decisions(compiled, "matrix instructions")
    assert "1 awaited" in how


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"D": 64, "BM": 128, "BN": 64}, OTHER_SLOT),
        ({"D": 64, "BM": 128, "BN": 256}, SAME_SLOT),
        ({"D": 16, "OUT": 208, "BM": 64, "BN": 208}, "not rotated (its sums and operands take"),
    ],
    ids=["two slots", "one", "none"],
)
def test_slots_where_tensor_memory_holds_them(sizes: dict[str, int], expected: str) -> None:
    """256 columns of scores, 128 of weights and 64 of sums leave no second slot of scores; three
    times 208, rounded, are more than there are with one."""
    down = draw(3 * sizes["BN"] + 8, sizes.get("OUT", sizes["D"]), seed=1)
    compiled = run(fading, [draw(72, sizes["D"]), draw(len(down), sizes["D"]), down], sizes)
    (how,) = decisions(compiled, "matrix instructions")
    assert expected in how


@pytest.mark.parametrize("blocks", [0, 1, 19])
def test_threads_store_what_the_next_program_multiplies(blocks: int) -> None:
    """Nothing is awaited behind the loop: whoever has left it has waited for its last product, and
    a loop of no block has issued none, though that stands in a branch in front of it."""
    x, w = draw(64 * 7, 64), draw(32 * blocks, 64, seed=1)
    scales = np.arange(blocks, dtype=np.float32) - 1
    y = poisoned((len(x), 32), np.float32)
    kernel = weighted.demanding(persistent=True)
    for mode in modes():
        kernel.on(f"emulator:{mode}")(x, w, scales, y)
        products = np.maximum(x, 0).astype(float) @ w.astype(float).T
        expected = (products.reshape(len(x), blocks, 32) * scales[:, None]).sum(axis=1)
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-4 * np.abs(expected).max(initial=1))
    (how,) = decisions(kernel.compiled(x, w, scales, y), "matrix instructions")
    assert how.startswith("rotated")
