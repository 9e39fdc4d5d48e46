"""Layouts as compile-time values: which thread holds which element, where each lies in shared
memory.

These are plain functions: call them in a kernel, at module level, or for a `tl.const` argument.
"""

# Authors are told what is wrong, with a type checker or without.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilec.hardware.fragments import accumulator_layout, operand_layouts
from tilec.hardware.fragments import lhs_fragments as warpgroup_lhs
from tilec.hardware.layout import Layout, Mode, copies, covers, normalize, parse_layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.scale_fragments import scale_layout
from tilec.hardware.shared_layout import SharedLayout, parse_shared_layout, strided
from tilec.hardware.sizes import SWIZZLE_BITS
from tilec.hardware.tensor_memory import (
    COLUMN_BITS,
    TensorMemoryLayout,
    blocked_tensor_memory,
    parse_tensor_memory_layout,
)
from tilec.hardware.tensor_registers import rows_layout
from tilec.hardware.tensor_tiles import scales_layout
from tilec.terms.dtypes import DType
from tilec.terms.tile_sizes import LARGEST_TILE

__all__ = [
    "accumulator",
    "blocked",
    "layout",
    "lhs_fragments",
    "lhs_scales",
    "padded",
    "rhs_fragments",
    "rhs_scales",
    "shared",
    "sliced",
    "swizzled",
    "tensor_layout",
    "tensor_memory",
    "tensor_rows",
    "tensor_scales",
]


_MOST_WARPS = 32
"""Of a CTA: 1024 threads (CUDA C++ Programming Guide, "Compute Capabilities")."""


def layout(text: str) -> Layout:
    """A register layout from its text, `T(8,16):(8@1,1@0) V(8,8):(1@1,16@0)`.

    Thread modes, then register modes, fastest first; `n@d` is n steps along tile dimension d, and 0
    means copies. ValueError where it does not read.
    """
    return parse_layout(text)


def shared(text: str) -> SharedLayout:
    """A shared-memory layout from its text, `S<3,4,3> o (128,64):(64,1)`.

    Element strides per dimension under an optional byte swizzle. ValueError where it does not read.
    """
    return parse_shared_layout(text)


def accumulator(
    instruction: str, shape: Sequence[int], along_m: int = 1, along_n: int = 1
) -> Layout:
    """The accumulator (m, n) of `instruction` over a grid of warps, or of warpgroups for wgmma.

    Each of the `along_m` x `along_n` owns one contiguous block; m is the faster one.
    ValueError for an unknown instruction, or where the blocks are not whole instructions.
    """
    row = find_instruction(instruction)
    if len(_checked(shape, warps=along_m * along_n)) < 2:
        raise ValueError(f"an accumulator has at least two dimensions, found {tuple(shape)}")
    for size, parts, unit, name in (
        (shape[-2], along_m, row.m, "m"),
        (shape[-1], along_n, row.n, "n"),
    ):
        if parts < 1 or size % (parts * unit):
            raise ValueError(
                f"{size} along {name} is not {parts} times whole {unit}s of {row.name}"
            )
    return accumulator_layout(row, shape, along_m, along_n)


def lhs_fragments(instruction: str, acc: Layout, k: int | None = None) -> Layout:
    """The (m, k) operand that goes with an accumulator of `instruction`, `k` deep.

    One step of the instruction where `k` is None. ValueError where the instruction has none.
    """
    row = _with_fragments(instruction)
    depth = _depth(row, k)
    if row.is_warpgroup:
        return warpgroup_lhs(row, acc, 2, depth)
    return operand_layouts(row, acc, 2, depth).lhs


def rhs_fragments(instruction: str, acc: Layout, k: int | None = None) -> Layout:
    """The (k, n) operand that goes with an accumulator of `instruction`, `k` deep.

    One step of the instruction where `k` is None. ValueError for wgmma, whose rhs is in shared
    memory.
    """
    row = _with_fragments(instruction)
    if row.is_warpgroup:
        raise ValueError(f"{row.name} reads its rhs from shared memory")
    return operand_layouts(row, acc, 2, _depth(row, k)).rhs


