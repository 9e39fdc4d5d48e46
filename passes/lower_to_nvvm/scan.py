"""Lowers tile.scan, gpu_tile.warp_scan and gpu_tile.scan_carry.

Within warps `Scan` does the work. Across warps `passes.split_reductions` cuts a scan in three: each
warp scans its blocks, the blocks' totals meet in shared memory, and each block takes in what the
blocks before it add up to.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import shape
from tilec.messages.diagnostics import InternalError
from tilec.passes.contract import show_location
from tilec.passes.layouts.axis_levels import (
    Level,
    Place,
    axis_levels,
    is_mixed_radix,
    is_spread_over_warps,
)
from tilec.passes.layouts.scan_layout import block_length, split_levels, totals_layout
from tilec.passes.lower_to_nvvm.combination import Combination, Item, choose
from tilec.passes.lower_to_nvvm.level_scan import Blocks, Scan
from tilec.passes.lower_to_nvvm.reduction import axis_items, common_layout, off_axis
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.scalars import compare
from tilec.records import dataclass

ScanLike = tile.ScanOp | gpu_tile.WarpScanOp | gpu_tile.ScanCarryOp


def lower_scan(op: tile.ScanOp, state: Lowering) -> None:
    """Lowers tile.scan within warps."""
    layout = common_layout(op, op.inputs)
    if is_spread_over_warps(layout, op.axis):
        raise InternalError(f"{show_location(op.operation)}: tile.scan across warps was not split")
    scan = _scan(op, state)
    scanned, _ = scan.run(_blocks(op, scan), axis_levels(layout, op.axis), with_totals=False)
    _bind_scanned(op, op.outputs, scanned, state)


def lower_warp_scan(op: gpu_tile.WarpScanOp, state: Lowering) -> None:
    """Lowers gpu_tile.warp_scan to the levels below the warps', and what each of their blocks adds
    up to."""
    layout = common_layout(op, op.inputs)
    levels, _ = split_levels(layout, op.axis)
    scan = _scan(op, state)
    scanned, totals = scan.run(_blocks(op, scan), levels, with_totals=True)
    _bind_scanned(op, op.outputs, scanned, state)
    length = block_length(levels)
    spare = next(iter(totals.values()))  # the register of a phantom may hold anything
    for number, result in enumerate(op.totals):
        coordinates = layout_of(result).value_coordinates(len(shape(result)))
        blocks = [(off_axis(at, op.axis), at[op.axis] * length) for at in coordinates]
        state.values[result] = [totals.get(block, spare).values[number] for block in blocks]


def lower_scan_carry(op: gpu_tile.ScanCarryOp, state: Lowering) -> None:
    """Lowers gpu_tile.scan_carry: picks each block's carry by where the thread lies, then
    combines."""
    inputs, axis = op.inputs, op.axis
    layout, rank = common_layout(op, inputs), len(shape(inputs[0]))
    inner, outer = split_levels(layout, axis)
    scan = _scan(op, state)
    at_thread = state.thread_coordinates(totals_layout(layout, axis), rank)[axis]
    carries = _Carries(scan, _before_blocks(op, scan), outer, at_thread)
    columns = [state.registers(value) for value in inputs]
    length = block_length(inner)
    scanned = []
    for number, at in enumerate(layout.value_coordinates(rank)):
        item = Item(tuple(column[number] for column in columns))
        carry = carries.before(off_axis(at, axis), at[axis] // length)
        scanned.append(scan.chain(carry, item).values)
    for number, result in enumerate(op.outputs):
        state.values[result] = [values[number] for values in scanned]


def _scan(op: ScanLike, state: Lowering) -> Scan:
    layout = layout_of(op.inputs[0])
    if not is_mixed_radix(axis_levels(layout, op.axis)):
        raise InternalError(
            f"{show_location(op.operation)}: no scan along axis {op.axis} of layout {layout}"
        )
    return Scan(Combination(op.body, state, speculates=True), op.reverse, state)


def _blocks(op: tile.ScanOp | gpu_tile.WarpScanOp, scan: Scan) -> Blocks:
    """The registers as blocks of one element. Phantoms lie at the axis's end: only a reverse scan
    meets them before it meets elements."""
    layout = layout_of(op.inputs[0])
    items = axis_items(op.inputs, layout, op.axis, scan.combination, scan.state, mask=scan.reverse)
    return {(off_axis(at, op.axis), at[op.axis]): item for at, item in items.items()}


def _bind_scanned(
    op: tile.ScanOp | gpu_tile.WarpScanOp,
    results: Sequence[ir.Value],
    scanned: Blocks,
    state: Lowering,
) -> None:
    coordinates = layout_of(results[0]).value_coordinates(len(shape(results[0])))
    for number, (source, result) in enumerate(zip(op.inputs, results, strict=True)):
        registers = []
        for at, register in zip(coordinates, state.registers(source), strict=True):
            item = scanned.get((off_axis(at, op.axis), at[op.axis]))
            # A register that no scan touched is a phantom in every thread.
            registers.append(register if item is None else item.values[number])
        state.values[result] = registers


def _before_blocks(
    op: gpu_tile.ScanCarryOp, scan: Scan
) -> dict[tuple[int, ...], list[Item | None]]:
    """Gives, for each coordinates off the axis, what lies before each block; None before the
    first."""
    totals = op.totals
    layout, size = common_layout(op, totals), shape(totals[0])[op.axis]
    columns = [scan.state.registers(value) for value in totals]
    held: dict[tuple[int, ...], dict[int, Item]] = {}
    for number, at in enumerate(layout.value_coordinates(len(shape(totals[0])))):
        item = Item(tuple(column[number] for column in columns))
        held.setdefault(off_axis(at, op.axis), {})[at[op.axis]] = item
    before = {}
    for row, items in held.items():
        running: Item | None = None
        found: list[Item | None] = [None] * size
        for block in range(size)[:: -1 if scan.reverse else 1]:
            found[block] = running
            running = scan.chain(running, items[block])
        before[row] = found
    return before


@dataclass
class _Carries:
    """What lies before each block of this thread; `at_thread` (i32) is its first block's number."""

    scan: Scan
    found: dict[tuple[int, ...], list[Item | None]]
    outer: tuple[Level, ...]
    at_thread: ir.Value

    def __post_init__(self) -> None:
        self._picked: dict[tuple[tuple[int, ...], int], Item | None] = {}
        self._numbers = self._thread_numbers()

    def before(self, row: tuple[int, ...], block: int) -> Item | None:
        """The carry of the thread's block `block` past its first; None if it is certainly first."""
        key = (row, block)
        if key not in self._picked:
            self._picked[key] = self._pick(self.found[row], block)
        return self._picked[key]

    def _pick(self, found: list[Item | None], block: int) -> Item | None:
        candidates = [(n, found[n + block]) for n in self._numbers if n + block < len(found)]
        present = [(n, item) for n, item in candidates if item is not None]
        if not present:
            return None
        picked = present[-1][1]
        for number, item in present[:-1]:
            picked = choose(self._is_at("eq", number), item, picked)
        for number, item in candidates:
            if item is None:  # the block that comes first
                return self.scan.combination.item(picked.values, self._is_at("ne", number))
        return picked

    def _is_at(self, predicate: str, number: int) -> ir.Value:
        return compare(predicate, self.at_thread, self.scan.state.i32_constant(number))

    def _thread_numbers(self) -> list[int]:
        """The values `at_thread` takes."""
        numbers, below = [0], 1
        for level in self.outer:
            if level.place is not Place.VALUE:
                numbers = [n + digit * below for digit in range(level.size) for n in numbers]
            below *= level.size
        return numbers


RULES = {
    tile.ScanOp: lower_scan,
    gpu_tile.WarpScanOp: lower_warp_scan,
    gpu_tile.ScanCarryOp: lower_scan_carry,
}
