"""Where the matrices of a view begin that an instruction reads from shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.def_use import made_by, traced
from tilec.hardware.matrix_descriptor import UNIT_BYTES
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.values import Buffer
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import as_signed, resized


class Descriptors:
    """The descriptors of the matrices of a buffer. `address` (i32) is that of the first as
    `own_base` counts; `high` and `low`: the words of the descriptor without an address."""

    def __init__(
        self, buffer: Buffer, address: ir.Value, high: int, low: int, state: Lowering
    ) -> None:
        self._buffer, self._state = buffer.type, state
        self._high = as_signed(high << 32, 64)
        self._start = state.arith("addi", state.arith("shrui", address, 4), low)

    def at(self, coordinates: Sequence[int]) -> ir.Value:
        """The descriptor (i64) of the matrix that begins there."""
        return self.at_offset(self._buffer.layout.offset(coordinates))

    def at_offset(self, offset: int) -> ir.Value:
        """The same for so many elements from the buffer's first."""
        state, step = self._state, offset * self._buffer.element_bytes // UNIT_BYTES
        low = resized(state.plus(self._start, step), ir.IntegerType.get_signless(64), signed=False)
        return state.arith("ori", low, self._high)


def check_origin(op: ir.Operation, value: ir.Value, buffer: Buffer, state: Lowering) -> None:
    """CompileError for a view from which the matrices do not lie as from the buffer's start."""
    for dim, parts in enumerate(buffer.type.layout.dims):
        panel = 1
        for size, _ in parts[:-1]:
            panel *= size
        fixed = constant_of(buffer.origin[dim])
        known = fixed if fixed is not None else divisor(value, dim, state)
        swizzled_rows = 8 if parts[0][1] != 1 else UNIT_BYTES // buffer.type.element_bytes
        inside = panel > 1 and known and panel % known == 0 and buffer.type.shape[dim] <= known
        if known % swizzled_rows or not (known % panel == 0 or inside):
            raise error_at(
                op,
                f"the view begins at a multiple of {known} of dimension {dim}, in the middle of "
                f"the matrices of {buffer.type.layout}",
            )


def divisor(value: ir.Value, dim: int, state: Lowering) -> int:
    """A number that the run-time origin of a buffer along `dim` is surely a multiple of (0: it is
    0)."""
    known = 0
    views, whole = traced(value, gpu_tile.ViewOp, gpu_tile.TransposeViewOp)
    for view in views:
        if isinstance(view, gpu_tile.TransposeViewOp):
            dim = view.permutation[dim]
        else:
            known = gcd(known, state.divisibility.of(view.offsets[dim]))
    if made_by(whole, gpu_tile.AllocOp, gpu_tile.SlotOp) is None:
        raise InternalError(f"'{whole.owner.operation.name}' makes no buffer")
    return known