def lhs_scales(instruction: str, acc: Layout, blocks: int) -> Layout:
    """The (m, blocks) scales of the lhs that goes with an accumulator of `instruction`.

    ValueError where the instruction has none, or finds them elsewhere than in registers.
    """
    return _scales(instruction, acc, blocks, 0)


def rhs_scales(instruction: str, acc: Layout, blocks: int) -> Layout:
    """The (blocks, n) scales of the rhs, likewise."""
    return _scales(instruction, acc, blocks, 1)


def _scales(instruction: str, acc: Layout, blocks: int, axis: int) -> Layout:
    row = _with_fragments(instruction)
    if not row.is_scaled:
        raise ValueError(f"{row.name} has no scales")
    _checked((blocks,))
    return scale_layout(row, acc, blocks, axis)


def _checked(shape: Sequence[int], *, warps: int = 1) -> tuple[int, ...]:
    """A shape of positive integers. ValueError otherwise, and for more warps than a CTA has."""
    sizes = tuple(shape)
    whole = all(isinstance(size, int) and not isinstance(size, bool) for size in sizes)
    if not whole or not sizes or min(sizes) < 1 or prod(sizes) > LARGEST_TILE:
        raise ValueError(f"expected a shape of 1 to {LARGEST_TILE} elements in all, found {sizes}")
    if isinstance(warps, bool) or not isinstance(warps, int) or not 1 <= warps <= _MOST_WARPS:
        raise ValueError(f"expected 1 to {_MOST_WARPS} warps, found {warps}")
    return sizes


def _with_fragments(instruction: str) -> MmaInstruction:
    row = find_instruction(instruction)
    if row.acc_layout is None:
        raise ValueError(f"{row.name} has no fragments: any layout will do")
    return row


def _depth(row: MmaInstruction, k: int | None) -> int:
    depth = row.depth if k is None else k
    if not row.depth <= depth <= LARGEST_TILE or depth % row.depth:
        raise ValueError(f"k must be a multiple of {row.depth} for {row.name}, found {depth}")
    return depth


