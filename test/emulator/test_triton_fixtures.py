"""Triton's PTX for the three targets, against NumPy in float64."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_fixtures import cases, index, program
from shares import LATE

from tilec.runtime.emulator import Result, TensorMap

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "s8": np.int8,
          "f8e4": ml_dtypes.float8_e4m3fn, "f8e5": ml_dtypes.float8_e5m2}  # fmt: skip
MODES = ["eager", LATE]


def launch(case: str, grid: Any, arguments: list[Any], mode: str) -> Result:
    """Run a fixture; Triton appends two scratch pointers that these kernels leave alone."""
    record = index("triton")[case]
    return program("triton", case).run(
        record["entry"], grid, record["threads"], [*arguments, 0, 0],
        shared_bytes=record["shared"], mode=mode,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", cases("triton", "matmul."))
def test_matmul(case: str, mode: str) -> None:
    _, kind, order, size, _ = case.split(".")
    bm, bn, bk = (int(x) for x in size.split("x"))
    dtype = np.dtype(DTYPES[kind])
    m, n, k = bm + 48, bn + 16, 3 * bk + 16
    rng = np.random.default_rng(0)
    if kind == "s8":
        a, b = (rng.integers(-128, 128, shape).astype(dtype) for shape in ((m, k), (k, n)))
    else:
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    left = np.ascontiguousarray(a.T) if order[0] == "t" else a
    right = np.ascontiguousarray(b.T) if order[1] == "t" else b
    strides = [m if order[0] == "t" else k, k if order[1] == "t" else n, n]
    c = np.zeros((m, n), {"s8": np.int32, "f16": np.float16}.get(kind, np.float32))
    launch(case, (-(-m // bm), -(-n // bn)), [left, right, c, m, n, k, *strides], mode)
    want = a.astype(np.float64) @ b.astype(np.float64)
    if kind == "s8":
        np.testing.assert_array_equal(c, want)
        return
    scale = np.abs(want).max()
    tolerance = {"f16": 1e-3, "bf16": 1e-5, "f32": 3e-3}.get(kind, 1e-3)
    np.testing.assert_allclose(c.astype(np.float64) / scale, want / scale, atol=tolerance)


def _with_scales(rng: Any, rows: int, k: int, pack: int, vector: int) -> tuple[Any, Any, Any]:
    """Bytes of (rows, k) numbers, their scales arranged for the hardware, and what both mean."""
    kind = ml_dtypes.float4_e2m1fn if pack == 2 else ml_dtypes.float8_e4m3fn
    x = (2 * rng.standard_normal((rows, k))).astype(kind)
    scales = np.abs(rng.standard_normal((rows, k // vector))).astype(ml_dtypes.float8_e4m3fn)
    if vector == 32:
        codes = rng.integers(121, 133, scales.shape).astype(np.uint8)
        scales = codes.view(ml_dtypes.float8_e8m0fnu)
    wide = x.astype(np.float64) * np.repeat(scales.astype(np.float64), vector, 1)
    codes = x.view(np.uint8)
    if pack == 2:
        codes = codes[:, 0::2] | codes[:, 1::2] << 4
    pieces = scales.view(np.uint8).reshape(rows // 128, 4, 32, k // vector // 4, 4)
    arranged = np.ascontiguousarray(pieces.transpose(0, 3, 2, 1, 4))
    return codes, arranged.reshape(1, *arranged.shape[:2], 2, 256), wide


def _mapped(array: np.ndarray, meta: dict[str, Any]) -> list[Any]:
    """A tensor descriptor as Triton's kernels take it: the map, sizes and strides."""
    strides = [s // array.itemsize for s in array.strides]
    return [
        TensorMap(
            array,
            array.shape[::-1],
            array.strides[-2::-1],
            tuple(meta["block_size"][::-1]),
            (0, 32, 64, 128)[meta["swizzle"]],
        ),
        *array.shape,
        *strides,
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", cases("triton", "matmul_scaled"))
def test_matmul_with_block_scales(case: str, mode: str) -> None:
    """Operands of 8 and 4 bits, scales that are powers of two and floats: mx and nv formats, scales
    written by tcgen05.st and, where tensor copies bring them, by tcgen05.cp."""
    record = index("triton")[case]
    constants = record["constants"]
    m, n, k = 256, 128, 5 * constants["BK"]
    rng = np.random.default_rng(0)
    a, a_scale, x = _with_scales(rng, m, k, constants["PACK"], constants["VEC"])
    b, b_scale, y = _with_scales(rng, n, k, constants["PACK"], constants["VEC"])
    c = np.full((m, n), np.nan, np.float32)
    arguments: list[Any] = [a, a_scale, b, b_scale, c, n, k]
    if record["tensor_maps"]:
        pairs = zip(arguments, record["tensor_maps"], strict=False)
        arguments = [part for array, meta in pairs for part in _mapped(array, meta)] + [k]
    launch(case, (m // 128, n // 128), arguments, mode)
    want = x @ y.T
    np.testing.assert_allclose(c / np.abs(want).max(), want / np.abs(want).max(), atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", cases("triton", "attention."))
def test_attention(case: str, mode: str) -> None:
    heads, n, d = 3, 192, 64
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads, n, d)).astype(np.float16) for _ in range(3))
    out = np.zeros_like(q)
    launch(case, (n // 64, heads), [q, k, v, out, np.float32(d**-0.5), n], mode)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) * d**-0.5
    if "causal" in case:
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ wide[2]
    np.testing.assert_allclose(out.astype(np.float64), want, atol=2e-3)


@pytest.mark.parametrize("case", cases("triton", "softmax."))
@pytest.mark.parametrize("n", [1, 77, 1000, 1024])
def test_softmax(case: str, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((9, n + 3)).astype(np.float32) * 5
    y = np.zeros_like(x)
    launch(case, 9, [x, y, n, n + 3], "eager")
    wide = np.exp(x[:, :n].astype(np.float64) - x[:, :n].max(1, keepdims=True))
    np.testing.assert_allclose(y[:, :n], wide / wide.sum(1, keepdims=True), rtol=1e-5, atol=1e-9)
    assert (y[:, n:] == 0).all()


@pytest.mark.parametrize("case", cases("triton", "reduce_scan."))
@pytest.mark.parametrize("n", [5, 128])
def test_reduction_argmax_and_scan(case: str, n: int) -> None:
    x = np.random.default_rng(n).integers(-50, 50, (16, n)).astype(np.float32)
    total, argmax = np.zeros(16, np.float32), np.zeros(16, np.int32)
    scan = np.zeros_like(x)
    launch(case, 1, [x, total, argmax, scan, n], "eager")
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(argmax, x.argmax(1))
    np.testing.assert_array_equal(scan, x.cumsum(1))


@pytest.mark.parametrize("case", cases("triton", "histogram."))
def test_histogram(case: str) -> None:
    x = np.random.default_rng(0).integers(0, 13, 3001).astype(np.int32)
    bins, total = np.zeros(13, np.int32), np.zeros(1, np.float32)
    launch(case, -(-x.size // 256), [x, bins, total, x.size], "eager")
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=13))
    assert total[0] == x.sum()


@pytest.mark.parametrize("case", cases("triton", "elementwise."))
def test_elementwise(case: str) -> None:
    dtype = np.dtype(DTYPES[re.split(r"\.", case)[1]])
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(-3, 3, 1337).astype(dtype) for _ in range(2))
    out = np.zeros_like(x)
    launch(case, 3, [x, y, out, x.size], "eager")
    a, b = x.astype(np.float64), y.astype(np.float64)
    z = np.sqrt(np.abs(a)) + np.exp2(a) * np.log2(np.abs(b) + 1) + np.sin(a) / (b * b + 1)
    z = np.where(a > b, np.maximum(z, 0.25), a * b + z) + 1 / np.sqrt(b * b + 1)
    tolerance = float(ml_dtypes.finfo(dtype).eps) * 4
    np.testing.assert_allclose(out.astype(np.float64), z, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", cases("triton", "matmul_tma."))
def test_matmul_by_tensor_copies(case: str, mode: str) -> None:
    """Odd sizes, so that boxes hang over every edge."""
    record = index("triton")[case]
    _, size, order, *_ = case.split(".")
    bm, bn, bk = (int(x) for x in size.split("x"))
    m, n, k = 2 * bm - 24, bn + 40, 4 * bk + 24
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    left = np.ascontiguousarray(a.T) if order[0] == "t" else a
    right = np.ascontiguousarray(b.T) if order[1] == "t" else b
    c = np.zeros((m, n), np.float16)
    arguments: list[Any] = []
    for array, meta in zip((left, right, c), record["tensor_maps"], strict=True):
        rows, columns = array.shape
        box = tuple(meta["block_size"][::-1])
        swizzle = (0, 32, 64, 128)[meta["swizzle"]]
        arguments.append(TensorMap(array, (columns, rows), (2 * columns,), box, swizzle))
        arguments += [rows, columns, columns, 1]
    launch(case, (-(-m // bm), -(-n // bn)), [*arguments, m, n, k], mode)
    want = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(want).max()
    np.testing.assert_allclose(c.astype(np.float64) / scale, want / scale, atol=1e-3)
