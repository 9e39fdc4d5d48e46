"""Grid rules: launch grids as expressions over a kernel's parameters, e.g. "cdiv(c.shape[0], 128)".

    expression := integer | scalar-parameter | array-parameter.shape[integer]
                | expression (+ | - | * | // | %) expression | -expression | (expression)
                | min(e, e, ...) | max(e, e, ...) | cdiv(e, e)
                | len(list-parameter) | parts(list-parameter, integer)

`parts` is how many programs `tl.part` deals a list out to, in parts of so many elements. Integers
are Python's: exact, `//` rounds down. The text may come from a file: it is parsed by `ast`, every
node is checked, and what runs is text printed anew from the checked nodes.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from tilec.executable.kernel import MOST_PROGRAMS, Grid, Parameter
from tilec.executable.python_ast import parse_python
from tilec.messages.mistakes import mistake
from tilec.terms.dtypes import BY_MLIR

MAX_LENGTH = 4096
"""Characters of a rule in a file of a stranger's: authors' rules have a hundred."""
MAX_DEPTH = 50
"""Levels that a rule nests: Python's own parser and this one recurse."""
GRID_LIMITS = (MOST_PROGRAMS, 65535, 65535)
"""Most CTAs per grid dimension (CUDA C++ Programming Guide, "Compute Capabilities")."""

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_FUNCTIONS = ("cdiv", "max", "min")


class GridRule:
    """Three checked expressions; call it with one value a parameter to get the grid.

    `scalars`: indices of the scalar parameters the rule reads; all else it reads are shapes.
    """

    __slots__ = ("_evaluate", "expressions", "scalars")

    def __init__(
        self,
        expressions: tuple[str, str, str],
        evaluate: Callable[[Sequence[Any]], Grid],
        scalars: frozenset[int],
    ) -> None:
        self.expressions = expressions
        self.scalars = scalars
        self._evaluate = evaluate

    def __call__(self, values: Sequence[Any]) -> Grid:
        """The grid for `values`: an array's shape, a scalar's value, how many arrays and how many
        elements a list has, in parameter order.

        ValueError on a division by zero and on a size the hardware has no room for.
        """
        return check_grid(self.sizes(values))

    def sizes(self, values: Sequence[Any]) -> Grid:
        """The same, also where the hardware has no room for so many. ValueError on a division by
        zero."""
        try:
            return self._evaluate(values)
        except ZeroDivisionError:
            raise ValueError(f"grid rule {self.expressions}: division by zero") from None


def compile_grid(expressions: Sequence[str], parameters: Sequence[Parameter]) -> GridRule:
    """Checks one to three expressions over `parameters`. ValueError names text and column."""
    return _compiled(tuple(expressions), tuple(parameters))


@functools.lru_cache(maxsize=256)
def _compiled(texts: tuple[str, ...], parameters: tuple[Parameter, ...]) -> GridRule:
    """Compiles a rule, for a file's check as for the first launch."""
    if not 1 <= len(texts) <= 3:
        raise ValueError(f"a grid rule has one to three expressions, not {len(texts)}")
    texts += ("1",) * (3 - len(texts))
    evaluate, scalars = _evaluator(texts, parameters)
    return GridRule((texts[0], texts[1], texts[2]), evaluate, scalars)


@functools.lru_cache(maxsize=256)
def compile_sizes(
    texts: tuple[str, ...], parameters: tuple[Parameter, ...]
) -> Callable[[Sequence[Any]], tuple[int, ...]]:
    """Expressions over shapes alone, in the language of grid rules, as a function of one shape a
    parameter (of a scalar: anything). ValueError names text and column.

    The function may raise ZeroDivisionError.
    """
    if not texts:
        return lambda values: ()
    evaluate, scalars = _evaluator(texts, parameters)
    if scalars:
        raise ValueError(f"{', '.join(texts)}: expected sizes of arrays, found a scalar parameter")
    return evaluate


