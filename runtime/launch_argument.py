"""The arguments of a kernel as its author wrote them: what a call is bound against."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

KINDS = ("array", "scalar", "typed", "const")

RESERVED = ("grid", "stream")
"""Keywords every call takes besides the kernel's own arguments."""

INTERNAL_PREFIX = "_tilec_"


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
"""Stands for "has no default"."""


@dataclass(frozen=True)
class LaunchArgument:
    """One argument of a call.

    `kind`: "array"; "scalar", whose dtype is fixed; "typed", a scalar whose Python type, and
    whether it fits 32 bits, choose the specialisation; "const", whose value does.
    """

    name: str
    kind: str
    default: Any = REQUIRED


def check_arguments(arguments: Sequence[LaunchArgument]) -> None:
    """ValueError unless the names and kinds make a callable signature."""
    seen: set[str] = set()
    for argument in arguments:
        name = argument.name
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith(INTERNAL_PREFIX):
            raise ValueError(f"{name!r} cannot be the name of an argument")
        if name in RESERVED:
            raise ValueError(f"argument {name!r}: every call has a keyword of that name already")
        if name in seen:
            raise ValueError(f"two arguments are called {name!r}")
        if argument.kind not in KINDS:
            kinds = ", ".join(KINDS)
            raise ValueError(f"argument {name!r}: expected one of {kinds}, found {argument.kind!r}")
        seen.add(name)
