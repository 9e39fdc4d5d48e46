"""Quotients and remainders by groups (`grouped_quotients.py`): wide accesses, and right ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from target_names import MAIN

import tilec.triton

RNG = np.random.default_rng(31)


@pytest.fixture(params=MAIN)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compiles for this target."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


SIXTEEN = "{tt.divisibility = 16 : i32}"


def joined(size: str) -> str:
    """Rows of `%n` elements into rows of `%m`, from column `%c` on: a part of torch.cat. `size`:
    the attribute of `%n`."""
    given = [f"%{name}: !tt.ptr<f32> {SIXTEEN}" for name in ("x", "out")]
    given += [f"%n: i32 {size}", *(f"%{name}: i32 {SIXTEEN}" for name in ("m", "c", "total"))]
    return f"""
module {{
  tt.func public @joined({", ".join(given)}) {{
    %c128 = arith.constant 128 : i32
    %pid = tt.get_program_id x : i32
    %at = arith.muli %pid, %c128 : i32
    %i = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32>
    %s = tt.splat %at : i32 -> tensor<128xi32>
    %e = arith.addi %s, %i : tensor<128xi32>
    %t = tt.splat %total : i32 -> tensor<128xi32>
    %inside = arith.cmpi slt, %e, %t : tensor<128xi32>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %q = tt.addptr %p, %e : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %v = tt.load %q, %inside : tensor<128x!tt.ptr<f32>>
    %by = tt.splat %n : i32 -> tensor<128xi32>
    %row = arith.divsi %e, %by : tensor<128xi32>
    %column = arith.remsi %e, %by : tensor<128xi32>
    %ms = tt.splat %m : i32 -> tensor<128xi32>
    %cs = tt.splat %c : i32 -> tensor<128xi32>
    %a0 = arith.muli %row, %ms : tensor<128xi32>
    %a1 = arith.addi %a0, %column : tensor<128xi32>
    %a2 = arith.addi %a1, %cs : tensor<128xi32>
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %w = tt.addptr %o, %a2 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    tt.store %w, %v, %inside : tensor<128x!tt.ptr<f32>>
    tt.return
  }}
}}
"""


def launched(text: str, n: int) -> tuple[Any, Any, str]:
    """What comes of it, what should, and the report."""
    rows, m, c = 9, 3 * n + 16 - 3 * n % 16, 32
    x = RNG.standard_normal((rows, n)).astype(np.float32)
    out = np.full((rows, m + c), np.nan, np.float32)
    right = out.copy()
    right[:, c : c + n] = x
    kernel = tilec.triton.kernel(text)
    given = (x, out, n, m + c, c, rows * n)
    kernel.on("emulator:check")[(-(-rows * n // 128),)](*given)
    return out, right, kernel.report(*given, grid=(-(-rows * n // 128),))


def test_neighbours_of_a_row_are_stored_together(target: str) -> None:
    out, right, report = launched(joined(SIXTEEN), 48)
    np.testing.assert_array_equal(out, right)
    assert "16-byte stores (neighbours in memory and in registers)" in report


def test_rows_of_any_length_are_right(target: str) -> None:
    out, right, report = launched(joined(""), 112)
    np.testing.assert_array_equal(out, right)
    assert "4-byte stores" in report


def test_a_remainder_alone_wraps_and_is_one_of_groups(target: str) -> None:
    text = joined(SIXTEEN).replace("arith.divsi %e, %by", "arith.subi %e, %e")
    kernel = tilec.triton.kernel(text)
    assert all(op.name != "arith.shrsi" for op in kernel.plan().function.blocks[0].ops)
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    given = (x, out, 48, 64, 0, 64)
    report = kernel.report(*given, grid=(1,))
    assert "16-byte stores (neighbours in memory and in registers)" in report
    kernel.on("emulator")[1](*given)
    assert set(out[:16]) <= {*x[:16], *x[48:]}
    np.testing.assert_array_equal(out[16:], [*x[16:48], *[0] * 16])


def test_numbers_that_may_be_negative_stay() -> None:
    text = joined(SIXTEEN).replace("%at = arith.muli %pid, %c128", "%at = arith.subi %pid, %c128")
    plan = tilec.triton.kernel(text).plan()
    names = [op.name for op in plan.function.blocks[0].ops]
    assert "arith.shrsi" not in names


WRAPPED = """
module {
  tt.func public @wrapped(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
    %c64 = arith.constant 64 : i32
    %pid = tt.get_program_id x : i32
    %at = arith.muli %pid, %c64 : i32
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %s = tt.splat %at : i32 -> tensor<64xi32>
    %e = arith.addi %s, %i : tensor<64xi32>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %e, LIMIT : tensor<64xi32>
    %r = arith.remsi %e, %ns : tensor<64xi32>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %v = tt.load %q : tensor<64x!tt.ptr<f32>>
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %w = tt.addptr %o, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %w, %v, %inside : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
"""


@pytest.mark.parametrize(("limit", "is_raised"), [("%ns", True), ("%s", False)])
def test_a_place_that_the_mask_keeps_inside_does_not_wrap(limit: str, is_raised: bool) -> None:
    kernel = tilec.triton.kernel(WRAPPED.replace("LIMIT", limit)).on("emulator:check")
    assert (not kernel.plan().kept) is is_raised
    x = RNG.standard_normal(100).astype(np.float32)
    out = np.zeros(100, np.float32)
    kernel[2](x, out, 100)
    np.testing.assert_array_equal(out, x if is_raised else 0 * x)


def test_a_tile_that_is_no_longer_than_the_limit_does_not_wrap() -> None:
    text = WRAPPED.replace("%at = arith.muli %pid, %c64", "%at = arith.muli %pid, %pid")
    text = text.replace(
        "%s = tt.splat %at : i32 -> tensor<64xi32>", "%s = arith.subi %i, %i : tensor<64xi32>"
    )
    text = text.replace(
        "%ns = tt.splat %n : i32 -> tensor<64xi32>",
        "%ns = arith.constant dense<64> : tensor<64xi32>",
    )
    text = text.replace(", %inside : tensor", " : tensor").replace("LIMIT", "%ns")
    assert not tilec.triton.kernel(text).plan().kept
