"""How a product by tcgen05.mma is made of instructions: where each one's operands lie.

An accumulator of M = 128 has row m in lane m, one of M = 64 in lane m%16 + 32*(m/16), beginning at
lane 0 or 16; column n is n columns on (PTX ISA 9.0, "Data path layouts" D and F). An lhs in tensor
memory has its rows in the same lanes, and all elements of 32 bits along k in one column.

Of a product by a pair of CTAs each has half of the rows: of M = 256 as of M = 128 by one CTA, of
M = 128 in lane m + 64 * (n >= N/2), column n % (N/2) (layouts A and B), and half of the rhs along
N.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product

from tilec.hardware.matrix_descriptor import MatrixDescriptor, describe_operand
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import SCALES_E8M0, TENSOR_MS, tensor_instructions, tensor_ns
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.tensor_memory import COLUMN_BITS, Part, TensorMemoryLayout
from tilec.records import dataclass

_ELEMENT_CODES = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"f32": 2},
    "f8f6f4": {"f8E4M3FN": 0, "f8E5M2": 1},
    "i8": {"i8": 1},
    "mxf8f6f4": {"f8E4M3FN": 0, "f8E5M2": 1},
    "mxf4": {"i8": 1},
    "mxf4nvf4": {"i8": 1},
}
"""Element types of A and B by kind (PTX ISA 9.0, "Instruction descriptor"; i8: 0 is unsigned)."""
SCALES_A_COLUMN = 4
"""A byte each in the 32 bits of a column (PTX ISA 9.0, "tcgen05.mma", block scaling)."""
SCALE_ROWS = 128
"""Rows whose scales one tcgen05.cp of shape 32x128b brings: 4 bytes each."""
_SCALE_LANES = 32
"""That hold the scales of 128 rows, in four columns (PTX ISA 9.0, "tcgen05.mma", block scaling)."""
_SCALE_PIECE = 512
"""Bytes of what one tcgen05.cp brings: 32 lanes of 128 bits (PTX ISA 9.0, "tcgen05.cp")."""
_ACCUMULATOR_CODES = {"f16": 0, "f32": 1, "i32": 2}


def instruction_descriptor(row: MmaInstruction, *, lhs_m_major: bool, rhs_n_major: bool) -> int:
    """The 32-bit word that tells tcgen05.mma types, shape and which operands are not along k."""
    codes = _ELEMENT_CODES[row.kind]
    return (
        _ACCUMULATOR_CODES[row.acc] << 4
        | codes[row.lhs] << 7
        | codes[row.rhs] << 10
        | lhs_m_major << 15
        | rhs_n_major << 16
        | row.n >> 3 << 17
        | row.m >> 4 << 24
    )


def scaled_descriptor(
    row: MmaInstruction, *, lhs_m_major: bool, rhs_n_major: bool, block: int
) -> int:
    """The same for block scales, of which every column holds 4, from the `block`-th on (CUTLASS,
    cute/arch/mma_sm100_desc.hpp, InstrDescriptorBlockScaled)."""
    codes = _ELEMENT_CODES[row.kind]
    number = block % SCALES_A_COLUMN
    return (
        number << 4
        | codes[row.lhs] << 7
        | codes[row.rhs] << 10
        | lhs_m_major << 15
        | rhs_n_major << 16
        | row.n >> 3 << 17
        | (row.scale == SCALES_E8M0) << 23
        | row.m >> 7 << 27
        | number << 29
    )


def scales_layout(rows: int, blocks: int) -> TensorMemoryLayout:
    """Where tcgen05.mma has the scales of `rows` rows (or columns of the rhs) by `blocks` blocks
    along k: row r in lane r % 32, column r / 32, 4 blocks in a column, further ones behind.

    The other lanes have copies (PTX ISA 9.0, "Scale factor layout"). ValueError for other numbers.
    """
    if rows % _SCALE_LANES or blocks % SCALES_A_COLUMN or min(rows, blocks) < 1:
        raise ValueError(f"scales come as multiples of 32 rows and 4 blocks, found {rows}x{blocks}")
    columns = rows // _SCALE_LANES
    below = [Part(_SCALE_LANES, 1, 0)]
    if columns > 1:
        below.append(Part(columns, 0, COLUMN_BITS))
    along = [Part(SCALES_A_COLUMN, 0, 8)]
    if blocks > SCALES_A_COLUMN:
        along.append(Part(blocks // SCALES_A_COLUMN, 0, columns * COLUMN_BITS))
    return TensorMemoryLayout((tuple(below), tuple(along)))


SCALES_COPY = "32x128b.warpx4"


def scales_image(rows: int, blocks: int) -> SharedLayout:
    """Scales in shared memory as tcgen05.cp brings them: per 128 rows and 4 blocks 512 bytes, 16 of
    rows r, r + 32, r + 64 and r + 96 together; the pieces of the same rows follow each other.

    (PTX ISA 9.0, "tcgen05.cp"; cuBLAS lays arrays of scales out alike, "1D block scaling factors".)
    ValueError for other numbers.
    """
    if rows % SCALE_ROWS or blocks % SCALES_A_COLUMN or min(rows, blocks) < 1:
        raise ValueError(
            f"scales come as multiples of 128 rows and 4 blocks, found {rows}x{blocks}"
        )
    pieces, groups = rows // SCALE_ROWS, blocks // SCALES_A_COLUMN
    below = [(_SCALE_LANES, 16), (4, SCALES_A_COLUMN)]
    if pieces > 1:
        below.append((pieces, _SCALE_PIECE * groups))
    along = [(SCALES_A_COLUMN, 1)]
    if groups > 1:
        along.append((groups, _SCALE_PIECE))
    return SharedLayout((tuple(below), tuple(along)))


@lru_cache(maxsize=64)
def check_scales(layout: TensorMemoryLayout, shape: tuple[int, ...]) -> None:
    """Raises ValueError unless scales of `shape` (rows, blocks) lie as tcgen05.mma reads them."""
    rows, blocks = shape
    for row in range(rows):
        if layout.along(0, row) != (row % _SCALE_LANES, row // _SCALE_LANES * COLUMN_BITS):
            raise ValueError(
                f"{layout}: row {row} does not lie where the instruction reads its scale"
            )
    for block in range(blocks):
        first = block // SCALES_A_COLUMN * SCALES_A_COLUMN
        lane, bit = layout.along(1, first)
        inside = (block - first) * 8
        if lane or bit % COLUMN_BITS or layout.along(1, block) != (0, bit + inside):
            raise ValueError(
                f"{layout}: block {block} does not lie where the instruction reads its scale"
            )


def tensor_operand(
    row: MmaInstruction, layout: SharedLayout, bits: int, sizes: tuple[int, ...], k_dim: int
) -> MatrixDescriptor:
    """Says how `row` reads a shared buffer of `sizes` (k along `k_dim`: 1 the lhs, 0 the rhs).

    ValueError says why it cannot.
    """
    block = ((row.m if k_dim else row.n) // row.ctas, row.depth)
    found = describe_operand(layout, bits // 8, sizes, k_dim, block)
    if not found.k_contiguous and bits == COLUMN_BITS:
        raise ValueError(
            f"{row.name} reads operands that are contiguous along k, found {layout} with k as "
            f"dimension {k_dim}"
        )
    return found


@lru_cache(maxsize=256)
def check_accumulator(
    row: MmaInstruction, layout: TensorMemoryLayout, shape: tuple[int, ...]
) -> None:
    """Raises ValueError unless an accumulator of `shape`, of a pair what one CTA has, is made of
    those of `row`, each in its lanes."""
    rows = row.m // row.ctas
    if shape[0] % rows or shape[1] % row.n:
        raise ValueError(f"{shape[0]}x{shape[1]} is not made of whole {rows}x{row.n}")
    if row.ctas == 2 and shape[1] != row.n:
        raise ValueError(f"{row.name} makes all columns of a pair's tile, found {shape[1]}")
    _check_rows(row, layout, shape[0])
    if _halves_below(row):
        _check_halves(row, layout)
    else:
        _check_columns(layout, shape[1], row.n, COLUMN_BITS)
    for place in product(range(0, shape[0], rows), range(0, shape[1], row.n)):
        _check_start(row, layout, place)


@lru_cache(maxsize=256)
def check_lhs(
    row: MmaInstruction, layout: TensorMemoryLayout, shape: tuple[int, ...], bits: int
) -> None:
    """Raises ValueError unless `row` can read an lhs of `shape` from tensor memory."""
    rows = row.m // row.ctas
    if _halves_below(row):
        raise ValueError(f"{row.name} reads its lhs from shared memory")
    if shape[0] % rows or shape[1] % row.depth:
        raise ValueError(f"{shape[0]}x{shape[1]} is not made of whole {rows}x{row.depth}")
    _check_rows(row, layout, shape[0])
    _check_columns(layout, shape[1], row.depth, bits)
    for place in product(range(0, shape[0], rows), range(0, shape[1], row.depth)):
        _check_start(row, layout, place)


def _halves_below(row: MmaInstruction) -> bool:
    """Whether the right half of an accumulator lies in the lanes below the left one."""
    return row.ctas == 2 and row.m == 128


def _check_halves(row: MmaInstruction, layout: TensorMemoryLayout) -> None:
    half = row.n // 2
    for n in range(row.n):
        if layout.along(1, n) != (64 * (n // half), n % half * COLUMN_BITS):
            raise ValueError(
                f"{layout}: column {n} does not lie where {row.name} has it, the right half in the "
                "lanes from 64 on"
            )


def _check_rows(row: MmaInstruction, layout: TensorMemoryLayout, rows: int) -> None:
    block = row.m // row.ctas
    spread = row.ctas == 1 and block == 64
    for first in range(0, rows, block):
        lane, bit = layout.along(0, first)
        for i in range(block):
            expected = i % 16 + 32 * (i // 16) if spread else i
            if layout.along(0, first + i) != (lane + expected, bit):
                raise ValueError(
                    f"{layout}: row {first + i} does not lie in the lane where {row.name} has it"
                )


def _check_columns(layout: TensorMemoryLayout, columns: int, block: int, bits: int) -> None:
    for first in range(0, columns, block):
        lane, bit = layout.along(1, first)
        for i in range(block):
            if layout.along(1, first + i) != (lane, bit + i * bits):
                raise ValueError(
                    f"{layout}: element {first + i} of a row does not lie {bits} bits behind the "
                    "one before"
                )


def _check_start(row: MmaInstruction, layout: TensorMemoryLayout, at: tuple[int, int]) -> None:
    lane, bit = layout.place(at)
    starts = (0, 16) if row.m == 64 else (0,)
    if lane not in starts or bit % COLUMN_BITS:
        raise ValueError(f"{layout}: {row.name} cannot begin in lane {lane}, bit {bit % 32}")


@dataclass(frozen=True)
class CopyShape:
    """A shape of tcgen05.cp: `rows` of `bits`, row r in lane `lanes`(r) and, of several copies, in
    others."""

    rows: int
    bits: int
    lanes: Callable[[int], int]


COPY_SHAPES = {
    "128x256b": CopyShape(128, 256, lambda row: row),
    "128x128b": CopyShape(128, 128, lambda row: row),
    "4x256b": CopyShape(4, 256, lambda row: 32 * row),
    "64x128b.warpx2::02_13": CopyShape(64, 128, lambda row: row),
    "64x128b.warpx2::01_23": CopyShape(64, 128, lambda row: row % 32 + row // 32 * 64),
    "32x128b.warpx4": CopyShape(32, 128, lambda row: row),
}
"""The shapes of tcgen05.cp (PTX ISA 9.0, "Data movement shape")."""


@dataclass(frozen=True)
class CopyImage:
    """A buffer as tcgen05.cp sees it: `source` in shared memory by (row, element of the row), of
    which a piece has `step`; `descriptor` of every piece."""

    source: SharedLayout
    step: int
    descriptor: MatrixDescriptor

    @property
    def elements(self) -> int:
        """Elements of a row."""
        return self.source.shape[1]


@lru_cache(maxsize=64)
def copy_image(
    name: str,
    target: TensorMemoryLayout,
    source: SharedLayout,
    shape: tuple[int, ...],
    bits: int,
) -> CopyImage:
    """Says how tcgen05.cp by `name` fills a buffer of `shape` in tensor memory from one in shared
    memory. ValueError says why it cannot."""
    form = COPY_SHAPES[name]
    rows: list[tuple[Part, tuple[int, int]]] = []
    elements: list[tuple[Part, tuple[int, int]]] = []
    for size, there, here in zip(shape, target.dims, source.dims, strict=True):
        for part, piece in _refined(size, there, here):
            (rows if part.lanes else elements).append((part, piece))
    rows.sort(key=lambda each: each[0].lanes)
    elements.sort(key=lambda each: each[0].bits)
    _check_lanes(name, target, [part for part, _ in rows])
    expected = bits
    for part, _ in elements:
        if part.bits != expected:
            raise ValueError(f"{target}: the elements of a lane do not lie side by side")
        expected *= part.size
    image = SharedLayout((_joined(rows), _joined(elements)), source.swizzle)
    step = form.bits // bits
    if image.shape[1] % step:
        raise ValueError(f"{image.shape[1]} elements of {bits} bits are not whole pieces of {name}")
    found = describe_operand(image, bits // 8, image.shape, 1, (form.rows, step))
    if not found.k_contiguous:
        raise ValueError(f"{name} reads rows that are contiguous, found {source}")
    return CopyImage(image, step, found)


def _check_lanes(name: str, target: TensorMemoryLayout, rows: list[Part]) -> None:
    form = COPY_SHAPES[name]
    found = [0]
    for part in rows:
        found = [lane + digit * part.lanes for digit in range(part.size) for lane in found]
    if sorted(found) != sorted(map(form.lanes, range(form.rows))):
        raise ValueError(f"{target} does not have the {form.rows} lanes of {name}")


def _refined(
    whole: int, there: tuple[Part, ...], here: tuple[tuple[int, int], ...]
) -> list[tuple[Part, tuple[int, int]]]:
    """The first `whole` elements of a dimension, cut where either layout cuts it.

    ValueError where the cuts cross.
    """
    found = []
    left, right = list(there), list(here)
    while left and right and whole > 1:
        part, (size, stride) = left.pop(0), right.pop(0)
        common = min(part.size, size, whole)
        if part.size % common or size % common or whole % common:
            raise ValueError(f"parts of {part.size} and of {size} elements cross")
        whole //= common
        found.append((Part(common, part.lanes, part.bits), (common, stride)))
        if part.size > common:
            left.insert(0, Part(part.size // common, part.lanes * common, part.bits * common))
        if size > common:
            right.insert(0, (size // common, stride * common))
    return [each for each in found if each[1][0] > 1]


def _joined(parts: list[tuple[Part, tuple[int, int]]]) -> tuple[tuple[int, int], ...]:
    """Sizes and strides in shared memory, those that continue each other as one."""
    joined: list[tuple[int, int]] = []
    for _, (size, stride) in parts:
        if joined and stride == joined[-1][0] * joined[-1][1]:
            joined[-1] = (joined[-1][0] * size, joined[-1][1])
        else:
            joined.append((size, stride))
    return tuple(joined) or ((1, 1),)


Operands = Sequence[SharedLayout | TensorMemoryLayout]


def check_operands(
    row: MmaInstruction, sizes: Sequence[tuple[int, ...]], layouts: Operands, bits: Sequence[int]
) -> None:
    """Raises ValueError unless lhs, rhs and accumulator are made of whole operands of `row`."""
    lhs, rhs, acc = layouts
    for name, check in (
        ("acc", lambda: _check_acc(row, acc, sizes[2])),
        ("lhs", lambda: _check_lhs(row, lhs, sizes[0], bits[0])),
        ("rhs", lambda: _check_rhs(row, rhs, sizes[1], bits[1])),
    ):
        try:
            check()
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def _check_acc(row: MmaInstruction, layout: object, sizes: tuple[int, ...]) -> None:
    if not isinstance(layout, TensorMemoryLayout):
        raise ValueError(f"the accumulator lies in tensor memory, found {layout}")
    check_accumulator(row, layout, sizes)


def _check_lhs(row: MmaInstruction, layout: object, sizes: tuple[int, ...], bits: int) -> None:
    if isinstance(layout, TensorMemoryLayout):
        check_lhs(row, layout, sizes, bits)
    elif isinstance(layout, SharedLayout):
        tensor_operand(row, layout, bits, sizes, 1)


def _check_rhs(row: MmaInstruction, layout: object, sizes: tuple[int, ...], bits: int) -> None:
    if not isinstance(layout, SharedLayout):
        raise ValueError(f"the rhs lies in shared memory, found {layout}")
    tensor_operand(row, layout, bits, sizes, 0)


def largest_instruction(
    sizes: Sequence[tuple[int, ...]],
    layouts: Operands,
    types: Sequence[str],
) -> str:
    """The name of the largest instruction that the operands (lhs, rhs, acc) are made of.

    ValueError with the last one's reason, where there is none.
    """
    bits = [_BITS.get(name, 32) for name in types]
    reason = f"no instruction of tensor memory multiplies {types[0]} by {types[1]} into {types[2]}"
    for m in TENSOR_MS:
        for n in reversed(tensor_ns(m, types[0])):
            for row in tensor_instructions(m, n):
                if [row.lhs, row.rhs, row.acc] != list(types):
                    continue
                try:
                    check_operands(row, sizes, layouts, bits)
                    return row.name
                except ValueError as error:
                    reason = str(error)
    raise ValueError(reason)


_BITS = {"f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "i8": 8}
