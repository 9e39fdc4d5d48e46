"""Which elements of a gather or scatter are neighbours in memory: one access may move them.

Follows index tiles back to what numbers their elements. Along a tile dimension, in each aligned
group of `width` elements, a tile is

* `SAME`: one value (a splat, a broadcast along the dimension, anything computed from such);
* `STEPS`: first, first + 1, ... with `first` a multiple of the width (an iota, a multiple added).

A row gathered by number, `tl.gather(x, (rows[:, None], k + tl.arange(64)[None, :]))`, has rows that
are the same and columns in steps along dimension 1: eight of them are 16 bytes of bf16.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.integers import INDEX_BITS
from tilec.dialects.predicates import predicate_of
from tilec.dialects.tile import Indexed
from tilec.dialects.types import is_tile, shape
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.passes.analysis.divisibility import Divisibility, number_of, static_strides
from tilec.passes.analysis.vector_width import element_bytes

_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci")
BELOW = ("slt", "sge", "ult", "uge")
"""Predicates of arith.cmpi that compare all steps of a group alike with a
multiple of its width: they ask on which side of it the group lies."""
ABOVE = ("sle", "sgt", "ule", "ugt")
"""The same with the steps on the right."""


class Pattern(Enum):
    """How a tile's elements follow each other inside each group, in one of the ways that the
    module's docstring names."""

    SAME = "same"
    STEPS = "steps"


def note_runs(ops: Iterable[ir.Operation], facts: Divisibility) -> None:
    """Writes the option `run` of every gather, scatter and update among `ops` that has one."""
    for op in ops:
        view = op.opview
        if isinstance(view, (tile.GatherOp, tile.ScatterOp, tile.AtomicRmwOp)):
            run = index_run(view, facts)
            if run[1] > 1:
                view.options = {**view.options, "run": run}


def index_run(op: Indexed, facts: Divisibility) -> tuple[int, int]:
    """Gives (tile dimension, width) of the widest groups that one access may move; width 1: there
    are none.

    Such a group is aligned in memory, lies inside the array or outside, and is masked as one.
    """
    array = op.array
    sizes, bytes_ = shape(op.mask), element_bytes(array)
    axis = next((a for a, stride in enumerate(static_strides(array)) if stride == 1), None)
    width = VECTOR_BYTES // bytes_
    while width > 1 and axis is not None:
        if _is_aligned(array, axis, width, facts):
            for dim, size in enumerate(sizes):
                if size % width == 0 and _is_run(op, axis, _Group(dim, width, facts)):
                    return dim, width
        width //= 2
    return max(0, len(sizes) - 1), 1


def neighbours_dim(op: Indexed, facts: Divisibility) -> int | None:
    """The tile dimension along which elements are neighbours in memory, aligned or not, at least in
    most places; None where none is known."""
    array = op.array
    axis = next((a for a, stride in enumerate(static_strides(array)) if stride == 1), None)
    wanted = [Pattern.STEPS if a == axis else Pattern.SAME for a in range(len(op.indices))]
    for dim in reversed(range(len(shape(op.mask)))):
        group = _Group(dim, 1, facts)
        if axis is not None and [group.pattern(index) for index in op.indices] == wanted:
            return dim
    return None


def _is_aligned(array: ir.Value, axis: int, width: int, facts: Divisibility) -> bool:
    """Whether every element of `array` whose index along `axis` is a multiple of `width` lies at an
    address that is one of `width` elements, and rows end at such an address, too."""
    others = [a for a in range(len(static_strides(array))) if a != axis]
    divisors = [
        facts.alignment(array) // element_bytes(array),
        facts.of_array(array, "sizes", axis),
        *(facts.of_array(array, "strides", a) for a in others),
    ]
    return all(divisor % width == 0 for divisor in divisors)


def _is_run(op: Indexed, axis: int, group: _Group) -> bool:
    wanted = [Pattern.STEPS if a == axis else Pattern.SAME for a in range(len(op.indices))]
    found = [group.pattern(index) for index in op.indices]
    return found == wanted and group.pattern(op.mask) is Pattern.SAME


class _Group:
    """Patterns along one dimension in groups of one width."""

    def __init__(self, dim: int, width: int, facts: Divisibility) -> None:
        self._dim, self._width, self._facts = dim, width, facts

    def pattern(self, value: ir.Value, dim: int | None = None) -> Pattern | None:
        """The pattern of tile `value` along its dimension `dim`; None where it has none that is
        known."""
        dim = self._dim if dim is None else dim
        op = defining_op(value)
        if op is None:
            return None
        view, name, operands = op.opview, op.name, list(op.operands)
        if name in ("arith.constant", "tensor.splat"):
            return Pattern.SAME
        if isinstance(view, tile.IotaOp):
            return Pattern.STEPS if view.axis == dim else Pattern.SAME
        if isinstance(view, tile.BroadcastOp):
            return self._broadcast(view, dim)
        if not is_elementwise(op):
            return None
        found = [self.pattern(operand, dim) for operand in operands]
        if all(pattern is Pattern.SAME for pattern in found):
            return Pattern.SAME
        if name in _CASTS:
            return found[0]
        return self._computed(op, found) if len(found) == 2 else None

    def _broadcast(self, op: tile.BroadcastOp, dim: int) -> Pattern | None:
        if dim not in op.dims or shape(op.src)[op.dims.index(dim)] == 1:
            return Pattern.SAME
        return self.pattern(op.src, op.dims.index(dim))

    def _computed(self, op: ir.Operation, found: list[Pattern | None]) -> Pattern | None:
        """The pattern of the result of `op`, one of whose operands has steps while the other is the
        same within a group; None where it has none that is known."""
        if None in found or found[0] is found[1]:
            return None
        first = found[0] is Pattern.STEPS
        other = op.operands[int(first)]
        number = number_of(other) if first else None
        if number is not None and op.name == "arith.andi":
            return Pattern.STEPS if number % self._width == self._width - 1 else None
        if number is not None and op.name == "arith.shrsi":
            is_shift = 0 <= number < INDEX_BITS
            return Pattern.SAME if is_shift and (1 << number) % self._width == 0 else None
        if not self._is_multiple(other):
            return None
        if op.name == "arith.addi" or (first and op.name == "arith.subi"):
            return Pattern.STEPS
        if op.name == "arith.cmpi":
            return Pattern.SAME if predicate_of(op) in (BELOW if first else ABOVE) else None
        return None

    def _is_multiple(self, value: ir.Value) -> bool:
        """Whether each element is a multiple of the width."""
        if self._width == 1:
            return True
        if not is_tile(value):
            return self._facts.of(value) % self._width == 0
        op = defining_op(value)
        if op is None:
            return False
        number = number_of(value)
        if number is not None:
            return number % self._width == 0
        parts = [self._is_multiple(operand) for operand in op.operands]
        if op.name in ("tensor.splat", "tile.broadcast", "arith.addi", "arith.subi", *_CASTS):
            return all(parts)
        return op.name == "arith.muli" and any(parts)
