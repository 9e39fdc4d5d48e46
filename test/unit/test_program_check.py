"""The check between passes: a pass that breaks a program is named, whatever ran before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mlir import ir

from tilec.compile.compiler import Compilation, find_kernel, lower_to, run_pass
from tilec.dialects.context import make_context
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import InternalError
from tilec.passes.checks import program_check
from tilec.passes.contract import Level, PassContext, tile_pass

TEXT = """
func.func @k() attributes {tile.kernel} {
  %x = "tile.iota"() {axis = 0 : i32} : () -> tensor<32xi32>
  func.return
}
"""


@tile_pass(requires=Level.TILE, keeps=True)
def keeps_all(module: ir.Module, context: PassContext) -> None:
    """Does nothing."""


@tile_pass(requires=Level.TILE, ensures=Level.LAYOUTS)
def only_promises(module: ir.Module, context: PassContext) -> None:
    """Ensures layouts that it does not give."""


@tile_pass(requires=Level.TILE, keeps=True)
def spoils_an_op(module: ir.Module, context: PassContext) -> None:
    """Breaks a rule of the op, not of MLIR."""
    iota = find_kernel(module, None).regions[0].blocks[0].operations[0].operation
    iota.attributes["axis"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)


@tile_pass(requires=Level.TILE, keeps=True)
def demands_in_vain(module: ir.Module, context: PassContext) -> None:
    """Leaves a demand that no pass knows."""
    find_kernel(module, None).attributes["tile.unheard"] = ir.UnitAttr.get()


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compilation]:
    """A program before its first pass."""
    monkeypatch.setenv("TILEC_CHECK", "1")
    with make_context(), ir.Location.unknown():
        yield lower_to(ir.Module.parse(TEXT), find_target("sm_80"), "tile")


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (only_promises, "expected a tile with a #gpu_tile.layout"),
        (spoils_an_op, "axis 1 is out of range for rank 1"),
        (demands_in_vain, "unknown demand 'tile.unheard'"),
    ],
)
def test_who_breaks_the_program_is_named(job: Compilation, broken, words: str) -> None:
    run_pass(keeps_all, job)
    run_pass(keeps_all, job)
    with pytest.raises(InternalError, match=f"(?s){broken.name} left an invalid program.*{words}"):
        run_pass(broken, job)


def test_an_unchanged_program_is_looked_at_once(
    job: Compilation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_pass(keeps_all, job)
    monkeypatch.setattr(program_check, "look_at_all", lambda *_: pytest.fail("walked again"))
    run_pass(keeps_all, job)


@tile_pass(requires=Level.TILE, keeps=True)
def uses_too_early(module: ir.Module, context: PassContext) -> None:
    """Leaves what only MLIR's verifier knows: a value before it is there."""
    iota, end = find_kernel(module, None).regions[0].blocks[0].operations
    with ir.InsertionPoint(end):
        sum_ = ir.Operation.create("arith.addi", [iota.results[0].type], [iota.results[0]] * 2)
    sum_.move_before(iota.operation)


def test_the_structure_is_looked_at_where_it_changed(job: Compilation) -> None:
    run_pass(keeps_all, job)
    with pytest.raises(InternalError, match=r"(?s)uses-too-early left .*does not dominate"):
        run_pass(uses_too_early, job)
