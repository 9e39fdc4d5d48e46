"""Lowers comparisons of coordinates with bounds: one for all elements of a thread that lie on the
same side, and those of others from one distance.

`tl.arange(N) < n` asks a question an element. Where n is known to be a multiple of 8 and a thread
holds 8 neighbours from a multiple of 8 on, the answers are the same: coordinates that agree in all
but their lowest bits compare alike with a bound whose lowest bits are 0, signed or unsigned.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.predicates import predicate_attribute, predicate_of
from tilec.dialects.types import is_tile, shape
from tilec.hardware.layout import Layout
from tilec.passes.analysis.divisibility import UNLIMITED, Divisibility, number_of
from tilec.passes.analysis.index_runs import ABOVE, BELOW
from tilec.passes.analysis.signs import Signs
from tilec.passes.lower_to_nvvm.elementwise import lower_elementwise
from tilec.passes.lower_to_nvvm.rectangle import FEW_STEPS
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.scalars import create

_SIGNED = {"ult": "slt", "ule": "sle", "ugt": "sgt", "uge": "sge"}
"""Of arith.cmpi's unsigned predicates the signed ones."""
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")


def lower_cmpi(op: ir.Operation, state: Lowering) -> None:
    """Lowers arith.cmpi."""
    run = _run(op, state.divisibility)
    if run is None:
        lower_elementwise(op, state)
        return
    result, first = op.results[0], state.piece
    operands = [state.registers(operand) for operand in op.operands]
    coordinates = list(layout_of(result).value_coordinates(len(shape(result))))
    here = [at[run.dim] for at in coordinates[first : first + max(map(len, operands))]]
    groups: dict[int, int] = {}
    for number, at in enumerate(here):
        groups.setdefault(at // run.length, number)
    predicate = op.attributes["predicate"]
    distance = None
    if run.is_positive and len(groups) > FEW_STEPS:
        bound, coordinate = (operands[n][0] for n in (1 - run.operand, run.operand))
        # Not the other way round, as loads have it (`rectangle.py`): LLVM would keep the answers of
        # both in predicates, from the load to where they are asked again, and ptxas 13.0 then holds
        # 125 registers for 79 (layer norms of 4099 bf16, 376 us for 314 on an H200).
        distance = state.arith("subi", coordinate, bound)
        signed = _SIGNED.get(predicate_of(op))
        predicate = predicate if signed is None else predicate_attribute(op.name, signed)
    made: dict[int, ir.Value] = {}
    for group, number in groups.items():
        sides = [registers[number] for registers in operands]
        if distance is not None:
            sides[run.operand] = distance
            sides[1 - run.operand] = state.constant(distance.type, here[0] - here[number])
        made[group] = create("arith.cmpi", sides, state.i1, predicate=predicate)
    state.values[result] = [made[at // run.length] for at in here]


class _Run(NamedTuple):
    """A comparison's coordinate is operand number `operand`, along a tile's dimension `dim`; it has
    one answer for each `length` elements, a power of two. `is_positive`: whether coordinates and
    bound are known to be 0 or more."""

    operand: int
    dim: int
    length: int
    is_positive: bool


def _run(op: ir.Operation, divisibility: Divisibility) -> _Run | None:
    """What a comparison of tiles compares; None where that is no coordinate with a bound."""
    if not is_tile(op.results[0]):
        return None
    predicate = predicate_of(op)
    if predicate not in BELOW + ABOVE:
        return None
    operand = 0 if predicate in BELOW else 1
    coordinate, bound = op.operands[operand], op.operands[1 - operand]
    found, divisor = _coordinate(coordinate, divisibility), _of_splat(bound, divisibility)
    if found is None or divisor is None:
        return None
    dim, known = found
    length = gcd(known, divisor, _of_threads(layout_of(op.results[0]), dim))
    signs = Signs()
    return _Run(operand, dim, length, all(map(signs.is_never_negative, (coordinate, bound))))


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
        found = _coordinate(view.src, divisibility)
        to = None if found is None else dict(view.kept_axes()).get(found[0])
        return None if found is None or to is None else (to, found[1])
    return None


def _shifted(
    coordinate: ir.Value, by: ir.Value, divisibility: Divisibility
) -> tuple[int, int] | None:
    found, divisor = _coordinate(coordinate, divisibility), _of_splat(by, divisibility)
    return None if found is None or divisor is None else (found[0], gcd(found[1], divisor))


def _of_splat(value: ir.Value, divisibility: Divisibility) -> int | None:
    """A divisor of every element of a tile that holds one number; None of any other."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name in _CASTS:
        return _of_splat(op.operands[0], divisibility)
    if op.name == "tensor.splat":
        return divisibility.of(op.operands[0])
    number = number_of(value)
    return None if number is None else abs(number) or UNLIMITED


def _of_threads(layout: Layout, dim: int) -> int:
    """A divisor of where along `dim` any thread's register 0 lies."""
    return gcd(*(mode.stride for mode in layout.threads if mode.dim == dim)) or UNLIMITED


RULES = {"arith.cmpi": lower_cmpi}
