"""`with gpu.role(...)`: a part of an explicit kernel that runs on warps of its own."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mlir import ir

from tilec.dialects.gpu_tile import RoleOp
from tilec.frontend.frame import NORMAL, Completion, Frame, Names
from tilec.frontend.liveness import assigned_names
from tilec.frontend.values import Mistake, Role, Undefined, describe


def execute_with(frame: Frame, node: ast.With, rest: list[ast.stmt], live: Names) -> Completion:
    """The statement rule of `with`: its one item is a role, whose body becomes the op's region."""
    if len(node.items) != 1 or node.items[0].optional_vars is not None:
        raise Mistake("'with' is for one role (gpu.role), without 'as', in a kernel")
    item = node.items[0].context_expr
    role = frame.evaluate(item)
    if not isinstance(role, Role):
        raise frame.error(
            item, f"'with' is for roles (gpu.role) in a kernel, found {describe(role)}"
        )
    _refuse_place(frame)
    before, defined_at = frame.names, frame.defined_at
    frame.names, frame.defined_at = dict(before), dict(defined_at)
    with frame.at(item):
        _run(frame, node, role)
    frame.names, frame.defined_at = before, defined_at
    note = ("it is assigned in this role; values leave it through memory", frame.location(node))
    for name in assigned_names(node.body):
        frame.names[name] = Undefined(f"'{name}' has no value here", (note,))
    return NORMAL


def _refuse_place(frame: Frame) -> None:
    if frame.builder.role_warps is not None:
        raise Mistake("a role stands inside another; end that one first")
    if ir.InsertionPoint.current.block != frame.builder.entry:
        raise Mistake("a role stands outside loops and branches")


def _run(frame: Frame, node: ast.With, role: Role) -> None:
    builder = frame.builder
    builder.role_warps = role.attributes["warps"]

    def body() -> Sequence[ir.Value]:
        completion = frame.execute(node.body, frozenset())
        if completion is not NORMAL:
            raise frame.error(node, f"'{completion.kind}' does not lead out of a role")
        return []

    try:
        made = RoleOp.build(body=body, **role.attributes)
    finally:
        builder.role_warps = None
    wrong = made.check()
    if wrong:
        raise Mistake(wrong)
