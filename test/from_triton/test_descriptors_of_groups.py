"""Descriptors of arrays whose sizes the kernel loads (`descriptor_accesses.py`)."""

from __future__ import annotations

import numpy as np
import pytest
from target_names import MAIN

import tilec.triton

RNG = np.random.default_rng(12)
DESCRIPTOR = "!tt.tensordesc<tensor<16x32xf32>>"
GIVEN = "%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %starts: !tt.ptr<i32>, %lengths: !tt.ptr<i32>"
DOUBLED = f"""
module {{
  tt.func public @doubled({GIVEN}) {{
    %c0 = arith.constant 0 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    %w32 = arith.constant 32 : i64
    %w1 = arith.constant 1 : i64
    %group = tt.get_program_id x : i32
    %s = tt.addptr %starts, %group : !tt.ptr<i32>, i32
    %start = tt.load %s : !tt.ptr<i32>
    %l = tt.addptr %lengths, %group : !tt.ptr<i32>, i32
    %n = tt.load %l : !tt.ptr<i32>
    %skipped = arith.muli %start, %c32 : i32
    %a = tt.addptr %x, %skipped : !tt.ptr<f32>, i32
    %b = tt.addptr %out, %skipped : !tt.ptr<f32>, i32
    %d = tt.make_tensor_descriptor %a, [%n, %c32], [%w32, %w1] : <f32>, <tensor<16x32xf32>>
    %e = tt.make_tensor_descriptor %b, [%n, %c32], [%w32, %w1] : <f32>, <tensor<16x32xf32>>
    scf.for %i = %c0 to %n step %c16 : i32 {{
      %v = tt.descriptor_load %d[%i, %c0] : {DESCRIPTOR} -> tensor<16x32xf32>
      %w = arith.addf %v, %v : tensor<16x32xf32>
      tt.descriptor_store %e[%i, %c0], %w : {DESCRIPTOR}, tensor<16x32xf32>
    }}
    tt.return
  }}
}}
"""


@pytest.mark.parametrize("target", MAIN)
def test_rows_of_groups(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    lengths = np.array([5, 0, 33, 16, 1], np.int32)
    starts = np.array([0, 5, 7, 40, 56], np.int32)  # between groups lie rows of none
    x = RNG.standard_normal((60, 32)).astype(np.float32)
    out = np.zeros_like(x)
    kernel = tilec.triton.kernel(DOUBLED)
    kernel.on("emulator:check")[(5,)](x, out, starts, lengths)
    right = np.zeros_like(x)
    for start, length in zip(starts, lengths, strict=True):
        right[start : start + length] = 2 * x[start : start + length]
    np.testing.assert_array_equal(out, right)
