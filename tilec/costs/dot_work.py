"""What a dot of tiles costs, from its sizes and how its operands lie in memory.

Both who reads a kernel (`kernel_work`) and who chooses a kernel's tiles (`tilec.ops`) ask here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilec.costs.rates import Rates
from tilec.costs.work import WAYS, Unit, Way
from tilec.hardware.mma_shapes import TENSOR_MS, WGMMA_M, WIDEST_N
from tilec.hardware.sizes import LINE_BYTES, VECTOR_BYTES
from tilec.hardware.target import Feature, Target
from tilec.hardware.tensor_memory import LANES
from tilec.records import dataclass
from tilec.runtime.facts import unit_axes

WARP_TILE = 64
"""Rows and columns of an accumulator that one warp works on, about: each operand is read from
shared memory once a warp that needs it."""


def contiguous_axis(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The axis of a matrix along which its elements lie side by side, -1 or -2; None without."""
    found = unit_axes(shape[-2:], strides[-2:])
    return found[-1] - 2 if found else None


@dataclass(frozen=True)
class Memory:
    """The way in which a matrix lies in memory.

    `contiguous`: the axis of stride 1, None without. `alignment`: bytes that the address and all
    other strides are multiples of.
    """

    contiguous: int | None
    alignment: int

    @classmethod
    def of(cls, pointer: int, shape: Sequence[int], strides: Sequence[int], size: int) -> Memory:
        """Describes an array with elements of `size` bytes; the last two axes are the matrix's."""
        axis = contiguous_axis(shape, strides)
        contiguous = None if axis is None else axis + 2
        bits = pointer | LINE_BYTES
        for number, (extent, stride) in enumerate(zip(shape, strides, strict=True), -len(shape)):
            if number != axis and extent > 1:
                bits |= stride * size
        return cls(contiguous, bits & -bits)


def kind_of(dtype: str, precision: str) -> str:
    """Says which unit multiplies, see `model.TENSOR_SPEEDS`."""
    if dtype == "f32":
        return "tf32" if precision == "tf32" else "fma"
    return dtype if dtype in ("f64", "f16", "bf16", "i8") else "f8"


def unit_of(m: int, n: int, kind: str, target: Target) -> Unit:
    """Says who multiplies a dot of m x n; `kind` as in the model."""
    if kind in ("fma", "f64"):
        return Unit.WARPS
    if target.supports(Feature.WGMMA) and m % WGMMA_M == 0 and n % 8 == 0:
        return Unit.WARPGROUPS
    rows = next((rows for rows in TENSOR_MS if m % rows == 0), 0)
    step = 16 if kind == "i8" or rows != TENSOR_MS[-1] else 8
    if target.supports(Feature.TCGEN05) and rows and n % step == 0:
        return Unit.TENSOR_MEMORY
    return Unit.WARPS


