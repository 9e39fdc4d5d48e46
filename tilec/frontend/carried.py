"""What a loop that runs on the GPU carries around, and how its body is built.

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

from tilec.frontend.builder import Builder
from tilec.frontend.frame import Completion, Frame, Names
from tilec.frontend.liveness import assigned_names
from tilec.frontend.merge import Spec, convert, leaves, rebuild, spec_of, widen
from tilec.frontend.values import Mistake, Undefined

_ROUNDS = 8
"""Tries to find the dtypes of carried names; each try makes at least one wider."""


@contextmanager
def inside_loop(frame: Frame, kind: str, jump_live: Names) -> Iterator[None]:
    """The frame's state inside a loop's body."""
    before = frame.jump_live
    frame.loop_kinds.append(kind)
    frame.jump_live = jump_live
    try:
        yield
    finally:
        frame.loop_kinds.pop()
        frame.jump_live = before


class Loop:
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
            leaf.type(self.builder) for name in self.carried for leaf in leaves(self.specs[name])
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
        with inside_loop(self.frame, "dynamic", self.head | self.after):
            return self.frame.execute(self.statements, self.head)

    def widened(self) -> bool:
        """Adopts a wider dtype for a carried number, if the body gave it one; says whether it
        did."""
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


def refuse_else(frame: Frame, node: ast.For | ast.While) -> None:
    """CompileError for a loop's `else`."""
    if node.orelse:
        raise frame.error(node.orelse[0], "unsupported syntax: 'else' of a loop")
