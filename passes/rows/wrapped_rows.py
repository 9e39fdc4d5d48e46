"""Which rows may be wrapped, so that vectors are aligned wherever they begin (pass wrap-rows), and
which had better be: whose vectors save a warp more instructions than their edges take."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.types import bit_width, element, shape
from tilec.hardware.sizes import SECTOR_BYTES, VECTOR_BYTES, WARP_SIZE, WORD_BITS
from tilec.passes.analysis.divisibility import Divisibility, constant_of
from tilec.passes.analysis.vector_width import element_bytes, provable_width
from tilec.passes.layouts.op_costs import ACCESS_SLOTS, SLOT_BYTES
from tilec.passes.rewriting.loops import innermost_loop, is_inside
from tilec.passes.rewriting.walk import is_of
from tilec.passes.rows.row_kernels import Access, RowKernel, row_axis

ROW_SLOTS = 12
"""Of a warp for each access to a wrapped row: whether its vectors are aligned, which are cut."""
EDGE_SLOTS = 10
"""Of an element of a cut vector: where it lies, whether in the row, its access (SASS, sm_90a)."""
SECTOR_SLOTS = SECTOR_BYTES // SLOT_BYTES
"""Of a store that fills no sector: it goes to L2 by itself. What loads bring, L1 has for others."""


LOOPED_THREADS = 256
"""Of a program whose loops walk along rows that are wrapped, at least: in each iteration one warp
has the cut vector, and threads that meet wait for it. Cross-entropy of 459 rows of 177607 bf16
takes 191 us for 294 in 16 warps, of 1500 of 32003 82 for 109 in 8; of 15901 of 4361 in two 189 for
139 (H200)."""


def longest_shift(rows: RowKernel) -> int:
    """The number of elements, a power of two, below which the shift of a kernel's rows stays: they
    are a sector of its narrowest array, and no two warps share one then."""
    return max(SECTOR_BYTES // element_bytes(access.array) for access in rows.accesses)


def may_wrap(rows: RowKernel, facts: Divisibility) -> bool:
    """Whether the rows of a kernel may begin anywhere, all alike, and may be wrapped; so may tiles
    that begin at multiples of the longest shift of rows, as loops walk along them."""
    if not rows.accesses or rows.size % longest_shift(rows):
        return False
    for op in rows.ops:
        counts = is_of(op, tile.IotaOp) and not isinstance(element(op.results[0]), ir.IndexType)
        if counts and bit_width(element(op.results[0])) < WORD_BITS:
            return False
    places = {other_offsets(access, rows) for access in rows.accesses}
    return len(places) == 1 and all(_is_loose(access, rows, facts) for access in rows.accesses)


def saves_slots(rows: RowKernel, facts: Divisibility, threads: int) -> bool:
    """Whether warps issue less for rows that are wrapped, `threads` to a row, than for accesses no
    wider than all are aligned.

    Each vector that is cut takes its warp an access an element, and their places; two of a row are
    in a warp that is alone with it, and several warps have them all together. Accesses that are not
    wide are more, and of each row they reach they store to a sector in parts.
    """
    if threads < LOOPED_THREADS and any(_is_walked(a, rows) for a in rows.accesses):
        return False
    apart = wrapped = 0.0
    for access in rows.accesses:
        sector = SECTOR_SLOTS if isinstance(access, tile.StoreOp) else 0
        width = VECTOR_BYTES // element_bytes(access.array)
        known, _ = provable_width(facts, access.array, access.offsets, access.dims)
        vectors = -(-rows.size // (threads * width))
        rows_reached = max(1, WARP_SIZE // threads)
        apart += vectors * width // known * (ACCESS_SLOTS + rows_reached * sector)
        cut = min(vectors, 2) * width * min(1.0, WARP_SIZE / threads)
        wrapped += vectors * ACCESS_SLOTS + ROW_SLOTS + cut * (EDGE_SLOTS + sector)
    return wrapped < apart


def _is_loose(access: Access, rows: RowKernel, facts: Divisibility) -> bool:
    """Whether an access begins at column 0 of rows that may begin anywhere, or so many sectors
    behind it."""
    array, axis = access.array, row_axis(access, rows.size)
    if axis is None or access.options.get("wrapped"):
        return False
    if facts.of(access.offsets[axis]) % longest_shift(rows):
        return False
    others = [facts.of_array(array, "strides", a) for a in range(len(shape(array))) if a != axis]
    return any(divisor * element_bytes(array) % VECTOR_BYTES for divisor in others)


def _is_walked(access: Access, rows: RowKernel) -> bool:
    """Whether a loop walks along the row of an access."""
    loop, axis = innermost_loop(access.operation), row_axis(access, rows.size)
    return loop is not None and axis is not None and is_inside(access.offsets[axis], loop)


def other_offsets(access: Access, rows: RowKernel) -> tuple[ir.Value, ...]:
    """The offsets that say which row of its array an access is to: those that are not 0."""
    along = row_axis(access, rows.size)
    others = (v for axis, v in enumerate(access.offsets) if axis != along)
    return tuple(v for v in others if constant_of(v) != 0)
