"""Groups in argument specs: `p.weight:f32[?]`, `xs[0]:bf16[?,?:8;?:8,1]`, and None for what a call
leaves out.

The parts that specs and constants name are put together as a call would pass them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from tilec.call.call_form import CallForm, GroupKind, Kind
from tilec.call.declaration import DeclaredParameter
from tilec.executable.kernel import Parameter

_STEP = re.compile(r"\[(\d+)\]|\.([A-Za-z_]\w*)|([A-Za-z_]\w*)")
_OPEN = object()
"""Stands for a parameter of which nothing is said."""

Step = str | int


def bind_specs(
    declared: Sequence[DeclaredParameter], given: Mapping[str, Parameter | Any]
) -> tuple[CallForm, dict[str, Any]]:
    """How a call with these specs and constants, by name or path, is taken apart; and by name of
    each part, its spec or constant.

    ValueError where parts do not make a whole.
    """
    paths = {_steps(name): value for name, value in given.items()}
    kinds: list[Kind] = []
    values = []
    for parameter in declared:
        inner = {path[1:]: value for path, value in paths.items() if path[0] == parameter.name}
        if not inner:
            default = None if parameter.may_be_missing and parameter.default is None else _OPEN
            inner = {(): default}
        kind, value = _whole(parameter.name, inner)
        kinds.append(_admitted(parameter, kind))
        values.append(value)
    form = CallForm(declared, kinds)
    names = (argument.name for argument in form.arguments)
    parts = zip(names, form.flat(values), strict=True)
    return form, {name: value for name, value in parts if value is not _OPEN}


def _admitted(parameter: DeclaredParameter, kind: Kind) -> Kind:
    """The kind of what was given for a parameter; its own where an annotation says that."""
    if parameter.is_open and kind == "const":
        raise ValueError(f"argument {parameter.name!r} is no constant; describe it with a spec")
    if parameter.is_open or (kind is None and parameter.may_be_missing):
        return kind
    if isinstance(kind, GroupKind):
        raise ValueError(f"argument {parameter.name!r} is no group: its annotation says so")
    return parameter.kind


def _steps(name: str) -> tuple[Step, ...]:
    """`p.pair[0]` as ("p", "pair", 0)."""
    found = [(m[2] or m[3]) if m[1] is None else int(m[1]) for m in _STEP.finditer(name)]
    return tuple(found)


def _whole(name: str, parts: Mapping[tuple[Step, ...], Any]) -> tuple[Kind, Any]:
    """The kind, and the value, that parts of `name` make, by the way to them from there."""
    if () in parts:
        if len(parts) > 1:
            raise ValueError(f"argument {name!r} is given as a whole and in parts")
        value = parts[()]
        if isinstance(value, Parameter):
            return ("array" if value.has_memory else "typed"), value
        return (None if value is None else "array" if value is _OPEN else "const"), value
    heads = list(dict.fromkeys(path[0] for path in parts))
    inner = []
    for head in heads:
        own = {path[1:]: value for path, value in parts.items() if path[0] == head}
        inner.append(_whole(f"{name}.{head}" if isinstance(head, str) else f"{name}[{head}]", own))
    names = tuple(head for head in heads if isinstance(head, str))
    if len(names) == len(heads):
        value = SimpleNamespace(**{head: part[1] for head, part in zip(names, inner, strict=True)})
        return GroupKind(tuple(part[0] for part in inner), names), value
    if sorted(heads, key=str) != sorted(range(len(heads)), key=str):
        raise ValueError(f"argument {name!r}: expected parts 0 to {len(heads) - 1}, found {heads}")
    ordered = [part for _, part in sorted(zip(heads, inner, strict=True), key=lambda p: p[0])]
    return GroupKind(tuple(p[0] for p in ordered), None), tuple(p[1] for p in ordered)
