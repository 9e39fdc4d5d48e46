"""What an array, a list of them, a buffer and a ring of barriers are to one thread."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile.types import BufferType, TensorBuffer
from tilec.passes.analysis.coordinates import SIZE_LIMIT
from tilec.passes.analysis.divisibility import value_and_constant
from tilec.passes.rewriting.scalars import create
from tilec.records import dataclass


@dataclass(frozen=True)
class Array:
    """A kernel argument in global memory, or an array out of one that is a list; sizes and strides
    (elements) are index values.

    `unbounded`: dimensions along which an index is inside by the author's word."""

    source: ir.Value
    pointer: ir.Value
    sizes: tuple[ir.Value, ...]
    strides: tuple[ir.Value, ...]
    static_strides: tuple[int | None, ...]
    element: ir.Type
    unbounded: tuple[int, ...] = ()


@dataclass(frozen=True)
class ArrayList:
    """A list of arrays: `pointer` to the table of them, and their number, which is `sizes[0]`."""

    pointer: ir.Value
    sizes: tuple[ir.Value, ...]


@dataclass(frozen=True)
class Buffer:
    """A buffer at `address` (i32, bytes into the shared memory), seen from coordinates `origin`
    (i32)."""

    type: BufferType
    address: ir.Value
    origin: tuple[ir.Value, ...]


@dataclass(frozen=True)
class TensorMemory:
    """A buffer in tensor memory at `address` (i32, lane << 16 | column), seen from coordinates
    `origin` (i32)."""

    type: TensorBuffer
    address: ir.Value
    origin: tuple[ir.Value, ...]


@dataclass(frozen=True)
class Barriers:
    """A ring of mbarriers at `address` (i32, bytes into the shared memory), 8 bytes a slot."""

    address: ir.Value
    slots: int


def moved_pointer(pointer: ir.Value, by: ir.Value | int, bits: int) -> ir.Value:
    """A pointer moved by so many elements of so many bits."""
    known = isinstance(by, int)
    return create(
        "llvm.getelementptr",
        [pointer] if known else [pointer, by],
        pointer.type,
        elem_type=ir.TypeAttr.get(ir.IntegerType.get_signless(bits)),
        rawConstantIndices=ir.DenseI32ArrayAttr.get([by if known else -(2**31)]),
    )


def without_constant(index: ir.Value) -> tuple[ir.Value, int]:
    """An index along neighbours in memory, and what is added to it that an instruction adds to its
    address by itself: neighbours then share an address.

    That much less than a place in an array is still a number that 32 bits hold (`SIZE_LIMIT`).
    """
    base, known = value_and_constant(index)
    return (base, known) if abs(known) < 2**31 - SIZE_LIMIT else (index, 0)
