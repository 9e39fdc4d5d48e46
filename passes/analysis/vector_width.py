"""How many neighbouring elements one access may move: proven alignment, and why not more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from mlir import ir

from tilec.dialects.types import byte_width, element
from tilec.hardware.layout import Layout
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.passes.analysis.divisibility import Divisibility, static_strides
from tilec.passes.layouts.runs import register_run


@dataclass(frozen=True)
class VectorWidth:
    """An access moves vectors of `width` elements, `bytes` in all, along tile dimension `dim`;
    `whole`: no vector straddles the array's edge."""

    width: int
    bytes: int
    dim: int | None
    whole: bool
    why: str


def element_bytes(array: ir.Value) -> int:
    """Bytes of an array's element; i1 takes one, index never lies in memory."""
    return byte_width(element(array))


def contiguous_dim(array: ir.Value, dims: Sequence[int]) -> int | None:
    """The tile dimension along which the array's stride is known to be 1."""
    strides = static_strides(array)
    return next((d for d, axis in enumerate(dims) if strides[axis] == 1), None)


def provable_width(
    facts: Divisibility,
    array: ir.Value,
    offsets: Sequence[ir.Value],
    dims: Sequence[int],
    *,
    wrapped: bool = False,
) -> tuple[int, str]:
    """The widest vector (elements) whose every address is aligned, whatever the layout; and why.

    `wrapped`: of a wrapped row (pass wrap-rows), whose addresses are looked at when it runs.
    """
    size = element_bytes(array)
    widest = VECTOR_BYTES // size
    contiguous = contiguous_dim(array, dims)
    if contiguous is None:
        return 1, "no tile dimension has stride 1"
    if wrapped:
        return widest, "the row is wrapped"
    limits = [
        (facts.alignment(array) // size, "the pointer's alignment is not known"),
        (facts.of(offsets[dims[contiguous]]), "the offset along the row is not a known multiple"),
    ]
    for axis in range(len(offsets)):
        if axis != dims[contiguous]:
            limits.append(
                (
                    facts.of_array(array, "strides", axis),
                    f"the stride of dimension {axis} is not a known multiple",
                )
            )
    width, why = widest, "aligned"
    for divisor, reason in limits:
        if gcd(width, divisor or 1) < width:
            width, why = gcd(width, divisor or 1), reason
    return max(1, width), why


def vector_width(
    facts: Divisibility,
    array: ir.Value,
    offsets: Sequence[ir.Value],
    dims: Sequence[int],
    layout: Layout,
    shape: Sequence[int],
    *,
    wrapped: bool = False,
) -> VectorWidth:
    """The width a layout allows within what is provable. `wrapped`: as in `provable_width`."""
    size = element_bytes(array)
    width, why = provable_width(facts, array, offsets, dims, wrapped=wrapped)
    contiguous = contiguous_dim(array, dims)
    if contiguous is None:
        return VectorWidth(1, size, None, True, why)
    run = register_run(layout, contiguous)
    if run < width:
        width, why = run, "the layout holds no longer run"
    # A vector that straddles the tile's edge would write past it.
    while width > 1 and shape[contiguous] % width:
        width, why = width // 2, "the tile's size along the row is no multiple"
    divisor = facts.of_array(array, "sizes", dims[contiguous])
    return VectorWidth(width, width * size, contiguous, divisor % width == 0, why)
