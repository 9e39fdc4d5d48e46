"""Asks rules of every op of a program, and reports all that break one."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.messages.diagnostics import CompileError
from tilec.passes.rewriting.locations import error_at

Rule = Callable[[ir.Operation], "str | None"]
"""What is wrong with an op, or None."""


def look_at_all(module: ir.Module, *rules: Rule) -> None:
    """CompileError carrying one error per op that breaks a rule, the first that it breaks.

    Ops come before those in their regions. A walk costs as much as a short rule: rules share one.
    """
    errors = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        for rule in rules:
            wrong = rule(op)
            if wrong:
                errors.append(error_at(op, wrong))
                break
        return ir.WalkResult.ADVANCE

    with module.context, ir.Location.unknown():
        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if errors:
        raise CompileError.group(errors)
