"""Scans one thread's part of a tile, level by level along the axis (`passes.axis_levels`).

Going up, each level turns the totals of the blocks below it into running totals and into the totals
of its own, larger blocks: registers one after another, lanes by doubling steps (Hillis and Steele,
"Data Parallel Algorithms", CACM 1986). Going down, each block learns what all blocks before it add
up to. Order is respected: the region need not be commutative. A reverse scan walks every level from
its end, and what it has met first stays the first operand: it is flip, scan, flip.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.passes.layouts.axis_levels import Level, Place
from tilec.passes.lower_to_nvvm.combination import Combination, Item, choose
from tilec.passes.lower_to_nvvm.shuffle import shuffle_items
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.scalars import both, compare, create
from tilec.records import dataclass

Block = tuple[tuple[int, ...], int]
"""A block of elements of a thread: coordinates off the axis, and where on the axis it starts."""
Blocks = dict[Block, Item]


@dataclass(frozen=True)
class Running:
    """A level's running totals, those without the block itself, and its rows' totals.

    `before` lacks a block that is certainly first. Both may be empty where nobody asked.
    """

    inclusive: Blocks
    before: Blocks
    totals: Blocks


@dataclass(frozen=True)
class Scan:
    """Scans in one direction with one combination."""

    combination: Combination
    reverse: bool
    state: Lowering

    def chain(self, before: Item | None, after: Item) -> Item:
        """Combines `before` and `after`, in the order in which the scan walks."""
        return after if before is None else self.combination.combine(before, after)

    def run(
        self, blocks: Blocks, levels: Sequence[Level], *, with_totals: bool
    ) -> tuple[Blocks, Blocks]:
        """Gives running totals of `blocks` along nested levels, and their rows' totals (if asked
        for)."""
        if not levels:
            return blocks, blocks
        steps: list[Running] = []
        totals = blocks
        for number, level in enumerate(levels):
            wanted = with_totals or number + 1 < len(levels)
            steps.append(self._level(totals, level, before=number > 0, totals=wanted))
            totals = steps[-1].totals
        carries: Blocks = {}
        for level, step in reversed(list(zip(levels[1:], steps[1:], strict=True))):
            carries = self._carry_down(carries, step, level)
        scanned = {
            block: self.chain(carries.get(_row(block, levels[0])), item)
            for block, item in steps[0].inclusive.items()
        }
        return scanned, totals

    def _carry_down(self, carries: Blocks, step: Running, level: Level) -> Blocks:
        """Gives what lies before each block, from what lies before each row of blocks."""
        down: Blocks = {}
        for block in step.inclusive:
            carry, inner = carries.get(_row(block, level)), step.before.get(block)
            if inner is not None:
                down[block] = self.chain(carry, inner)
            elif carry is not None:
                down[block] = carry
        return down

    def _level(self, blocks: Blocks, level: Level, *, before: bool, totals: bool) -> Running:
        """Shuffles stay in the code even where nothing uses them, so a level makes what is
        asked."""
        if level.place is Place.VALUE:
            return self._registers(blocks, level)
        inclusive = self._double(blocks, level)
        return Running(
            inclusive,
            self._lane_before(inclusive, level) if before else {},
            self._last_lane(inclusive, level) if totals else {},
        )

    def _registers(self, blocks: Blocks, level: Level) -> Running:
        inclusive: Blocks = {}
        before: Blocks = {}
        totals: Blocks = {}
        for block in sorted(blocks, key=lambda block: block[1], reverse=self.reverse):
            row = _row(block, level)
            if row in totals:
                before[block] = totals[row]
            inclusive[block] = totals[row] = self.chain(totals.get(row), blocks[block])
        return Running(inclusive, before, totals)

    def _double(self, blocks: Blocks, level: Level) -> Blocks:
        """Scans over lanes, each lane's own block included: after step s each lane holds the last
        2s blocks."""
        items = list(blocks.values())
        step = 1
        while step < level.size:
            others = self._from_before(items, step, level)
            taken = self._has_before(step, level)
            items = [
                choose(taken, self.chain(other, mine), mine)
                for other, mine in zip(others, items, strict=True)
            ]
            step *= 2
        return dict(zip(blocks, items, strict=True))

    def _lane_before(self, inclusive: Blocks, level: Level) -> Blocks:
        """The running total of the lane before; the first lane's does not count."""
        exists = self._has_before(1, level)
        moved = self._from_before(list(inclusive.values()), 1, level)
        items = [self.combination.item(item.values, both(item.counts, exists)) for item in moved]
        return dict(zip(inclusive, items, strict=True))

    def _last_lane(self, inclusive: Blocks, level: Level) -> Blocks:
        """The running total of the lane that comes last, for all lanes."""
        state = self.state
        bits = (level.size - 1) << level.position
        name, mask = ("arith.andi", ~bits) if self.reverse else ("arith.ori", bits)
        lane = create(name, [state.thread(), state.i32_constant(mask)], state.i32)
        items = shuffle_items("idx", list(inclusive.values()), lane, state)
        return dict(zip(inclusive, items, strict=True))

    def _from_before(self, items: Sequence[Item], step: int, level: Level) -> list[Item]:
        distance = self.state.i32_constant(step << level.position)
        return shuffle_items("down" if self.reverse else "up", items, distance, self.state)

    def _has_before(self, step: int, level: Level) -> ir.Value:
        """Whether the lane `step` places before this one lies in the level (i1)."""
        state = self.state
        bits = (level.size - 1) << level.position
        digit = state.arith("andi", state.thread(), bits)
        if self.reverse:
            limit = state.i32_constant((level.size - step) << level.position)
            return compare("ult", digit, limit)
        return compare("ule", state.i32_constant(step << level.position), digit)


def _row(block: Block, level: Level) -> Block:
    """The row of a level that a block belongs to: its digit there is 0."""
    at, start = block
    return at, start - start // level.stride % level.size * level.stride
