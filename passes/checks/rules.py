"""Asks rules of every op of a program, and reports all that break one."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.messages.diagnostics import CompileError
from tilec.passes.rewriting.locations import error_at

Rule = Callable[[ir.Operation], "str | None"]
"""What is wrong with an op, or None."""
RulesOf = Callable[[str], tuple[Rule, ...]]
"""The rules for ops of a name. Programs have thousands of ops, of few names, and most of those that
are lowered have none."""


def look_at_all(module: ir.Module, *kinds: RulesOf) -> None:
    """CompileError carrying one error per op that breaks a rule, the first that it breaks.

    Ops come before those in their regions. A walk costs as much as a short rule: all kinds of rules
    share one.
    """
    errors = []
    known: dict[str, tuple[Rule, ...]] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        rules = known.get(name)
        if rules is None:
            rules = known[name] = tuple(rule for rules_of in kinds for rule in rules_of(name))
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
