"""`while` loops, and the form that `for` loops with `break` take: scf.while."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mlir import ir

from tilec.frontend.branches import condition
from tilec.frontend.builder import Builder
from tilec.frontend.carried import Loop, refuse_else
from tilec.frontend.conversion import compare_values
from tilec.frontend.frame import NORMAL, Completion, Frame, Names
from tilec.frontend.liveness import has_break, live_before, live_in_loop, read_names
from tilec.frontend.values import Mistake
from tilec.terms.dtypes import i1, index

Bind = Callable[[ir.Value], None]
"""Gives the loop variable a value at the start of the body."""


def execute_while(frame: Frame, node: ast.While, rest: list[ast.stmt], live: Names) -> Completion:
    """The statement rule of `while`; its condition is evaluated before each iteration."""
    refuse_else(frame, node)
    after = live_before(rest, live, frame.jump_live)
    head = live_in_loop(node.body, after, frozenset(), read_names(node.test))
    loop = Loop(frame, node, node.body, head, after, frozenset())
    breaks = has_break(node.body)
    returns = any(isinstance(inner, ast.Return) for inner in ast.walk(node))
    if isinstance(node.test, ast.Constant) and node.test.value and not breaks and not returns:
        raise Mistake("this loop never ends: its condition is true, and nothing leaves it")
    op = loop.repeat(lambda: _while(loop, node, breaks))
    loop.leave(list(op.results)[breaks:])
    return NORMAL


def _while(loop: Loop, node: ast.While, breaks: bool) -> tuple[ir.Operation, bool]:
    builder = loop.builder
    flag = builder.element(i1)

    def evaluate() -> ir.Value:
        value = condition(loop.frame, node.test)
        return builder.constant(value, i1) if isinstance(value, bool) else value.value

    def test(arguments: list[ir.Value]) -> ir.Value:
        loop.enter(arguments[breaks:])
        return _unless(builder, arguments[0], evaluate) if breaks else evaluate()

    def body(arguments: list[ir.Value]) -> list[ir.Value] | None:
        loop.enter(arguments[breaks:])
        completion = loop.run_body()
        if loop.widened():
            return None
        return [*([_broken(builder, completion)] if breaks else []), *loop.yields()]

    inits = [*([builder.constant(False, i1)] if breaks else []), *loop.inits()]
    types = [*([flag] if breaks else []), *loop.types()]
    return _scf_while(builder, inits, types, test, body)


def _unless(builder: Builder, broken: ir.Value, evaluate: Callable[[], ir.Value]) -> ir.Value:
    """The condition, which is not evaluated again after a `break`."""
    op = builder.op("scf.if", [builder.element(i1)], [broken], regions=2)
    with ir.InsertionPoint(op.regions[0].blocks.append()):
        builder.op("scf.yield", operands=[builder.constant(False, i1)])
    with ir.InsertionPoint(op.regions[1].blocks.append()):
        builder.op("scf.yield", operands=[evaluate()])
    return op.result


def while_range(
    loop: Loop, lower: ir.Value, upper: ir.Value, step: ir.Value, bind: Bind
) -> tuple[ir.Operation, bool]:
    """A `for` with `break`: an scf.while that carries the loop variable and whether it broke."""
    builder = loop.builder
    kind = builder.element(index)
    inits = [lower, builder.constant(False, i1), *loop.inits()]

    def test(arguments: list[ir.Value]) -> ir.Value:
        inside = compare_values(builder, "<", arguments[0], upper, index, None)
        going = builder.value(
            "arith.xori", builder.element(i1), arguments[1], builder.constant(True, i1)
        )
        return builder.value("arith.andi", builder.element(i1), inside, going)

    def body(arguments: list[ir.Value]) -> list[ir.Value] | None:
        loop.enter(arguments[2:])
        bind(arguments[0])
        broken = _broken(builder, loop.run_body())
        if loop.widened():
            return None
        following = builder.value("arith.addi", kind, arguments[0], step)
        return [following, broken, *loop.yields()]

    return _scf_while(builder, inits, [kind, builder.element(i1), *loop.types()], test, body)


def _broken(builder: Builder, completion: Completion) -> ir.Value:
    if completion.kind == "leave":
        return completion.value.value
    return builder.constant(completion.kind == "break", i1)


def _scf_while(
    builder: Builder,
    inits: list[ir.Value],
    types: list[ir.Type],
    test: Callable[[list[ir.Value]], ir.Value],
    body: Callable[[list[ir.Value]], list[ir.Value] | None],
) -> tuple[ir.Operation, bool]:
    """An scf.while whose two regions see the same values; `body` gives None to try again."""
    op = builder.op("scf.while", types, inits, regions=2)
    locations = [op.location] * len(types)
    before = op.regions[0].blocks.append(*types, arg_locs=locations)
    with ir.InsertionPoint(before):
        arguments = list(before.arguments)
        builder.op("scf.condition", operands=[test(arguments), *arguments])
    after = op.regions[1].blocks.append(*types, arg_locs=locations)
    with ir.InsertionPoint(after):
        values = body(list(after.arguments))
        if values is None:
            return op, False
        builder.op("scf.yield", operands=values)
    return op, True
