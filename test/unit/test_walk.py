"""What MLIR finds by name is what a walk in Python finds, in its order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mlir import ir
from mlir.dialects import arith, scf

from tilec.dialects.context import make_context
from tilec.dialects.gpu_tile import RoleOp
from tilec.dialects.op import TileOp
from tilec.passes.rewriting.loops import find_loops
from tilec.passes.rewriting.walk import all_ops, find_ops, ops_named

NESTED = """
func.func @nested(%a: index, %c: i1) {
  %one = arith.constant 1 : index
  scf.for %i = %a to %a step %one {
    %x = arith.addi %i, %one : index
    scf.if %c {
      scf.for %j = %x to %a step %one {
        %y = arith.addi %j, %x : index
      }
      %z = arith.addi %x, %x : index
    }
    scf.for %k = %x to %a step %one {
    }
  }
  "gpu_tile.role"() ({
    scf.for %i = %a to %a step %one {
      %w = arith.addi %i, %i : index
    }
    "gpu.yield"() : () -> ()
  }) {name = "load", first_warp = 0 : i64, warps = 1 : i64, registers = 0 : i64} : () -> ()
  return
}
"""
JUMPS = """
func.func @jumps(%a: index) {
  %x = arith.addi %a, %a : index
  return
^dead:
  %y = arith.addi %a, %a : index
  return
}
"""
KINDS = [
    (scf.ForOp,), (scf.ForOp, scf.IfOp), (arith.AddIOp,), (scf.ForOp, arith.AddIOp), (TileOp,),
    (RoleOp,), (RoleOp, scf.ForOp),
]  # fmt: skip


@pytest.fixture(params=[NESTED, JUMPS])
def places(request: pytest.FixtureRequest) -> Iterator[list[ir.Operation]]:
    """All ops of a program: each is a place to look inside."""
    with make_context():
        module = ir.Module.parse(request.param)
        yield all_ops(module.operation)


@pytest.mark.parametrize("kinds", KINDS)
def test_classes(places: list[ir.Operation], kinds: tuple[type, ...]) -> None:
    """Outer ops before those inside them, an op looked inside among them."""
    for place in places:
        walked = [op for op in all_ops(place) if isinstance(op.opview, kinds)]
        assert find_ops(place, *kinds) == walked


def test_names(places: list[ir.Operation]) -> None:
    """Inner ops before those around them."""
    for place in places:
        walked = all_ops(place, inner_first=True)
        names = ("scf.for", "scf.if", "arith.addi")
        assert ops_named(place, names) == [op for op in walked if op.name in names]
        assert find_loops(place) == [op for op in walked if op.name == "scf.for"]
