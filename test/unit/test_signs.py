"""Which coordinates count as 0 or more, and loads and stores in front of an array's first row."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

import tilec
import tilec.language as tl
from tilec.dialects.context import make_context
from tilec.passes.analysis.signs import is_never_negative

PROGRAM = """
func.func @f(%a: memref<?xf32>, %i: index, %j: i32) attributes {{{attributes}}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %less = arith.constant -1 : index
  %few = arith.constant 128 : index
  %many = arith.constant 4611686018427387904 : index
  %p = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %cta = "gpu_tile.cta_id"() : () -> i32
  %yes = arith.constant true
  %size = memref.dim %a, %zero : memref<?xf32>
  %short = arith.index_cast %size : index to i32
  scf.for %k = {lower} to {upper} step %one {{
    %y = {value}
    "tile.assume"(%y) {{facts = {{}}}} : (index) -> ()
  }}
  return
}}
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("arith.muli %p, %few : index", True),
        ("arith.addi %k, %p : index", True),
        ("arith.remsi %k, %size : index", True),
        ("arith.maxsi %less, %p : index", True),
        ("arith.minsi %k, %p : index", True),
        ("arith.index_cast %cta : i32 to index", True),
        ("arith.floordivsi %k, %size : index", True),
        ("arith.ceildivsi %k, %size : index", True),
        ("arith.select %yes, %p, %k : index", True),
        # Anything, a number below 0, and a product that wraps.
        ("arith.addi %i, %p : index", False),
        ("arith.index_cast %j : i32 to index", False),
        ("arith.muli %less, %p : index", False),
        ("arith.minsi %less, %p : index", False),
        ("arith.subi %p, %one : index", False),
        ("arith.muli %many, %p : index", False),
        ("arith.index_cast %short : i32 to index", False),
        ("arith.select %yes, %p, %less : index", False),
    ],
)
def test_arithmetic(value: str, expected: bool) -> None:
    assert _is_never_negative(value, "%zero", "%size") is expected


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [("%zero", "%size", True), ("%less", "%size", False), ("%zero", "%i", False)],
)
def test_loops(lower: str, upper: str, expected: bool) -> None:
    assert _is_never_negative("arith.addi %k, %one : index", lower, upper) is expected


@pytest.mark.parametrize(
    "value", ["arith.muli %many, %p : index", "arith.index_cast %short : i32 to index"]
)
def test_what_fits_32_bits_does_not_wrap(value: str) -> None:
    """widen-indices has seen to it."""
    assert _is_never_negative(value, "%zero", "%size", "tile.index_bits = 32 : i32")


def test_tiles() -> None:
    """Element numbers of a tile that begins at a program's first, and of one that begins before."""
    text = """
func.func @f(%i: index) {{
  %p = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %zeros = arith.constant dense<{first}> : tensor<8xindex>
  %iota = "tile.iota"() {{axis = 0 : i32}} : () -> tensor<8xi32>
  %numbers = arith.index_cast %iota : tensor<8xi32> to tensor<8xindex>
  %start = tensor.splat {start} : tensor<8xindex>
  %all = arith.addi %start, %numbers : tensor<8xindex>
  %more = arith.addi %all, %zeros : tensor<8xindex>
  return
}}"""
    for first, start, expected in ((0, "%p", True), (-1, "%p", False), (0, "%i", False)):
        with make_context() as context:
            module = ir.Module.parse(text.format(first=first, start=start), context)
            *_, last, _ = module.body.operations[0].regions[0].blocks[0].operations
            assert is_never_negative(last.result) is expected


def _is_never_negative(value: str, lower: str, upper: str, attributes: str = "") -> bool:
    with make_context() as context:
        text = PROGRAM.format(value=value, lower=lower, upper=upper, attributes=attributes)
        module = ir.Module.parse(text, context)
        *_, loop, _ = module.body.operations[0].regions[0].blocks[0].operations
        return is_never_negative(loop.regions[0].blocks[0].operations[0].result)


@tilec.kernel(grid=lambda y, ROWS: tl.cdiv(y.shape[0], ROWS))
def moved(x: tl.array, y: tl.array, back: int, ROWS: tl.const, UP: tl.const):
    """y[i] = x[i + UP - back], 0 where x has no such row."""
    row = tl.program_id(0) * ROWS
    start = row - back + UP if UP else row - back
    tl.store(y, (row, 0), tl.load(x, (start, 0), (ROWS, 32)))


@pytest.mark.parametrize(("back", "up"), [(0, 0), (5, 0), (0, 7)])
def test_rows_in_front_of_and_behind_an_array(
    back: int, up: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator:check")
    rng = np.random.default_rng(back)
    x = rng.integers(1, 100, (37, 33), dtype=np.int8)[:, :29]
    y = np.full((41, 29), -1, np.int8)
    moved(x, y, back, 16, up)
    at = np.arange(41) + up - back
    inside = (at >= 0) & (at < 37)
    expected = np.where(inside[:, None], x[np.clip(at, 0, 36)], 0)
    assert np.array_equal(y, expected)
