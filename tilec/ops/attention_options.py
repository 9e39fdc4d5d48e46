"""What a call of attention asks for beside arrays: the one list of it.

`Options` has what counts where nothing is said. `Asked` is the same as type checkers see it in
calls, a line each; `tilec.ops.torch` adds torch's types, and tests compare the names of all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from tilec.runtime.errors import ArgumentError


class Asked(TypedDict, total=False):
    """Those of the options that a caller names."""

    causal: bool
    window: int | None
    scale: float | None
    cap: float | None
    dropout: float
    seed: int | None
    longest: int | None
    longest_key: int | None
    scratch: int | None


@dataclass(frozen=True)
class Options:
    """All of them, as the caller says it; `plan_attention` checks the values."""

    causal: Any = False
    window: Any = None
    scale: Any = None
    cap: Any = None
    dropout: Any = 0.0
    seed: Any = None
    longest: Any = None
    longest_key: Any = None
    scratch: Any = None

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Options:
        """The options of a call. ArgumentError names one that there is not."""
        check_names(asked)
        return cls(**asked)

    @property
    def without_seed(self) -> tuple[Any, ...]:
        """All of it but the seed."""
        sizes = self.longest, self.longest_key
        plain = self.causal, self.window, self.scale, self.cap, self.dropout
        return (*plain, *sizes, self.scratch, self.scratch.__class__)


NAMES = tuple(field.name for field in fields(Options))


def check_names(asked: Mapping[str, Any]) -> None:
    """Refuses names that no option has."""
    for name in asked:
        if name not in NAMES:
            options = ", ".join(NAMES)
            raise ArgumentError(f"argument {name!r}: attention takes arrays, and {options}")