def blocked(shape: Sequence[int], warps: int, width: int = 1, contiguous: int = -1) -> Layout:
    """Vectors of `width` along `contiguous`, threads first along it, then along the others.

    What coalesced accesses want: neighbouring threads hold neighbouring vectors. Threads that are
    too many hold copies. ValueError where the tile is not whole vectors, or a size is no power of
    two where threads must be split over it.
    """
    rank = len(_checked(shape, warps=warps))
    fast = contiguous % rank
    if width < 1 or shape[fast] % width:
        raise ValueError(f"{shape[fast]} elements are not whole vectors of {width}")
    threads: list[Mode] = []
    values = [Mode(width, 1, fast)]
    left = 32 * warps
    for dim in [fast, *(d for d in reversed(range(rank)) if d != fast)]:
        step = width if dim == fast else 1
        units = shape[dim] // step
        here = min(left, units & -units)
        threads.append(Mode(here, step, dim))
        values.append(Mode(units // here, here * step, dim))
        left //= here
    if left > 1:
        threads.append(copies(left))
    made = normalize(Layout(tuple(threads), tuple(values)))
    if not covers(made, tuple(shape)):
        raise ValueError(f"{32 * warps} threads cannot be split over a tile {tuple(shape)}")
    return made


def sliced(whole: Layout, axis: int) -> Layout:
    """The layout of a reduction of a tile in `whole` along `axis`: one dimension less, with copies.

    Also what a vector must have to be broadcast along `axis` against such a tile.
    """
    return whole.slice(axis % whole.rank)


def padded(shape: Sequence[int], pad: int = 0) -> SharedLayout:
    """Row-major shared memory whose rows are `pad` elements apart, without a swizzle."""
    _checked(shape)
    if pad < 0:
        raise ValueError(f"pad must not be negative, found {pad}")
    row = shape[-1] + pad
    strides = [row * prod(shape[d + 1 : -1]) for d in range(len(shape) - 1)]
    return strided(shape, [*strides, 1])


def swizzled(
    shape: Sequence[int], dtype: DType, contiguous: int = -1, span: int | None = None
) -> SharedLayout:
    """Shared memory as TMA writes it and wgmma and ldmatrix read it without bank conflicts.

    Two dimensions; panels of `span` bytes (128, 64 or 32, the widest that fits if None) along
    `contiguous`, the rows of a panel one behind the other, 16-byte units XORed by the row. With
    (m, k) and (k, n) operands `contiguous` along k is K-major, else MN-major.
    ValueError where the contiguous dimension is not whole panels.
    """
    if len(_checked(shape)) != 2:
        raise ValueError(f"a swizzled buffer has two dimensions, found {len(shape)}")
    fast = contiguous % 2
    row_bytes = shape[fast] * dtype.bits // 8
    spans = SWIZZLE_BITS if span is None else (span,)
    fitting = next((s for s in spans if s in SWIZZLE_BITS and row_bytes % s == 0), None)
    if fitting is None:
        wanted = "32, 64 or 128" if span is None else str(span)
        raise ValueError(f"rows of {row_bytes} bytes are not whole panels of {wanted} bytes")
    width, other = fitting * 8 // dtype.bits, shape[1 - fast]
    panels = shape[fast] // width
    along = ((width, 1),) if panels == 1 else ((width, 1), (panels, other * width))
    across = ((other, width),)
    dims = (along, across) if fast == 0 else (across, along)
    return SharedLayout(dims, (SWIZZLE_BITS[fitting], 4, 3))


def tensor_layout(text: str) -> TensorMemoryLayout:
    """A tensor-memory layout from its text, `(128,256):(1@lane,1@col)`.

    Per dimension its size and where a step leads: `n@lane`, `n@col`, or `n@bit` for elements that
    share a column of 32 bits. ValueError where it does not read.
    """
    return parse_tensor_memory_layout(text)


def tensor_memory(
    shape: Sequence[int], block: Sequence[int] | None = None, bits: int = COLUMN_BITS
) -> TensorMemoryLayout:
    """Tensor memory as matrix instructions of `block` (m, n) have their accumulators.

    `block`: of 128 or 64 rows, the whole tile or 128 rows of it if None. `bits`: what an element
    takes of a column, 32 for an accumulator of any type, the element's own for an lhs. Two blocks
    of 64 rows share lanes, others follow along the columns.
    ValueError where the tile is not whole blocks, or more than there is.
    """
    sizes = _checked(shape)
    if len(sizes) != 2:
        raise ValueError(f"a tile in tensor memory has two dimensions, found {len(sizes)}")
    blocks = (min(sizes[0], 128), sizes[1]) if block is None else tuple(block)
    if len(blocks) != 2 or min(blocks) < 1:
        raise ValueError(f"a block has two dimensions, found {blocks}")
    return blocked_tensor_memory(sizes, blocks, bits)


def tensor_rows(memory: TensorMemoryLayout, warps: int) -> Layout:
    """The register layout in which 4 or 8 `warps` read `memory` by whole rows of their lanes.

    A lane of tensor memory is a thread's (tcgen05.ld, shape 32x32b); where only 16 of 32 are in
    use, two threads share one (16x32bx2). 8 warps share the columns. ValueError where they cannot.
    """
    return rows_layout(memory, warps)


def tensor_scales(rows: int, blocks: int) -> TensorMemoryLayout:
    """Tensor memory as tcgen05.mma has the scales of `rows` rows and `blocks` blocks along k.

    Multiples of 32 and 4. ValueError otherwise.
    """
    _checked((rows, blocks))
    return scales_layout(rows, blocks)
