"""Register layouts: which thread and which of its registers holds which element of a tile.

A layout reads `T(8,16):(8@1,1@0) V(8,8):(1@1,16@0)`: thread modes, then value (register) modes,
fastest first. A stride `n@d` is n steps along tile dimension d (CuTe's scaled basis); `0` marks
copies. It is written in coordinates, so it does not depend on the tile's size: a reduction along d
turns the `@d` thread modes into copies and drops the `@d` value modes, a broadcast is the inverse.

A layout may cover more than its tile. Elements past the tile's edge are *phantoms*: their registers
exist and hold anything; whoever mixes elements (reductions, scans, stores, dots along K) must leave
them out. That is how a tile of any size works on a power-of-two number of threads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod

from tilec.hardware.sizes import WARP_SIZE
from tilec.records import dataclass


@dataclass(frozen=True)
class Mode:
    """`size` steps of `stride` along tile dimension `dim`; stride 0 (dim -1) marks copies."""

    size: int
    stride: int
    dim: int

    def __str__(self) -> str:
        return f"{self.stride}@{self.dim}" if self.stride else "0"


def copies(size: int) -> Mode:
    """A thread mode whose threads all hold the same elements."""
    return Mode(size, 0, -1)


@dataclass(frozen=True)
class Layout:
    """Which thread holds which element in which register. `threads` and `values`: modes, fastest
    first.

    Thread modes are powers of two, so that a digit of the thread number is a few of its bits. Where
    three warpgroups share a tile the slowest one is three times a power of two.
    """

    threads: tuple[Mode, ...]
    values: tuple[Mode, ...]

    def __str__(self) -> str:
        def modes(letter: str, group: tuple[Mode, ...]) -> str:
            sizes = ",".join(str(mode.size) for mode in group)
            strides = ",".join(str(mode) for mode in group)
            return f"{letter}({sizes}):({strides})"

        return f"{modes('T', self.threads)} {modes('V', self.values)}"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Layouts are what many answers are kept by: a hash of all modes takes as long as most."""
        return hash((self.threads, self.values))

    @cached_property
    def num_threads(self) -> int:
        """Threads that hold a part of the tile, copies included."""
        return prod(mode.size for mode in self.threads)

    @cached_property
    def num_values(self) -> int:
        """Registers (elements) a thread holds."""
        return prod(mode.size for mode in self.values)

    @cached_property
    def rank(self) -> int:
        """The highest tile dimension named, plus one."""
        return 1 + max((mode.dim for mode in self.threads + self.values), default=-1)

    def extents(self, rank: int) -> tuple[int, ...]:
        """How far the layout reaches along each of `rank` dimensions (phantoms included)."""
        reach = [1] * rank
        for mode in self.threads + self.values:
            if mode.stride:
                reach[mode.dim] += (mode.size - 1) * mode.stride
        return tuple(reach)

    def value_coordinates(self, rank: int) -> tuple[tuple[int, ...], ...]:
        """The coordinates that each register adds to its thread's."""
        return _value_coordinates(self, rank)

    def thread_coordinates(self, thread: int, rank: int) -> tuple[int, ...]:
        """The coordinates of register 0 of `thread`."""
        return _offset(self.threads, thread, rank)

    def slice(self, axis: int) -> Layout:
        """The layout of a reduction along `axis`: that dimension dropped, its threads hold
        copies."""
        threads = tuple(
            copies(mode.size) if mode.dim == axis else _renumber(mode, axis)
            for mode in self.threads
        )
        values = tuple(_renumber(mode, axis) for mode in self.values if mode.dim != axis)
        return normalize(Layout(threads, values))

    def permute(self, permutation: Sequence[int]) -> Layout:
        """The layout of a transpose whose result dimension i is source dimension permutation[i]."""
        position = {source: result for result, source in enumerate(permutation)}

        def move(mode: Mode) -> Mode:
            return Mode(mode.size, mode.stride, position[mode.dim]) if mode.stride else mode

        return Layout(tuple(map(move, self.threads)), tuple(map(move, self.values)))

    def keep(self, dims: Sequence[int]) -> Layout:
        """The layout of a broadcast's source: source dimension i is result dimension dims[i]."""
        result, rank = self, self.rank
        for axis in sorted(set(range(rank)) - set(dims), reverse=True):
            result = result.slice(axis)
        remaining = sorted(dims)
        return result.permute([remaining.index(dim) for dim in dims])

    def is_exact(self, shape: Sequence[int]) -> bool:
        """Whether the layout covers a tile of `shape` without phantoms, each element once per
        copy."""
        held = self.num_values * prod(mode.size for mode in self.threads if mode.stride)
        return covers(self, tuple(shape)) and held == prod(shape)

    def has_phantoms(self, shape: Sequence[int]) -> bool:
        """Whether some register lies past the edge of a tile of `shape`."""
        return any(e > s for e, s in zip(self.extents(len(shape)), shape, strict=True))


def _renumber(mode: Mode, axis: int) -> Mode:
    return Mode(mode.size, mode.stride, mode.dim - 1) if mode.dim > axis else mode