def flops_of(m: int, n: int, k: int, unit: Unit) -> int:
    """Operations of a dot. In tensor memory half of the lanes of an instruction of 64 rows are
    idle, which takes it as long as one of 128 (PTX ISA 9.0, "tcgen05" data path layout F)."""
    rows = -(-m // LANES) * LANES if unit is Unit.TENSOR_MEMORY else m
    return 2 * rows * n * k


def columns_of(m: int, n: int, unit: Unit) -> int:
    """The columns of tensor memory for the sum of a dot of m x n: a row a lane."""
    return -(-m // LANES) * n if unit is Unit.TENSOR_MEMORY else 0


def way_of(operands: Sequence[tuple[Memory, int]], width: int, unit: Unit) -> Way:
    """Says how a loop's operands come to shared memory: each with its axis of k; `width` of
    elements.

    All of them in the slowest of their ways, but for single warps: these copy by threads what the
    engine could bring.
    """
    ways = _ways_of(operands, width, unit)
    slowest = max(ways, key=WAYS.index)
    return Way.THREADS if unit is Unit.WARPS and slowest is Way.ENGINE else slowest


def _ways_of(operands: Sequence[tuple[Memory, int]], width: int, unit: Unit) -> list[Way]:
    """Says how each operand comes, if its way is not that of another.

    Only 2-byte elements may lie across k in shared memory (PTX ISA 9.0, "wgmma", "ldmatrix"):
    others are transposed on the way. Not so an lhs of 4 bytes that warpgroups multiply: they read
    it into registers, where the other one comes by the engine. Elements of 4 bytes may be copied
    asynchronously one by one, smaller ones may not.
    """
    slow = Way.THREADS if width == 4 else Way.REGISTERS
    ways: list[Way] = []
    for one, axis in operands:
        is_whole = one.contiguous is not None and one.alignment >= VECTOR_BYTES
        is_transposed = one.contiguous != axis and width != 2
        if is_transposed and is_whole and is_read_across_k(one, axis, width, unit):
            is_transposed = False
        ways.append(slow if is_transposed or not is_whole else Way.ENGINE)
    if Way.THREADS in ways:
        across = [one.contiguous != axis and width != 2 for one, axis in operands]
        ways = [slow if transposed else way for way, transposed in zip(ways, across, strict=True)]
    return ways


def is_read_across_k(memory: Memory, axis: int, width: int, unit: Unit) -> bool:
    """Whether an operand whose axis of k is `axis`, of elements of `width` bytes, comes to shared
    memory across k, and from there to registers (`passes/dots/computed_lhs.py`)."""
    is_lhs = axis == 1
    return is_lhs and width == 4 and unit is Unit.WARPGROUPS and memory.contiguous == 0


def shared_traffic(m: int, n: int, lhs: int, rhs: int, unit: Unit) -> int:
    """Bytes through shared memory for operands of `lhs` and `rhs` bytes, written once."""
    sides = _READ_ONCE[unit]
    return lhs * (1 + -(-n // sides[0])) + rhs * (1 + -(-m // sides[1]))


_READ_ONCE = {
    Unit.WARPS: (WARP_TILE, WARP_TILE),
    Unit.WARPGROUPS: (WIDEST_N, WGMMA_M),
    Unit.TENSOR_MEMORY: (WIDEST_N, LANES),
}
"""For so many columns the left operand is read once, for so many rows the right one."""


def line_bytes(nbytes: int, row_bytes: int, memory: Memory, way: Way, rates: Rates) -> int:
    """The bytes that a tile of `nbytes` takes from L2 in whole lines; `row_bytes` of it are
    contiguous.

    The copy engine moves rows of at most 128 bytes: the largest power of two in a row.
    """
    if way is Way.REGISTERS:
        return nbytes
    span = min(LINE_BYTES, row_bytes & -row_bytes if way is Way.ENGINE else row_bytes)
    shifted = rates.shifted
    cost = 1.0 if memory.alignment >= span else shifted[max(memory.alignment, min(shifted))]
    return int(nbytes * cost * LINE_BYTES / span)


def asked_bytes(
    nbytes: int, row_bytes: int, inside: int, memory: Memory, way: Way, rates: Rates
) -> int:
    """The same as a multiprocessor asks for it: each row once, wherever it begins in a line. Rows
    of which no more than 16 bytes lie `inside` of the array cost the copy engine time of its
    own."""
    if way is Way.ENGINE and inside == VECTOR_BYTES:
        return int(nbytes / row_bytes * rates.thin_row * rates.engine_bytes)
    return line_bytes(nbytes, row_bytes, replace(memory, alignment=LINE_BYTES), way, rates)


def narrow_loads(
    tiles: Sequence[int], operands: Sequence[tuple[Memory, int]], width: int, unit: Unit
) -> tuple[int, int]:
    """Elements that come one by one, and vectors of 16 bytes that threads copy beside them, of
    operands whose tiles have so many elements."""
    ways = _ways_of(operands, width, unit)
    narrow = sum(size for size, way in zip(tiles, ways, strict=True) if way is not Way.ENGINE)
    return narrow, (sum(tiles) - narrow) * width // VECTOR_BYTES if narrow else 0
