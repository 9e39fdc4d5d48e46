"""How far apart the neighbours of an index tile are in most places: where a gather runs along
memory, although nobody can prove that it does everywhere.

    pixel = m + tl.arange(BM)
    tl.gather(x, (pixel // (H * W), c, pixel // W % H + y, pixel % W + x))

Neighbours among the pixels are neighbours in memory but where a row of the picture ends; a quotient
by a number that only the launch knows has mostly the same value beside, a remainder the next one.
That says which lanes had better lie side by side: convolutions over planes whose lanes lay along
the channels took 1.8 to 3.2 times as long (H200). It says nothing of which elements one access may
move (`index_runs`).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile import Indexed, LoadOp, StoreOp
from tilec.dialects.types import is_tile, shape
from tilec.hardware.sizes import SECTOR_BYTES
from tilec.passes.analysis.divisibility import Divisibility, number_of, static_strides
from tilec.passes.analysis.row_digits import QUOTIENTS, remainder_of
from tilec.passes.analysis.vector_width import element_bytes

_CASTS = ("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci")
NEAR_STEP = 8
"""A number that only the launch knows, as of columns, is mostly larger than that."""
MOST_SHIFTED = 31
"""What shifts by more bits, or to the other side, is no quotient."""
_BOUNDS = ("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui")


def nearest_dim(op: Indexed) -> int | None:
    """The dimension along which elements of an access by indices lie side by side in most places,
    or several in a sector; None where none is known."""
    sizes, most = shape(op.mask), SECTOR_BYTES // element_bytes(op.array)
    steps = {dim: memory_step(op, dim) for dim in reversed(range(len(sizes))) if sizes[dim] > 1}
    near = {dim: abs(step) for dim, step in steps.items() if step and abs(step) < most}
    return min(near, key=near.__getitem__, default=None)


def nearest_stride(op: LoadOp | StoreOp, facts: Divisibility) -> int:
    """The dimension of a rectangular tile along which elements lie nearest, by what is known: a
    stride of the launch is no less than what divides it, as what counts rows or planes of many
    elements is mostly a multiple of more. The one along the array's last where nothing tells."""
    strides = static_strides(op.array)

    def least(dim: int) -> tuple[int, int]:
        axis = op.dims[dim]
        known = strides[axis]
        return facts.of_array(op.array, "strides", axis) if known is None else known, -axis

    return min(range(len(op.dims)), key=least)


def is_repeated(op: Indexed) -> bool:
    """Whether all elements of an access by indices are one in most places, as a row's number is."""
    sizes = shape(op.mask)
    return all(memory_step(op, dim) == 0 for dim, size in enumerate(sizes) if size > 1)


def memory_step(op: Indexed, dim: int) -> int | None:
    """The elements of memory between neighbours along dimension `dim` of an access by indices, in
    most places; None where that is not known."""
    total = 0
    for index, stride in zip(op.indices, static_strides(op.array), strict=True):
        step = usual_step(index, dim)
        if step is None or (step and stride is None):
            return None
        total += step * (stride or 0)
    return total


def usual_step(value: ir.Value, dim: int) -> int | None:
    """The difference of neighbours along dimension `dim` of an index tile, in most places; None
    where that is not known."""
    op = defining_op(value)
    if not is_tile(value) or shape(value)[dim] == 1 or number_of(value) is not None:
        return 0
    if op is None:
        return None
    view, name = op.opview, op.name
    if name == "tensor.splat":
        return 0
    if isinstance(view, tile.IotaOp):
        return int(view.axis == dim)
    if isinstance(view, tile.BroadcastOp):
        return usual_step(view.src, view.dims.index(dim)) if dim in view.dims else 0
    remainder = remainder_of(value)
    if remainder is not None:  # the next one, but where it begins again
        step, by = (usual_step(operand, dim) for operand in remainder)
        return step if by == 0 else None
    if not is_elementwise(op):
        return None
    return _computed(op, [usual_step(operand, dim) for operand in op.operands])


def _computed(op: ir.Operation, steps: list[int | None]) -> int | None:
    """The step of the result of elementwise work on tiles with these steps."""
    if all(step == 0 for step in steps):
        return 0
    if None in steps:
        return None
    if op.name in _CASTS:
        return steps[0]
    if op.name == "arith.addi":
        return sum(step or 0 for step in steps)
    if op.name == "arith.subi":
        return (steps[0] or 0) - (steps[1] or 0)
    if op.name == "arith.muli":
        return _multiplied(op, steps)
    if op.name in QUOTIENTS and steps[1] == 0:
        return _divided(number_of(op.operands[1]), steps[0] or 0)
    shift = number_of(op.operands[1]) if op.name == "arith.shrsi" else None
    if shift is not None and 0 <= shift < MOST_SHIFTED:
        return _divided(1 << shift, steps[0] or 0)
    if op.name in _BOUNDS and 0 in steps:  # an edge, behind which they are all the same
        return max(steps, key=lambda step: abs(step or 0))
    return None


def _multiplied(op: ir.Operation, steps: list[int | None]) -> int | None:
    for operand, step in zip(op.operands, reversed(steps), strict=True):
        number = number_of(operand)
        if number is not None and step is not None:
            return number * step
    return None


def _divided(number: int | None, step: int) -> int | None:
    if number and step % number == 0:
        return step // number
    return 0 if abs(step) < abs(number or NEAR_STEP) else None
