"""How many neighbouring elements one access may move: proven alignment, and why not more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from mlir import ir

from tilec.dialects.types import byte_width, element
from tilec.layout import Layout
from tilec.passes.analysis.divisibility import Divisibility, static_strides
from tilec.shared_layout import SharedLayout

VECTOR_BYTES = 16
"""The widest global access (PTX ISA 9.0, "ld": .v4.b32)."""


@dataclass(frozen=True)
class VectorWidth:
    """`width` elements (`bytes` in all) along tile dimension `dim`; `whole`: no vector straddles
    the edge."""

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
    facts: Divisibility, array: ir.Value, offsets: Sequence[ir.Value], dims: Sequence[int]
) -> tuple[int, str]:
    """The widest vector (elements) whose every address is aligned, whatever the layout; and why."""
    size = element_bytes(array)
    widest = VECTOR_BYTES // size
    contiguous = contiguous_dim(array, dims)
    if contiguous is None:
        return 1, "no tile dimension has stride 1"
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
) -> VectorWidth:
    """The width a layout allows within what is provable."""
    size = element_bytes(array)
    width, why = provable_width(facts, array, offsets, dims)
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


def register_run(layout: Layout, dim: int) -> int:
    """Neighbouring elements along `dim` in neighbouring registers, aligned for every thread."""
    first = layout.values[0] if layout.values else None
    if first is None or first.dim != dim or first.stride != 1:
        return 1
    run = first.size & -first.size
    for mode in layout.threads + layout.values[1:]:
        if mode.dim == dim:
            run = gcd(run, mode.stride)
    return run


def shared_width(shared: SharedLayout, layout: Layout, rank: int, element_bytes: int) -> int:
    """Elements one access may move between `layout` and a buffer."""
    first = layout.values[0] if layout.values else None
    if first is None or first.stride != 1 or first.dim >= rank:
        return 1
    if shared.dims[first.dim][0][1] != 1:
        return 1
    width = gcd(first.size & -first.size, 16 // element_bytes)
    steps = [
        mode.stride if mode.dim == first.dim else None
        for mode in layout.threads + layout.values[1:]
    ]
    for step in steps:
        if step is not None:
            width = gcd(width, step)
    # Every other stride moves the start of a vector; so does the end of a panel.
    for dim, parts in enumerate(shared.dims):
        for number, (size, stride) in enumerate(parts):
            own = dim == first.dim and number == 0
            width = gcd(width, size if own and len(parts) > 1 else width if own else stride)
    return max(1, width)
