"""How registers reach tensor memory: which tcgen05.ld or .st moves which registers of a layout.

A warp touches 32 lanes of its own, by instructions whose lanes and registers lie in one of a few
patterns (PTX ISA 9.0, "tcgen05: Data Movement Shapes"; `FORMS`). A register layout fits a pattern
if its thread modes step as the pattern's lanes do; its registers are then covered by instructions,
the largest first.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from tilec.hardware.layout import Layout
from tilec.hardware.tensor_memory import COLUMN_BITS, TensorMemoryLayout
from tilec.records import dataclass

Place = tuple[int, int]
"""Lanes and columns."""
MOST_REGISTERS = 128
"""Of one instruction (PTX ISA 9.0, "tcgen05.ld")."""


@dataclass(frozen=True)
class Form:
    """`lanes`: how far a step of each bit of the lane's number leads; of the last bit of
    `.16x32bx2` that is free. `registers`: where the first ones lie; `step`: columns to the next
    such group."""

    name: str
    lanes: tuple[Place, ...]
    registers: tuple[Place, ...]
    step: int


FORMS = (
    Form("32x32b", ((1, 0), (2, 0), (4, 0), (8, 0), (16, 0)), ((0, 0),), 1),
    Form("16x256b", ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)), ((0, 0), (0, 1), (8, 0), (8, 1)), 8),
    Form("16x128b", ((0, 1), (0, 2), (1, 0), (2, 0), (4, 0)), ((0, 0), (8, 0)), 4),
    Form("16x64b", ((8, 0), (0, 1), (1, 0), (2, 0), (4, 0)), ((0, 0),), 2),
    Form("16x32bx2", ((1, 0), (2, 0), (4, 0), (8, 0)), ((0, 0),), 1),
)
"""Row and column of lane and register, relative to the address (PTX ISA 9.0; TVM's documentation,
"tcgen05_ld_st")."""


@dataclass(frozen=True)
class Transfer:
    """One instruction. `lane`, `column`: where it begins, from the warp's first place. `values`:
    per 32-bit register the values of the layout that it holds, the lowest bits first."""

    form: str
    repeat: int
    split: int | None
    lane: int
    column: int
    values: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class AccessPlan:
    """`transfers`: every warp's. `warps`: how far a step of each bit of the warp's number leads."""

    transfers: tuple[Transfer, ...]
    warps: tuple[Place, ...]

    def start(self, warp: int) -> Place:
        """Lane and column of a warp's first place."""
        steps = [place for bit, place in enumerate(self.warps) if warp >> bit & 1]
        return sum(lane for lane, _ in steps), sum(column for _, column in steps)


@lru_cache(maxsize=256)
def plan_access(
    layout: Layout, memory: TensorMemoryLayout, shape: tuple[int, ...], element_bits: int
) -> AccessPlan:
    """The instructions between a tile in `layout` and a buffer of `shape` in `memory`.

    ValueError says why there are none.
    """
    rank = len(shape)
    if layout.has_phantoms(shape):
        raise ValueError(f"layout {layout} reaches past the tile; tensor memory has no bounds")
    _check_sums(layout, memory, rank)
    bits = [
        _columns(memory.place(layout.thread_coordinates(1 << bit, rank)), layout)
        for bit in range(layout.num_threads.bit_length() - 1)
    ]
    if len(bits) < 5:
        raise ValueError(f"layout {layout} has no whole warp")
    words = _words(layout, memory, rank, element_bits)
    lanes, warps = tuple(bits[:5]), tuple(bits[5:])
    for form in FORMS:
        if lanes[: len(form.lanes)] != form.lanes:
            continue
        split = lanes[4][1] if len(form.lanes) == 4 else None
        if split is not None and lanes[4][0]:
            continue
        return AccessPlan(_cover(form, split, words, layout), warps)
    raise ValueError(
        f"no shape of tcgen05.ld has the lanes of a warp of layout {layout} at "
        f"{', '.join(f'({row}, {column})' for row, column in lanes)} of (lane, column)"
    )


def _columns(place: Place, layout: Layout) -> Place:
    lane, bit = place
    if bit % COLUMN_BITS:
        raise ValueError(f"threads of layout {layout} share a column of 32 bits")
    return lane, bit // COLUMN_BITS


def _check_sums(layout: Layout, memory: TensorMemoryLayout, rank: int) -> None:
    """ValueError unless every digit of thread and value moves by itself: the place of a sum of
    coordinates is then the sum of the places."""
    threads = [layout.thread_coordinates(t, rank) for t in range(layout.num_threads)]
    values = layout.value_coordinates(rank)
    bits = [layout.thread_coordinates(1 << b, rank) for b in range(len(threads).bit_length() - 1)]
    for dim in range(rank):
        if len(memory.dims[dim]) == 1:
            continue
        for t, at in enumerate(threads):
            steps = [memory.along(dim, c[dim]) for b, c in enumerate(bits) if t >> b & 1]
            if memory.along(dim, at[dim]) != _sum(steps):
                raise ValueError(f"threads of layout {layout} step over an edge of {memory}")
        pairs = product({at[dim] for at in threads}, {at[dim] for at in values})
        for a, b in pairs:
            if memory.along(dim, a + b) != _sum([memory.along(dim, a), memory.along(dim, b)]):
                raise ValueError(f"registers of layout {layout} step over an edge of {memory}")


def _sum(places: list[Place]) -> Place:
    return sum(lane for lane, _ in places), sum(bit for _, bit in places)


def _words(
    layout: Layout, memory: TensorMemoryLayout, rank: int, element_bits: int
) -> dict[Place, tuple[int, ...]]:
    """The values that share a column, by its place from thread 0's first."""
    found: dict[Place, dict[int, int]] = {}
    for value, at in enumerate(layout.value_coordinates(rank)):
        lane, bit = memory.place(at)
        column, inside = divmod(bit, COLUMN_BITS)
        found.setdefault((lane, column), {})[inside] = value
    whole = list(range(0, COLUMN_BITS, element_bits))
    for inside in found.values():
        if sorted(inside) not in ([0], whole):
            raise ValueError(f"layout {layout} holds a part of a column of {memory}")
    return {
        place: tuple(inside[bit] for bit in sorted(inside))
        for place, inside in sorted(found.items())
    }


def _cover(
    form: Form, split: int | None, words: dict[Place, tuple[int, ...]], layout: Layout
) -> tuple[Transfer, ...]:
    transfers = []
    left = dict(words)
    while left:
        lane, column = next(iter(left))
        if lane not in ((0,) if form.lanes[-1] == (16, 0) else (0, 16)):
            raise ValueError(
                f"registers of layout {layout} lie {lane} lanes from their warp's first"
            )
        repeat = MOST_REGISTERS // len(form.registers)
        while repeat:
            places = [
                (lane + row, column + step + n * form.step)
                for n in range(repeat)
                for row, step in form.registers
            ]
            if all(place in left for place in places):
                break
            repeat //= 2
        else:
            raise ValueError(f"layout {layout} has no whole registers of tcgen05.ld.{form.name}")
        values = tuple(left.pop(place) for place in places)
        transfers.append(Transfer(form.name, repeat, split, lane, column, values))
    return tuple(transfers)
