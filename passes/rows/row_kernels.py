"""Kernels that hold tiles of one row alone, and do nothing with them but load, store, compute,
repeat one element, reduce, and scan: which thread, or CTA, holds which element does not matter
then, but to scans."""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import of_kind
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.types import is_tile, shape
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.rewriting.walk import all_ops, is_of
from tilec.records import dataclass

Access = tile.LoadOp | tile.StoreOp
_ALLOWED = (
    tile.LoadOp,
    tile.StoreOp,
    tile.IotaOp,
    tile.BroadcastOp,
    tile.ReshapeOp,
    tile.ReduceOp,
    tile.ScanOp,
)
_CARRYING = ("scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition")
"""Ops that hand tiles on as they are."""


@dataclass
class RowKernel:
    """The ops of a kernel that have a part in its tiles of one row of `size` elements."""

    size: int
    ops: list[ir.Operation]

    @property
    def accesses(self) -> list[Access]:
        """Its loads and stores of rows, in program order."""
        return of_kind(self.ops, Access)

    @property
    def has_order(self) -> bool:
        """Whether it matters which element is in front of which."""
        return bool(of_kind(self.ops, tile.ScanOp))


def find_rows(function: ir.Operation, *, carried: bool = False) -> RowKernel | None:
    """The rows of a kernel; None where it has other tiles, or does other things with them.
    `carried`: loops and branches may hand them on."""
    ops: list[ir.Operation] = []
    sizes: set[int] = set()
    for op in all_ops(function):
        rows = [value for value in (*op.operands, *op.results) if is_row(value)]
        if not rows:
            continue
        sizes.update(size for row in rows for size in shape(row) if size > 1)
        if len(sizes) > 1 or any(prod(shape(row)) not in sizes for row in rows):
            return None
        if not (_is_allowed(op) or (carried and op.name in _CARRYING)):
            return None
        ops.append(op)
    return RowKernel(sizes.pop(), ops) if ops else None


def is_row(value: ir.Value) -> bool:
    """Whether a value is a tile of more than one element."""
    return is_tile(value) and prod(shape(value)) > 1


def _is_allowed(op: ir.Operation) -> bool:
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    if op.name == "tensor.splat" or is_of(op, *_ALLOWED):
        return True
    return is_elementwise(op) and len(op.regions) == 0


def row_axis(access: Access, size: int) -> int | None:
    """The array dimension along which an access moves a row of `size` neighbouring elements; None
    if they are no neighbours in memory."""
    dim = contiguous_dim(access.array, access.dims)
    if dim is None or shape(access.tile)[dim] != size:
        return None
    return access.dims[dim]
