"""How many neighbouring elements one access may move: proven alignment, and why not more."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from mlir import ir

from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.tile import LoadOp, StoreOp
from tilec.dialects.types import byte_width, element, shape
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.passes.analysis.divisibility import Divisibility, static_strides
from tilec.passes.layouts.runs import register_run
from tilec.records import dataclass


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


def access_width(op: LoadOp | StoreOp, facts: Divisibility) -> tuple[int, str]:
    """The widest vector (elements) of a load or store whose every address is aligned, whatever the
    layout; and why. Addresses of a wrapped row (pass wrap-rows) are looked at when it runs."""
    if op.options.get("wrapped") and contiguous_dim(op.array, op.dims) is not None:
        return VECTOR_BYTES // element_bytes(op.array), "the row is wrapped"
    return provable_width(facts, op.array, op.offsets, op.dims)


def provable_width(
    facts: Divisibility, array: ir.Value, offsets: Sequence[ir.Value], dims: Sequence[int]
) -> tuple[int, str]:
    """The same for a tile along `dims` of an array, from `offsets` on."""
    size = element_bytes(array)
    widest = VECTOR_BYTES // size
    contiguous = contiguous_dim(array, dims)
    if contiguous is None:
        return 1, "no tile dimension has stride 1"
    along = dims[contiguous]
    limits = [
        (facts.alignment(array) // size, "the pointer's alignment is not known"),
        (facts.of(offsets[along]), "the offset along the row is not a known multiple"),
    ]
    for axis in range(len(offsets)):
        if axis != along:
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


def vector_width(op: LoadOp | StoreOp, facts: Divisibility) -> VectorWidth:
    """The width that the tile's layout allows within what is provable."""
    size, contiguous = element_bytes(op.array), contiguous_dim(op.array, op.dims)
    width, why = access_width(op, facts)
    if contiguous is None:
        return VectorWidth(1, size, None, True, why)
    run = register_run(layout_of(op.tile), contiguous)
    if run < width:
        width, why = run, "the layout holds no longer run"
    # A vector that straddles the tile's edge would write past it.
    while width > 1 and shape(op.tile)[contiguous] % width:
        width, why = width // 2, "the tile's size along the row is no multiple"
    divisor = facts.of_array(op.array, "sizes", op.dims[contiguous])
    return VectorWidth(width, width * size, contiguous, divisor % width == 0, why)
