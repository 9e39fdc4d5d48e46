"""Tables of ops find what was said of an op after it has changed; other dicts may not hold ops.

`op_rules.py`, which every test runs with, has the rules; here is seen that they bite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from mlir import ir
from mlir.passmanager import PassManager

from tilec.passes.rewriting.op_tables import OpMap, OpSet, order_of

TEXT = """
func.func @k(%a: i32, %b: i32) -> i32 {
  %c = arith.addi %a, %b : i32
  %d = arith.muli %a, %c : i32
  return %d : i32
}
"""


@pytest.fixture
def body() -> Iterator[ir.Block]:
    """addi, muli and return."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        yield module.body.operations[0].regions[0].blocks[0]


CHANGES: dict[str, Callable[[ir.Operation], None]] = {
    "attribute": lambda op: op.attributes.__setitem__("n", ir.UnitAttr.get()),
    "operand": lambda op: op.operands.__setitem__(0, op.operands[1]),
    "type of a result": lambda op: op.results[0].set_type(ir.IntegerType.get_signless(64)),
    "place": lambda op: op.move_before(op.block.operations[0].operation),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_op_is_found_after_a_change(body: ir.Block, change: str) -> None:
    said, kept = OpMap([(body.operations[1], "a product")]), OpSet([body.operations[1]])
    op = body.operations[1].operation
    CHANGES[change](op)
    for same in (op, op.opview):
        assert same in said
        assert same in kept
        assert said[same] == said.get(same) == "a product"
    assert body.operations[2] not in said
    assert body.operations[2] not in kept
    assert said.get(body.operations[2]) is None


def test_what_tables_give_has_the_order_of_insertion(body: ir.Block) -> None:
    ops = [view.operation for view in body.operations]
    for order in (ops, ops[::-1]):
        table, kept = order_of(order), OpSet([*order, *order])
        assert [*table] == [*kept] == order
        assert [*table.values()] == [0, 1, 2]
        assert (len(table), len(kept)) == (3, 3)


def test_sets_compare_and_join_as_sets_do(body: ir.Block) -> None:
    first, second, third = (view.operation for view in body.operations)
    assert OpSet([first, second]) == OpSet([second.opview, first])
    assert OpSet([first, second]) != OpSet([first, third])
    assert [*OpSet([first, second]) & OpSet([third, second])] == [second]
    kept = OpSet([first])
    kept.update([third, first])
    kept.discard(first)
    assert [*kept] == [third]


def test_a_plain_dict_or_set_of_ops_is_refused(body: ir.Block) -> None:
    view = body.operations[0]
    for op in (view, view.operation):
        with pytest.raises(TypeError, match=r"'arith.addi' as a key: .* use OpMap or OpSet"):
            {op: 1}  # noqa: B018
        with pytest.raises(TypeError, match="as a key"):
            (op, 1) in {1}  # noqa: B015


def test_what_was_said_of_an_erased_op_is_no_answer(body: ir.Block) -> None:
    """Another op may get its place in memory; what an op holds goes with it."""
    *_, last = body.operations
    with ir.InsertionPoint(last):
        around = ir.Operation.create("scf.execute_region", regions=1)
        with ir.InsertionPoint(around.regions[0].blocks.append()):
            inner = ir.Operation.create("scf.yield")
    said, kept = order_of([around, inner]), OpSet([around, inner, last])
    again = body.operations[2], inner.block.operations[0]
    around.erase()
    for op in again:
        for ask in (said.__getitem__, said.get, said.__contains__, kept.__contains__):
            with pytest.raises(AssertionError, match="erased op"):
                ask(op)
    assert last in kept


def test_an_op_taken_out_before_it_is_erased_may_be_asked_for(body: ir.Block) -> None:
    *_, last = body.operations
    with ir.InsertionPoint(last):
        one = ir.Operation.create("scf.execute_region", regions=1)
    said, kept = order_of([one]), OpSet([one])
    again = body.operations[2]
    del said[one]
    kept.discard(one)
    one.erase()
    assert again not in said
    assert again not in kept


def test_mlirs_own_passes_leave_no_answer(body: ir.Block) -> None:
    """They erase what no Python sees."""
    said = order_of([view.operation for view in body.operations])
    function = body.owner
    PassManager.parse("builtin.module(canonicalize)").run(function.parent)
    with pytest.raises(AssertionError, match="erased op"):
        said.get(function.regions[0].blocks[0].operations[0])
