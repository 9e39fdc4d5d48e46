"""Products of 8-bit floats by mma.sync whose tiles fill no instruction: what lies beyond is 0, in a
register that ptxas does not know to be constant, since it converts a constant's upper half wrongly.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

OPERANDS = re.compile(r"mma\.sync[\w.]*\.e[45]m[23]\.f32\s*\{[^}]*\},\s*\{([^}]*)\},\s*\{([^}]*)\}")
DTYPES = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}


@tilec.kernel(grid=1)
def product(a: tl.array, b: tl.array, c: tl.array, M: tl.const, N: tl.const, K: tl.const):
    """c = a b + the sums of a's rows, by a product with ones."""
    rows, columns = tl.load(a, (0, 0), (M, K)), tl.load(b, (0, 0), (K, N))
    ones = tl.full((K, N), 1.0, tl.f32).to(a.dtype)
    tl.store(c, (0, 0), tl.dot(rows, ones, tl.dot(rows, columns)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 16, 16), (8, 8, 32), (16, 8, 8), (32, 16, 48)])
def test_what_lies_beyond_is_hidden(
    m: int, n: int, k: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    draw = np.random.default_rng(m + k).integers
    a, b = (draw(-2, 3, size).astype(DTYPES[dtype]) for size in ((m, k), (k, n)))
    c = poisoned((m, n), np.float32)
    kernel = product.demanding(num_warps=4)
    kernel.check(a, b, c, M=m, N=n, K=k)
    wide = a.astype(float)
    np.testing.assert_array_equal(c, wide @ b.astype(float) + wide.sum(1, keepdims=True))
    ptx = kernel.compiled(a, b, c, M=m, N=n, K=k).ptx
    operands = set(re.findall(r"%r\d+", " ".join(map(" ".join, OPERANDS.findall(ptx)))))
    constant = set(re.findall(r"mov\.b32\s+(%r\d+), -?\d+;", ptx))
    assert operands
    assert not operands & constant
