"""The tables that say which function compiles what."""

from __future__ import annotations

import ast

from tilec.frontend import (
    tl_arithmetic,
    tl_bits,
    tl_control,
    tl_gpu,
    tl_lists,
    tl_matmul,
    tl_memory,
    tl_reduction,
    tl_scaled,
    tl_shape,
    tl_sorting,
    tl_windows,
)
from tilec.frontend.attributes import evaluate_attribute
from tilec.frontend.branches import evaluate_if_expression, execute_if
from tilec.frontend.calls import evaluate_call
from tilec.frontend.expressions import (
    evaluate_binary,
    evaluate_boolean,
    evaluate_compare,
    evaluate_comprehension,
    evaluate_constant,
    evaluate_lambda,
    evaluate_name,
    evaluate_text,
    evaluate_tuple,
    evaluate_unary,
)
from tilec.frontend.for_loops import execute_for
from tilec.frontend.frame import Rules
from tilec.frontend.roles import execute_with
from tilec.frontend.statements import (
    execute_annotated,
    execute_assert,
    execute_assign,
    execute_augmented,
    execute_break,
    execute_continue,
    execute_expression,
    execute_pass,
    execute_return,
)
from tilec.frontend.subscripts import evaluate_subscript
from tilec.frontend.while_loops import execute_while

RULES = Rules(
    expressions={
        ast.Constant: evaluate_constant,
        ast.Name: evaluate_name,
        ast.Tuple: evaluate_tuple,
        ast.List: evaluate_tuple,
        ast.BinOp: evaluate_binary,
        ast.UnaryOp: evaluate_unary,
        ast.Compare: evaluate_compare,
        ast.BoolOp: evaluate_boolean,
        ast.IfExp: evaluate_if_expression,
        ast.Call: evaluate_call,
        ast.Attribute: evaluate_attribute,
        ast.Subscript: evaluate_subscript,
        ast.JoinedStr: evaluate_text,
        ast.Lambda: evaluate_lambda,
        ast.ListComp: evaluate_comprehension,
        ast.GeneratorExp: evaluate_comprehension,
    },
    statements={
        ast.Expr: execute_expression,
        ast.Assign: execute_assign,
        ast.AnnAssign: execute_annotated,
        ast.AugAssign: execute_augmented,
        ast.If: execute_if,
        ast.For: execute_for,
        ast.While: execute_while,
        ast.With: execute_with,
        ast.Return: execute_return,
        ast.Break: execute_break,
        ast.Continue: execute_continue,
        ast.Pass: execute_pass,
        ast.Assert: execute_assert,
    },
    builtins={
        **tl_lists.BUILTINS,
        **tl_windows.BUILTINS,
        **tl_memory.BUILTINS,
        **tl_shape.BUILTINS,
        **tl_arithmetic.BUILTINS,
        **tl_bits.BUILTINS,
        **tl_reduction.BUILTINS,
        **tl_sorting.BUILTINS,
        **tl_control.BUILTINS,
        **tl_matmul.BUILTINS,
        **tl_scaled.BUILTINS,
        **tl_gpu.BUILTINS,
    },
)
