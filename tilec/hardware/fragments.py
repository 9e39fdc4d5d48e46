"""How a matrix instruction tiles a dot: operand layouts over the warps, and registers per
instruction.

A dot of (batch..., m, k) by (batch..., k, n) runs along the last two dimensions. `warps` share the
accumulator as a grid along m and n, each owning one contiguous block of whole instruction tiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import gcd

from tilec.hardware.layout import Layout, Mode, copies, normalize
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import WGMMA_M, WGMMA_NS
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.hardware.tensor_memory import LANES
from tilec.records import dataclass


@dataclass(frozen=True)
class OperandLayouts:
    """The register layouts of a dot's operands; lhs and rhs hold one k-step."""

    lhs: Layout
    rhs: Layout
    acc: Layout


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _shift(modes: Sequence[Mode], by: int) -> tuple[Mode, ...]:
    return tuple(Mode(m.size, m.stride, m.dim + by) if m.stride else m for m in modes)


def accumulator_layout(
    instruction: MmaInstruction, shape: Sequence[int], warps_m: int, warps_n: int
) -> Layout:
    """The accumulator's layout for a tile of `shape` over a grid of warps (m fastest). Warps past
    its last row have copies: what follows from rows is theirs, too, and nobody hands it to them."""
    if instruction.acc_layout is None:
        raise ValueError(f"{instruction.name} has no fragment of its own; choose a blocked layout")
    batch = len(shape) - 2
    rows = _cdiv(shape[-2], instruction.m)
    different = min(warps_m, power_above(rows))
    repeat_m = _cdiv(rows, different)
    repeat_n = _cdiv(shape[-1], instruction.n * warps_n)
    threads = (
        *_shift(instruction.acc_layout.threads, batch),
        Mode(different, repeat_m * instruction.m, batch),
        copies(warps_m // different),
        Mode(warps_n, repeat_n * instruction.n, batch + 1),
    )
    own = instruction.acc_layout.values
    if instruction.paired:  # neighbours first, so that accesses move both
        own = sorted(own, key=lambda mode: mode.dim)
    values = (
        *_shift(own, batch),
        Mode(repeat_m, instruction.m, batch),
        Mode(repeat_n, instruction.n, batch + 1),
    )
    values += tuple(Mode(shape[dim], 1, dim) for dim in range(batch))
    return normalize(Layout(threads, values))


def warpgroup_grid(shape: Sequence[int], num_warps: int) -> tuple[int, int] | None:
    """Gives (warpgroups along m, warpgroups along n) that share an accumulator of `shape`; None if
    they cannot.

    Along m as far as it goes: an instruction reads its rhs from shared memory for 64 rows at a
    time, so wide ones read the least, and whole rows stay in one warpgroup.
    """
    if len(shape) != 2 or num_warps % WARPGROUP_WARPS or shape[0] % WGMMA_M:
        return None
    groups = num_warps // WARPGROUP_WARPS
    along_m = gcd(groups, shape[0] // WGMMA_M)
    along_n = groups // along_m
    if shape[1] % (8 * along_n):
        return None
    return along_m, along_n


def warpgroup_widths(shape: Sequence[int], num_warps: int) -> list[int]:
    """The instruction widths that fill an accumulator of `shape` with whole instructions, widest
    first."""
    grid = warpgroup_grid(shape, num_warps)
    if grid is None:
        return []
    own = shape[1] // grid[1]
    return [n for n in reversed(WGMMA_NS) if own % n == 0]


HALF_LANES = LANES // 2
"""Rows of an accumulator that half of tensor memory's lanes hold, 16 of every 32."""
COLUMN_RUN = 64
"""Neighbouring columns of one warpgroup: 128 bytes of a 16-bit result. All warpgroups then reach
the next ones together, and a part of the tile that leaves by itself has parts of each."""


def tensor_memory_layout(shape: Sequence[int], num_warps: int) -> Layout | None:
    """Registers that hold an accumulator of `shape` as warps load it from tensor memory, a row a
    thread; None if the warps cannot share it.

    A warp reaches the 32 lanes of its place in the warpgroup (PTX ISA 9.0, "tcgen05.ld", .32x32b);
    rows past the first 128 lie in further columns. Warpgroups share rows first, then columns.
    64 rows lie in 16 of every 32 lanes, so there four threads share a row (.16x256b).
    """
    if len(shape) != 2 or num_warps % WARPGROUP_WARPS:
        return None
    groups = num_warps // WARPGROUP_WARPS
    if shape[0] == HALF_LANES:
        return _half_layout(shape[1], groups)
    if shape[0] % LANES:
        return None
    blocks = shape[0] // LANES
    along_m = gcd(groups, blocks)
    along_n = groups // along_m
    if shape[1] % along_n:
        return None
    own = shape[1] // along_n
    run = gcd(own, COLUMN_RUN)
    threads = (
        Mode(LANES, 1, 0),
        Mode(along_m, blocks // along_m * LANES, 0),
        Mode(along_n, run, 1),
    )
    values = (
        Mode(run, 1, 1),
        Mode(own // run, run * along_n, 1),
        Mode(blocks // along_m, LANES, 0),
    )
    return normalize(Layout(threads, values))


def _half_layout(columns: int, groups: int) -> Layout | None:
    own = columns // groups
    if columns % groups or own % 8:
        return None
    threads = (Mode(4, 2, 1), Mode(8, 1, 0), Mode(4, 16, 0), Mode(groups, own, 1))
    return normalize(Layout(threads, (Mode(2, 1, 1), Mode(2, 8, 0), Mode(own // 8, 8, 1))))


def operand_layouts(
    instruction: MmaInstruction,
    acc: Layout,
    rank: int,
    k_step: int,
    *,
    lhs_k_first: bool = False,
    rhs_k_first: bool = False,
) -> OperandLayouts:
    """The lhs and rhs layouts that go with an accumulator layout, for `k_step` elements of k.

    `k_first`: neighbours along k in neighbouring registers, where the instruction leaves that open.
    """
    m, n = rank - 2, rank - 1
    lhs = _operand(instruction.lhs_layout, acc, kept=m, k=n, k_step=k_step, instruction=instruction)
    rhs = _operand(instruction.rhs_layout, acc, kept=n, k=m, k_step=k_step, instruction=instruction)
    if instruction.acc_layout is None:
        lhs = _k_first(lhs, n) if lhs_k_first else lhs
        rhs = _k_first(rhs, m) if rhs_k_first else rhs
    return OperandLayouts(lhs, rhs, acc)


def lhs_fragments(instruction: MmaInstruction, acc: Layout, rank: int, k: int) -> Layout:
    """The lhs layout alone, for `k` elements of k: a warpgroup's rhs is never in registers."""
    return _operand(
        instruction.lhs_layout, acc, kept=rank - 2, k=rank - 1, k_step=k, instruction=instruction
    )


def _k_first(layout: Layout, k: int) -> Layout:
    along = tuple(mode for mode in layout.values if mode.dim == k)
    return Layout(layout.threads, along + tuple(m for m in layout.values if m.dim != k))


def _operand(
    fragment: Layout | None,
    acc: Layout,
    *,
    kept: int,
    k: int,
    k_step: int,
    instruction: MmaInstruction,
) -> Layout:
    """The accumulator's warps and repeats along `kept` (and the batch), its fragment replaced."""
    batch = min(kept, k)
    lanes = 1 if fragment is None else fragment.num_threads
    threads = modes_after(acc.threads, lanes)
    own = instruction.m if kept < k else instruction.n
    values = [mode for mode in acc.values if mode.dim < batch]
    if fragment is None:
        values += [mode for mode in acc.values if mode.dim == kept]
    else:
        values.append(Mode(instruction_repeats(acc, kept, own), own, kept))
    warps = tuple(
        mode if mode.dim == kept or mode.dim < batch or not mode.stride else copies(mode.size)
        for mode in threads
    )
    head = fragment if fragment is not None else Layout((), ())
    repeats_k = Mode(_cdiv(k_step, instruction.depth), instruction.depth, k)
    return normalize(
        Layout(
            _shift(head.threads, batch) + warps,
            (*_shift(head.values, batch), *values, repeats_k),
        )
    )


def instruction_repeats(acc: Layout, kept: int, own: int) -> int:
    """The number of instruction tiles that a thread has along `kept`; its modes may have been
    joined with the fragment's."""
    starts = {at[kept] for at in acc.value_coordinates(acc.rank) if at[kept] % own == 0}
    if starts != set(range(0, len(starts) * own, own)):
        raise ValueError(f"accumulator {acc} does not repeat every {own} elements")
    return len(starts)


def modes_after(modes: tuple[Mode, ...], threads: int) -> tuple[Mode, ...]:
    """The thread modes past the first `threads` threads, splitting a mode where needed."""
    rest: list[Mode] = []
    for mode in modes:
        if threads >= mode.size:
            threads //= mode.size
            continue
        rest.append(Mode(mode.size // threads, mode.stride * threads, mode.dim))
        threads = 1
    return tuple(rest)


Registers = dict[tuple[int, ...], tuple[int, ...]]


def instruction_registers(layout: Layout, fragment: Layout | None, rank: int) -> Registers:
    """Gives, for each instruction tile (its first element's coordinates), the registers of its
    fragment, in order.

    ValueError if the layout's registers are not whole fragments.
    """
    position = {at: register for register, at in enumerate(layout.value_coordinates(rank))}
    offsets = ((0, 0),) if fragment is None else fragment.value_coordinates(2)
    batch = rank - 2
    tiles: Registers = {}
    taken: set[tuple[int, ...]] = set()
    for at in sorted(position):
        if at in taken:
            continue
        members = [(*at[:batch], at[batch] + i, at[batch + 1] + j) for i, j in offsets]
        if not all(member in position and member not in taken for member in members):
            raise ValueError(f"layout {layout} does not hold whole fragments")
        taken.update(members)
        tiles[at] = tuple(position[member] for member in members)
    return tiles


@lru_cache(maxsize=256)  # every pass leaves most products as they were
def fragment_mismatch(
    instruction: MmaInstruction, lhs: Layout, rhs: Layout, acc: Layout, rank: int
) -> str | None:
    """Says what keeps three layouts from being this instruction's operands, or None."""
    threads = acc.num_threads
    if not threads == lhs.num_threads == rhs.num_threads:
        return (
            f"operands are spread over {lhs.num_threads}, {rhs.num_threads} and {threads} threads"
        )
    fragments = (instruction.lhs_layout, instruction.rhs_layout, instruction.acc_layout)
    tiles = []
    for name, layout, fragment in zip(
        ("lhs", "rhs", "acc"), (lhs, rhs, acc), fragments, strict=True
    ):
        try:
            tiles.append(instruction_registers(layout, fragment, rank))
        except ValueError as error:
            return f"{name}: {error}"
        if fragment is not None and (lane := _wrong_lane(layout, fragment, rank)) is not None:
            return f"{name}: lane {lane} does not hold its part of {instruction.name}"
    lhs_tiles, rhs_tiles, acc_tiles = tiles
    if not _registers_meet(lhs_tiles, rhs_tiles, acc_tiles, rank - 2):
        return "lhs and rhs registers do not meet the accumulator's"
    lanes = 1 if instruction.acc_layout is None else 32
    return _threads_mismatch(lhs, rhs, acc, rank, range(0, threads, lanes))


def _wrong_lane(layout: Layout, fragment: Layout, rank: int) -> int | None:
    """The first lane whose elements a layout has elsewhere than the instruction's fragment."""
    for lane in range(32):
        own = layout.thread_coordinates(lane, rank)[rank - 2 :]
        if own != fragment.thread_coordinates(lane, 2):
            return lane
    return None


def _registers_meet(lhs: Registers, rhs: Registers, acc: Registers, batch: int) -> bool:
    """Whether the fragments of lhs and rhs have the rows and columns of the accumulator, and one
    k."""
    rows, columns = {at[:-1] for at in acc}, {(*at[:batch], at[-1]) for at in acc}
    return (
        {at[:-1] for at in lhs} == rows
        and {(*at[:batch], at[-1]) for at in rhs} == columns
        and {at[-1] for at in lhs} == {at[batch] for at in rhs}
    )


def _threads_mismatch(
    lhs: Layout, rhs: Layout, acc: Layout, rank: int, threads: Iterable[int]
) -> str | None:
    """Says what keeps the elements at which `threads`, one a warp, begin from being one product's,
    or None."""
    batch = rank - 2
    for thread in threads:
        left, right, out = (x.thread_coordinates(thread, rank) for x in (lhs, rhs, acc))
        row, column = (left[: batch + 1], (*right[:batch], right[-1]))
        if (row, column) != (out[: batch + 1], (*out[:batch], out[-1])):
            return f"thread {thread}: lhs and rhs do not meet the accumulator's elements"
        if left[-1] or right[batch]:
            return f"thread {thread}: k must not be spread over warps"
    return None
