"""How many neighbouring elements lie together in a thread's registers, and in a buffer too."""

from __future__ import annotations

from math import gcd

from tilec.hardware.layout import Layout
from tilec.hardware.shared_layout import SharedLayout


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
