"""`if`, conditional expressions, and jumps out of them.

A condition known at compile time picks its branch and the other is not compiled. Otherwise
`scf.if`: names assigned in a branch and read later are its results. A branch that contains
`return`, `break` or `continue` takes the rest of the statement list with it, so that afterwards
nothing is left to run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mlir import ir

from tilec.frontend.frame import NORMAL, Completion, Frame, Names
from tilec.frontend.liveness import has_jump, live_before
from tilec.frontend.merge import Spec, convert, join_values, leaves, rebuild
from tilec.frontend.operators import CHOOSE, truth
from tilec.frontend.values import Mistake, Scalar, Undefined, describe, is_runtime
from tilec.messages.diagnostics import Location
from tilec.records import dataclass

_EXIT = "$exit"
"""The name under which a branch's completion value is merged with the other's."""


def condition(frame: Frame, node: ast.expr) -> bool | Scalar:
    """The value of a condition: a bool if known at compile time, else an i1 scalar."""
    value = frame.evaluate(node)
    with frame.at(node):
        return as_condition(frame, value)


def as_condition(frame: Frame, value: Any, note: str = CHOOSE) -> bool | Scalar:
    """Gives a value's truth. Mistake for arrays, and with `note` for tiles."""
    if is_runtime(value):
        return truth(frame.builder, value, note)
    if value is None or isinstance(value, (bool, int, float, str, tuple)):
        return bool(value)
    raise Mistake(f"a condition must be a scalar, found {describe(value)}")


def execute_if(frame: Frame, node: ast.If, rest: list[ast.stmt], live: Names) -> Completion:
    """The statement rule of `if`."""
    test = condition(frame, node.test)
    jumps = has_jump(node)
    if isinstance(test, bool):
        chosen = node.body if test else node.orelse
        if jumps:
            return _end_of_list(frame, frame.execute([*chosen, *rest], live))
        return frame.execute(chosen, live_before(rest, live, frame.jump_live))
    if frame.builder.in_combine:
        raise frame.error(
            node,
            "an 'if' on a run-time value is not possible in a combine function",
            "help: choose with tl.where(condition, x, y)",
        )
    if not jumps:
        after = live_before(rest, live, frame.jump_live)
        _run(frame, test, node, [node.body, node.orelse], after)
        return NORMAL
    bodies = [[*node.body, *rest], [*node.orelse, *rest]]
    return _run(frame, test, node, bodies, live, jumps=True)


def _end_of_list(frame: Frame, completion: Completion) -> Completion:
    """Says what reaching the end of the statements means: the next iteration, or the function's
    end."""
    if completion is not NORMAL:
        return completion
    return Completion("continue") if frame.loop_kinds else Completion("return")


def _run(
    frame: Frame,
    test: Scalar,
    node: ast.If,
    bodies: list[list[ast.stmt]],
    live: Names,
    jumps: bool = False,
) -> Completion:
    def action(statements: list[ast.stmt]) -> Callable[[], Completion]:
        return lambda: frame.execute(statements, live)

    branches = Branches(frame, test, node)
    completions = [branches.run(action(statements)) for statements in bodies]
    result = NORMAL
    if jumps:
        result = _meet(frame, node, branches, [_end_of_list(frame, c) for c in completions])
    merged = branches.merge(live | {_EXIT})
    if result.kind in ("return", "leave") and result.value is not None:
        return Completion(result.kind, merged[_EXIT])
    return result


def _meet(frame: Frame, node: ast.If, branches: Branches, ends: list[Completion]) -> Completion:
    """The common completion of two branches, whose values go under the name `_EXIT`."""
    kinds = {end.kind for end in ends}
    if kinds == {"return"}:
        values = [end.value for end in ends]
        branches.set(_EXIT, values)
        return Completion("return", None if values == [None, None] else values)
    if "return" in kinds:
        raise frame.error(
            node,
            "'return' under a run-time condition inside an unrolled loop is not supported",
            "help: compute the result without leaving the loop, e.g. with tl.where",
        )
    broken = [end.value if end.kind == "leave" else end.kind == "break" for end in ends]
    if broken[0] is broken[1] and isinstance(broken[0], bool):
        return Completion("break" if broken[0] else "continue")
    branches.set(_EXIT, broken)
    return Completion("leave", broken)


@dataclass
class _Path:
    block: ir.Block
    names: dict[str, Any]
    defined_at: dict[str, Location]


