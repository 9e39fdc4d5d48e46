"""`for` loops: scf.for where they run on the GPU, or unrolled at compile time."""

from __future__ import annotations

import ast
from typing import Any

from mlir import ir

from tilec.frontend.carried import Loop, inside_loop, refuse_else
from tilec.frontend.demands import loop_attributes
from tilec.frontend.frame import NORMAL, Completion, Frame, Names
from tilec.frontend.habits import AT_A_TIME
from tilec.frontend.liveness import assigned_names, has_break, live_before, live_in_loop
from tilec.frontend.range_counts import count_of
from tilec.frontend.values import (
    MOST_UNROLLED,
    ArrayList,
    Mistake,
    Range,
    Undefined,
    describe,
)
from tilec.frontend.while_loops import Bind, while_range
from tilec.terms.dtypes import index


def execute_for(frame: Frame, node: ast.For, rest: list[ast.stmt], live: Names) -> Completion:
    """The statement rule of `for`."""
    refuse_else(frame, node)
    after = live_before(rest, live, frame.jump_live)
    killed = assigned_names([node.target])
    head = live_in_loop(node.body, after, killed, frozenset())
    iterable = frame.evaluate(node.iter)
    with frame.at(node.iter):
        items = _unrolled_items(iterable)
    if items is not None:
        return _unroll(frame, node, items, head, after)
    if not isinstance(iterable, Range):
        raise frame.error(
            node.iter,
            f"cannot loop over {describe(iterable)}",
            AT_A_TIME
            if isinstance(iterable, ArrayList)
            else "help: loop over tl.range(...), or over a tuple of constants",
        )
    if not isinstance(node.target, ast.Name):
        raise frame.error(node.target, "the variable of a range loop must be one name")
    loop = Loop(frame, node, node.body, head, after, killed)
    _for_range(loop, node, iterable, node.target)
    frame.names[node.target.id] = Undefined(
        f"the loop variable '{node.target.id}' has no value after its loop"
    )
    return NORMAL


def _unrolled_items(iterable: Any) -> list[Any] | None:
    """The values of a compile-time loop; None for a loop that runs on the GPU."""
    if isinstance(iterable, tuple):
        return list(iterable)
    if not isinstance(iterable, Range) or not iterable.static:
        return None
    for name in ("start", "stop", "step"):
        value = getattr(iterable, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Mistake(
                f"static_range needs constant integers, {name} is {describe(value)}",
                "help: use tl.range for a loop that runs on the GPU",
            )
    if iterable.step == 0:
        raise Mistake("the step of a range must not be 0")
    if iterable.count > MOST_UNROLLED:
        raise Mistake(
            f"static_range would unroll {iterable.count} iterations; at most {MOST_UNROLLED}",
            "help: use tl.range for a loop that runs on the GPU",
        )
    return list(range(iterable.start, iterable.stop, iterable.step))


def _unroll(frame: Frame, node: ast.For, items: list[Any], head: Names, after: Names) -> Completion:
    with inside_loop(frame, "static", head | after):
        for item in items:
            frame.bind(node.target, item)
            completion = frame.execute(node.body, head)
            if completion.kind == "leave":
                raise frame.error(
                    node,
                    "'break' under a run-time condition inside an unrolled loop is not supported",
                    "help: use tl.range, or make the condition a compile-time constant",
                )
            if completion.kind == "break":
                break
            if completion.kind == "return":
                return completion
    return NORMAL


def _for_range(loop: Loop, node: ast.For, bounds: Range, target: ast.Name) -> None:
    frame, builder = loop.frame, loop.builder
    with frame.at(node.iter):
        count = count_of(builder, bounds)

    def bind(iv: ir.Value) -> None:
        frame.assign(target.id, count.number(iv), target)

    if has_break(loop.statements):
        if bounds.demands:
            name = next(iter(bounds.demands))
            why = "demands are for loops without 'break'"
            raise Mistake(f"'{name}' is impossible: {why}", argument=name)
        op = loop.repeat(lambda: while_range(loop, count.lower, count.upper, count.step, bind))
        loop.leave(list(op.results)[2:])
    else:
        op = loop.repeat(lambda: _scf_for(loop, count.lower, count.upper, count.step, bind))
        for name, attribute in loop_attributes(bounds.demands).items():
            op.attributes[name] = attribute
        loop.leave(list(op.results))


def _scf_for(
    loop: Loop, lower: ir.Value, upper: ir.Value, step: ir.Value, bind: Bind
) -> tuple[ir.Operation, bool]:
    types = loop.types()
    op = loop.builder.op("scf.for", types, [lower, upper, step, *loop.inits()], regions=1)
    block = op.regions[0].blocks.append(
        loop.builder.element(index), *types, arg_locs=[op.location] * (len(types) + 1)
    )
    iv, *values = block.arguments
    with ir.InsertionPoint(block):
        loop.enter(values)
        bind(iv)
        loop.run_body()
        if loop.widened():
            return op, False
        loop.builder.op("scf.yield", operands=loop.yields())
    return op, True
