"""Products of bytes that lie across k: threads turn blocks of them on the way to shared memory."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def product(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const, BN: tl.const, BK: tl.const, TURN: tl.const,
):  # fmt: skip
    """`TURN`: rows of a lie along k, too; else two bits of b are numbers from -1 to 2."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.i32 if a.dtype == tl.i8 else tl.f32)
    for k in tl.range(0, b.shape[0], BK):
        y = tl.load(b, (k, n), (BK, BN))
        if TURN:
            x = tl.transpose(tl.load(a, (k, m), (BK, BM)))
        else:
            x, y = tl.load(a, (m, k), (BM, BK)), (y & 3) - 1
        acc = tl.dot(x, y, acc)
    tl.store(c, (m, n), acc)


@pytest.mark.parametrize(
    ("dtype", "tile", "turn"),
    [
        (np.int8, (64, 128, 128), False),
        (np.int8, (64, 64, 64), False),
        (ml_dtypes.float8_e4m3fn, (64, 128, 128), True),
        (ml_dtypes.float8_e4m3fn, (64, 256, 32), True),
    ],
)
def test_bytes_across_k(
    dtype: type, tile: tuple[int, int, int], turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ragged at every end, in more iterations than a ring has slots; none is stored alone."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(tile[2])
    m, n, k = 40, tile[1] + 16, 5 * tile[2] + 16
    shape = (k, 48) if turn else (m, k)
    a, b = (rng.integers(-8, 8, sizes).astype(dtype) for sizes in (shape, (k, n)))
    c = np.full((shape[1] if turn else m, n), 77, np.float32 if turn else np.int32)
    product.on("emulator:check")(a, b, c, *tile, turn)
    left, right = (a.T, b) if turn else (a, (b & 3) - 1)
    np.testing.assert_array_equal(c, left.astype(np.float64) @ right.astype(np.float64))
    ptx = product.compiled(a, b, c, *tile, turn).ptx
    assert re.search(r"st\.shared\.(v[24]\.)?b32", ptx)
    assert not re.search(r"st\.shared\.[bu]8", ptx)
