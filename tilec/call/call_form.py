"""What kind of arguments a call has: which are numbers, which are missing, which are groups.

Calls of one form share a launcher, whose arguments are the parts of groups one by one.
"""

from __future__ import annotations

import dataclasses
import functools
import numbers
import sys
from collections.abc import Sequence
from typing import Any

from tilec.call.declaration import DeclaredParameter
from tilec.language.parameters import const
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launch_argument import LaunchArgument
from tilec.terms.dtypes import DType
from tilec.terms.groups import DEEPEST_GROUP, Group, Leaf


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
    return tuple(
        kind_of(value)
        if parameter.is_open
        else None
        if value is None and parameter.may_be_missing
        else parameter.kind
        for parameter, value in zip(declared, values, strict=True)
    )


def kind_of(value: Any, depth: int = 0) -> Kind:
    """The kind of an argument that no annotation makes a number or a constant.

    ArgumentError for groups nested too deeply.
    """
    made_of, fields, constants = _type_of(type(value))
    if made_of != "group":
        return "array" if made_of == "const" and not depth else made_of
    if depth == DEEPEST_GROUP:
        raise ArgumentError(f"an argument has more than {DEEPEST_GROUP} tuples within each other")
    parts = value if fields is None else [getattr(value, name) for name in fields]
    kinds = [kind_of(part, depth + 1) for part in parts]
    for position in constants:
        kinds[position] = "const"
    return GroupKind(tuple(kinds), fields)


@functools.lru_cache(maxsize=1024)
def _type_of(kind: type) -> tuple[str | None, tuple[str, ...] | None, tuple[int, ...]]:
    """What objects of a class are: a `Kind`, or "group"; the names of a group's parts, if it is an
    object; and which of these are declared as constants."""
    numpy = sys.modules.get("numpy")
    if kind is type(None):
        return None, None, ()
    if issubclass(kind, numbers.Number) or (numpy is not None and issubclass(kind, numpy.generic)):
        return "typed", None, ()
    if any(hasattr(kind, protocol) for protocol in _OF_ARRAYS) or issubclass(kind, ArrayView):
        return "array", None, ()
    if dataclasses.is_dataclass(kind):
        fields = tuple(field.name for field in dataclasses.fields(kind))
    elif issubclass(kind, (tuple, list)):
        fields = getattr(kind, "_fields", None)
    else:
        return ("const" if issubclass(kind, (str, DType)) else "array"), None, ()
    annotations = getattr(kind, "__annotations__", {})
    declared = [annotations.get(name) in (const, "tl.const") for name in fields or ()]
    return "group", fields, tuple(i for i, is_constant in enumerate(declared) if is_constant)


def parts_of(value: Any) -> Sequence[Any] | None:
    """The parts of a group in order; None where a value is none."""
    made_of, fields, _ = _type_of(type(value))
    if made_of != "group":
        return None
    return value if fields is None else [getattr(value, name) for name in fields]


_OF_ARRAYS = ("__dlpack__", "__cuda_array_interface__")
"""What classes of arrays have, which may be dataclasses or tuples besides."""


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
        parts = value
        if kind.fields is not None:
            parts = [getattr(value, name) for name in kind.fields]
        for part, inner in zip(parts, kind.parts, strict=True):
            _flatten(part, inner, found)