def _evaluator(
    texts: tuple[str, ...], parameters: tuple[Parameter, ...]
) -> tuple[Callable[[Sequence[Any]], Any], frozenset[int]]:
    """A function of the parameters' values, and the scalars it reads."""
    printers = [Printer(text, parameters) for text in texts]
    code = f"lambda v: ({', '.join(printer.print() for printer in printers)},)"
    scalars = frozenset[int]().union(*(printer.scalars for printer in printers))
    return eval(code, {"__builtins__": {}, "min": min, "max": max}), scalars


def check_grid(grid: Any) -> Grid:
    """Gives `grid` (a number or one to three numbers) as (x, y, z).

    A size may be 0: nothing is launched. TypeError or ValueError says what is wrong.
    """
    if type(grid) is int and 0 <= grid <= GRID_LIMITS[0]:  # most grids, in a fifth of the time
        return grid, 1, 1
    sizes = grid if isinstance(grid, (tuple, list)) else (grid,)
    if not 1 <= len(sizes) <= 3:
        raise mistake(ValueError(f"a grid has one to three sizes, not {len(sizes)}: {grid!r}"))
    try:
        if any(isinstance(size, bool) for size in sizes):
            raise TypeError("a truth")
        x, y, z = (*map(operator.index, sizes), 1, 1)[:3]
    except TypeError:
        text = f"a grid is an integer or a tuple of one to three, not {grid!r}"
        if any(isinstance(size, (tuple, list)) for size in sizes):
            text += "; how many threads a program has, the compiler chooses (demand: num_warps)"
        elif any(callable(size) for size in sizes):
            text += "; a rule belongs to the kernel: @tilec.kernel(grid=lambda x, B: ...)"
        raise mistake(TypeError(text)) from None
    most_x, most_y, most_z = GRID_LIMITS
    if not (0 <= x <= most_x and 0 <= y <= most_y and 0 <= z <= most_z):
        for axis, size, limit in zip("xyz", (x, y, z), GRID_LIMITS, strict=True):
            if not 0 <= size <= limit:
                raise mistake(ValueError(f"grid size {size} on axis {axis} is not in 0..{limit}"))
    return x, y, z


