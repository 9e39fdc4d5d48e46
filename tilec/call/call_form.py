"""What kind of arguments a call has: which are numbers, which are missing, which are groups.

Calls of one form share a launcher, whose arguments are the parts of groups one by one.
"""

from __future__ import annotations

import dataclasses
import numbers
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilec.call.declaration import DeclaredParameter
from tilec.language.parameters import const
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launch_argument import LaunchArgument
from tilec.terms.dtypes import DType
from tilec.terms.groups import Group, Leaf

DEEPEST_GROUP = 8
"""Groups within groups: more is a list that holds itself."""


@dataclass(frozen=True)
class GroupKind:
    """The kinds of a group's parts; `fields`: their names, if it is an object."""

    parts: tuple[Kind, ...]
    fields: tuple[str, ...] | None


Kind = str | GroupKind | None
"""Of a value: "array", "typed" (a number), "const" (a part of a group that is a string, a dtype, or
a field declared as `tl.const`), None for None, or a group's."""


def kinds_of(declared: Sequence[DeclaredParameter], values: Sequence[Any]) -> tuple[Kind, ...]:
    """The kind of each argument of a call: its parameter's, where an annotation says it."""
    return tuple(map(_kind_for, declared, values))


def _kind_for(parameter: DeclaredParameter, value: Any) -> Kind:
    if parameter.is_open:
        return kind_of(value)
    return None if value is None and parameter.may_be_missing else parameter.kind


def kind_of(value: Any, depth: int = 0) -> Kind:
    """The kind of an argument that no annotation makes a number or a constant.

    ArgumentError for groups nested too deeply.
    """
    if value is None:
        return None
    if is_number(value):
        return "typed"
    fields = _fields(value)
    if fields is None and not isinstance(value, (tuple, list)):
        return "const" if depth and isinstance(value, (str, DType)) else "array"
    if depth == DEEPEST_GROUP:
        raise ArgumentError(f"an argument has more than {DEEPEST_GROUP} tuples within each other")
    parts = [
        "const" if is_constant else kind_of(part, depth + 1)
        for part, is_constant in _parts(value, fields)
    ]
    return GroupKind(tuple(parts), fields)


def is_number(value: Any) -> bool:
    """Whether this is one of Python's numbers, or a scalar of NumPy's."""
    if isinstance(value, numbers.Number):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def _fields(value: Any) -> tuple[str, ...] | None:
    """The names of the parts of a dataclass's object or of a named tuple; None for other values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    return getattr(value, "_fields", None) if isinstance(value, tuple) else None


def parts_of(value: Any) -> list[Any] | None:
    """The parts of a group in order; None where a value is none."""
    fields = _fields(value)
    if fields is None and not isinstance(value, (tuple, list)):
        return None
    return [part for part, _ in _parts(value, fields)]


def _parts(value: Any, fields: tuple[str, ...] | None) -> Iterator[tuple[Any, bool]]:
    """The parts of a group, each with whether it is declared as a constant."""
    if fields is None:
        yield from ((part, False) for part in value)
        return
    annotations = getattr(type(value), "__annotations__", {})
    for name in fields:
        yield getattr(value, name), annotations.get(name) in (const, "tl.const")


class CallForm:
    """How calls with arguments of certain kinds are taken apart.

    `arguments`: of the launcher. `given`: by name, the `Group` or None that a parameter stands for.
    """

    def __init__(self, declared: Sequence[DeclaredParameter], kinds: Sequence[Kind]) -> None:
        """`kinds`: of each declared parameter, its own where an annotation says it."""
        self.arguments: list[LaunchArgument] = []
        self.given: dict[str, Group | None] = {}
        self._taken = {parameter.name for parameter in declared}
        self._kinds = tuple(kinds)
        for parameter, kind in zip(declared, kinds, strict=True):
            if isinstance(kind, str):
                self.arguments.append(parameter.launch_argument(kind))
            else:
                found = None if kind is None else self._group(parameter.name, kind)
                self.given[parameter.name] = found

    def _group(self, name: str, kind: GroupKind) -> Group:
        parts: list[Leaf | Group | None] = []
        for number, part in enumerate(kind.parts):
            own = f"{name}_{number if kind.fields is None else kind.fields[number]}"
            if isinstance(part, str):
                while own in self._taken:
                    own += "_"
                self._taken.add(own)
                self.arguments.append(LaunchArgument(own, part))
                parts.append(Leaf(own, part == "const"))
            else:
                parts.append(None if part is None else self._group(own, part))
        return Group(tuple(parts), kind.fields)

    def flat(self, values: Sequence[Any]) -> Sequence[Any]:
        """The launcher's arguments for one value a declared parameter."""
        if not self.given:
            return values
        found: list[Any] = []
        for value, kind in zip(values, self._kinds, strict=True):
            _flatten(value, kind, found)
        return found


def _flatten(value: Any, kind: Kind, found: list[Any]) -> None:
    if isinstance(kind, str):
        found.append(value)
    elif kind is not None:
        for (part, _), inner in zip(_parts(value, kind.fields), kind.parts, strict=True):
            _flatten(part, inner, found)
