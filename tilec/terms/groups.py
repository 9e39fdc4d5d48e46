"""Several values under one name of a kernel: a tuple, or an object with fields, as one argument.

The compiler knows no groups. A call takes them apart: each part that is an array or a number
becomes a parameter of its own, and what the group is made of is a constant of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilec.records import dataclass

DEEPEST_GROUP = 8
"""Groups within groups: more is a list that holds itself."""


@dataclass(frozen=True)
class Leaf:
    """A part that is no group: the parameter of that `name`, or the constant."""

    name: str
    is_constant: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Group:
    """What a group is made of: a `Leaf`, a group, or None each. `fields`: names of the parts of an
    object, None for a tuple's."""

    parts: tuple[Leaf | Group | None, ...]
    fields: tuple[str, ...] | None = None

    def __str__(self) -> str:
        if self.fields is None:
            return f"({', '.join(map(str, self.parts))}{',' if len(self.parts) == 1 else ''})"
        named = zip(self.fields, self.parts, strict=True)
        return f"({', '.join(f'{field}={part}' for field, part in named)})"

    def leaves(self) -> Iterator[Leaf]:
        """All parts that are no groups, in order."""
        for part in self.parts:
            if isinstance(part, Leaf):
                yield part
            elif part is not None:
                yield from part.leaves()

    def filled(self, values: Mapping[str, Any]) -> Record:
        """The group as kernels and grid rules see it, with a value for each leaf by name."""
        return Record((_filled(part, values) for part in self.parts), self.fields)


class Record(tuple[Any, ...]):
    """A tuple whose elements may have names."""

    fields: tuple[str, ...] | None

    def __new__(cls, values: Any, fields: tuple[str, ...] | None = None) -> Record:
        """The values; `fields`: their names, if they have any."""
        made = super().__new__(cls, values)
        made.fields = fields
        return made

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("fields") or ()
        if name in fields:
            return self[fields.index(name)]
        raise AttributeError(f"expected one of {', '.join(fields) or 'no names'}, found {name!r}")


def _filled(part: Leaf | Group | None, values: Mapping[str, Any]) -> Any:
    if isinstance(part, Leaf):
        return values[part.name]
    return None if part is None else part.filled(values)
