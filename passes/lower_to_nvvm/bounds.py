"""Lowers comparisons of coordinates with bounds: one for all elements of a thread that lie on the
same side.

`tl.arange(N) < n` asks a question an element. Where n is known to be a multiple of 8 and a thread
holds 8 neighbours from a multiple of 8 on, the answers are the same: coordinates that agree in all
but their lowest bits compare alike with a bound whose lowest bits are 0, signed or unsigned.
"""

from __future__ import annotations

from math import gcd

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.predicates import predicate_of
from tilec.dialects.types import is_tile, shape
from tilec.hardware.layout import Layout
from tilec.passes.analysis.divisibility import UNLIMITED, Divisibility, number_of
from tilec.passes.analysis.index_runs import ABOVE, BELOW
from tilec.passes.lower_to_nvvm.elementwise import lower_elementwise
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.scalars import create

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")


def lower_cmpi(op: ir.Operation, state: Lowering) -> None:
    """Lowers arith.cmpi."""
    run = _run(op, state.divisibility)
    if run is None:
        lower_elementwise(op, state)
        return
    dim, length = run
    result = op.results[0]
    left, right = (state.registers(operand) for operand in op.operands)
    predicate = op.attributes["predicate"]
    coordinates = list(layout_of(result).value_coordinates(len(shape(result))))
    here = coordinates[state.piece : state.piece + max(len(left), len(right))]
    made: dict[int, ir.Value] = {}
    registers = []
    for number, at in enumerate(here):
        group = at[dim] // length
        if group not in made:
            operands = [left[number], right[number]]
            made[group] = create("arith.cmpi", operands, state.i1, predicate=predicate)
        registers.append(made[group])
    state.values[result] = registers


def _run(op: ir.Operation, divisibility: Divisibility) -> tuple[int, int] | None:
    """The dimension along which, and the power of two of elements for which, a comparison of tiles
    has one answer; None for 1 or any other comparison."""
    if not is_tile(op.results[0]):
        return None
    predicate = predicate_of(op)
    if predicate in BELOW:
        coordinate, bound = op.operands
    elif predicate in ABOVE:
        bound, coordinate = op.operands
    else:
        return None
    found = _coordinate(coordinate, divisibility)
    if found is None:
        return None
    dim, known = found
    length = gcd(known, _of_splat(bound, divisibility), _of_threads(layout_of(op.results[0]), dim))
    return None if length == 1 else (dim, length)


def _coordinate(value: ir.Value, divisibility: Divisibility) -> tuple[int, int] | None:
    """Gives (d, n) if a tile's elements are their coordinates along dimension d plus a multiple of
    n."""
    op = defining_op(value)
    if op is None:
        return None
    view = op.opview
    if isinstance(view, tile.IotaOp):
        return view.axis, UNLIMITED
    if op.name in _CASTS or isinstance(view, gpu_tile.ConvertLayoutOp):
        return _coordinate(op.operands[0], divisibility)
    if op.name == "arith.addi":
        left, right = op.operands
        return _shifted(left, right, divisibility) or _shifted(right, left, divisibility)
    if isinstance(view, tile.BroadcastOp):
        found = _coordinate(view.src, divisibility)
        # Along a dimension of size 1 all is coordinate 0, wherever it is repeated to.
        if found is None or shape(view.src)[found[0]] == 1:
            return None
        return view.dims[found[0]], found[1]
    if isinstance(view, tile.ReshapeOp):
        return _reshaped(view, divisibility)
    return None


def _shifted(
    coordinate: ir.Value, by: ir.Value, divisibility: Divisibility
) -> tuple[int, int] | None:
    found = _coordinate(coordinate, divisibility)
    return None if found is None else (found[0], gcd(found[1], _of_splat(by, divisibility)))


def _reshaped(op: tile.ReshapeOp, divisibility: Divisibility) -> tuple[int, int] | None:
    """Follows `_coordinate` through a reshape that only adds or drops dimensions of size 1."""
    found = _coordinate(op.src, divisibility)
    before, after = shape(op.src), shape(op.result)
    sizes = [size for size in before if size > 1]
    if found is None or before[found[0]] == 1 or sizes != [size for size in after if size > 1]:
        return None
    place = sum(size > 1 for size in before[: found[0]])
    return [d for d, size in enumerate(after) if size > 1][place], found[1]


def _of_splat(value: ir.Value, divisibility: Divisibility) -> int:
    """A divisor of every element of a tile that holds one number; 1 of any other."""
    op = defining_op(value)
    if op is None:
        return 1
    if op.name in _CASTS:
        return _of_splat(op.operands[0], divisibility)
    if op.name == "tensor.splat":
        return divisibility.of(op.operands[0])
    number = number_of(value)
    return 1 if number is None else abs(number) or UNLIMITED


def _of_threads(layout: Layout, dim: int) -> int:
    """A divisor of where along `dim` any thread's register 0 lies."""
    return gcd(*(mode.stride for mode in layout.threads if mode.dim == dim)) or UNLIMITED


RULES = {"arith.cmpi": lower_cmpi}
