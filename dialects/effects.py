"""What ops do to arrays and buffers, as their operands say: `Operand(BUFFER, reads=True)`."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from tilec.dialects.constraints import ARRAY
from tilec.dialects.def_use import defining_op
from tilec.dialects.op import Operand, TileOp
from tilec.dialects.tile import AssertOp, Atomic, FenceOp, InlinePtxOp, PrintOp
from tilec.dialects.traits import Until
from tilec.dialects.types import is_tile

SIDE_EFFECTS = (Atomic, FenceOp, PrintOp, AssertOp, InlinePtxOp)
"""What, beside stores and scatters, other programs or the host notice."""


def read_by(view: object) -> list[ir.Value]:
    """The arrays and buffers that an op reads, or may; of an array out of a list, the list."""
    return _values(view, view.READS) if isinstance(view, TileOp) else []


def written_by(view: object) -> list[ir.Value]:
    """The arrays and buffers that an op writes, or may, those among them that it reads, too; of an
    array out of a list, the list."""
    return _values(view, view.WRITES) if isinstance(view, TileOp) else []


def read_late_by(view: object) -> list[ir.Value]:
    """The buffers that an op reads after it was issued, but for the sums that it adds to."""
    if not isinstance(view, TileOp) or view.UNTIL is None:
        return []
    fields = [f for f in view.READS if not f.writes and f.constraint is not ARRAY]
    return _values(view, fields)


def until(view: object) -> Until | None:
    """The event until which an op goes on reading and writing memory; None for one that does so at
    once."""
    return view.UNTIL if isinstance(view, TileOp) else None


def is_product(view: object) -> bool:
    """Whether an op is a matrix instruction."""
    return isinstance(view, TileOp) and view.PRODUCT


def is_fill(view: object) -> bool:
    """Whether an op brings loaded tiles into buffers."""
    return isinstance(view, TileOp) and bool(view.FILLS)


def ends(view: object) -> Until | None:
    """The event whose coming an op waits for, `pending` groups of which may still go on; None for
    other ops."""
    return view.ENDS if isinstance(view, TileOp) else None


def whole_of(array: ir.Value) -> ir.Value:
    """What different arrays do not overlap of: the array that a window is of, the list that an array
    is out of, or the array."""
    while (taken := defining_op(array, "tile.array_at", "tile.window")) is not None:
        array = taken.operands[0]
    return array


def _values(view: TileOp, fields: Iterable[Operand]) -> list[ir.Value]:
    values = [getattr(view, field.name) for field in fields]
    # wgmma's lhs may lie in registers
    return [whole_of(value) for value in values if not is_tile(value)]
