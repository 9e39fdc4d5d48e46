"""Elementwise work that is computed a few registers at a time, from its first op to its last.

    %s = "math.exp"(%x)      %d = arith.addf %s, %one      %y = arith.divf %x, %d

Op by op a thread holds all elements of `%x` and of `%d` at once. ptxas brings the ops of an element
together within a block, but a division with its slow way is many blocks: 128 x 256 sums of bf16 in
two warpgroups, x * (1 / (1 + exp(-x))), spilled 884 bytes (sm_90a, ptxas 13.0) and so spill none.
Tiles of which a thread can hold two, and chains that hold one at a time, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import is_tile
from tilec.hardware.sizes import REGISTERS

PIECE = 8
"""Registers that are computed together: enough to hide what an instruction waits for, and words of
bytes stay whole."""
MANY = 128
"""Elements of a tile of which a thread does not hold two beside all else: it has 255 registers, or
a share of the multiprocessor's, where its layout has more than 256 threads."""
_REPEATS = ("arith.constant", "tensor.splat", "tile.broadcast")
_IN_FRONT = (*_REPEATS, "tile.load", "gpu_tile.convert_layout")
"""Ops that compute nothing: they go in front of a run, so that what is loaded comes while it
computes, whose branches ptxas moves no load across."""
_EXACT = ("arith.divf", "math.sqrt")
"""Ops that branch for special numbers where they round correctly."""


class Run(NamedTuple):
    """`ahead`: ops that come first; `ops`: those that are computed piece by piece; `count`: how
    many elements a thread has of each of their tiles."""

    ahead: list[ir.Operation]
    ops: list[ir.Operation]
    count: int

    @property
    def branches(self) -> bool:
        """Whether its code is many blocks, between which ptxas moves nothing."""
        return any(map(_branches, self.ops))


def runs_of(block: ir.Block) -> Iterator[ir.Operation | Run]:
    """The ops of a block in order, those of a run together."""
    ahead: list[ir.Operation] = []
    ops: list[ir.Operation] = []
    met: list[ir.Operation] = []
    for view in block.operations:
        op = view.operation
        is_large = _is_large(op)
        if is_large and ops and layout_of(op.results[0]) == layout_of(ops[0].results[0]):
            ops.append(op)
        elif ops and op.name in _IN_FRONT and not _reads(op, ops):
            ahead.append(op)
        else:
            yield from [_run(ahead, ops)] if _holds_two(ops) else met
            ahead, ops, met = [], [op] if is_large else [], []
        met.append(op)
    yield from [_run(ahead, ops)] if _holds_two(ops) else met


def _run(ahead: list[ir.Operation], ops: list[ir.Operation]) -> Run:
    return Run(ahead, ops, layout_of(ops[0].results[0]).num_values)


def _holds_two(ops: list[ir.Operation]) -> bool:
    """Whether an op reads a tile behind another that does: a mere chain holds one at a time."""
    read = [value for op in ops for value in set(op.operands) if _is_whole(value, ops[0])]
    return len(set(read)) < len(read)


def _is_whole(value: ir.Value, op: ir.Operation) -> bool:
    """Whether a value is a tile that lies as the result of `op`, and not one number over and
    over."""
    if not is_tile(value) or ((owner := defining_op(value)) is not None and owner.name in _REPEATS):
        return False
    return layout_of(value) == layout_of(op.results[0])


def _is_large(op: ir.Operation) -> bool:
    """Whether an op computes a tile of `MANY` elements a thread, each of those of its operands that
    lie likewise."""
    if not is_elementwise(op) or op.name == "arith.constant" or len(op.results) != 1:
        return False
    result = op.results[0]
    if not is_tile(result):
        return False
    same = layout_of(result)
    if same.num_values < min(MANY, REGISTERS // 2 // same.num_threads):
        return False
    return all(not is_tile(v) or layout_of(v) == same for v in op.operands)


def _reads(op: ir.Operation, ops: list[ir.Operation]) -> bool:
    made = [each.results[0] for each in ops]
    return any(value in made for value in op.operands)


def _branches(op: ir.Operation) -> bool:
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    return op.name in _EXACT and "afn" not in flags and "arcp" not in flags
