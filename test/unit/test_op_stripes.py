"""What of their operands stripes of ops' results are made of (`OpTraits.stripes`)."""

from __future__ import annotations

import pytest
from mlir import ir

from tilec.dialects.context import make_context
from tilec.dialects.op import class_of
from tilec.passes.rewriting.walk import all_ops

MODULE = """
func.func @k(%a: memref<?x?xf32>, %m: index, %x: tensor<4x8xf32>, %r: tensor<8xf32>,
             %ones: tensor<1x8xf32>, %cube: tensor<4x1x8xf32>, %ok: tensor<4x8xi1>,
             %i: tensor<4x8xi32>) {
  %iota = "tile.iota"() {axis = 0 : i32} : () -> tensor<4x8xi32>
  %row = "tile.broadcast"(%r) {dims = array<i32: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %wide = "tile.broadcast"(%ones) {dims = array<i32: 0, 1>} : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %turned = "tile.transpose"(%cube) {permutation = array<i32: 2, 0, 1>}
    : (tensor<4x1x8xf32>) -> tensor<8x4x1xf32>
  %flat = "tile.reshape"(%cube) : (tensor<4x1x8xf32>) -> tensor<4x8xf32>
  %other = "tile.reshape"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %both = "tile.join"(%x, %x) {axis = 0 : i32}
    : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %one, %two = "tile.split"(%x) {axis = 1 : i32}
    : (tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  %sum = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    gpu.yield %s : f32
  }) {axis = 0 : i32} : (tensor<4x8xf32>) -> tensor<8xf32>
  %across = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    gpu.yield %s : f32
  }) {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4xf32>
  %load = "tile.load"(%a, %m, %m) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}}
    : (memref<?x?xf32>, index, index) -> tensor<4x8xf32>
  %wrapped = "tile.load"(%a, %m, %m)
    {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {wrapped = true}}
    : (memref<?x?xf32>, index, index) -> tensor<4x8xf32>
  %gathered = "tile.gather"(%a, %ok, %x, %i, %i) {options = {}}
    : (memref<?x?xf32>, tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi32>)
    -> tensor<4x8xf32>
  %taken = "tile.take"(%x, %i) {axis = 0 : i32}
    : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  return
}
"""
EXPECTED: dict[str, list[list[tuple[int, int]] | None]] = {
    "%iota": [[], []],
    "%row": [[], [(0, 0)]],
    "%wide": [[], [(0, 1)]],
    "%turned": [[(0, 2)], [(0, 0)], [(0, 1)]],
    "%flat": [[(0, 0)], [(0, 2)]],
    "%other": [None, None],
    "%both": [None, [(0, 1), (1, 1)]],
    "%one": [[(0, 0)], None],
    "%sum": [[(0, 1)]],
    "%across": [[(0, 0)]],
    "%load": [[], []],
    "%wrapped": [None, None],
    "%gathered": [[(1, 0), (2, 0), (3, 0), (4, 0)], [(1, 1), (2, 1), (3, 1), (4, 1)]],
    "%taken": [None, None],
}
"""By the name of an op's first result, for each of its axes: operands by number, and their axes."""


@pytest.fixture(scope="module")
def ops() -> dict[str, ir.OpView]:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
    ours = [op.opview for op in all_ops(module.operation) if class_of(op) is not None]
    found = dict(zip(EXPECTED, ours, strict=True))
    found["module"] = module.operation.opview  # ops live as long as it
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_stripes(name: str, ops: dict[str, ir.OpView]) -> None:
    operands = list(ops[name].operation.operands)
    for axis, expected in enumerate(EXPECTED[name]):
        found = ops[name].stripes(axis)
        if expected is None:
            assert found is None
        else:
            assert found == [(operands[number], at) for number, at in expected]


def test_rectangles(ops: dict[str, ir.OpView]) -> None:
    load = ops["%load"]
    assert load.rectangle == (*load.offsets, 0, 1)
    assert load.along == (0, 1)
    assert str(load.outside).startswith("0.0")
    gather = ops["%gathered"]
    assert gather.rectangle is None
    assert gather.outside is None
    assert gather.along == (0, 1)
