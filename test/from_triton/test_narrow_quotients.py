"""Quotients of 64-bit numbers that fit 32 bits wherever they are needed (`narrow_quotients.py`)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilec.triton

RNG = np.random.default_rng(77)

MOVED = """
module {
  tt.func public @moved(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %m: i32, %k: i32, %n: i32) {
    %c64 = arith.constant 64 : i64
    %pid = tt.get_program_id x : i32
    %p64 = arith.extsi %pid : i32 to i64
    %at = arith.muli %p64, %c64 : i64
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %w = arith.extsi %i : tensor<64xi32> to tensor<64xi64>
    %s = tt.splat %at : i64 -> tensor<64xi64>
    %e = arith.addi %s, %w : tensor<64xi64>
    %nw = arith.extsi %n : i32 to i64
    %ns = tt.splat %nw : i64 -> tensor<64xi64>
    %inside = arith.cmpi slt, %e, %ns : tensor<64xi64>
    %mw = arith.extsi %m : i32 to i64
    %ms = tt.splat %mw : i64 -> tensor<64xi64>
    %kw = arith.extsi %k : i32 to i64
    %ks = tt.splat %kw : i64 -> tensor<64xi64>
    %row = arith.divsi %e, %ms : tensor<64xi64>
    %column = arith.remsi %e, %ms : tensor<64xi64>
    %turn = arith.remsi %row, %ks : tensor<64xi64>
    %a = arith.muli %column, %ks : tensor<64xi64>
    %b = arith.addi %a, %turn : tensor<64xi64>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %p, %b : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
    %v = tt.load %q, %inside : tensor<64x!tt.ptr<f32>>
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %z = tt.addptr %o, %e : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
    tt.store %z, %v, %inside : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
"""


def launched(text: str, m: int, k: int, n: int) -> tuple[Any, Any, str]:
    """What comes of it, what should, and the PTX."""
    i = np.arange(n)
    row: Any = np.trunc(i / m).astype(int)
    column: Any = i % abs(m)
    x = RNG.standard_normal(abs(m) * abs(k)).astype(np.float32)
    out = np.full(n + 16, 7, np.float32)
    kernel = tilec.triton.kernel(text)
    ran = kernel.on("emulator:check")
    ran[(-(-n // 64) + 1,)](x, out, m, k, n)
    right = np.full(n + 16, 7, np.float32)
    right[:n] = x[column * k + np.sign(row) * (abs(row) % abs(k))]
    assert ran.latest is not None
    return out, right, ran.latest.ptx


@pytest.mark.parametrize(("m", "k", "n"), [(6, 3, 18), (16, 7, 250), (1, 5, 63), (48, 2, 200)])
def test_what_a_mask_keeps_small_is_divided_as_small_numbers(m: int, k: int, n: int) -> None:
    out, right, ptx = launched(MOVED, m, k, n)
    np.testing.assert_array_equal(out, right)
    assert set(re.findall(r"\b(?:div|rem)\.(\w+)", ptx)) <= {"u32"}


def test_a_negative_divisor_has_its_sign() -> None:
    out, right, ptx = launched(MOVED, -64, 3, 60)
    np.testing.assert_array_equal(out, right)
    assert "64" not in "".join(re.findall(r"\b(?:div|rem)\.(\w+)", ptx))


@pytest.mark.parametrize(
    ("what", "by"),
    [
        ("tt.store %z, %v, %inside :", "tt.store %z, %v :"),
        ("slt, %e, %ns", "slt, %w, %ns"),
        ("%mw = arith.extsi %m : i32 to i64", "%mw = arith.muli %p64, %p64 : i64"),
        ("%at = arith.muli %p64, %c64", "%at = arith.subi %p64, %c64"),
    ],
)
def test_others_stay(what: str, by: str) -> None:
    text = MOVED.replace(what, by).replace("addptr %o, %e", "addptr %o, %row")
    plan = tilec.triton.kernel(text).plan()
    first = next(op for op in plan.function.blocks[0].ops if op.name == "arith.divsi")
    assert "tilec.narrow" not in first.attributes
