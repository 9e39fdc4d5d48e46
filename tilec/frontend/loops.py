"""`for` and `while`: loops that run on the GPU, and loops unrolled at compile time.

A loop carries the names its body assigns that something may read in the next iteration or after
the loop. Their types must be the same after every iteration; a start that is a compile-time number
takes the dtype the body gives it (found by building the body again with that dtype).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mlir import ir

from tilec.frontend.branches import condition
from tilec.frontend.builder import Builder
from tilec.frontend.conversion import compare_values, to_index
from tilec.frontend.frame import NORMAL, Completion, Frame, Names
from tilec.frontend.liveness import (
    assigned_names,
    has_break,
    live_before,
    live_in_loop,
    read_names,
)
from tilec.frontend.merge import Spec, convert, leaves, rebuild, spec_of, widen
from tilec.frontend.values import Mistake, Range, Scalar, Undefined, describe
from tilec.language.dtypes import i1, index

MOST_UNROLLED = 4096
_ROUNDS = 8
"""Tries to find the dtypes of carried names; each try makes at least one wider."""


def execute_for(frame: Frame, node: ast.For, rest: list[ast.stmt], live: Names) -> Completion:
    """The statement rule of `for`."""
    _refuse_else(frame, node)
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
            "help: loop over tl.range(...), or over a tuple of constants",
        )
    if not isinstance(node.target, ast.Name):
        raise frame.error(node.target, "the variable of a range loop must be one name")
    loop = _Loop(frame, node, node.body, head, after, killed)
    _for_range(loop, node, iterable, node.target)
    frame.names[node.target.id] = Undefined(
        f"the loop variable '{node.target.id}' has no value after its loop"
    )
    return NORMAL


def _refuse_else(frame: Frame, node: ast.For | ast.While) -> None:
    if node.orelse:
        raise frame.error(node.orelse[0], "unsupported syntax: 'else' of a loop")


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
    items = range(iterable.start, iterable.stop, iterable.step)
    if len(items) > MOST_UNROLLED:
        raise Mistake(
            f"static_range would unroll {len(items)} iterations; at most {MOST_UNROLLED}",
            "help: use tl.range for a loop that runs on the GPU",
        )
    return list(items)


@contextmanager
def _inside(frame: Frame, kind: str, jump_live: Names) -> Iterator[None]:
    """The frame's state inside a loop's body."""
    before = frame.jump_live
    frame.loop_kinds.append(kind)
    frame.jump_live = jump_live
    try:
        yield
    finally:
        frame.loop_kinds.pop()
        frame.jump_live = before


def _unroll(frame: Frame, node: ast.For, items: list[Any], head: Names, after: Names) -> Completion:
    with _inside(frame, "static", head | after):
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


class _Loop:
    """One loop that runs on the GPU: what it carries, and how its body is built."""

    def __init__(
        self,
        frame: Frame,
        node: ast.For | ast.While,
        body: list[ast.stmt],
        head: Names,
        after: Names,
        killed: Names,
    ) -> None:
        if frame.builder.in_combine:
            raise frame.error(node, "a loop is not possible in a combine function")
        self.frame = frame
        self.node = node
        self.statements = body
        self.head = head
        self.after = after
        self.before = dict(frame.names)
        self.defined_at = dict(frame.defined_at)
        self.assigned = assigned_names(body)
        carried = (self.assigned - killed) & head
        self.carried = [
            name
            for name, value in self.before.items()
            if name in carried and not isinstance(value, Undefined)
        ]
        self.specs: dict[str, Spec] = {name: spec_of(self.before[name]) for name in self.carried}

    @property
    def builder(self) -> Builder:
        return self.frame.builder

    def inits(self) -> list[ir.Value]:
        """The carried values on entry."""
        return [
            value
            for name in self.carried
            for value in convert(self.builder, self.specs[name], self.before[name])
        ]

    def types(self) -> list[ir.Type]:
        """The types of the carried values."""
        return [
            self.builder.type(leaf.dtype, leaf.shape)
            for name in self.carried
            for leaf in leaves(self.specs[name])
        ]

    def enter(self, values: list[ir.Value]) -> None:
        """Binds the carried names to `values` at the start of a region or after the loop."""
        self.frame.names = dict(self.before)
        self.frame.defined_at = dict(self.defined_at)
        parts = iter(values)
        for name in self.carried:
            self.frame.names[name] = rebuild(self.specs[name], parts)

    def run_body(self) -> Completion:
        """Executes the body at the current insertion point."""
        with _inside(self.frame, "dynamic", self.head | self.after):
            return self.frame.execute(self.statements, self.head)

    def widened(self) -> bool:
        """Whether the body gave a carried number a wider dtype than assumed; adopts it if so."""
        found = {}
        for name in self.carried:
            value = self.frame.names.get(name, Undefined(f"'{name}' may be undefined"))
            try:
                if isinstance(value, Undefined):
                    raise Mistake(value.message, *value.notes)
                found[name] = widen(self.specs[name], self.before[name], value)
            except Mistake as mistake:
                raise self.mismatch(name, mistake) from None
        changed = found != self.specs
        self.specs = found
        return changed

    def mismatch(self, name: str, mistake: Mistake) -> Exception:
        """The error for a name whose type changes, at the assignment that changes it."""
        notes = list(mistake.notes)
        if name in self.defined_at:
            notes.append((f"'{name}' before the loop", self.defined_at[name]))
        notes.append(
            "help: give it its final shape and dtype before the loop, e.g. with tl.full or .to()"
        )
        error = self.frame.error(
            self.node, f"'{name}' changes in the loop: {mistake.message}", *notes
        )
        place = self.frame.defined_at.get(name)
        if place is not None and place != self.defined_at.get(name):
            error = type(error)(error.message, place, error.notes)
        return error

    def yields(self) -> list[ir.Value]:
        """The carried values at the end of the body."""
        return [
            value
            for name in self.carried
            for value in convert(self.builder, self.specs[name], self.frame.names[name])
        ]

    def leave(self, results: list[ir.Value]) -> None:
        """The names after the loop."""
        assigned_inside = self.frame.defined_at
        self.enter(results)
        for name in self.assigned - set(self.carried):
            self.frame.names[name] = Undefined(
                f"'{name}' may be undefined here",
                (("it is assigned only in this loop, which may run zero times", self.place),),
            )
        for name in self.carried:
            if name in assigned_inside:
                self.frame.defined_at[name] = assigned_inside[name]

    @property
    def place(self) -> Any:
        return self.frame.location(self.node)

    def repeat(self, build: Callable[[], tuple[ir.Operation, bool]]) -> ir.Operation:
        """Builds the loop until the dtypes assumed are the dtypes found."""
        for _ in range(_ROUNDS):
            op, done = build()
            if done:
                return op
            op.erase()
            self.frame.names, self.frame.defined_at = dict(self.before), dict(self.defined_at)
        raise self.frame.error(self.node, "the dtypes of the loop's variables do not settle")


def _for_range(loop: _Loop, node: ast.For, bounds: Range, target: ast.Name) -> None:
    frame, builder = loop.frame, loop.builder
    with frame.at(node.iter):
        if isinstance(bounds.step, int) and bounds.step == 0:
            raise Mistake("the step of a range must not be 0")
        start = to_index(builder, bounds.start, "the start of a range")
        stop = to_index(builder, bounds.stop, "the end of a range")
        step = to_index(builder, bounds.step, "the step of a range")
    down = isinstance(bounds.step, int) and bounds.step < 0
    lower, upper, stride = start, stop, step
    if down:  # scf.for counts up: run over the iteration number
        lower, stride = builder.constant(0, index), builder.constant(1, index)
        upper = _trip_count(builder, start, stop, -bounds.step)

    def bind(iv: ir.Value) -> None:
        if down:
            kind = builder.element(index)
            iv = builder.value("arith.muli", kind, iv, step)
            iv = builder.value("arith.addi", kind, start, iv)
        frame.assign(target.id, Scalar(iv, index), target)

    if has_break(loop.statements):
        if bounds.demands:
            name = next(iter(bounds.demands))
            raise Mistake(
                f"'{name}' is impossible: a loop with 'break' cannot be pipelined", argument=name
            )
        op = loop.repeat(lambda: _while_range(loop, lower, upper, stride, bind))
        loop.leave(list(op.results)[2:])
    else:
        op = loop.repeat(lambda: _scf_for(loop, lower, upper, stride, bind))
        _demand(builder, op, bounds)
        loop.leave(list(op.results))


def _trip_count(builder: Builder, start: ir.Value, stop: ir.Value, step: int) -> ir.Value:
    kind = builder.element(index)
    distance = builder.value("arith.subi", kind, start, stop)
    return builder.value("arith.ceildivsi", kind, distance, builder.constant(step, index))


def _demand(builder: Builder, op: ir.Operation, bounds: Range) -> None:
    for name, value in bounds.demands.items():
        if isinstance(value, bool):
            op.attributes[f"tile.{name}"] = ir.BoolAttr.get(value)
        else:
            op.attributes[f"tile.{name}"] = ir.IntegerAttr.get(
                ir.IntegerType.get_signless(32), value
            )


Bind = Callable[[ir.Value], None]


def _scf_for(
    loop: _Loop, lower: ir.Value, upper: ir.Value, step: ir.Value, bind: Bind
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


def _while_range(
    loop: _Loop, lower: ir.Value, upper: ir.Value, step: ir.Value, bind: Bind
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


def execute_while(frame: Frame, node: ast.While, rest: list[ast.stmt], live: Names) -> Completion:
    """The statement rule of `while`; its condition is evaluated before each iteration."""
    _refuse_else(frame, node)
    after = live_before(rest, live, frame.jump_live)
    head = live_in_loop(node.body, after, frozenset(), read_names(node.test))
    loop = _Loop(frame, node, node.body, head, after, frozenset())
    breaks = has_break(node.body)
    op = loop.repeat(lambda: _while(loop, node, breaks))
    loop.leave(list(op.results)[breaks:])
    return NORMAL


def _while(loop: _Loop, node: ast.While, breaks: bool) -> tuple[ir.Operation, bool]:
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
