"""From a Python function to its AST, with positions as in the author's file."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import tilec.language
from tilec.executable.python_ast import parse_python
from tilec.frontend.liveness import assigned_names
from tilec.messages.diagnostics import CompileError, Location, quote_file
from tilec.records import dataclass

_LANGUAGE = str(Path(tilec.language.__file__).parent)


@dataclass(frozen=True)
class FunctionSource:
    """A function and its definition. `library`: written in tilec.language, not by the author."""

    fn: Any  # a FunctionType, which type checkers take for a descriptor
    node: ast.FunctionDef
    file: str
    library: bool

    @cached_property
    def locals(self) -> frozenset[str]:
        """The names the function assigns."""
        return assigned_names(self.node.body)

    def location(self, node: ast.AST) -> Location:
        """The position of a node of this function."""
        return Location(self.file, *position(node))


def position(node: ast.AST) -> tuple[int, int]:
    """The line and the column of a node, from 1 on."""
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1


_SOURCES: dict[Any, FunctionSource] = {}


def read_source(fn: Callable[..., Any]) -> FunctionSource:
    """The definition of a plain Python function. CompileError where there is none to read."""
    code = getattr(fn, "__code__", None)
    if code is None or not isinstance(fn, FunctionType):
        raise CompileError(f"expected a Python function, found {fn!r}")
    found = _SOURCES.get(code)
    if found is not None and found.fn is fn:
        return found
    start = Location(code.co_filename, code.co_firstlineno)
    quote_file(code.co_filename)
    try:
        lines, first = inspect.getsourcelines(fn)
    except (OSError, TypeError, SyntaxError, IndexError):
        raise CompileError(
            f"the source of '{fn.__name__}' cannot be read",
            start,
            ["help: kernels are compiled from their source text; define them in a file or a cell"],
        ) from None
    node = _parse(lines, first, start)
    if code.co_name == "<lambda>":
        raise CompileError("expected a function defined with 'def'", start)
    if node is None or node.name != code.co_name:
        node = _found_elsewhere(code, start)
    library = code.co_filename.startswith(_LANGUAGE)
    source = FunctionSource(fn, node, code.co_filename, library)
    _SOURCES[code] = source
    return source


def _parse(lines: list[str], first: int, start: Location) -> ast.FunctionDef | None:
    """Parses a definition that may be indented; line and column stay those of the file. None where
    there is another statement."""
    indented = lines[0][:1].isspace()
    text = "".join(["if True:\n", *lines] if indented else lines)
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CompileError(f"the kernel cannot be parsed: {error}", start) from None
    ast.increment_lineno(tree, first - (2 if indented else 1))
    body = tree.body
    if indented and isinstance(body[0], ast.If):
        body = body[0].body
    node = body[0] if body else None
    if isinstance(node, ast.AsyncFunctionDef):
        raise CompileError("a kernel must not be async", start)
    return node if isinstance(node, ast.FunctionDef) else None


def _found_elsewhere(code: CodeType, start: Location) -> ast.FunctionDef:
    """The definition of a function that does not stand where its code says: IPython's %autoreload
    compiles a changed function as if it were a file. That of its name with the same code is it.
    CompileError where there is none, as where the file has changed and was not loaded again."""
    lines = linecache.getlines(code.co_filename)
    try:
        module = compile("".join(lines), code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        module = code
    for found in _codes(module):
        if found.co_name == code.co_name and found.co_code == code.co_code:
            block = inspect.getblock(lines[found.co_firstlineno - 1 :])
            node = _parse(block, found.co_firstlineno, start)
            if node is not None and _constants(found) == _constants(code):
                return node
    raise CompileError(
        f"the source of '{code.co_name}' is not where its code says, nor elsewhere in the file",
        start,
        ["help: load the module again; kernels are written with 'def'"],
    )


def _constants(code: CodeType) -> tuple[Any, ...]:
    """Gives what decides, beside its instructions, what a code object does: its names, and its
    constants by their texts, as 1 == True."""
    plain = [repr(value) for value in code.co_consts if not isinstance(value, CodeType)]
    return code.co_names, code.co_freevars, plain


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yields the codes in a code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
