"""What a kernel function declares of its parameters, read from annotations and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tilec.language.parameters import (
    array,
    arrays,
    auto,
    const,
    flat_arrays,
    optional_array,
)
from tilec.messages.diagnostics import CompileError, Location, quote_file
from tilec.records import dataclass
from tilec.runtime.launch_argument import REQUIRED, LaunchArgument, check_arguments
from tilec.terms.dtypes import DType


@dataclass(frozen=True)
class DeclaredParameter:
    """One parameter of a kernel function.

    `kind`: "array", "arrays" or "flat_arrays" (lists), "scalar" (annotated with its `dtype`),
    "typed" (annotated with `python`: int, float or bool), "const", or "any" (not annotated: an
    array or a number, as the argument is). `is_optional`: whether the annotation names None.
    """

    name: str
    kind: str
    dtype: DType | None = None
    default: Any = REQUIRED
    python: type[int] | type[float] | None = None
    is_optional: bool = False

    @property
    def may_be_missing(self) -> bool:
        """Whether it takes None, which is then a constant."""
        return self.is_open or self.is_optional or (self.kind == "array" and self.default is None)

    @property
    def is_open(self) -> bool:
        """Whether arguments say what it is: an array, a number, a group of values, or None."""
        return self.kind == "any"

    def launch_argument(self, kind: str) -> LaunchArgument:
        """The parameter as the launcher wants it, "any" resolved to `kind`."""
        return LaunchArgument(self.name, kind if self.kind == "any" else self.kind, self.default)


GROUPED = "help: one parameter may be a tuple, a list or an object of arrays"
"""For parameters of any number."""


def declared_parameters(fn: Callable[..., Any]) -> tuple[DeclaredParameter, ...]:
    """The parameters of a kernel function. CompileError at the function where one is not usable."""
    code = getattr(fn, "__code__", None)
    if code is None:
        notes = ["help: write @tilec.kernel(grid=...)"] if isinstance(fn, (int, tuple)) else []
        raise CompileError(f"a kernel must be a Python function, found {fn!r}", None, notes)
    location = Location(code.co_filename, code.co_firstlineno)
    quote_file(location.file)
    found = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind == parameter.VAR_POSITIONAL else "**"
            text = f"unsupported syntax: '{stars}{parameter.name}' parameters"
            raise CompileError(text, location, [GROUPED])
        found.append(_declared(fn, parameter, location))
    try:
        check_arguments([p.launch_argument("array") for p in found])
    except ValueError as error:
        raise CompileError(str(error), location) from None
    return tuple(found)


def _declared(
    fn: Callable[..., Any], parameter: inspect.Parameter, location: Location
) -> DeclaredParameter:
    name, annotation = parameter.name, _annotation(fn, parameter, location)
    default = REQUIRED if parameter.default is parameter.empty else parameter.default
    if default is auto and annotation is not const:
        raise CompileError(f"parameter '{name}' is tl.auto, but not a tl.const", location)
    if annotation is const:
        return DeclaredParameter(name, "const", None, default)
    if annotation is array or annotation is optional_array:
        optional = annotation is optional_array
        return DeclaredParameter(name, "array", None, default, is_optional=optional)
    for kind, said in (("arrays", arrays), ("flat_arrays", flat_arrays)):
        if annotation is said:
            return DeclaredParameter(name, kind, None, default)
    if isinstance(annotation, DType) and not annotation.is_code:
        return DeclaredParameter(name, "scalar", annotation, default)
    if annotation in (int, float, bool):
        return DeclaredParameter(name, "typed", None, default, annotation)
    if annotation is parameter.empty:
        return DeclaredParameter(name, "any", None, default)
    raise CompileError(
        f"parameter '{name}' has the annotation {annotation!r}",
        location,
        [
            "help: annotate with tl.array, tl.array | None, tl.arrays, tl.const, a dtype such as "
            "tl.i32, int, float, or nothing"
        ],
    )


def _annotation(fn: Callable[..., Any], parameter: inspect.Parameter, location: Location) -> Any:
    """The annotation, evaluated if `from __future__ import annotations` left it as text."""
    annotation = parameter.annotation
    names = dict(fn.__globals__)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        with suppress(ValueError):  # a cell that is filled after the decorator has run
            names[name] = cell.cell_contents
    try:
        while isinstance(annotation, str):
            annotation = eval(annotation, names)
        return annotation
    except Exception as error:  # the author's text: whatever it raises is the author's mistake
        raise CompileError(
            f"the annotation {annotation!r} of parameter '{parameter.name}' cannot be evaluated: "
            f"{error}",
            location,
        ) from None
