"""When a fragment may be read by ldmatrix or written by stmatrix, and which rows each lane then
addresses.

`ldmatrix.xJ` reads J matrices of 8 rows of 16 bytes; lane 8j+i gives the address of row i of matrix
j, and lane l receives in register j the 4 bytes at row l/4, bytes 4*(l%4) (PTX ISA 9.0,
"ldmatrix"). With `.trans` (16-bit elements) lane l receives elements 2*(l%4) and 2*(l%4)+1 of
column l/4. So a layout fits where lanes run 4 along one dimension in steps of one 4-byte word and
then 8 along another in steps of 1, and each row's 16 bytes lie together in the buffer, aligned.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from tilec.hardware.layout import Layout, Mode
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.sizes import WORD_BYTES
from tilec.hardware.target import Feature
from tilec.passes.contract import PassContext
from tilec.records import dataclass

ROW_BYTES = 16
"""Of a matrix that ldmatrix and stmatrix move: 8 rows of so many (PTX ISA 9.0, "ldmatrix")."""


@dataclass(frozen=True)
class MatrixLoad:
    """How ldmatrix reads a tile. `rows`: the coordinates that each thread addresses for the first
    instruction, as a layout.

    `matrices` (1, 2 or 4) are read per instruction; `transposed` asks for `.trans`. Registers come
    in runs of `per_word` elements a word, `matrices` words an instruction, in the fragment's value
    order.
    """

    rows: Layout
    matrices: int
    per_word: int
    transposed: bool


@lru_cache(maxsize=1024)
def plan_matrix_load(
    layout: Layout, shape: tuple[int, ...], shared: SharedLayout, element_bytes: int
) -> MatrixLoad | None:
    """Plans how ldmatrix reads a tile of `shape` in `layout` from a buffer; None if it does not
    fit."""
    per_word = WORD_BYTES // element_bytes if element_bytes <= WORD_BYTES else 0
    lanes = _lane_modes(layout)
    if not per_word or lanes is None or layout.has_phantoms(shape):
        return None
    along, across, warps = lanes
    values = list(layout.values)
    if per_word > 1:
        if not values or values[0].stride != 1 or values[0].dim != along.dim:
            return None
        if values[0].size % per_word:
            return None
        rest = values[0].size // per_word
        values[0] = Mode(rest, per_word, along.dim)
        if rest == 1:
            values.pop(0)
    if (along.stride, across.stride) != (per_word, 1):
        return None
    if _is_row(shared, along.dim, element_bytes):
        transposed, row = False, across
    elif element_bytes == 2 and _is_row(shared, across.dim, element_bytes):
        transposed, row = True, along
    else:
        return None
    picked = _pick_matrices(values)
    if picked is None:
        return None
    matrices, selectors = picked
    rows = Layout((Mode(8, 1, row.dim), *selectors, *warps), tuple(_without(values, matrices)))
    return MatrixLoad(rows, matrices, per_word, transposed)


def plan_matrix_store(
    layout: Layout,
    shape: tuple[int, ...],
    shared: SharedLayout,
    element_bytes: int,
    context: PassContext,
) -> MatrixLoad | None:
    """Plans how stmatrix writes such a tile, the inverse; None where it does not fit or the target
    has none. Elements of a word's size are as well stored by themselves."""
    if element_bytes == WORD_BYTES or not context.target.supports(Feature.STMATRIX):
        return None
    return plan_matrix_load(layout, shape, shared, element_bytes)


def _lane_modes(layout: Layout) -> tuple[Mode, Mode, tuple[Mode, ...]] | None:
    """Gives (4 lanes along, 8 lanes across, warp modes), splitting joined modes; None if lanes
    differ."""
    modes = list(layout.threads)
    if not modes or modes[0].size != 4 or not modes[0].stride or len(modes) < 2:
        return None
    along, across, *warps = modes
    if not across.stride or across.size < 8 or across.dim == along.dim:
        return None
    if across.size > 8:
        warps.insert(0, Mode(across.size // 8, across.stride * 8, across.dim))
        across = Mode(8, across.stride, across.dim)
    return along, across, tuple(warps)


def _is_row(shared: SharedLayout, contiguous: int, element_bytes: int) -> bool:
    """Whether 16 bytes along `contiguous` lie together, 16-byte aligned wherever a row may
    start."""
    if shared.dims[contiguous][0][1] != 1:
        return False
    steps = [
        stride
        for dim, parts in enumerate(shared.dims)
        for number, (_, stride) in enumerate(parts)
        if (dim, number) != (contiguous, 0)
    ]
    return all(step * element_bytes % ROW_BYTES == 0 for step in steps)


def _pick_matrices(values: list[Mode]) -> tuple[int, tuple[Mode, ...]] | None:
    """Gives how many words an instruction takes, and the thread modes that pick a word's matrix."""
    selectors: list[Mode] = []
    matrices = 1
    for mode in values:
        if matrices == 4:
            break
        take = gcd(mode.size, 4 // matrices)
        if take > 1:
            selectors.append(Mode(take, mode.stride, mode.dim))
            matrices *= take
        if take < mode.size:
            break
    # The lanes past the last matrix give addresses nobody reads.
    if matrices < 4:
        selectors.append(Mode(4 // matrices, 0, -1))
    return matrices, tuple(selectors)


def _without(values: list[Mode], matrices: int) -> list[Mode]:
    """The value modes left once the first `matrices` words are one instruction."""
    left: list[Mode] = []
    for mode in values:
        take = gcd(mode.size, matrices)
        matrices //= take
        if mode.size // take > 1:
            left.append(Mode(mode.size // take, mode.stride * take, mode.dim))
    return left
