"""One function being compiled: its names, its place in the call chain, errors with positions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from mlir import ir

from tilec.frontend.arrays import as_tuple
from tilec.frontend.builder import Builder
from tilec.frontend.source import FunctionSource, position
from tilec.frontend.values import Array, Mistake, Undefined, describe
from tilec.messages.diagnostics import CompileError, Location, Note
from tilec.records import dataclass

DEEPEST_CALL = 64
"""Most nested calls of helper functions."""

Names = frozenset[str]


@dataclass(frozen=True)
class Completion:
    """The way in which a list of statements ends.

    `kind`: "normal", "return", "break", "continue" or "leave". `value`: what `return` gives, and
    for "leave" (a loop body whose way out is decided at run time) the i1 scalar "it broke".
    """

    kind: str
    value: Any = None


NORMAL = Completion("normal")
_MAKES_NO_OP = (ast.Name, ast.Constant, ast.Tuple, ast.List)
"""Expressions that make no ops by themselves: two of three, and MLIR's locations take their
time."""


@dataclass(frozen=True)
class Rules:
    """The rules that compile each kind of AST node, and each `tl` function."""

    expressions: Mapping[type[ast.AST], Callable[[Frame, Any], Any]]
    statements: Mapping[type[ast.AST], Callable[[Frame, Any, list[ast.stmt], Names], Completion]]
    builtins: Mapping[Any, Callable[..., Any]]


class Place:
    """A node that is being compiled, to be entered; see `Frame.at`. `of_ops`: whether ops are made
    there. (A generator takes three times as long, for each expression of a kernel.)"""

    __slots__ = ("_before", "_frame", "_location", "_node")

    def __init__(self, frame: Frame, node: ast.AST, *, of_ops: bool = True) -> None:
        self._frame, self._node = frame, node
        self._location = frame.mlir_location(node) if of_ops else None

    def __enter__(self) -> None:
        self._before, self._frame.node = self._frame.node, self._node
        if self._location is not None:
            self._location.__enter__()

    def __exit__(self, kind: Any, raised: BaseException | None, trace: Any) -> None:
        if self._location is not None:
            self._location.__exit__(kind, raised, trace)
        self._frame.node = self._before
        if isinstance(raised, Mistake):
            # Its traceback holds the frames of the compiler, and with them what the kernel was
            # called with.
            raised.__traceback__ = None
            raise self._frame.error(self._node, raised.message, *raised.notes) from None


@dataclass
class Frame:
    """The compile-time state of one function call.

    `names`: what each local name stands for. `defined_at`: where it was assigned last. `caller` and
    `call_location`: who called, None for the kernel. `node`: what is
    being compiled. `loop_kinds`: "dynamic", "static" per loop
    around the current statement. `jump_live`: names live where `break` and `continue` lead.
    """

    source: FunctionSource
    builder: Builder
    rules: Rules
    caller: Frame | None = None
    call_location: Location | None = None
    names: dict[str, Any] = field(default_factory=dict)
    defined_at: dict[str, Location] = field(default_factory=dict)
    loop_kinds: list[str] = field(default_factory=list)
    jump_live: Names = frozenset()
    mlir_caller: ir.Location | None = None
    node: ast.AST | None = None

    @property
    def depth(self) -> int:
        """The number of calls around this one."""
        return 0 if self.caller is None else self.caller.depth + 1

    @property
    def current(self) -> ast.AST:
        """The node that is being compiled; the function itself before its first statement."""
        return self.node or self.source.node

    def chain(self) -> Iterator[Frame]:
        """This frame and its callers, innermost first."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.caller

    def location(self, node: ast.AST) -> Location:
        """The position of `node`, or of the author's call where the node is in tilec's library."""
        if self.source.library and self.call_location is not None:
            return self.call_location
        return self.source.location(node)

    def mlir_location(self, node: ast.AST) -> ir.Location:
        """The location of ops made for `node`: the position, called from the callers' positions."""
        if self.source.library and self.mlir_caller is not None:
            return self.mlir_caller
        location = ir.Location.file(self.source.file, *position(node))
        return location if self.mlir_caller is None else _called(location, self.mlir_caller)

    def error(self, node: ast.AST, message: str, *notes: Note) -> CompileError:
        """A CompileError at `node`, with a note per call of the chain."""
        calls: list[Note] = []
        for frame in self.chain():
            if frame.call_location is None:
                break
            if frame.source.library:
                calls.append(f"in tl.{frame.source.fn.__name__}")
            else:
                calls.append((f"in '{frame.source.fn.__name__}', called here", frame.call_location))
        return CompileError(message, self.location(node), [*notes, *calls])

    def unsupported(self, node: ast.AST) -> CompileError:
        """The error for syntax that kernels do not have."""
        words = _SYNTAX.get(type(node)) or node_words(node)
        return self.error(node, f"unsupported syntax: {words}")

    def evaluate_all(self, nodes: Iterable[ast.expr]) -> list[Any]:
        """The values of expressions in a row; `*x` stands for the elements of a tuple."""
        values: list[Any] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                values.append(self.evaluate(node))
                continue
            elements = self.evaluate(node.value)
            if not isinstance(elements, tuple):
                raise self.error(node, f"'*' wants a tuple, found {describe(elements)}")
            values += elements
        return values

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression. CompileError at the node that is wrong."""
        rule = self.rules.expressions.get(type(node))
        if rule is None:
            raise self.error(
                node, f"unsupported syntax: {_SYNTAX.get(type(node), node_words(node))}"
            )
        with Place(self, node, of_ops=type(node) not in _MAKES_NO_OP):
            self.builder.count()
            value = rule(self, node)
            if isinstance(value, Undefined):
                raise Mistake(value.message, *value.notes)
            return value

    def execute(self, statements: list[ast.stmt], live: Names) -> Completion:
        """Runs statements; `live` are the names read after them.

        A statement that takes the rest of the list into its branches returns its own completion.
        """
        for number, node in enumerate(statements):
            rule = self.rules.statements.get(type(node))
            if rule is None:
                raise self.unsupported(node)
            with self.at(node):
                completion = rule(self, node, statements[number + 1 :], live)
            if completion is not NORMAL:
                return completion
        return NORMAL

    def at(self, node: ast.AST) -> Place:
        """Ops made inside carry the node's position, mistakes become errors there."""
        return Place(self, node)

    def bind(self, target: ast.expr, value: Any) -> None:
        """Assigns to a name or unpacks a tuple into a tuple of targets."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value, target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            with self.at(target):
                parts = as_tuple(self.builder, value)
                if parts is None:
                    raise Mistake(f"cannot unpack {describe(value)}")
                if len(parts) != len(target.elts):
                    raise Mistake(
                        f"cannot unpack {len(parts)} values into {len(target.elts)} names"
                    )
            for part, inner in zip(parts, target.elts, strict=True):
                self.bind(inner, part)
        elif isinstance(target, ast.Subscript):
            raise self._element_error(target)
        else:
            raise self.error(target, f"cannot assign to this ({node_words(target)})")

    def _element_error(self, target: ast.Subscript) -> CompileError:
        """The error for an assignment to an element."""
        if isinstance(self.evaluate(target.value), Array):
            return self.error(
                target,
                "an array's elements cannot be assigned",
                "help: write with tl.store(array, offsets, tile) or tl.scatter(array, indices, "
                "tile)",
            )
        return self.error(
            target,
            "a tile's elements cannot be assigned",
            "help: build the new tile with tl.where(condition, new, old)",
        )

    def assign(self, name: str, value: Any, node: ast.AST) -> None:
        """Binds a local name."""
        self.names[name] = value
        self.defined_at[name] = self.location(node)


def _called(location: ir.Location, caller: ir.Location) -> ir.Location:
    return ir.Location.callsite(location, [caller])


def node_words(node: ast.AST) -> str:
    """A name for a kind of syntax: `GeneratorExp` as "generator exp"."""
    name = type(node).__name__
    return "".join(f" {c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


_SYNTAX: Mapping[type[ast.AST], str] = {
    ast.Try: "'try'; a kernel cannot catch exceptions",
    ast.Raise: "'raise'; use assert, or tl.static_assert at compile time",
    ast.Global: "'global'; a kernel cannot assign names outside itself",
    ast.Nonlocal: "'nonlocal'; a kernel cannot assign names outside itself",
    ast.FunctionDef: "a function defined in a kernel; define it at module level and call it",
    ast.AsyncFunctionDef: "'async'",
    ast.ClassDef: "a class defined in a kernel",
    ast.Import: "'import' in a kernel; import at module level",
    ast.ImportFrom: "'import' in a kernel; import at module level",
    ast.Delete: "'del'",
    ast.Yield: "'yield'",
    ast.YieldFrom: "'yield'",
    ast.Await: "'await'",
    ast.AsyncFor: "'async'",
    ast.AsyncWith: "'async'",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.DictComp: "a dictionary comprehension",
    ast.SetComp: "a set comprehension",
    ast.NamedExpr: "':='; assign in a statement of its own",
    ast.Starred: "'*' in an expression",
    ast.Match: "'match'; use if and elif",
    ast.Slice: "a slice here",
}
