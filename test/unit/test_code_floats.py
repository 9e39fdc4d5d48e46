"""Formats that IR has as bytes: scales, floats of 6 bits, pairs of 4; casts on every target."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.call.signature import parse_spec
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError
from tilec.runtime.host import numpy_dtype
from tilec.runtime.manifest import checked_kernel
from tilec.terms.dtypes import BY_NAME

E8M0, E2M3, E3M2 = (
    ml_dtypes.float8_e8m0fnu,
    ml_dtypes.float6_e2m3fn,
    ml_dtypes.float6_e3m2fn,
)
PAIR = np.dtype([("float4_e2m1fn_x2", np.uint8)])


@tilec.kernel(grid=(1,))
def converted(x: tl.array, y: tl.array):
    """y = x in another dtype."""
    tl.store(y, (0,), tl.load(x, (0,), (256,)).to(y.dtype))


@tilec.kernel(grid=(1,))
def unpacked(x: tl.array, y: tl.array, AXIS: tl.const):
    """y = the numbers of pairs."""
    tl.store(y, (0, 0), tl.unpack(tl.load(x, (0, 0), (16, 16)), AXIS).to(y.dtype))


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize(("kind", "codes"), [(E8M0, 256), (E2M3, 64), (E3M2, 64)])
def test_every_code(kind: Any, codes: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = (np.arange(256) % codes).astype(np.uint8).view(kind)
    for result in (np.float32, ml_dtypes.bfloat16):
        y = np.zeros(256, result)
        converted.on("emulator")(x, y)
        np.testing.assert_array_equal(y.astype(np.float64), x.astype(np.float64))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_pairs(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    x = np.arange(256, dtype=np.uint8).reshape(16, 16)
    halves = [(h & 15).view(ml_dtypes.float4_e2m1fn).astype(np.float32) for h in (x, x >> 4)]
    expected = np.stack(halves, 1 if axis == 0 else 2).reshape((32, 16) if axis == 0 else (16, 32))
    y = np.zeros(expected.shape, np.float32)
    unpacked.on("emulator")(x.view(PAIR), y, axis)
    np.testing.assert_array_equal(y, expected)


@tilec.kernel(grid=(1,))
def misused(x: tl.array, y: tl.array, WHAT: tl.const):
    """One mistake each."""
    tile = tl.load(x, (0,), (16,))
    if WHAT == "add":
        tile = tile + tile
    elif WHAT == "narrow":
        tile = tile.to(tl.f32).to(tl.f6e2m3)
    elif WHAT == "constant":
        tile = tl.full((16,), 3.0, tl.f8e8m0)
    elif WHAT == "number":
        tile = tl.full((16,), 1.0, tl.f6e2m3)
    elif WHAT == "unpack":
        tile = tl.unpack(tile)
    elif WHAT == "axis":
        tile = tl.unpack(tl.bitcast(tile, tl.f4e2m1x2), 1)
    elif WHAT == "mix":
        tile = tl.where(tl.arange(16) > 3, tile, tl.bitcast(tile, tl.f6e3m2))
    tl.store(y, (0,), tile.to(tl.f32))


@pytest.mark.parametrize(
    ("dtype", "what", "message"),
    [
        ("f6e2m3", "add", "'\\+' is not defined for f6e2m3"),
        ("f6e2m3", "narrow", "nothing converts to f6e2m3"),
        ("f6e2m3", "constant", "3.0 is no f8e8m0"),
        ("f6e2m3", "number", "the constant 1.0 of f6e2m3 has no spelling"),
        ("f6e2m3", "unpack", "unpack expects a tile of pairs"),
        ("f6e2m3", "axis", "axis must be from -1 to 0"),
        ("f6e2m3", "mix", "do not mix"),
        ("f4e2m1x2", "", "f4e2m1x2 is two numbers a byte"),
    ],
)
def test_what_cannot_be(
    dtype: str, what: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    x, y = np.zeros(16, numpy_dtype(BY_NAME[dtype].mlir)), np.zeros(16, np.float32)
    with pytest.raises(CompileError, match=message):
        misused.on("emulator")(x, y, what)


def test_they_come_in_arrays() -> None:
    with pytest.raises(ValueError, match="f8e8m0 comes in arrays"):
        parse_spec("x:f8e8m0")


@tilec.kernel(num_warps=1)
def copied_out(x: tl.array):
    buffer = gpu.alloc((64,), tl.i8, gpu.padded((64,)))
    gpu.tma_store(buffer, gpu.make_tensor_map(x, (64,), swizzle="none"), (0,))
    gpu.tma_commit()
    gpu.tma_wait(0)


def test_a_tensor_map_in_an_artefact_has_the_dtype_of_its_array() -> None:
    kernel = copied_out.compile(["x:f8e8m0[?]"], target="sm_90a")
    assert [made.dtype for made in kernel.tensor_maps] == ["f8E8M0FNU"]
    assert checked_kernel(kernel.to_json(), kernel.ptx) == kernel