class Branches:
    """An `scf.if` in the making: run both branches, then merge their names."""

    def __init__(self, frame: Frame, test: Scalar, node: ast.AST) -> None:
        self.frame = frame
        self.test = test
        self.node = node
        self.before = frame.names
        self.defined_at = frame.defined_at
        self.paths: list[_Path] = []
        self.op = frame.builder.op("scf.if", operands=[test.value], regions=2)

    def run(self, action: Callable[[], Any]) -> Any:
        """Runs the next branch (then, else) and gives what `action` gives."""
        frame = self.frame
        frame.names, frame.defined_at = dict(self.before), dict(self.defined_at)
        block = self.op.regions[len(self.paths)].blocks.append()
        try:
            with ir.InsertionPoint(block):
                result = action()
            self.paths.append(_Path(block, frame.names, frame.defined_at))
        finally:
            frame.names, frame.defined_at = self.before, self.defined_at
        return result

    def set(self, name: str, values: list[Any]) -> None:
        """Binds a name in both branches."""
        for path, value in zip(self.paths, values, strict=True):
            path.names[name] = value

    def merge(self, live: Names) -> dict[str, Any]:
        """Ends both branches; live names that differ become results. Gives the merged names."""
        then, other = (path.names for path in self.paths)
        merged: dict[str, Any] = {}
        specs: dict[str, Spec] = {}
        for name in dict.fromkeys([*then, *other]):
            if then.get(name, self) is other.get(name, self):
                if then[name] is not self.before.get(name, self):
                    merged[name] = then[name]  # assigned on both paths to one constant
            elif name in live:
                specs[name] = self._spec(name)
            else:
                self.before.pop(name, None)
        self._yield(specs)
        results = iter(self._with_results(specs))
        merged.update((name, rebuild(spec, results)) for name, spec in specs.items())
        for name in merged.keys() - {_EXIT}:
            self.before[name] = merged[name]
            places = [p.defined_at[name] for p in self.paths if name in p.defined_at]
            self.defined_at.update((name, place) for place in places[-1:])
        return merged

    def _yield(self, specs: dict[str, Spec]) -> None:
        for path in self.paths:
            with ir.InsertionPoint(path.block):
                values = [
                    value
                    for name, spec in specs.items()
                    if not isinstance(spec, Undefined)
                    for value in convert(self.frame.builder, spec, path.names[name])
                ]
                self.frame.builder.op("scf.yield", operands=values)

    def _spec(self, name: str) -> Spec:
        for path, word in zip(self.paths, ("true", "false"), strict=True):
            if name not in path.names or isinstance(path.names[name], Undefined):
                other = "false" if word == "true" else "true"
                return Undefined(
                    f"'{name}' may be undefined here",
                    (
                        (
                            f"it is assigned only where this is {other}",
                            self.frame.location(self.node),
                        ),
                    ),
                )
        try:
            return join_values(*(path.names[name] for path in self.paths))
        except Mistake as mistake:
            notes = [
                (f"{describe(path.names[name])} is assigned here", path.defined_at[name])
                for path in self.paths
                if name in path.defined_at
            ]
            what = "the returned value" if name == _EXIT else f"'{name}'"
            return Undefined(f"{what} is {mistake.message} of a branch", tuple(notes))

    def _with_results(self, specs: dict[str, Spec]) -> list[ir.Value]:
        """Gives the op its results, which it can only be created with."""
        types = [leaf.type(self.frame.builder) for spec in specs.values() for leaf in leaves(spec)]
        if not types:
            return []
        with ir.InsertionPoint(self.op), self.op.location:
            made = self.frame.builder.op("scf.if", types, [self.test.value], regions=2)
        for source, target in zip(self.op.regions, made.regions, strict=True):
            block = target.blocks.append()
            for op in list(source.blocks[0].operations):
                block.append(op)
        self.op.erase()
        self.op = made
        return list(made.results)


def evaluate_if_expression(frame: Frame, node: ast.IfExp) -> Any:
    """Evaluates `x if condition else y`, of which only the chosen side runs."""
    test = condition(frame, node.test)
    if isinstance(test, bool):
        return frame.evaluate(node.body if test else node.orelse)
    if frame.builder.in_combine:
        raise Mistake(
            "a conditional expression on a run-time value is not possible in a combine function",
            "help: choose with tl.where(condition, x, y)",
        )
    branches = Branches(frame, test, node)
    values = [
        branches.run(lambda side=side: frame.evaluate(side)) for side in (node.body, node.orelse)
    ]
    branches.set(_EXIT, values)
    merged = branches.merge(frozenset({_EXIT}))
    result = merged.get(_EXIT, values[0])
    if isinstance(result, Undefined):
        raise Mistake(
            f"the sides of a conditional expression differ: {describe(values[0])} and "
            f"{describe(values[1])}"
        )
    return result
