"""Global memory: one arena holding every allocation, with guard gaps and bounds checks.

Arguments are copied in before a launch and, where the kernel wrote, copied back after it. Arrays
that overlap in the caller's memory share one region, so that aliasing is kept.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError, Place

ARENA_BASE = 0x7F00_0000_0000
_GAP = 4096
_ALIGNMENT = 1024


@dataclass
class Region:
    """One allocation: bytes [start, end) of the arena, `host` its place in the caller's memory."""

    label: str
    start: int
    end: int
    host: int | None = None
    writable: bool = True
    dirty: bool = False


@dataclass(frozen=True)
class Pointer:
    """A kernel argument that points `byte_offset` bytes into an array. `name`: for messages."""

    array: np.ndarray
    byte_offset: int = 0
    name: str = ""


@dataclass(frozen=True)
class PointerTable:
    """A kernel argument that points to `words`, of 8 bytes, which the kernel does not write.
    `pointers`: those among them that are addresses of arrays, by their number."""

    words: Sequence[int]
    pointers: Mapping[int, Pointer]
    name: str = ""


@dataclass
class _Span:
    start: int
    end: int
    labels: list[str] = field(default_factory=list)
    root: int = 0
    writable: bool = True


class GlobalMemory:
    """The arena and its regions. Allocate first, then `seal`, then access."""

    def __init__(self) -> None:
        self._size = 0
        self.regions: list[Region] = []
        self._starts: list[int] = []
        self._first = 0
        """The first region of an argument; those of the others follow it."""
        self._hosts: list[int] = []
        """Where arguments are in the caller's memory."""
        self.bytes = np.zeros(0, np.uint8)
        self._spans: list[_Span] = []
        self._keep: list[object] = []

    # -- allocation ----------------------------------------------------------------------------

    def allocate(self, label: str, size: int, alignment: int = 16, skew: int = 0) -> int:
        """Reserve `size` bytes; returns their address."""
        step = max(alignment, _ALIGNMENT)
        start = -(-self._size // step) * step + skew
        self.regions.append(Region(label, start, start + size))
        self._starts.append(start)
        self._size = start + size + _GAP
        return ARENA_BASE + start

    def add_argument(self, label: str, array: np.ndarray) -> None:
        """Note the bytes an array argument spans; overlapping arrays will share a region."""
        low, high = byte_bounds(array)
        root: np.ndarray = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        self._keep.append(array)
        writable = bool(array.flags.writeable)
        self._spans.append(_Span(low, high, [label], root.__array_interface__["data"][0], writable))

    def place_arguments(self) -> None:
        """Turn the noted spans into regions."""
        self._spans.sort(key=lambda span: span.start)
        merged: list[_Span] = []
        for span in self._spans:
            if merged and span.start < merged[-1].end:
                merged[-1].end = max(merged[-1].end, span.end)
                merged[-1].labels += span.labels
                merged[-1].writable |= span.writable
            else:
                merged.append(span)
        self._first = len(self.regions)
        self._hosts = [span.start for span in merged]
        for span in merged:
            label = " and ".join(span.labels)
            skew = (span.start - span.root) % 256
            self.allocate(label, span.end - span.start, skew=skew)
            self.regions[-1].host = span.start
            self.regions[-1].writable = span.writable

    def address_of(self, array: np.ndarray) -> int:
        """Address of the first element of an array argument."""
        host = array.__array_interface__["data"][0]
        number = bisect_right(self._hosts, host) - 1  # arguments lie in the caller's order
        if number >= 0:
            region = self.regions[self._first + number]
            offset = host - self._hosts[number]
            if offset < max(region.end - region.start, 1):
                return ARENA_BASE + region.start + offset
        raise EmulatorError("the array is not an argument of this launch")

    def seal(self) -> None:
        """Create the arena and copy the arguments in."""
        raw = np.zeros(self._size + _GAP + 64, np.uint8)
        skip = -raw.__array_interface__["data"][0] % 64
        size = (self._size + _GAP) // 64 * 64
        self.bytes = raw[skip : skip + size]
        for region in self.regions:
            if region.host is not None:
                self.bytes[region.start : region.end] = _host_bytes(region)

    def copy_back(self) -> None:
        """Write what the kernel stored into the caller's arrays."""
        for region in self.regions:
            if region.dirty and region.host is not None:
                _host_bytes(region)[...] = self.bytes[region.start : region.end]

    # -- access --------------------------------------------------------------------------------

    def rows(self, code: np.dtype, count: int) -> np.ndarray:
        """The arena as rows of `count` elements of a dtype (one-dimensional for count 1)."""
        step = code.itemsize * count
        whole = self.bytes[: self.bytes.size // step * step].view(code)
        return whole if count == 1 else whole.reshape(-1, count)

    def region_at(self, offset: int) -> Region | None:
        number = bisect_right(self._starts, offset) - 1
        if number >= 0 and offset < self.regions[number].end:
            return self.regions[number]
        return None

    def describe(self, address: int) -> str:
        """Where an address lies, in words of the caller's arrays."""
        offset = address - ARENA_BASE
        best, distance = None, 1 << 62
        for region in self.regions:
            gap = max(region.start - offset, offset - region.end + 1, 0)
            if gap < distance:
                best, distance = region, gap
        if best is None or distance > (1 << 20):
            return f"address {address:#x}, far from every array"
        inside = offset - best.start
        return f"byte offset {inside} of {best.label}, which has {best.end - best.start} bytes"

    def fail(self, address: int, size: int, what: str, place: Place) -> EmulatorError:
        kind = "misaligned" if what.startswith("misaligned") else "out of bounds"
        return EmulatorError(f"{what}: {size} bytes at {self.describe(address)}", place, kind)


class GlobalSite:
    """The bounds check of one instruction; remembers the region of its last access.

    `locate` maps addresses to arena byte offsets (int64), or raises EmulatorError.
    """

    def __init__(self, memory: GlobalMemory, size: int, place: Place, store: bool) -> None:
        self.memory = memory
        self.size = size
        self.place = place
        self.store = store
        self.base = np.uint64(0)
        self.limit = -1
        self.start = np.uint64(0)

    def locate(self, address: np.ndarray) -> np.ndarray:
        offset = address - self.base
        if int(np.maximum.reduce(offset, axis=None)) > self.limit:
            self._find(address)
        offset = address - np.uint64(ARENA_BASE)
        if int(np.bitwise_or.reduce(offset, axis=None)) & (self.size - 1):
            bad = address[(address & np.uint64(self.size - 1)) != 0]
            raise self.memory.fail(int(bad.flat[0]), self.size, "misaligned access", self.place)
        return offset.view(np.int64)

    def _find(self, address: np.ndarray) -> None:
        """Check every address; remember the region where the first one lies."""
        offsets = address.reshape(-1).astype(np.int64) - ARENA_BASE
        left = np.ones(offsets.size, np.bool_)
        while left.any():
            first = int(offsets[left][0])
            region = self.memory.region_at(first)
            if region is None or first + self.size > region.end:
                raise self.memory.fail(
                    first + ARENA_BASE, self.size, "access out of bounds", self.place
                )
            if self.store:
                if not region.writable:
                    raise self.memory.fail(
                        first + ARENA_BASE, self.size, "store to a read-only array", self.place
                    )
                region.dirty = True
            self.base = np.uint64(ARENA_BASE + region.start)
            self.limit = region.end - region.start - self.size
            inside = (offsets >= region.start) & (offsets + self.size <= region.end)
            left &= ~inside


def byte_bounds(array: np.ndarray) -> tuple[int, int]:
    """First and one-past-last byte that the elements of an array touch, negative strides too."""
    low = high = array.__array_interface__["data"][0]
    for extent, stride in zip(array.shape, array.strides, strict=True):
        if extent == 0:
            return low, low
        reach = (extent - 1) * stride
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high + array.itemsize


def _host_bytes(region: Region) -> np.ndarray:
    size = region.end - region.start
    if size == 0:
        return np.zeros(0, np.uint8)
    raw = (ctypes.c_uint8 * size).from_address(region.host or 0)
    return np.ctypeslib.as_array(raw)
