"""join-loads: tiles whose elements are neighbours in memory are loaded together.

Before:   %x = "tile.load"(%w, %c, %c0) {dims = [0]} : ... -> tensor<64xf32, V(2):(1@0)>
          %y = "tile.load"(%w, %c, %c1) {dims = [0]} : ...                 (of strides ? and 1)
After:    %both = "tile.load"(%w, %c, %c0) {dims = [0, 1]} : ...
                                                        -> tensor<64x2xf32, V(2,2):(1@1,1@0)>
          %first, %second = "tile.split"(%both) {axis = 1} : ... -> tensor<64x1xf32> each
          %x = "tile.reshape"(%first) ...         %y = "tile.reshape"(%second) ...

Such are the taps of a filter that each channel has of its own, the parts of complex numbers, the
coordinates of points. One by one, a thread loads 4 bytes of every 16 where a warp's threads lie
apart: four taps of f32 for four channels were 16 accesses, which touch half a line a lane, beside
the 4 of what they filter.

1. Loads of a block, of an array that the kernel does not write, which agree in all but a constant
   along an axis of stride 1 that no tile lies along.
2. Their layouts stay: a thread holds all parts of its elements, side by side.
3. As many as an aligned vector holds; more than half of it, and its first, are loaded, by
   `LEAST_ACCESSES` of a thread or more.
4. The first comes first: where it stands all are loaded.

Does not handle: single elements; gathers; stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mlir import ir

from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.tile import LoadOp, ReshapeOp, SplitOp
from tilec.dialects.types import element, shape
from tilec.hardware.layout import Layout, Mode
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.passes.analysis.divisibility import (
    Divisibility,
    constant_of,
    static_strides,
    value_and_constant,
)
from tilec.passes.analysis.vector_width import element_bytes, provable_width
from tilec.passes.analysis.written_arrays import written_arrays
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.walk import find_ops

LEAST_ACCESSES = 16
"""Of a thread, those that become fewer: filters of four taps with 16, 7 x 1256 x 384 f32, take 12.6
us for 18.4, with 8, 1 x 384 x 4110 f16, 5.05 for 4.91, with 4, 3 x 64 x 480 bf16, 3.0 for 2.3
(H200)."""
_SAID = ("dims", "padding", "options")
"""What loads of one vector say alike."""


@kernel_pass(requires=Level.LAYOUTS)
def join_loads(function: ir.Operation, context: PassContext) -> None:
    """Loads tiles of neighbours together."""
    written = written_arrays(function)
    if any(array is None for array in written):
        return
    groups: dict[tuple, dict[int, LoadOp]] = {}
    for op in find_ops(function, LoadOp):
        load = op.opview
        if shape(load.result) and load.src not in written:
            for key, distance in _places(load):
                groups.setdefault(key, {}).setdefault(distance, load)
    facts = Divisibility(function)
    for (_, axis, *_), loads in groups.items():
        for together in _vectors(loads, axis, facts):
            _join(together, axis, context)


class _Together(NamedTuple):
    """Loads by their places in a vector of `width` elements, the first in front."""

    loads: dict[int, LoadOp]
    width: int


def _places(load: LoadOp) -> Iterator[tuple[tuple, int]]:
    """Gives, of each axis across which neighbours of a load's elements lie, what they agree in
    with it, and its place among them."""
    for axis, stride in enumerate(static_strides(load.src)):
        if stride == 1 and axis not in load.dims:
            offset = load.offsets[axis]
            known = constant_of(offset)
            base, distance = value_and_constant(offset) if known is None else (None, known)
            others = tuple(v for n, v in enumerate(load.offsets) if n != axis)
            said = tuple(str(load.operation.attributes[name]) for name in _SAID)
            block = load.operation.block
            yield (block, axis, load.src, base, others, load.result.type, said), distance


def _vectors(loads: dict[int, LoadOp], axis: int, facts: Divisibility) -> Iterator[_Together]:
    """Gives the vectors that most of are loaded."""
    widest = VECTOR_BYTES // element_bytes(next(iter(loads.values())).src)
    left = dict(loads)
    for start, first in sorted(loads.items()):
        if start not in left:
            continue
        dims = (*first.dims, axis)
        width, _ = provable_width(facts, first.src, list(first.offsets), dims)
        width = min(width, widest)
        while width > 1:
            found = {n: left[start + n] for n in range(width) if start + n in left}
            many = len(found) * layout_of(first.result).num_values >= LEAST_ACCESSES
            if many and 2 * len(found) > width and _is_first(first, found.values()):
                for n in found:
                    del left[start + n]
                yield _Together(found, width)
                break
            width //= 2


def _is_first(load: LoadOp, others: Iterable[LoadOp]) -> bool:
    op = load.operation
    return all(each.operation == op or op.is_before_in_block(each.operation) for each in others)


def _join(together: _Together, axis: int, context: PassContext) -> None:
    loads, width = together
    first, tile = loads[0], loads[0].result
    along, layout = len(shape(tile)), layout_of(tile)
    joined = Layout(layout.threads, (Mode(width, 1, along), *layout.values))
    with ir.InsertionPoint(first.operation), first.operation.location:
        whole = LoadOp.build(
            first.src,
            list(first.offsets),
            results=[_deeper(tile, width, joined)],
            dims=[*first.dims, axis],
            padding=first.operation.attributes["padding"],
            options=first.operation.attributes["options"],
        )
        part = _deeper(tile, 1, layout)
        parts = SplitOp.build(whole, results=[[part] * width], axis=along)
        values = {n: ReshapeOp.build(parts[n], results=[tile.type]) for n in loads}
    context.report.add(
        "joined loads",
        first.operation,
        f"{len(loads)} in one",
        f"their elements are neighbours along dimension {axis} of the array",
    )
    for n, load in loads.items():
        load.result.replace_all_uses_with(values[n])
        load.operation.erase()


def _deeper(tile: ir.Value, size: int, layout: Layout) -> ir.Type:
    """The type of a tile with a dimension of this size behind the others."""
    sizes = [*shape(tile), size]
    return ir.RankedTensorType.get(sizes, element(tile), layout_attr(layout))
