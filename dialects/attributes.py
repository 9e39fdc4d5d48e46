"""Attribute kinds: how a declared attribute is written, read back as a Python value, and
checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlir import ir

from tilec.records import dataclass


@dataclass(frozen=True)
class AttributeKind:
    """A kind of attribute: `write` makes one from a Python value, `read` is its inverse.

    `check` says what is wrong with an attribute found in the IR ("must be ..."), or None.
    """

    description: str
    write: Callable[[Any], ir.Attribute]
    read: Callable[[ir.Attribute], Any]
    check: Callable[[ir.Attribute], str | None]


def _counted(attribute: Any) -> list[Any]:
    """What an array or a dictionary holds. MLIR ends an iteration over it by a C++ exception, which
    takes 4 us."""
    return [attribute[number] for number in range(len(attribute))]


def _kind(
    description: str, cls: Any, write: Callable[[Any], ir.Attribute], read: Callable[[Any], Any]
) -> AttributeKind:
    def check(attribute: ir.Attribute) -> str | None:
        return None if isinstance(attribute, cls) else f"must be {description}, found {attribute}"

    return AttributeKind(description, write, read, check)


def _check_i32(attribute: ir.Attribute) -> str | None:
    if isinstance(attribute, ir.IntegerAttr):
        type_ = attribute.type
        if isinstance(type_, ir.IntegerType) and type_.width == 32 and type_.is_signless:
            return None
    return f"must be an i32 integer, found {attribute}"


def _check_strings(attribute: ir.Attribute) -> str | None:
    if isinstance(attribute, ir.ArrayAttr) and all(
        isinstance(entry, ir.StringAttr) for entry in _counted(attribute)
    ):
        return None
    return f"must be an array of strings, found {attribute}"


INT = AttributeKind(
    "an i32 integer",
    lambda value: ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value),
    lambda attribute: attribute.value,
    _check_i32,
)
BOOL = _kind("a boolean", ir.BoolAttr, ir.BoolAttr.get, lambda attribute: attribute.value)
STRING = _kind("a string", ir.StringAttr, ir.StringAttr.get, lambda attribute: attribute.value)
INTS = _kind(
    "an array<i32: ...>",
    ir.DenseI32ArrayAttr,
    lambda values: ir.DenseI32ArrayAttr.get(list(values)),
    lambda attribute: tuple(_counted(attribute)),
)
STRINGS = AttributeKind(
    "an array of strings",
    lambda values: ir.ArrayAttr.get([ir.StringAttr.get(value) for value in values]),
    lambda attribute: tuple(entry.value for entry in _counted(attribute)),
    _check_strings,
)
SCALAR = _kind(
    "a typed number",
    (ir.IntegerAttr, ir.BoolAttr, ir.FloatAttr),  # an i1 is a BoolAttr, which is no IntegerAttr
    lambda value: value,
    lambda attribute: attribute,
)
"""A typed scalar constant (`0.0 : bf16`), read as the attribute itself."""


def one_of(*words: str) -> AttributeKind:
    """A string out of `words`."""

    def check(attribute: ir.Attribute) -> str | None:
        if isinstance(attribute, ir.StringAttr) and attribute.value in words:
            return None
        return f"must be one of {', '.join(repr(w) for w in words)}, found {attribute}"

    return AttributeKind(
        f"one of {', '.join(words)}", ir.StringAttr.get, lambda attribute: attribute.value, check
    )


def options(**kinds: AttributeKind) -> AttributeKind:
    """A dictionary whose keys are all optional and all known: a demand is never dropped in
    silence."""

    def write(values: Mapping[str, Any]) -> ir.Attribute:
        unknown = sorted(set(values) - set(kinds))
        if unknown:
            raise TypeError(f"unknown option {unknown[0]!r}; known: {sorted(kinds) or 'none'}")
        return ir.DictAttr.get({name: kinds[name].write(value) for name, value in values.items()})

    def read(attribute: ir.Attribute) -> dict[str, Any]:
        return {entry.name: kinds[entry.name].read(entry.attr) for entry in _counted(attribute)}

    def check(attribute: ir.Attribute) -> str | None:
        if not isinstance(attribute, ir.DictAttr):
            return f"must be a dictionary, found {attribute}"
        for entry in _counted(attribute):
            if entry.name not in kinds:
                known = ", ".join(sorted(kinds)) or "none"
                return f"has the unknown option '{entry.name}'; known: {known}"
            wrong = kinds[entry.name].check(entry.attr)
            if wrong:
                return f"option '{entry.name}' {wrong}"
        return None

    return AttributeKind(
        f"a dictionary with {sorted(kinds) or 'no options yet'}", write, read, check
    )
