"""How many neighbouring elements lie together in a thread's registers, and in a buffer too."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tilec.hardware.layout import Layout, Mode, normalize
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.sizes import VECTOR_BYTES, WARP_SIZE


def register_run(layout: Layout, dim: int) -> int:
    """Neighbouring elements along `dim` in neighbouring registers, aligned for every thread."""
    first = layout.values[0] if layout.values else None
    if first is None or first.dim != dim or first.stride != 1:
        return 1
    run = first.size & -first.size
    for mode in layout.threads + layout.values[1:]:
        if mode.dim == dim:
            run = gcd(run, mode.stride)
    return run


def shared_width(shared: SharedLayout, layout: Layout, rank: int, element_bytes: int) -> int:
    """Elements one access may move between `layout` and a buffer."""
    first = layout.values[0] if layout.values else None
    if first is None or first.stride != 1 or first.dim >= rank:
        return 1
    if shared.dims[first.dim][0][1] != 1:
        return 1
    width = gcd(first.size & -first.size, 16 // element_bytes)
    steps = [
        mode.stride if mode.dim == first.dim else None
        for mode in layout.threads + layout.values[1:]
    ]
    for step in steps:
        if step is not None:
            width = gcd(width, step)
    # Every other stride moves the start of a vector; so does the end of a panel.
    for dim, parts in enumerate(shared.dims):
        for number, (size, stride) in enumerate(parts):
            own = dim == first.dim and number == 0
            width = gcd(width, size if own and len(parts) > 1 else width if own else stride)
    return max(1, width)


def in_vectors(layout: Layout, dim: int, element_bytes: int) -> Layout:
    """The layout with 16 bytes of neighbours along `dim` a thread, where the lanes beside it hold
    them: each of these lanes takes all of some for what the others take of others."""
    threads, values = _bits(layout.threads), _bits(layout.values)
    lanes = WARP_SIZE.bit_length() - 1
    run, first = 1, 0
    while first < len(values) and values[first] == Mode(2, run, dim):
        run, first = 2 * run, first + 1
    own, others = values[:first], values[first:]
    while run * element_bytes < VECTOR_BYTES:
        beside = Mode(2, run, dim)
        taken = [mode for mode in others if mode.size == 2]
        if beside not in threads[:lanes] or not taken:
            break
        # Further on along the same rows, so that lanes beside each other stay neighbours.
        other = min(taken, key=lambda mode: (mode.dim != dim, mode.stride))
        threads[threads.index(beside)] = other
        others.remove(other)
        own.append(beside)
        run *= 2
    if len(own) == first:
        return layout
    return normalize(Layout(tuple(threads), (*own, *others)))


def _bits(modes: tuple[Mode, ...]) -> list[Mode]:
    """Modes of two, and of what is odd of their sizes."""
    found: list[Mode] = []
    for mode in modes:
        size, stride = mode.size, mode.stride
        while size % 2 == 0:
            found.append(replace(mode, size=2, stride=stride))
            size, stride = size // 2, stride * 2
        if size > 1:
            found.append(replace(mode, size=size, stride=stride))
    return found
