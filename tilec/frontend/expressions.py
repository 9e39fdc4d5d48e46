"""The rule of each kind of expression."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import tilec.language as tl
from tilec.frontend.branches import as_condition
from tilec.frontend.conversion import check_numeric, common_shape
from tilec.frontend.frame import Frame
from tilec.frontend.habits import READ_AN_ARRAY, TILES_NEGATED, TILES_TOGETHER
from tilec.frontend.names import lookup
from tilec.frontend.operators import binary, compare, fold, invert, negate
from tilec.frontend.tl_shape import where
from tilec.frontend.values import (
    MOST_UNROLLED,
    Array,
    LambdaFunction,
    Mistake,
    Range,
    Scalar,
    Text,
    Undefined,
    describe,
    is_number,
    is_runtime,
)

_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def evaluate_constant(frame: Frame, node: ast.Constant) -> Any:
    """Evaluates a literal."""
    value = node.value
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str)):
        return value
    raise Mistake(f"unsupported literal of type {type(value).__name__}")


def evaluate_name(frame: Frame, node: ast.Name) -> Any:
    """A name that is read."""
    return lookup(frame, node.id)


def evaluate_tuple(frame: Frame, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
    """A tuple; a list is one, too."""
    return tuple(frame.evaluate_all(node.elts))


def evaluate_binary(frame: Frame, node: ast.BinOp) -> Any:
    """Evaluates `x + y` and the like."""
    lhs, rhs = frame.evaluate(node.left), frame.evaluate(node.right)
    return apply_binary(frame, node.op, lhs, rhs)


def apply_binary(frame: Frame, op: ast.operator, lhs: Any, rhs: Any) -> Any:
    """An operator on two values."""
    if isinstance(op, ast.MatMult):
        return frame.rules.builtins[tl.dot](frame, lhs, rhs)
    symbol = _BINARY[type(op)]
    if is_runtime(lhs) or is_runtime(rhs):
        return binary(frame.builder, symbol, lhs, rhs)
    for value in (lhs, rhs):
        if not is_number(value) and not isinstance(value, (str, tuple)):
            notes = (READ_AN_ARRAY,) if isinstance(value, Array) else ()
            raise Mistake(f"'{symbol}' does not apply to {describe(value)}", *notes)
    return fold(symbol, lhs, rhs)


def evaluate_unary(frame: Frame, node: ast.UnaryOp) -> Any:
    """Evaluates `-x`, `+x`, `~x`, `not x`."""
    value = frame.evaluate(node.operand)
    if isinstance(node.op, ast.Not):
        return _negated(frame, as_condition(frame, value, TILES_NEGATED))
    check_numeric(value)
    if isinstance(node.op, ast.USub):
        return negate(frame.builder, value) if is_runtime(value) else -value
    if isinstance(node.op, ast.Invert):
        if is_runtime(value):
            return invert(frame.builder, value)
        if isinstance(value, float):
            raise Mistake("'~' is for integers and booleans")
        return not value if isinstance(value, bool) else ~value
    return value


def _negated(frame: Frame, condition: bool | Scalar) -> bool | Scalar:
    return not condition if isinstance(condition, bool) else invert(frame.builder, condition)


def evaluate_compare(frame: Frame, node: ast.Compare) -> Any:
    """Evaluates comparisons; `a < b < c` of scalars is `a < b and b < c`."""
    lhs = frame.evaluate(node.left)
    results = []
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        rhs = frame.evaluate(comparator)
        results.append(_compare(frame, op, lhs, rhs))
        lhs = rhs
    if len(results) == 1:
        return results[0]
    if common_shape([r for r in results if is_runtime(r)]) is not None:
        raise Mistake(
            "chained comparisons are for scalars",
            "help: write (a < b) & (b < c) for tiles",
        )
    return _conjunction(frame, results, ast.And())


def _compare(frame: Frame, op: ast.cmpop, lhs: Any, rhs: Any) -> Any:
    if isinstance(op, (ast.Is, ast.IsNot)):
        if rhs is not None and lhs is not None:
            raise Mistake("'is' compares with None only; use ==")
        return (lhs is rhs) == isinstance(op, ast.Is)
    if isinstance(op, (ast.In, ast.NotIn)):
        if is_runtime(lhs) or not isinstance(rhs, (tuple, str)) or any(map(is_runtime, rhs)):
            notes = ("help: write x == 0 or x == 1",) if isinstance(rhs, tuple) else ()
            raise Mistake("'in' works on compile-time constants only", *notes)
        if isinstance(rhs, str) and not isinstance(lhs, str):
            raise Mistake(f"'in' of a string needs a string, found {describe(lhs)}")
        return (lhs in rhs) == isinstance(op, ast.In)
    symbol = _COMPARISONS[type(op)]
    if is_runtime(lhs) or is_runtime(rhs):
        return compare(frame.builder, symbol, lhs, rhs)
    return _compare_constants(symbol, lhs, rhs)


def _compare_constants(symbol: str, lhs: Any, rhs: Any) -> bool:
    if symbol in ("==", "!="):
        return (lhs == rhs) == (symbol == "==")
    ordered = is_number(lhs) and is_number(rhs)
    if not ordered and not (isinstance(lhs, str) and isinstance(rhs, str)):
        raise Mistake(f"'{symbol}' does not apply to {describe(lhs)} and {describe(rhs)}")
    return {"<": lhs < rhs, "<=": lhs <= rhs, ">": lhs > rhs, ">=": lhs >= rhs}[symbol]


def evaluate_boolean(frame: Frame, node: ast.BoolOp) -> Any:
    """Evaluates `and`, `or` to one of their operands, as Python does: constants short-circuit,
    run-time scalars are all evaluated."""
    stops_at = isinstance(node.op, ast.Or)
    values: list[Any] = []
    for operand in node.values:
        value = frame.evaluate(operand)
        with frame.at(operand):
            truth = as_condition(frame, value, TILES_TOGETHER)
        is_last = operand is node.values[-1]
        if not isinstance(truth, Scalar):
            if not values and (is_last or truth == stops_at):
                return value
            # Beside run-time scalars a text or None counts by its truth.
            value = value if is_number(value) else truth
            if truth == stops_at and _are_truths([*values, value]):
                return stops_at
            if truth != stops_at and (not is_last or _are_truths([*values, value])):
                continue
        values.append(value)
        if truth == stops_at and not isinstance(truth, Scalar):
            break
    with frame.at(node):
        if _are_truths(values):
            return _conjunction(frame, values, node.op)
        return _one(frame, values, stops_at)


def _are_truths(values: list[Any]) -> bool:
    """Whether there are values, which say of nothing but whether it is so."""
    return all(isinstance(v, bool) or (isinstance(v, Scalar) and v.dtype == tl.i1) for v in values)


def _one(frame: Frame, values: list[Any], stops_at: bool) -> Any:
    """The first of the values whose truth is `stops_at`, else the last."""
    result = values[-1]
    for value in reversed(values[:-1]):
        sides = (value, result) if stops_at else (result, value)
        result = where(frame, value, *sides)
    return result


def _conjunction(frame: Frame, conditions: list[Any], op: ast.boolop) -> Any:
    symbol = "&" if isinstance(op, ast.And) else "|"
    result = conditions[0]
    for value in conditions[1:]:
        if is_runtime(result) or is_runtime(value):
            result = binary(frame.builder, symbol, result, value)
        else:
            result = fold(symbol, result, value)
    return result


def evaluate_text(frame: Frame, node: ast.JoinedStr) -> Any:
    """Evaluates an f-string: a string if all its parts are constants, else something to print."""
    parts: list[Any] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            if part.conversion != -1 or part.format_spec is not None:
                raise frame.error(
                    part.value,
                    "format specifications are not supported",
                    "help: write the value alone, as in f'{x}'",
                )
            parts.append(frame.evaluate(part.value))
        else:
            parts.append(frame.evaluate(part))
    if any(map(is_runtime, parts)):
        return Text(tuple(parts))
    return "".join(map(str, parts))


def evaluate_lambda(frame: Frame, node: ast.Lambda) -> LambdaFunction:
    """A lambda sees the compile-time constants around it, not run-time values."""
    names = {
        name: Undefined(f"a lambda cannot use the run-time value '{name}' from outside")
        if is_runtime(value) or isinstance(value, Array)
        else value
        for name, value in frame.names.items()
    }
    return LambdaFunction(node, names)


def evaluate_comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> tuple[Any, ...]:
    """A comprehension over compile-time items; it is a tuple."""
    if len(node.generators) != 1 or node.generators[0].is_async:
        raise Mistake("a comprehension has one 'for' in a kernel")
    generator = node.generators[0]
    items = frame.evaluate(generator.iter)
    if isinstance(items, Range) and all(
        isinstance(v, int) for v in (items.start, items.stop, items.step)
    ):
        if items.step == 0 or items.count > MOST_UNROLLED:
            most = f"at most {MOST_UNROLLED} items and a step other than 0"
            raise Mistake(f"a comprehension has {most}")
        items = tuple(range(items.start, items.stop, items.step))
    if not isinstance(items, tuple):
        raise Mistake(f"a comprehension needs compile-time items, found {describe(items)}")
    outside, places = dict(frame.names), dict(frame.defined_at)
    results = []
    try:
        for item in items:
            frame.bind(generator.target, item)
            tests = [as_condition(frame, frame.evaluate(test)) for test in generator.ifs]
            if not all(isinstance(test, bool) for test in tests):
                raise Mistake("the 'if' of a comprehension must be a compile-time constant")
            if all(tests):
                results.append(frame.evaluate(node.elt))
    finally:
        frame.names, frame.defined_at = outside, places
    return tuple(results)
