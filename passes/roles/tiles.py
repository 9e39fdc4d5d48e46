"""How tiles move into a role that has fewer warps than their layouts count, a few tiles at a time.

`fold_threads`: each thread takes over what two (four, ...) did: the slowest modes of the threads
become the slowest of the registers, in every layout alike, so that what held the same elements in
the same thread still does.
`sink_tiles`: an op that makes a tile moves in front of its first user, so that one buffer's tile is
in registers at a time.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.types import element, is_tile, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.layout import Layout, Mode, normalize
from tilec.passes.rewriting.values import retype
from tilec.passes.rewriting.walk import blocks_in


def folded(layout: Layout, factor: int) -> Layout:
    """A layout of `factor` times fewer threads for the same elements.

    `factor`: a power of two, or three of three warpgroups, whose mode is the slowest.
    """
    threads, values = list(layout.threads), list(layout.values)
    while factor > 1:
        slowest = threads.pop()
        taken = min(factor, slowest.size)
        left = slowest.size // taken
        if left > 1:
            threads.append(Mode(left, slowest.stride, slowest.dim))
        if slowest.stride:
            values.append(Mode(taken, slowest.stride * left, slowest.dim))
        factor //= taken
    return normalize(Layout(tuple(threads), tuple(values)))


def fold_threads(block: ir.Block, factor: int) -> None:
    """Gives every tile made in a block, or inside its ops, to `factor` times fewer threads."""
    for argument in block.arguments:
        _fold(argument, factor)
    for view in block.operations:
        op = view.operation
        for result in op.results:
            _fold(result, factor)
        for inner in blocks_in(op):
            fold_threads(inner, factor)


def _fold(value: ir.Value, factor: int) -> None:
    if is_tile(value):
        layout = layout_attr(folded(layout_of(value), factor))
        retype(value, tile_type(shape(value), element(value), layout))


def sink_tiles(block: ir.Block) -> None:
    """Moves what makes tiles in a block, or inside its ops, next to what takes them first."""
    for view in reversed(list(block.operations)):
        op = view.operation
        for inner in blocks_in(op):
            sink_tiles(inner)
        users = [use.owner.operation for result in op.results for use in result.uses]
        if any(map(is_tile, op.results)) and all(user.block == block for user in users):
            first = next((v.operation for v in block.operations if v.operation in users), None)
            if first is not None:
                op.move_before(first)
