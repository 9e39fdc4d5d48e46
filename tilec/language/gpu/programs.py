"""Counting: slots of a ring, tiles of a grid; where a launch meets its neighbours."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = [
    "cta_id",
    "griddepcontrol",
    "next_program",
    "next_program_read",
    "num_ctas",
    "ring_position",
    "tile_order",
]


@builtin
def ring_position(count: Any, slots: int) -> Any:
    """Slot and parity of a ring's `count`-th use: (count mod slots, count / slots is odd)."""


@builtin
def tile_order(linear: Any, rows: Any, columns: Any, order: str = "grouped", group: int = 8) -> Any:
    """(row, column) of the `linear`-th tile of a grid.

    "grouped" walks `group` rows column by column before the next, so that programs that run
    together share operands in L2; "rows" goes row by row; "hilbert" along Hilbert's curve in
    squares of `group`, a power of two, and as "grouped" where no whole square is left.
    """


@builtin
def cta_id() -> Any:
    """The number of this CTA in the launch of a persistent kernel, an i32.

    A kernel that asks for it is persistent: it is launched with as many CTAs as run side by side,
    and `tl.num_programs` is the grid they share.
    """


@builtin
def num_ctas() -> Any:
    """How many CTAs the launch of a persistent kernel has, an i32."""


@builtin
def griddepcontrol(kind: str) -> Any:
    """Overlaps this launch with its neighbours in the stream.

    "wait": goes on when all earlier launches are done and what they wrote is visible. A kernel that
    says so is started before that: every thread must wait before it reads or writes an array.
    "launch_dependents": the next launch may start, up to its own "wait", as soon as every CTA said
    so or ended.
    """


@builtin
def next_program(answer: Any, barrier: Any, slot: Any) -> Any:
    """One thread asks for a CTA that has not started: it will not start, its program is ours.

    In a kernel with `persistent="dynamic"`. The 16 bytes of the answer, a buffer of 4 i32, arrive
    at `barrier[slot]`, which expects them.
    """


@builtin
def next_program_read(answer: Any) -> Any:
    """What a request brought, once its barrier was waited for: whether there is a next program, and
    the x, y and z of its CTA (`cta_id` is x), undefined where there is none."""
