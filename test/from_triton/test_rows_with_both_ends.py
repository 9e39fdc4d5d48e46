"""Rows of a program whose mask looks at both ends, as block pointers' masks do (`raising.py`)."""

from __future__ import annotations

import numpy as np
import pytest
from target_names import MAIN

import tilec.triton

RNG = np.random.default_rng(8)
GIVEN = ", ".join(
    [f"%{name}: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}" for name in ("x", "out")]
    + [f"%{name}: i32" for name in ("m", "n", "by")]
)
MOVED = """
module {
  tt.func public @moved(GIVEN) {
    %c1 = arith.constant LEAST : i32
    %pid = tt.get_program_id x : i32
    %row = arith.subi %pid, %by : i32
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %a = arith.cmpi sge, %row, %c1 : i32
    %b = arith.cmpi slt, %row, %m : i32
    %ab = arith.andi %a, %b : i1
    %abs = tt.splat %ab : i1 -> tensor<64xi1>
    %c = arith.cmpi slt, %i, %ns : tensor<64xi32>
    %mask = arith.andi %abs, %c : tensor<64xi1>
    %at = arith.muli %row, %n : i32
    %s = tt.splat %at : i32 -> tensor<64xi32>
    %e = arith.addi %s, %i : tensor<64xi32>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %p, %e : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %v = tt.load %q, %mask : tensor<64x!tt.ptr<f32>>
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %w = tt.addptr %o, %e : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %w, %v, %mask : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
""".replace("GIVEN", GIVEN)


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("least", [0, 2])
@pytest.mark.parametrize(("m", "n", "by"), [(5, 48, 3), (4, 64, 0), (7, 61, 9)])
def test_both_ends_are_bounds(
    target: str, least: int, m: int, n: int, by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    kernel = tilec.triton.kernel(MOVED.replace("LEAST", str(least)))
    assert not kernel.plan().kept
    x = RNG.standard_normal((m, n)).astype(np.float32)
    out = np.zeros_like(x)
    kernel.on("emulator:check")[(m + by + 3,)](x, out, m, n, by)
    np.testing.assert_array_equal(out[least:], x[least:])
    assert not out[:least].any()


def test_neighbours_of_such_rows_are_loaded_together() -> None:
    x = RNG.standard_normal((4, 64)).astype(np.float32)
    given = (x, x.copy(), 4, 64, 0)
    report = tilec.triton.kernel(MOVED.replace("LEAST", "0")).report(*given, grid=(4,))
    assert "gather" not in report
    assert "8-byte loads" in report