def _offset(modes: tuple[Mode, ...], index: int, rank: int) -> tuple[int, ...]:
    coordinates = [0] * rank
    for mode in modes:
        index, digit = divmod(index, mode.size)
        if mode.stride:
            coordinates[mode.dim] += digit * mode.stride
    return tuple(coordinates)


@lru_cache(maxsize=1024)
def _value_coordinates(layout: Layout, rank: int) -> tuple[tuple[int, ...], ...]:
    return tuple(_offset(layout.values, value, rank) for value in range(layout.num_values))


@lru_cache(maxsize=4096)
def normalize(layout: Layout) -> Layout:
    """The same map with size-1 modes dropped and neighbouring modes that continue each other
    joined."""
    return Layout(_join(layout.threads), _join(layout.values))


def _join(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    joined: list[Mode] = []
    for mode in modes:
        if mode.size == 1:
            continue
        last = joined[-1] if joined else None
        if last and last.dim == mode.dim and mode.stride == last.size * last.stride:
            joined[-1] = Mode(last.size * mode.size, last.stride, last.dim)
        else:
            joined.append(mode)
    return tuple(joined)


@lru_cache(maxsize=1024)
def covers(layout: Layout, shape: tuple[int, ...]) -> bool:
    """Whether every element of a tile of `shape` is held by some register.

    The guard for every map of layouts: a layout that leaves a hole gives wrong elements in silence.
    Per dimension the reachable coordinates are the sums of its modes' digits.
    """
    for dim, size in enumerate(shape):
        reachable = {0}
        for mode in layout.threads + layout.values:
            if mode.dim == dim:
                steps = range(0, mode.size * mode.stride, mode.stride)
                reachable = {at + step for at in reachable for step in steps}
        if not reachable.issuperset(range(size)):
            return False
    return True


THREE_WARPGROUPS = 384
"""Threads: the only number of them that is no power of two."""
MOST_THREADS = 1 << 12
"""Of a layout in text: four times what a CTA may have (CUDA C++ Programming Guide, "Compute
Capabilities"), for clusters."""
MOST_VALUES = 1 << 16
"""What a layout in text may have; more is no layout of any hardware, and long to enumerate."""

_LAYOUT = re.compile(r"T\(([\d,]*)\):\(([\d,@]*)\) V\(([\d,]*)\):\(([\d,@]*)\)")


@lru_cache(maxsize=4096)
def parse_layout(text: str) -> Layout:
    """Reads `T(sizes):(strides) V(sizes):(strides)`. ValueError says what is wrong."""
    match = _LAYOUT.fullmatch(text)
    if not match:
        raise ValueError(
            f"malformed layout {text!r}; expected e.g. 'T(8,16):(8@1,1@0) V(8,8):(1@1,16@0)'"
        )
    threads = _parse_modes(match[1], match[2], text)
    by_three = prod(mode.size for mode in threads) % THREE_WARPGROUPS == 0
    for number, mode in enumerate(threads, 1):
        size = mode.size // 3 if by_three and number == len(threads) else mode.size
        if size & (size - 1):
            raise ValueError(f"layout {text!r}: thread mode of size {mode.size} is no power of two")
    layout = Layout(threads, _parse_modes(match[3], match[4], text))
    if layout.num_threads > MOST_THREADS or layout.num_values > MOST_VALUES:
        raise ValueError(
            f"layout {text!r}: more than {MOST_THREADS} threads or {MOST_VALUES} values a thread"
        )
    return layout


def _parse_modes(sizes: str, strides: str, text: str) -> tuple[Mode, ...]:
    size_list = [int(s) for s in sizes.split(",") if s]
    stride_list = [s for s in strides.split(",") if s]
    if len(size_list) != len(stride_list):
        raise ValueError(f"layout {text!r}: {len(size_list)} sizes but {len(stride_list)} strides")
    modes = []
    for size, stride in zip(size_list, stride_list, strict=True):
        step, _, dim = stride.partition("@")
        if size < 1 or not step or (step != "0" and not dim.isdigit()) or "@" in dim:
            raise ValueError(f"layout {text!r}: malformed mode {size}:{stride}")
        modes.append(copies(size) if step == "0" else Mode(size, int(step), int(dim)))
    return tuple(modes)


@lru_cache(maxsize=256)
def warp_boxes(
    layout: Layout, shape: tuple[int, ...], box: tuple[int, ...]
) -> tuple[tuple[int, ...], ...] | None:
    """The boxes of `box` elements that a warp holds of a tile, by their corner's coordinates from
    the warp's first element; None if it does not hold whole ones or shares them."""
    rank = len(shape)
    if len(box) != rank or not layout.is_exact(shape) or any(not m.stride for m in layout.threads):
        return None
    held = {
        tuple(a + b for a, b in zip(layout.thread_coordinates(lane, rank), at, strict=True))
        for lane in range(min(WARP_SIZE, layout.num_threads))
        for at in layout.value_coordinates(rank)
    }
    corners = {tuple(a // b * b for a, b in zip(at, box, strict=True)) for at in held}
    first = [layout.thread_coordinates(t, rank) for t in range(0, layout.num_threads, WARP_SIZE)]
    starts_whole = all(a % b == 0 for at in first for a, b in zip(at, box, strict=True))
    whole = len(held) == len(corners) * prod(box)
    return tuple(sorted(corners)) if whole and starts_whole else None