class Printer:
    """Checks one expression and prints it over `v`, the sequence of parameter values.

    What it prints of each kind of expression is a method, so that others print another language.
    """

    def __init__(self, text: str, parameters: Sequence[Parameter]) -> None:
        self.text = text
        self.parameters = {
            parameter.name: (index, parameter) for index, parameter in enumerate(parameters)
        }
        self.scalars: set[int] = set()

    def print(self) -> str:
        if not isinstance(self.text, str):
            raise ValueError(f"a grid rule is text, not {self.text!r}")
        if len(self.text) > MAX_LENGTH:
            raise ValueError(f"grid rule of {len(self.text)} characters; at most {MAX_LENGTH}")
        # `ast` refuses leading blanks and, outside parentheses, line ends.
        self.text = " ".join(self.text.split())
        # Python only warns of "3if"; here a number is its digits.
        words = "".join(c if c.isalnum() or c == "_" else " " for c in self.text).split()
        for word in words:
            digits = len(word) - len(word.lstrip("0123456789"))
            if 0 < digits < len(word):
                column = len(re.split(rf"\b{word}\b", self.text)[0]) + digits + 1
                raise self.error(column, "a letter inside a number")
        if self.text == "1":  # most rules have fewer than three dimensions
            return "1"
        try:
            tree = parse_python(self.text, mode="eval")
        except SyntaxError as error:
            raise self.error(error.offset or 1, f"syntax error: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise self.error(1, f"cannot be parsed: {error}") from None
        return self.expression(tree.body, 0)

    def error(self, place: ast.expr | int, message: str) -> ValueError:
        column = place if isinstance(place, int) else place.col_offset + 1
        return ValueError(f"grid rule {self.text[:200]!r}, column {column}: {message}")

    def expression(self, node: ast.expr, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise self.error(node, f"more than {MAX_DEPTH} levels of nesting")
        match node:
            case ast.Constant(value=value) if type(value) is int and value < 2**63:
                return self.number(value)
            case ast.Name(id=name):
                return self.scalar(node, name)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
                slice=ast.Constant(value=axis),
            ) if type(axis) is int:
                return self.size(node, name, axis)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
                return self.length_of(self.array_list(node, name))
            case ast.Call(
                func=ast.Name(id="parts"),
                args=[ast.Name(id=name), ast.Constant(value=size)],
                keywords=[],
            ) if type(size) is int and size > 0:
                return self.parts_of(self.array_list(node, name), size)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.negated(self.expression(operand, depth + 1))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                lhs, rhs = self.expression(left, depth + 1), self.expression(right, depth + 1)
                return self.combined(lhs, _OPERATORS[type(op)], rhs)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self.call(node, name, [self.expression(a, depth + 1) for a in arguments])
        found = ast.get_source_segment(self.text, node) or type(node).__name__
        raise self.error(
            node,
            f"unsupported expression {found[:80]!r}; expected integers, parameters, "
            "name.shape[i], + - * // %, min, max, cdiv, len(list), parts(list, number)",
        )

    def parameter(self, node: ast.expr, name: str) -> tuple[int, Parameter]:
        if name not in self.parameters:
            known = ", ".join(self.parameters) or "none"
            raise self.error(node, f"unknown parameter {name!r}; known: {known}")
        return self.parameters[name]

    def scalar(self, node: ast.expr, name: str) -> str:
        index, parameter = self.parameter(node, name)
        dtype = BY_MLIR[parameter.dtype]
        if parameter.kind != "scalar" or not (dtype.is_integer or dtype.is_bool):
            found = "a list of arrays" if parameter.is_list else "an array"
            found = parameter.dtype if parameter.kind == "scalar" else found
            raise self.error(node, f"{name!r} is {found}; expected an integer scalar")
        self.scalars.add(index)
        return self.value_of(index)

    def size(self, node: ast.expr, name: str, axis: int) -> str:
        index, parameter = self.parameter(node, name)
        if parameter.kind != "array":
            found = "a list of arrays" if parameter.is_list else "a scalar"
            raise self.error(node, f"{name!r} is {found} and has no shape")
        if not 0 <= axis < parameter.rank:
            message = f"axis {axis} of {name!r}, which has {parameter.rank} dimensions"
            raise self.error(node, message)
        return self.size_of(index, axis)

    def array_list(self, node: ast.expr, name: str) -> int:
        index, parameter = self.parameter(node, name)
        if not parameter.is_list:
            raise self.error(node, f"{name!r} is no list of arrays")
        return index

    def call(self, node: ast.expr, name: str, arguments: list[str]) -> str:
        if name not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise self.error(node, f"unknown function {name!r}; known: {known}")
        if name == "cdiv":
            if len(arguments) != 2:
                raise self.error(node, f"cdiv takes 2 values, not {len(arguments)}")
            return self.rounded_up(arguments[0], arguments[1])
        if len(arguments) < 2:
            message = f"{name} takes at least 2 values, not {len(arguments)}"
            raise self.error(node, message)
        return self.extreme(name, arguments)

    def number(self, value: int) -> str:
        """A whole number."""
        return str(value)

    def value_of(self, index: int) -> str:
        """The value of the scalar parameter of that number."""
        return f"v[{index}]"

    def size_of(self, index: int, axis: int) -> str:
        """A size of the array parameter of that number."""
        return f"v[{index}][{axis}]"

    def length_of(self, index: int) -> str:
        """How many arrays the list parameter of that number has."""
        return f"v[{index}][0]"

    def parts_of(self, index: int, size: int) -> str:
        """How many parts of `size` elements it has (`tile.find_part`)."""
        return f"(v[{index}][1] // {size} + v[{index}][0])"

    def negated(self, operand: str) -> str:
        """Minus a value."""
        return f"(-{operand})"

    def combined(self, left: str, operator: str, right: str) -> str:
        """Two values under one of `+ - * // %`."""
        return f"({left} {operator} {right})"

    def rounded_up(self, left: str, right: str) -> str:
        """A quotient, rounded up."""
        return f"(-(-{left} // {right}))"

    def extreme(self, name: str, arguments: Sequence[str]) -> str:
        """The "min" or "max" of two values or more."""
        return f"{name}({', '.join(arguments)})"
