"""The rule of each kind of statement that is neither a branch nor a loop."""

from __future__ import annotations

import ast
from typing import Any

from tilec.dialects.tile import AssertOp
from tilec.frontend.branches import as_condition
from tilec.frontend.expressions import apply_binary
from tilec.frontend.frame import NORMAL, Completion, Frame, Names
from tilec.frontend.values import Mistake, Tile
from tilec.terms.dtypes import i1

Rest = list[ast.stmt]


def execute_expression(frame: Frame, node: ast.Expr, rest: Rest, live: Names) -> Completion:
    """An expression for its effect; a docstring has none."""
    frame.evaluate(node.value)
    return NORMAL


def execute_assign(frame: Frame, node: ast.Assign, rest: Rest, live: Names) -> Completion:
    """Compiles `x = ...`, `x, y = ...`, `x = y = ...`."""
    value = frame.evaluate(node.value)
    for target in node.targets:
        frame.bind(target, value)
    return NORMAL


def execute_annotated(frame: Frame, node: ast.AnnAssign, rest: Rest, live: Names) -> Completion:
    """Compiles `x: annotation = ...`; the annotation is not read."""
    if node.value is None:
        return NORMAL
    frame.bind(node.target, frame.evaluate(node.value))
    return NORMAL


def execute_augmented(frame: Frame, node: ast.AugAssign, rest: Rest, live: Names) -> Completion:
    """Compiles `x += ...`."""
    if not isinstance(node.target, ast.Name):
        frame.bind(node.target, None)
        raise Mistake("cannot assign to this")
    read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
    lhs = frame.evaluate(read)
    rhs = frame.evaluate(node.value)
    frame.assign(node.target.id, apply_binary(frame, node.op, lhs, rhs), node.target)
    return NORMAL


def execute_return(frame: Frame, node: ast.Return, rest: Rest, live: Names) -> Completion:
    """Compiles `return`, which may stand anywhere but inside a loop that runs on the GPU."""
    if "dynamic" in frame.loop_kinds:
        raise Mistake(
            "'return' inside a loop that runs on the GPU is not supported",
            "help: leave the loop with 'break' and return after it",
        )
    return Completion("return", None if node.value is None else frame.evaluate(node.value))


def execute_break(frame: Frame, node: ast.Break, rest: Rest, live: Names) -> Completion:
    """Compiles `break`."""
    return Completion("break")


def execute_continue(frame: Frame, node: ast.Continue, rest: Rest, live: Names) -> Completion:
    """Compiles `continue`."""
    return Completion("continue")


def execute_pass(frame: Frame, node: ast.Pass, rest: Rest, live: Names) -> Completion:
    """Compiles `pass`."""
    return NORMAL


def execute_assert(frame: Frame, node: ast.Assert, rest: Rest, live: Names) -> Completion:
    """Compiles `assert condition, "message"`: at compile time if known, else a check on the GPU."""
    condition = frame.evaluate(node.test)
    message: Any = ast.unparse(node.test) if node.msg is None else frame.evaluate(node.msg)
    if not isinstance(message, str):
        raise Mistake("the message of an assert must be a string constant")
    if isinstance(condition, Tile) and condition.shape:
        if condition.dtype != i1:
            raise Mistake(f"an assert needs a condition, found {condition}")
        value = condition.value
    else:
        truth = as_condition(frame, condition)
        if isinstance(truth, bool):
            if not truth:
                raise Mistake(f"assertion failed: {message}")
            return NORMAL
        value = truth.value
    refuse_effects(frame, "assert")
    AssertOp.build(value, message=message)
    return NORMAL


def refuse_effects(frame: Frame, what: str) -> None:
    """Mistake inside a combine function, which must be pure."""
    if frame.builder.in_combine:
        raise Mistake(f"'{what}' is not possible in a combine function")
