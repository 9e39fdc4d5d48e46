"""What an author demands of a loop: attributes of its `scf.for`.

tile.stages = 4 : i32                     buffers of that many slots
tile.warp_specialize = true               warps of their own load; false: none do

(`any_order` is a permission: `programs/mirror_rounds.py`.)
"""

from __future__ import annotations

from mlir import ir

from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import find_loops

STAGES = "tile.stages"
WARP_SPECIALIZE = "tile.warp_specialize"


def demanded_stages(loop: ir.Operation) -> int | None:
    """The stages a loop demands, None if it leaves them open. CompileError for a wrong demand."""
    if STAGES not in loop.attributes:
        return None
    stages = loop.attributes[STAGES]
    if not isinstance(stages, ir.IntegerAttr) or stages.value < 1:
        raise error_at(loop, f"{STAGES} must be a positive integer, found {stages}")
    return stages.value


def demands_roles(function: ir.Operation) -> bool:
    """Whether a loop of the kernel has `tile.warp_specialize = true`, and none forbids it."""
    demands = _role_demands(function)
    return bool(demands) and all(demands)


def forbids_roles(function: ir.Operation) -> bool:
    """Whether a loop of the kernel has `tile.warp_specialize = false`."""
    return not all(_role_demands(function))


def _role_demands(function: ir.Operation) -> list[bool]:
    demands = (loop.attributes.get(WARP_SPECIALIZE) for loop in find_loops(function))
    return [demand.value for demand in demands if isinstance(demand, ir.BoolAttr)]
