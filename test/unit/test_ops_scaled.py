"""`tilec.ops.matmul` of mx and nv formats, against float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from target_names import MAIN
from test_block_scales import E2M1, E4M3, E5M2, E8M0, operand

import tilec
from tilec.examples.block_scaled_matmul import arranged
from tilec.executable.kernel import CompiledKernel
from tilec.runtime.emulator_device import EmulatorDevice
from tilec.runtime.errors import ArgumentError

E3M2 = ml_dtypes.float6_e3m2fn


def check(
    device: str, kinds: tuple[Any, Any], sizes: tuple[int, int, int], scale: Any, **named: Any
) -> None:
    """Random operands against NumPy; `named` goes to matmul."""
    m, n, k = sizes
    block = 32 if scale is E8M0 else 16
    rng = np.random.default_rng(m + n + k)
    a, a_scale, x = operand(rng, m, k, kinds[0], scale, block)
    b, b_scale, y = operand(rng, n, k, kinds[1], scale, block)
    bias = rng.standard_normal(n).astype(np.float32)
    c = tilec.ops.matmul(
        a, b.T, a_scale=a_scale, b_scale=b_scale.T, bias=bias, scale=0.5, out_dtype="f32",
        device=device, **named,
    )  # fmt: skip
    expected = x @ y.T * 0.5 + bias
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("kinds", "scale"),
    [((E4M3, E5M2), E8M0), ((E2M1, E2M1), E8M0), ((E2M1, E2M1), E4M3), ((E4M3, E2M1), E8M0)],
    ids=["mx 8", "mx 4", "nv", "8 by 4"],
)
@pytest.mark.parametrize("target", MAIN)
def test_every_target(
    target: str, kinds: tuple[Any, Any], scale: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    check("emulator", kinds, (72, 140, 320), scale)


@pytest.mark.parametrize(
    ("kinds", "scale", "name"),
    [
        ((E4M3, E5M2), E8M0, "mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2"),
        ((E2M1, E2M1), E4M3, "mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1"),
    ],
)
def test_warps_read_the_scales_of_12_x(
    kinds: tuple[Any, Any], scale: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arranged, and then everything comes by tensor copies."""
    monkeypatch.setenv("TILEC_TARGET", "sm_120a")
    loaded: list[str] = []
    load = EmulatorDevice.load

    def noted(self: EmulatorDevice, kernel: CompiledKernel) -> Any:
        loaded.append(kernel.ptx)
        return load(self, kernel)

    monkeypatch.setattr(EmulatorDevice, "load", noted)
    check("emulator:check", kinds, (72, 140, 320), scale)
    (product,) = (ptx for ptx in loaded if "mma.sync" in ptx)
    assert f"kind::{name}" in product
    assert product.count("cp.async.bulk.tensor") >= 4


def test_numbers_of_six_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    check("emulator", (E3M2, E4M3), (40, 72, 96), E8M0)


@pytest.mark.parametrize("columns", [False, True])
def test_scales_are_arranged(columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    x = np.random.default_rng(0).integers(0, 255, (150, 7)).astype(np.uint8).view(E8M0)
    made = tilec.ops.arrange_scales(x.T if columns else x, columns=columns, device="emulator")
    np.testing.assert_array_equal(made.view(np.uint8), arranged(x).view(np.uint8))


def test_arranged_ones_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_100a")
    rng = np.random.default_rng(1)
    a, a_scale, x = operand(rng, 130, 256, E4M3, E8M0, 32)
    b, b_scale, y = operand(rng, 40, 256, E4M3, E8M0, 32)
    c = tilec.ops.matmul(
        a, b.T, a_scale=arranged(a_scale), b_scale=arranged(b_scale), device="emulator:check"
    )
    assert c.dtype == ml_dtypes.bfloat16
    expected = x @ y.T
    np.testing.assert_allclose(
        c.astype(np.float64), expected, rtol=1e-2, atol=1e-3 * np.abs(expected).max()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": np.zeros((8, 64), np.float32)}, "argument 'a': expected one of f8e4m3"),
        ({"a": np.zeros(64, E4M3)}, "argument 'a': products with scales are of matrices"),
        ({"b": np.zeros((32, 8), E4M3)}, "argument 'b': expected 64 numbers a column"),
        ({"a_scale": np.zeros((8, 2), np.float32)}, "argument 'a_scale': expected one of f8e8m0"),
        ({"a_scale": np.zeros((8, 3), E8M0)}, "argument 'a_scale': expected shape \\(8, 2\\)"),
        ({"b_scale": np.zeros((4, 8), E4M3)}, "expected scales like 'a_scale'"),
        ({"bias": np.zeros(9, np.float32)}, "argument 'bias': expected shape \\(8,\\)"),
        ({"activation": "tanh"}, "argument 'activation': expected one of relu"),
        ({"scale": np.zeros(2, np.float32)}, "argument 'scale': expected a number"),
        ({"tune": True}, "take no 'tune'"),
    ],
)
def test_mistakes(change: dict[str, Any], message: str) -> None:
    named = {
        "a": np.zeros((8, 64), E4M3),
        "b": np.zeros((64, 8), E4M3),
        "a_scale": np.ones((8, 2), E8M0),
        "b_scale": np.ones((2, 8), E8M0),
        **change,
    }
    with pytest.raises(ArgumentError, match=message):
        tilec.ops.matmul(**named)


def test_what_cannot_be_arranged() -> None:
    with pytest.raises(ArgumentError, match="expected two dimensions"):
        tilec.ops.arrange_scales(np.zeros(4, E8M0))


def test_arranged_ones_are_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One side without scales, which then are 1."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(2)
    a, a_scale, x = operand(rng, 40, 160, E4M3, E8M0, 32)
    b = rng.standard_normal((24, 160)).astype(E4M3)
    c = tilec.ops.matmul(a, b.T, a_scale=arranged(a_scale), out_dtype="f32", device="emulator")
    expected = x @ b.astype(np.float64).T
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
