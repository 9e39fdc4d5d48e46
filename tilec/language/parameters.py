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
    # A list to who calls the kernel, in which it has a dtype.
    arrays = flat_arrays = const = Any
else:
    array = _Annotation("array")
    arrays = _Annotation("arrays")
    flat_arrays = _Annotation("flat_arrays")
    const = _Annotation("const")
"""`x: tl.array`: an array in global memory. Without annotation the argument itself decides.

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
