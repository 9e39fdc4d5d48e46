# ruff: noqa: E501  (lines of PTX)
"""nvcc's PTX of fixtures/kernels.cu, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from ptx_fixtures import index, program

from tilec.runtime.emulator import EmulatorError, Result

ARCHES = list(index("nvcc"))


@pytest.fixture(params=ARCHES)
def run(request: pytest.FixtureRequest):
    def launch(entry: str, grid, block, arguments: list, **options) -> Result:
        return program("nvcc", request.param).run(entry, grid, block, arguments, **options)

    return launch


def random(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def test_saxpy(run) -> None:
    x, y = random(1000), random(1000)
    want = np.float32(2.5) * x + y
    run("saxpy", 8, 128, [np.float32(2.5), x, y, 1000])
    np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-6)


def test_mathematics(run) -> None:
    x = random(500) * 3
    out = np.zeros((10, 500), np.float32)
    run("mathematics", 4, 128, [x, out, 500])
    v = x.astype(np.float64)
    erf = np.vectorize(__import__("math").erf)
    want = [
        np.exp(v), np.log(np.abs(v) + 1e-3), np.sin(v), np.abs(v) ** 1.7, np.tanh(v), erf(v),
        1 / np.sqrt(np.abs(v) + 1), np.fmod(x, np.float32(0.7)), v / 3, np.cbrt(v),
    ]  # fmt: skip
    for row, (got, expected) in enumerate(zip(out, want, strict=True)):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6, err_msg=str(row))


def test_doubles(run) -> None:
    x = random(300, dtype=np.float64)
    out = np.zeros_like(x)
    run("doubles", 3, 128, [x, out, 300])
    want = np.exp(x) + np.sqrt(np.abs(x)) * np.log(np.abs(x) + 1) - x / (x * x + 2)
    np.testing.assert_allclose(out, want, rtol=1e-13, atol=1e-14)


def integer_formula(a: int, b: int) -> int:
    b |= 1
    u, w = a & 0xFFFFFFFF, b & 0xFFFFFFFF

    def quotient(p: int, q: int) -> int:
        result = abs(p) // abs(q)
        return result if (p < 0) == (q < 0) else -result

    def wrap(value: int) -> int:  # to int
        return (value + 2**31) % 2**32 - 2**31

    big = a * b
    both = (w << 32 | u) << 7
    source = (w << 32 | u).to_bytes(8, "little")
    permuted = int.from_bytes(bytes(source[(0x5140 >> 4 * i) & 7] for i in range(4)), "little")
    first_set = (u & -u).bit_length()
    total = wrap(quotient(a, b) + a - b * quotient(a, b)) + u // w
    total += u.bit_count() + 32 - w.bit_length() + int(f"{u:032b}"[::-1], 2) + (u >> (w & 31))
    total += (big >> 32) + quotient(big, b) + ((both >> 32) & 0xFFFFFFFF) + permuted
    total += first_set + min(a, b) + max(u, w) + abs(a - 1000 * quotient(a, 1000))
    return total + (big % 2**64) % 1000003


def test_integers(run) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-(2**31) + 1, 2**31, 400).astype(np.int32) for _ in range(2))
    y[::3] >>= 20
    out = np.zeros(400, np.int64)
    run("integers", 4, 128, [x, y, out, 400])
    want = [integer_formula(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    got = [int(v) for v in out]
    assert [(g - w) % 2**64 for g, w in zip(got, want, strict=True)] == [0] * 400


def test_collatz_through_shared_memory(run) -> None:
    x = np.arange(1, 301, dtype=np.uint32)
    out = np.zeros(384, np.uint32)
    run("collatz", 3, 128, [np.resize(x, 384), out, 384])

    def steps(n: int) -> int:
        count = 0
        while n != 1:
            n, count = (3 * n + 1 if n % 2 else n // 2), count + 1
        return count

    want = np.array([steps(int(n)) for n in np.resize(x, 384)]).reshape(3, 128)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("mode", ["eager", "check"])
def test_block_sum(run, mode: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, 5000).astype(np.float32)
    out = np.zeros(1, np.float32)
    result = run("block_sum", 7, 256, [x, out, 5000], mode=mode)
    assert out[0] == x.sum()
    assert result.findings == []


@pytest.mark.parametrize("mode", ["eager", "check"])
def test_transpose(run, mode: str) -> None:
    x = random(70, 45, dtype=np.float16)
    y = np.zeros((45, 70), np.float16)
    result = run("transpose", (2, 3), (32, 8), [x, y, 70, 45], mode=mode)
    np.testing.assert_array_equal(y, x.T)
    assert result.findings == []


def test_narrow_types(run) -> None:
    x = random(400) * 100
    h, b = np.zeros(400, np.float16), np.zeros(400, ml_dtypes.bfloat16)
    e = np.zeros(400, ml_dtypes.float8_e4m3fn)
    run("narrow_types", 4, 128, [x, h, b, e, 400])
    wide = x.astype(np.float16).astype(np.float64)
    fused = (wide * 1.5 + 0.25).astype(np.float16)
    split = (wide * 1.5).astype(np.float16) + np.float16(0.25)
    assert ((h == fused) | (h == split)).all()  # nvcc may or may not contract
    product = x.astype(ml_dtypes.bfloat16).astype(np.float32) * np.float32(1.5)
    np.testing.assert_array_equal(b, product.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(e, np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn))


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_pipelined_copy(run, mode: str) -> None:
    x = random(5, 64, 4)
    y = np.zeros_like(x)
    result = run("pipelined_copy", 1, 64, [x, y, 5], shared_bytes=2048, mode=mode)
    np.testing.assert_array_equal(y, x.reshape(5, 32, 2, 4)[:, :, ::-1].reshape(5, 64, 4))
    assert result.findings == []


def test_printf_and_assert(run) -> None:
    x = np.array([1.5, -2.25], np.float32)
    text = run("speak", 2, 4, [4, x]).printed
    assert text.splitlines() == [
        f"thread {t} of block {b}: {x[t]:.3f} text {1 << 40}" for b in range(2) for t in range(2)
    ]
    with pytest.raises(EmulatorError, match=r"assertion failed: .*threadIdx.*kernels.cu"):
        run("speak", 1, 4, [3, x])


def test_structures_by_value_and_local_arrays(run) -> None:
    raw = np.array([2.5, -1.0], np.float32).tobytes() + np.int32(7).tobytes()
    pick, out = np.arange(32, dtype=np.int32) * 3, np.zeros(32, np.float32)
    run("by_value", 1, 32, [raw, pick, out])
    np.testing.assert_allclose(out, 2.5 * (pick & 7) - 1 + 7)


def test_switches(run) -> None:
    x = np.arange(64, dtype=np.int32) % 9
    out = np.arange(64, dtype=np.int32)
    before = out.copy()
    run("switches", 1, 64, [x, out])
    cases = {0: lambda v, o: 11, 1: lambda v, o: 10, 2: lambda v, o: o + 5, 3: lambda v, o: v ^ 0x55,
             4: lambda v, o: -v, 5: lambda v, o: v << 4}  # fmt: skip
    want = [
        cases.get(int(v), lambda v, o: 1000 + v)(int(v), int(o))
        for v, o in zip(x, before, strict=True)
    ]
    np.testing.assert_array_equal(out, want)
