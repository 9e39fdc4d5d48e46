"""What a kernel was compiled from and could be another thing at its next launch: globals, helpers.

A launch compares identities, 30 ns each, and goes the whole way where one differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilec.records import dataclass


@dataclass(frozen=True)
class Outside:
    """A value, and where it was found: `owner[name]` of a "name", the cell's contents of a "cell",
    the byte code of a function's "code"."""

    kind: str
    owner: Any
    name: str
    value: Any

    def is_same(self) -> bool:
        """Whether it is still there."""
        try:
            return _FIND[self.kind](self.owner, self.name) is self.value
        except (KeyError, ValueError):  # deleted; an empty cell
            return False


_FIND: dict[str, Callable[[Any, str], Any]] = {
    "name": lambda owner, name: owner[name],
    "cell": lambda owner, _: owner.cell_contents,
    "code": lambda owner, _: owner.__code__,
}
_EXPRESSIONS = {"name": "[{!r}]", "cell": ".cell_contents", "code": ".__code__"}


def is_same(values: Iterable[Outside]) -> bool:
    """Whether all are as they were."""
    return all(value.is_same() for value in values)


def expression(values: Sequence[Outside]) -> tuple[str, dict[str, Any]]:
    """Python text that is true where a value is another one, and the names it uses; it raises where
    one is gone."""
    parts, names = [], {}
    for number, value in enumerate(values):
        where = _EXPRESSIONS[value.kind].format(value.name)
        parts.append(f"_tilec_o{number}{where} is not _tilec_v{number}")
        names |= {f"o{number}": value.owner, f"v{number}": value.value}
    return " or ".join(parts) or "False", names
