"""What the scalars of a kernel come to, with made-up arrays: enough to follow who takes which turn.

Integers are computed; whatever else decides something (sizes, places in the grid, elements loaded)
is made up, a function of the op and its operands, so that all roles see the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from typing import Any

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile.cluster import at, ctas_alike
from tilec.dialects.integers import function_of
from tilec.dialects.op import TileOp
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.op_tables import OpSet
from tilec.records import dataclass

SIZES = (0, 1, 65, 130, 260, 520, 1030)
"""Of arrays: with tiles of 16 to 256 elements, loops of no, one and many turns, and ragged ends."""
SMALL = 4
"""What else is made up is below that: places in the grid, elements of tables."""


@dataclass
class Scalars:
    """The values of one CTA's scalars. `rank`, `shape`: of the CTA in its cluster; `seed`: of what
    is made up."""

    rank: int
    shape: tuple[int, int, int]
    seed: int
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)

    def compute(self, op: ir.Operation, operands: list[Any]) -> dict[ir.Value, int | None]:
        """The results of an op; None where one is no integer."""
        if len(op.results) > 1:
            numbers = range(len(op.results))
            made_up = [self._made_up(op.name, n, *operands) % SMALL for n in numbers]
            return dict(zip(op.results, made_up, strict=True))
        found = self._computed(op, operands)
        if found is not None and str(op.results[0].type) == "i1":
            found &= 1
        return {op.results[0]: found}

    def _computed(self, op: ir.Operation, operands: list[Any]) -> int | None:
        name, view = op.name, op.opview
        if name == "arith.constant":
            value = op.attributes["value"]
            return int(value.value) if isinstance(value, (ir.IntegerAttr, ir.BoolAttr)) else None
        if name == "memref.dim":
            number = ir.BlockArgument(op.operands[0]).arg_number
            return SIZES[self._made_up("dim", number, operands[1]) % len(SIZES)]
        if isinstance(view, gpu_tile.ClusterPositionOp):
            return at(self.shape, self.rank)[view.axis]
        if isinstance(view, gpu_tile.ClusterMaskOp):
            return self._mask(view.axes)
        if isinstance(view, tile.ProgramIdOp):
            own = at(self.shape, self.rank)[view.axis]
            return self._made_up(name, view.axis) % SMALL * self.shape[view.axis] + own
        if isinstance(view, TileOp) and view.LEAST:
            return view.LEAST + self._made_up(name) % SMALL
        known = function_of(op)
        if known is not None and None not in operands:
            with suppress(ZeroDivisionError, ValueError):
                return known(*operands)
        return self._made_up(name, *operands) % SMALL

    def argument(self, number: int) -> int:
        """A scalar parameter of the kernel."""
        return SIZES[self._made_up("argument", number) % len(SIZES)]

    def _mask(self, axes: tuple[int, ...]) -> int:
        """The CTAs that differ from this one along `axes` only."""
        mine = at(self.shape, self.rank)
        place = [0 if axis in axes else own for axis, own in enumerate(mine)]
        base = place[0] + self.shape[0] * (place[1] + self.shape[1] * place[2])
        return sum(1 << (base + rank) for rank in ctas_alike(self.shape, tuple(axes)))

    def _made_up(self, *what: Any) -> int:
        return zlib.crc32(repr((self.seed, *what)).encode())


def needed_scalars(roots: Iterable[ir.Value]) -> OpSet:
    """The ops that values follow from, through loops and branches."""
    found, seen = OpSet(), set[ir.Value]()
    pending = list(roots)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = defining_op(value)
        if op is None:
            block = value.owner
            pending += _carried(block.owner, ir.BlockArgument(value).arg_number, block)
        elif op.regions:
            number = next(n for n, result in enumerate(op.results) if result == value)
            pending += _yielded(op, number)
        elif op not in found:
            found.add(op)
            pending += op.operands
    return found


def _carried(op: ir.Operation, number: int, block: ir.Block) -> list[ir.Value]:
    """Finds the values that a loop may give to an argument of its block; there are none for a
    kernel's parameters."""
    if op.name == "scf.for":
        return [] if number == 0 else [op.operands[2 + number], *_yielded(op, number - 1)]
    if op.name == "scf.while":
        before, after = (region.blocks[0] for region in op.regions)
        if block == before:
            return [op.operands[number], terminator(after).operands[number]]
        return [terminator(before).operands[1 + number]]
    return []


def _yielded(op: ir.Operation, number: int) -> list[ir.Value]:
    """Finds the values that the blocks of a loop or a branch give to its result of this number."""
    if op.name == "scf.while":
        return [terminator(op.regions[0].blocks[0]).operands[1 + number]]
    if op.name not in ("scf.for", "scf.if"):
        return []
    return [terminator(region.blocks[0]).operands[number] for region in op.regions]
