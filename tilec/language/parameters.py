"""Annotations of kernel parameters: arrays, scalars, compile-time constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class _Annotation:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"tl.{self._name}"


class _ArrayAnnotation(_Annotation):
    def __or__(self, other: object) -> _Annotation:
        return optional_array if other is None else NotImplemented

    __ror__ = __or__


optional_array = _Annotation("array | None")
"""What `tl.array | None` is when it is evaluated."""


if TYPE_CHECKING:  # type checkers take annotations that are types only
    from tilec.language.tile import Array

    array = Array
    # A list to who calls the kernel, in which it has a dtype.
    arrays = flat_arrays = const = Any
else:
    array = _ArrayAnnotation("array")
    arrays = _Annotation("arrays")
    flat_arrays = _Annotation("flat_arrays")
    const = _Annotation("const")
"""`x: tl.array`: an array in global memory. Without annotation the argument itself decides.

`x: tl.array | None`: or None, which is a compile-time constant; so is `x: tl.array = None`.

`xs: tl.arrays`: a list of any length, of arrays of one dtype and rank; `xs[i]` is the one at a
position that the kernel computes, `len(xs)` their number. One kernel serves lists of any length.

`xs: tl.flat_arrays`: the same, but each array is seen as a row of all its elements: arrays of any
ranks, row-major and without gaps.

`BM: tl.const = 64`: a compile-time constant; each value compiles its own kernel.
"""

auto: Any = _Annotation("auto")
"""`BM: tl.const = tl.auto`: the compiler chooses the value per target, dtype and role."""

inf = float("inf")
"""Floating-point infinity."""

nan = float("nan")
"""Not a number."""
