"""Annotations of kernel parameters: arrays, scalars, compile-time constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class _Annotation:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"tl.{self._name}"


if TYPE_CHECKING:  # type checkers take annotations that are types only
    from tilec.language.tile import Array

    array = Array
    const = Any
else:
    array = _Annotation("array")
    const = _Annotation("const")
"""`x: tl.array`: an array in global memory. Without annotation the argument itself decides.

`BM: tl.const = 64`: a compile-time constant; each value compiles its own kernel.
"""

auto: Any = _Annotation("auto")
"""`BM: tl.const = tl.auto`: the compiler chooses the value per target, dtype and role."""

inf = float("inf")
"""Floating-point infinity."""

nan = float("nan")
"""Not a number."""
