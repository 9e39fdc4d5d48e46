"""Arrays that no earlier launch still writes: a warp of their own loads them and does not wait."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from copied_operands import copy_from
from hopper_kernels import decisions, demanded
from shares import modes

import tilec
from tilec.call.jit import Kernel
from tilec.examples.grouped_gemm import grouped_gemm
from tilec.examples.row_sum import row_sum
from tilec.messages.diagnostics import CompileError
from tilec.ops import product_launch
from tilec.ops.attention_kernel import attention
from tilec.ops.tile_choice import TileChoice
from tilec.runtime.errors import ArgumentError

BF16 = ml_dtypes.bfloat16
SPECS = ["a:bf16[?,?:8;?:8,1]", "b:bf16[?,?:8;?:8,1]", "c:bf16[?,?:8;?:8,1]"]


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for a target whose launches overlap."""
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(BF16)


def close(found: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    expected = a.astype(np.float64) @ b.astype(np.float64)
    most = np.abs(expected).max()
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=1e-2 * most)


@pytest.mark.parametrize(
    ("settled", "demands"),
    [
        (("a", "b"), {}),
        ("b", {"persistent": True}),
        ("a", {"cluster": 2}),
        ("b", {"num_warps": 8}),
    ],
)
def test_products_are_right(settled: Any, demands: dict[str, Any]) -> None:
    """Rings that come round, programs behind each other, slots that a cluster fills, registers that
    move: in check mode and, by turns, with copies that come late."""
    a, b = draw(136, 328), draw(328, 72)
    for mode in modes():
        c = np.full((136, 72), np.nan, BF16)
        kernel = demanded.demanding(settled=settled, **demands).on(f"emulator:{mode}")
        rows = 128 if "num_warps" in demands else 64
        kernel(a, b, c, BM=rows, BN=64, STAGES=3)
        close(c, a, b)


def test_the_copies_of_one_array_do_not_wait() -> None:
    """Of two barriers' worth of code one waits for earlier launches; without the promise both."""

    def loading(settled: Any) -> str:
        kernel = demanded.demanding(settled=settled, num_warps=4)
        code = kernel.compile(SPECS, {"BM": 64, "BN": 64, "STAGES": 3}, target="sm_90a").ptx
        return " ".join(
            re.findall(r"griddepcontrol\.wait|cp\.async\.bulk\.tensor\.2d|expect_tx", code)
        )

    wait, copy, expect = "griddepcontrol.wait", "cp.async.bulk.tensor.2d", "expect_tx"
    none, one, both = (loading(settled) for settled in (None, "b", ("a", "b")))
    assert (none.count(expect), one.count(expect)) == (1, 2)
    assert one.count(copy) == none.count(copy)
    assert (one.count(wait), both.count(wait)) == (none.count(wait), none.count(wait) - 1)


def test_reports() -> None:
    constants = {"BM": 64, "BN": 64, "STAGES": 3}
    early = demanded.demanding(settled="b").compile(SPECS, constants, target="sm_90a")
    assert decisions(early, "settled array") == [
        "in a warp of its own (no launch still under way writes it)"
    ]
    waiting = demanded.demanding(settled=("a", "b")).compile(SPECS, constants, target="sm_100a")
    assert decisions(waiting, "settled array") == [
        f"'{name}' is loaded like any other "
        "(all threads wait for earlier launches in front of the roles)"
        for name in "ab"
    ]
    late = demanded.demanding(settled="b").compile(SPECS, constants, target="sm_80")
    assert decisions(late, "settled array") == [
        "'b' is loaded like any other (the kernel does not start under the launch before)"
    ]


@pytest.mark.parametrize(
    ("kernel", "settled", "specs", "constants", "reason"),
    [
        (
            *(
                grouped_gemm,
                "b",
                [SPECS[0], "b:bf16[?,?:8,?:8;?:8,?:8,1]", SPECS[2], "ends:i32[?;1]"],
            ),
            *({"BM": 64, "BN": 32}, "an earlier access of its warps waits for earlier launches"),
        ),
        (
            *(
                attention,
                "k",
                [*(f"{x}:f16[?,?,?,?:8;?:8,?:8,?:8,1]" for x in "qkvo"), "scale:f32"],
            ),
            *({"D": 64, "BM": 128}, "its warps fill several rings"),
        ),
        (
            *(row_sum, "x", ["x:f32[?,?]", "y:f32[?]"]),
            *({}, "no role copies it"),
        ),
    ],
)
def test_where_it_brings_nothing(
    kernel: Kernel, settled: str, specs: list[str], constants: dict[str, int], reason: str
) -> None:
    compiled = kernel.demanding(settled=settled).compile(specs, constants, target="sm_90a")
    assert decisions(compiled, "settled array") == [
        f"'{settled}' is loaded like any other ({reason})"
    ]


def test_a_kernel_must_not_write_what_is_settled() -> None:
    with pytest.raises(CompileError, match="settled: the kernel writes 'c'"):
        demanded.demanding(settled="c").compile(SPECS, {"BM": 64, "BN": 64}, target="sm_90a")


@pytest.mark.parametrize("settled", ["d", ("a", "BM"), 3])
def test_only_arrays_are_settled(settled: Any) -> None:
    with pytest.raises(
        CompileError, match=r"settled must be names of the kernel's arrays \(a, b, c\)"
    ):
        demanded.demanding(settled=settled).compile(SPECS, {}, target="sm_90a")


# tilec.ops.matmul --------------------------------------------------------------------------------


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The products that were launched."""
    kernels: list[Kernel] = []
    found_kernel = product_launch.kernel_on

    def kernel_on(name: str, *where: Any, **named: Any) -> Kernel:
        kernel = found_kernel(name, *where, **named)
        if name == "product":
            kernels.append(kernel)
        return kernel

    monkeypatch.setattr(product_launch, "kernel_on", kernel_on)
    return kernels


@pytest.mark.parametrize(("is_transposed", "splits"), [(False, 1), (True, 1), (True, 2)])
def test_weights_of_a_product(
    is_transposed: bool, splits: int, launched: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transposed product has b as its left operand."""
    choice = TileChoice(64, 8, 64, splits, 1.0, is_transposed, True)
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    a, b = draw(8, 520), draw(520, 72)
    close(tilec.ops.matmul(a, b, settled="b"), a, b)
    assert {kernel.demands()["settled"] for kernel in launched} == {
        ("a",) if is_transposed else ("b",)
    }


def test_a_copy_is_as_new_as_can_be(
    launched: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is copied in front of a product is written by the launch before."""
    copy_from(monkeypatch, 1, 1)
    a, b = draw(64, 520), draw(520, 75)
    close(tilec.ops.matmul(a, b, settled=("a", "b")), a, b)
    assert {kernel.demands()["settled"] for kernel in launched} == {("a",)}


@pytest.mark.parametrize("settled", ["c", ("b", "bias"), 1])
def test_only_operands_are_settled(settled: Any) -> None:
    with pytest.raises(ArgumentError, match="argument 'settled': expected 'a', 'b' or a tuple"):
        tilec.ops.matmul(draw(8, 16), draw(16, 8), settled=settled)
