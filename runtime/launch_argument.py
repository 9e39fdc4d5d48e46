"""The arguments of a kernel as its author wrote them: what a call is bound against."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.executable.kernel import LISTS
from tilec.messages.binding import bound
from tilec.records import dataclass
from tilec.runtime.errors import ArgumentError

KINDS = ("array", *LISTS, "scalar", "typed", "const")

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

    `kind`: "array"; "arrays" or "flat_arrays", a list of any length; "scalar", whose dtype is
    fixed; "typed", a scalar whose Python type, and whether it fits 32 bits, choose the
    specialisation; "const", whose value does.
    """

    name: str
    kind: str
    default: Any = REQUIRED


def bind(
    name: str,
    arguments: Sequence[LaunchArgument],
    given: Sequence[Any],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """The arguments that a call of `name` gives, by name. ArgumentError for one that is missing or
    unknown."""
    signature = inspect.Signature(
        [
            inspect.Parameter(
                argument.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty
                if argument.default is REQUIRED
                else argument.default,
            )
            for argument in arguments
        ]
    )
    try:
        return dict(bound(signature, given, named).arguments)
    except TypeError as error:
        raise ArgumentError(f"{name}(): {error}") from None


def with_defaults(arguments: Sequence[LaunchArgument], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name, with the defaults of those that are not given."""
    defaults = {a.name: a.default for a in arguments if a.default is not REQUIRED}
    return {**defaults, **values}


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
