"""Shared-memory layouts: where each element of a buffer lies.

Written `S<3,4,3> o (128,64):(64,1)`: element strides per dimension, hierarchical where a dimension
is cut into panels (`(64,2):(1,4096)`, fastest part first), under an optional swizzle of the
absolute byte address. `Swizzle<B,M,S>` (CuTe) XORs address bits [M+S, M+S+B) into bits [M, M+B);
PTX ISA 9.0, "Shared memory matrix layout" uses B = 1, 2, 3 with M = 4, S = 3 as its 32, 64 and 128
byte modes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import prod

from tilec.hardware.layout_notation import nested_groups
from tilec.records import dataclass

Parts = tuple[tuple[int, int], ...]
"""One dimension as (size, stride) parts, fastest first."""


@dataclass(frozen=True)
class SharedLayout:
    """Where each element of a buffer lies in shared memory. `dims`: one `Parts` per dimension,
    strides in elements. `swizzle`: (B, M, S) or None."""

    dims: tuple[Parts, ...]
    swizzle: tuple[int, int, int] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return tuple(prod(size for size, _ in parts) for parts in self.dims)

    @property
    def span(self) -> int:
        """Elements from the first to one past the last, padding included."""
        return 1 + sum((size - 1) * stride for parts in self.dims for size, stride in parts)

    def offset(self, coordinates: Sequence[int]) -> int:
        """The element offset of `coordinates`, before the swizzle."""
        total = 0
        for at, parts in zip(coordinates, self.dims, strict=True):
            for size, stride in parts[:-1]:
                at, digit = divmod(at, size)
                total += digit * stride
            total += at * parts[-1][1]
        return total

    def address(self, coordinates: Sequence[int], element_bytes: int, base: int = 0) -> int:
        """The byte address of `coordinates` in a buffer at `base`."""
        address = base + self.offset(coordinates) * element_bytes
        return address if self.swizzle is None else swizzled(address, self.swizzle)

    def permute(self, permutation: Sequence[int]) -> SharedLayout:
        """The same memory whose dimension i is dimension permutation[i] of this one."""
        return SharedLayout(tuple(self.dims[d] for d in permutation), self.swizzle)

    def __str__(self) -> str:
        def group(entries: list[str]) -> str:
            return entries[0] if len(entries) == 1 else f"({','.join(entries)})"

        sizes = ",".join(group([str(size) for size, _ in parts]) for parts in self.dims)
        strides = ",".join(group([str(stride) for _, stride in parts]) for parts in self.dims)
        prefix = "S<{},{},{}> o ".format(*self.swizzle) if self.swizzle else ""
        return f"{prefix}({sizes}):({strides})"


def swizzled(address: int, swizzle: tuple[int, int, int]) -> int:
    """Gives `address` with bits [M+S, M+S+B) XORed into bits [M, M+B)."""
    bits, base, shift = swizzle
    return address ^ (((address >> (base + shift)) & ((1 << bits) - 1)) << base)


def strided(shape: Sequence[int], strides: Sequence[int]) -> SharedLayout:
    """A plain layout without panels or swizzle; strides in elements."""
    return SharedLayout(tuple(((s, d),) for s, d in zip(shape, strides, strict=True)))


def is_dense(layout: SharedLayout) -> bool:
    """Whether the elements, in some order, follow each other without a gap or a swizzle."""
    expected = 1
    for size, stride in sorted((p for parts in layout.dims for p in parts), key=lambda p: p[::-1]):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return layout.swizzle is None


MOST_ADDRESS_BITS = 18
"""Bits of a shared-memory address: an SM has less than 256 KiB."""

_SWIZZLE = re.compile(r"S<(\d+),(\d+),(\d+)> o ")


@lru_cache(maxsize=1024)
def parse_shared_layout(text: str) -> SharedLayout:
    """Reads the textual form. ValueError says what is wrong."""
    swizzle = _SWIZZLE.match(text)
    form = text[swizzle.end() :] if swizzle else text
    sizes, _, strides = form.partition(":")
    size_groups, stride_groups = (nested_groups(part, r"\d+") for part in (sizes, strides))
    if size_groups is None or stride_groups is None:
        raise ValueError(f"malformed shared layout {text!r}; expected e.g. '(128,64):(64,1)'")
    if [len(g) for g in size_groups] != [len(g) for g in stride_groups]:
        raise ValueError(f"shared layout {text!r}: sizes and strides differ in structure")
    dims = tuple(
        tuple(zip(map(int, s), map(int, d), strict=True))
        for s, d in zip(size_groups, stride_groups, strict=True)
    )
    if any(size < 1 for parts in dims for size, _ in parts):
        raise ValueError(f"shared layout {text!r}: sizes must be positive")
    mode = (int(swizzle[1]), int(swizzle[2]), int(swizzle[3])) if swizzle else None
    if mode and sum(mode) > MOST_ADDRESS_BITS:
        raise ValueError(
            f"shared layout {text!r}: a swizzle of bits above the {MOST_ADDRESS_BITS} of an address"
        )
    return SharedLayout(dims, mode)
