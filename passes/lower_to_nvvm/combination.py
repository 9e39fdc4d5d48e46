"""Combining values by the region of a reduction or scan: its clone per combination, and phantoms.

What is combined is an `Item`: n values at once (argmax: value and index) and whether they count.
Phantoms, which hold anything, must not. Where the region is one op with a neutral element they are
replaced by it, which costs a select an element; any other region carries a flag along.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf, nan

from mlir import ir

from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile import AssertOp
from tilec.dialects.types import is_float
from tilec.messages.diagnostics import InternalError
from tilec.passes.contract import show_location
from tilec.passes.lower_to_nvvm import control, elementwise
from tilec.passes.lower_to_nvvm.inspection import lower_own_assert
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.scalars import binary, select
from tilec.passes.rewriting.walk import is_of
from tilec.records import dataclass

ADDED_IN_A_ROW = 8
"""Floats: the longest chain of dependent additions before a sum becomes a tree. With this, and one
comparison for neighbours, layer norm of 16384 and 32768 columns took 3 to 7 % less on an H200."""


@dataclass(frozen=True)
class Item:
    """The values of one element; `counts` (i1) is false for a phantom, None if it cannot be one."""

    values: tuple[ir.Value, ...]
    counts: ir.Value | None = None


def inline_combination(
    block: ir.Block,
    lhs: Sequence[ir.Value],
    rhs: Sequence[ir.Value],
    state: Lowering,
    certain: Sequence[ir.Value] | None = None,
) -> Registers:
    """Clones a combining region for the lowered scalars `lhs` and `rhs`; gives what it yields.

    Where one of `certain` (i1) is false they are anything, and nothing is asserted of them; None
    where nobody knows, and nothing can be."""
    for argument, value in zip(block.arguments, [*lhs, *rhs], strict=True):
        state.values[argument] = value
    before, state.certain = state.certain, certain
    lower_scalar_block(block, state)
    state.certain = before
    return [state.values[value] for value in terminator(block).operands]


def lower_scalar_block(block: ir.Block, state: Lowering) -> None:
    """Lowers the scalar ops of a region body, but for `gpu.yield`. InternalError for a tile op."""
    for each in block.operations:
        op = each.operation
        rule = elementwise.RULES.get(op.name) or control.RULES.get(op.name)
        if rule is not None:
            rule(op, state)
        elif op.name in control.REGION_OPS:
            control.lower_region_op(op, state, lower_scalar_block)
        elif is_elementwise(op):
            elementwise.lower_elementwise(op, state)
        elif is_of(op, AssertOp):
            if state.certain is None:
                raise error_at(op, "an assertion in the combination of a scan")
            lower_own_assert(op.opview, state.certain, state)
        elif op.name != "gpu.yield":
            raise InternalError(f"{show_location(op)}: '{op.name}' in a combining region")


class Combination:
    """A combining region and, where it has one, its neutral element."""

    def __init__(self, block: ir.Block, state: Lowering, *, speculates: bool = False) -> None:
        """`speculates`: what is combined may not be taken, for other reasons than phantoms."""
        self._block, self._speculates = block, speculates
        self._state = state
        self._neutral = _neutral_element(block, state)
        self.operation: str | None = (
            None if self._neutral is None else block.operations[0].operation.name
        )
        """The name of the one op that combines, where it has a neutral element; it commutes."""

    def item(self, values: Sequence[ir.Value], counts: ir.Value | None) -> Item:
        """An element that only counts under a condition (None: always)."""
        if counts is None or self._neutral is None:
            return Item(tuple(values), counts)
        return Item((select(counts, values[0], self._neutral),))

    def combine(self, first: Item, second: Item) -> Item:
        """The two in this order; a phantom leaves the other as it is."""
        counts = [flag for flag in (first.counts, second.counts) if flag is not None]
        certain = None if self._speculates else counts
        made = inline_combination(self._block, first.values, second.values, self._state, certain)
        if first.counts is None and second.counts is None:
            return Item(tuple(made))
        if second.counts is not None:
            made = _choose(second.counts, made, first.values)
        if first.counts is not None:
            made = _choose(first.counts, made, second.values)
        return Item(tuple(made), _either(first.counts, second.counts))

    def combine_all(self, items: Sequence[Item]) -> Item:
        """Combines items as a balanced tree: short chains, and a rounding error that grows with the
        logarithm. Its leaves are runs of a few floats added in a row, so that what is multiplied
        before takes one instruction with the addition (fma)."""
        items = list(items)
        if self.operation == "arith.addf":
            runs = [items[i : i + ADDED_IN_A_ROW] for i in range(0, len(items), ADDED_IN_A_ROW)]
            items = [reduce(self.combine, run) for run in runs]
        while len(items) > 1:
            pairs = [self.combine(a, b) for a, b in zip(items[::2], items[1::2], strict=False)]
            items = pairs + items[len(items) & ~1 :]
        return items[0]


def choose(condition: ir.Value, if_true: Item, if_false: Item) -> Item:
    """Chooses one of two items, both of which are certain, or neither."""
    counts = None
    if if_true.counts is not None and if_false.counts is not None:
        counts = select(condition, if_true.counts, if_false.counts)
    return Item(tuple(_choose(condition, if_true.values, if_false.values)), counts)


def _choose(
    condition: ir.Value, if_true: Sequence[ir.Value], if_false: Sequence[ir.Value]
) -> Registers:
    return [select(condition, a, b) for a, b in zip(if_true, if_false, strict=True)]


def _either(first: ir.Value | None, second: ir.Value | None) -> ir.Value | None:
    """Makes the disjunction of two conditions; None means "certain"."""
    if first is None or second is None:
        return None
    return first if first == second else binary("arith.ori", first, second)


_FLOAT_NEUTRAL = {
    "arith.addf": -0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": -inf,
    "arith.minimumf": inf,
    # maxnumf ignores a NaN, so only NaN changes nothing, not even another NaN.
    "arith.maxnumf": nan,
    "arith.minnumf": nan,
}


def _integer_neutral(name: str, bits: int) -> int | None:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return {
        "arith.addi": 0,
        "arith.muli": -1 if bits == 1 else 1,  # one bit: 1 reads as -1
        "arith.andi": -1,
        "arith.ori": 0,
        "arith.xori": 0,
        "arith.maxsi": low,
        "arith.minsi": high,
        "arith.maxui": 0,
        "arith.minui": -1,
    }.get(name)


def _neutral_element(block: ir.Block, state: Lowering) -> ir.Value | None:
    """The neutral element of a region of one op on its two arguments, None for any other."""
    if len(list(block.operations)) != 2 or len(block.arguments) != 2:
        return None
    op, last = (each.operation for each in block.operations)
    if {*op.operands} != {*block.arguments} or list(last.operands) != list(op.results):
        return None
    scalar = state.scalar_type(block.arguments[0].type)
    if is_float(scalar):
        neutral = None if _assumes_finite(op) else _FLOAT_NEUTRAL.get(op.name)
    else:
        neutral = _integer_neutral(op.name, scalar.width)
    return None if neutral is None else state.constant(scalar, neutral)


def _assumes_finite(op: ir.Operation) -> bool:
    """Whether fast-math flags make an infinite or NaN operand undefined."""
    if "fastmath" not in op.attributes:
        return False
    flags = str(op.attributes["fastmath"])
    return any(flag in flags for flag in ("nnan", "ninf", "fast>"))
