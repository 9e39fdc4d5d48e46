"""How the loop of a `tl.range` counts, and which number its variable has in an iteration.

Up, and where no number that the loop comes to can leave 64 bits, the loop counts the numbers:

    scf.for %i = %start to %stop step %step

scf.for counts up, and compares as signed numbers. Other ranges count their iterations:

    scf.for %k = 0 to %trips step 1 { %i = %start + %k * %step ...

- down;
- of i64, where the last number and a step may lie behind 2**63 - 1: the loop would never end;
- of u64, whose numbers an `index` has not: the variable is a u64.

A step that is no constant counts up. One that may be 0 or less, as an argument or a number from
memory, is looked at where the loop begins, and ends the launch.

What is counted may itself need an unsigned 64-bit number, as from -2**63 to 2**63 - 1.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.op import TileOp
from tilec.dialects.tile import AssertOp
from tilec.frontend.builder import Builder
from tilec.frontend.conversion import (
    UNSIGNED_INDEX,
    check_integer,
    compare_values,
    dtype_of,
    materialize,
)
from tilec.frontend.promotion import promote
from tilec.frontend.values import Mistake, Range, Scalar
from tilec.records import dataclass
from tilec.terms.dtypes import DType, i64, index

UP = "the step of this range is 0 or negative; to count down, give a constant step"

_MOST = 2**63 - 1
"""What an `index`, which is a signed number of 64 bits, holds at most."""


@dataclass(frozen=True)
class RangeCount:
    """The bounds and step of a loop's own variable, indices; `start`, `stride`: what it counts
    with where that are iterations."""

    builder: Builder
    lower: ir.Value
    upper: ir.Value
    step: ir.Value
    dtype: DType = index
    start: ir.Value | None = None
    stride: ir.Value | None = None

    def number(self, counted: ir.Value) -> Scalar:
        """The author's variable, from the loop's own."""
        if self.start is None or self.stride is None:
            return Scalar(counted, index)
        value = materialize(self.builder, Scalar(counted, index), self.dtype, None)
        value = self.builder.value("arith.muli", value.type, value, self.stride)
        return Scalar(self.builder.value("arith.addi", value.type, self.start, value), self.dtype)


def count_of(builder: Builder, bounds: Range) -> RangeCount:
    """How the loop of a range counts. Mistake where its bounds are no integers, or do not mix."""
    given = (bounds.start, bounds.stop, bounds.step)
    for value, name in zip(given, ("start", "end", "step"), strict=True):
        check_integer(value, f"the {name} of a range")
    if isinstance(bounds.step, int) and bounds.step == 0:
        raise Mistake("the step of a range must not be 0")
    if not isinstance(bounds.step, int):
        _assert_up(builder, bounds.step)
    unsigned = any(dtype_of(value) == UNSIGNED_INDEX for value in given)
    down = isinstance(bounds.step, int) and bounds.step < 0
    if unsigned or down or _may_overflow(bounds):
        return _iterations(builder, bounds, promote(given) if unsigned else index)
    return RangeCount(builder, *(materialize(builder, value, index, None) for value in given))


def _assert_up(builder: Builder, step: Any) -> None:
    """Ends the launch where a step is 0 or less. A combine function has no effects: none there."""
    dtype = step.dtype
    value, zero = (materialize(builder, n, dtype, None) for n in (step, 0))
    if not _counts_up(value) and not builder.in_combine:
        positive = compare_values(builder, ">", value, zero, dtype, None)
        AssertOp.build(positive, message=UP)


def _counts_up(value: ir.Value) -> bool:
    """Whether a number is 1 or more: how many programs there are, sums and products of such."""
    op = defining_op(value)
    if op is None:
        return False
    view = op.opview
    if isinstance(view, TileOp):
        return (view.LEAST or 0) >= 1
    if op.name == "arith.constant":
        return int(ir.IntegerAttr(op.opview.value)) > 0
    grows = op.name in ("arith.muli", "arith.addi", "arith.index_cast")
    return grows and all(map(_counts_up, op.operands))


def _may_overflow(bounds: Range) -> bool:
    """Whether the last number and a step may lie behind what 64 bits hold."""
    if isinstance(bounds.step, int) and isinstance(bounds.stop, int):
        return bounds.stop - 1 + bounds.step > _MOST
    return bounds.step != 1 and (_is_far(bounds.stop) or _is_far(bounds.step))


def _is_far(value: Any) -> bool:
    """Whether a number may come near what 64 bits hold, as far as dtypes say: an `index` follows
    from sizes of arrays and grids."""
    return (
        abs(value) > _MOST // 4
        if isinstance(value, int)
        else dtype_of(value) in (i64, UNSIGNED_INDEX)
    )


def _iterations(builder: Builder, bounds: Range, dtype: DType) -> RangeCount:
    down = isinstance(bounds.step, int) and bounds.step < 0
    start, stop = (materialize(builder, n, dtype, None) for n in (bounds.start, bounds.stop))
    low, high = (stop, start) if down else (start, stop)
    least = bounds.stop if down else bounds.start
    step = abs(bounds.step) if isinstance(bounds.step, int) else bounds.step
    kind = builder.element(dtype)
    near = isinstance(least, int) and least >= 0  # all that is above lies no further away
    if dtype == index and (near or not (_is_far(bounds.start) or _is_far(bounds.stop))):
        distance = builder.value("arith.subi", kind, high, low)
        upper = builder.value("arith.ceildivsi", kind, distance, _as(builder, step, index))
    else:
        upper = _unsigned_quotient(builder, high, low, step, dtype)
    stride = bounds.step % 2**64 if dtype == UNSIGNED_INDEX and down else bounds.step
    zero, one = (builder.constant(number, index) for number in (0, 1))
    return RangeCount(builder, zero, upper, one, dtype, start, _as(builder, stride, dtype))


def _unsigned_quotient(
    builder: Builder, high: ir.Value, low: ir.Value, step: Any, dtype: DType
) -> ir.Value:
    """The iterations from `low` to `high`, as an index: as many as it has, where there are more."""
    larger = "arith.maxui" if dtype == UNSIGNED_INDEX else "arith.maxsi"
    kind = builder.element(UNSIGNED_INDEX)
    high, low = (materialize(builder, Scalar(n, dtype), i64, None) for n in (high, low))
    high = builder.value(larger, kind, high, low)
    trips = builder.value("arith.subi", kind, high, low)
    if step != 1:
        trips = builder.value("arith.ceildivui", kind, trips, _as(builder, step, UNSIGNED_INDEX))
    if not isinstance(step, int) or step == 1:
        trips = builder.value("arith.minui", kind, trips, builder.constant(_MOST, UNSIGNED_INDEX))
    return materialize(builder, Scalar(trips, UNSIGNED_INDEX), index, None)


def _as(builder: Builder, value: Any, dtype: DType) -> ir.Value:
    return materialize(builder, value, dtype, None)
