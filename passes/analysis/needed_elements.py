"""Whether what a load has beyond an edge gets into anything that is kept.

    %x = load rows from %m on, of which %left are the program's    (those behind belong to others)
    ... dots, casts, sums along rows ... store %y from %m on, of which %left are written

Rows behind the edge reach only elements that the store leaves out: it does not matter what they
hold. Followed forwards from the load, along one axis of the tile, through what computes element by
element, dots, sums along other axes, loops and branches. Where anything else reads the tile the
answer is no. (A value that is never kept may be NaN or infinite on its way; no instruction traps.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mlir import ir

from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile import (
    BroadcastOp,
    DotOp,
    ReduceOp,
    ScanOp,
    StoreOp,
    TransposeOp,
)
from tilec.dialects.types import shape
from tilec.passes.rewriting.loops import is_inside
from tilec.passes.rewriting.walk import is_of

_CARRYING = ("scf.for", "scf.yield")
Along = tuple[ir.Value, int]
"""A tile, and the axis along which its elements are those of the load."""


def are_needless(
    tile: ir.Value,
    axis: int,
    edge: Sequence[ir.Value],
    is_left_out: Callable[[StoreOp, int], bool],
) -> bool:
    """Whether elements beyond an edge that lies across `axis` of a tile reach no memory.

    `edge`: the indices by which it is known, which must be the same in all iterations of a loop
    that carries the tile on. `is_left_out(store, axis)`: whether a store leaves out what lies
    beyond that edge, if it lies across that axis of what it stores.
    """
    seen: set[Along] = set()
    todo: list[Along] = [(tile, axis)]
    while todo:
        value, along = todo.pop()
        if (value, along) in seen:
            continue
        seen.add((value, along))
        for use in value.uses:
            op = use.owner
            if is_of(op, StoreOp):
                if not is_left_out(op.opview, along):
                    return False
                continue
            loop = op if op.name == "scf.for" else op.parent
            if op.name in _CARRYING and any(is_inside(index, loop) for index in edge):
                return False
            reached = list(_reached(op, use.operand_number, along))
            if None in reached:
                return False
            todo += [found for found in reached if found is not None]
    return True


def _reached(op: ir.Operation, number: int, along: int) -> Iterator[Along | None]:
    """The tiles that an operand's elements get into, with their axes; None for anywhere."""
    view = op.opview
    if isinstance(view, BroadcastOp):
        repeated = shape(view.src)[along] != shape(view.result)[view.dims[along]]
        yield None if repeated else (view.result, view.dims[along])
    elif isinstance(view, TransposeOp):
        yield view.result, view.permutation.index(along)
    elif is_of(op, DotOp) and not view.scales:
        rank = len(shape(view.result))
        is_summed = (number, rank - along) in ((0, 1), (1, 2))
        yield None if is_summed else (view.result, along)
    elif isinstance(view, ReduceOp | ScanOp):
        yield from _combined(view, along)
    elif op.name == "scf.for":
        yield from ((v, along) for v in _carried(op, number - 3) if number >= 3)
    elif op.name == "scf.yield":
        yield from _yielded(op, number, along)
    elif is_elementwise(op):
        yield op.results[0], along
    else:
        yield None


def _combined(view: ReduceOp | ScanOp, along: int) -> Iterator[Along | None]:
    """Sums along another axis: of reductions that axis is gone."""
    gone = isinstance(view, ReduceOp) and along > view.axis
    for result in view.outputs:
        yield None if along == view.axis else (result, along - gone)


def _yielded(op: ir.Operation, number: int, along: int) -> Iterator[Along | None]:
    around = op.parent
    if around.name == "scf.if":
        yield around.results[number], along
    elif around.name == "scf.for":
        yield from ((value, along) for value in _carried(around, number))
    else:
        yield None


def _carried(loop: ir.Operation, number: int) -> tuple[ir.Value, ir.Value]:
    """What a loop carries in this place: inside, and behind it."""
    return loop.regions[0].blocks[0].arguments[number + 1], loop.results[number]
