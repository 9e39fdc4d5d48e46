"""Lowers layout conversions inside a thread: the same registers in another order.

Conversions that move elements between threads went through buffers (`passes.split_conversions`).
"""

from __future__ import annotations

from tilec.diagnostics import InternalError
from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import shape
from tilec.passes.layouts.maps import register_permutation
from tilec.passes.lower_to_nvvm.state import Lowering


def lower_convert_layout(op: gpu_tile.ConvertLayoutOp, state: Lowering) -> None:
    """A permutation (with repeats) of the thread's registers."""
    permutation = register_permutation(layout_of(op.src), layout_of(op.result), shape(op.src))
    if permutation is None:
        raise InternalError(f"a conversion across threads reached the lowering: {op}")
    registers = state.registers(op.src)
    state.values[op.result] = [registers[i] for i in permutation]


RULES = {gpu_tile.ConvertLayoutOp: lower_convert_layout}
