"""Joins and splits through shared memory whose parts begin between two vectors."""

from __future__ import annotations

import numpy as np
import pytest
from tile_programs import Options, check

JOINED = """
func.func @k(%a: memref<?xi32, strided<[1]>>, %b: memref<?xi32, strided<[1]>>,
             %c: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %0 = arith.constant 0 : index
  %one = "tile.load"(%a, %0) {dims = array<i32: 0>, padding = 0 : i32, options = {}}
    : (memref<?xi32, strided<[1]>>, index) -> tensor<1xi32>
  %rest = "tile.load"(%b, %0) {dims = array<i32: 0>, padding = 0 : i32, options = {}}
    : (memref<?xi32, strided<[1]>>, index) -> tensor<64xi32>
  %both = "tile.join"(%one, %rest) {axis = 0 : i32}
    : (tensor<1xi32>, tensor<64xi32>) -> tensor<65xi32>
  "tile.store"(%both, %c, %0) {dims = array<i32: 0>, options = {}}
    : (tensor<65xi32>, memref<?xi32, strided<[1]>>, index) -> ()
  return
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("warps", [1, 4])
def test_a_part_behind_one_element(target: str, warps: int) -> None:
    rng = np.random.default_rng(warps)
    a, b, c = (rng.integers(-99, 99, size, dtype=np.int32) for size in (1, 64, 70))
    options = Options(target=target, num_warps=warps, index_bits=32, facts=True)
    check(JOINED, [a, b, c], (1, 1), options)
