"""What an author demands of a loop: attributes of its `scf.for`.

tile.stages = 4 : i32                     as many iterations' tiles at once
tile.warp_specialize = true               warps of their own load; false: none do

(`any_order` is a permission: `programs/mirror_rounds.py`.)
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.demands import demanded
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import find_loops
from tilec.terms import demands

STAGES = demands.STAGES.attribute
WARP_SPECIALIZE = demands.WARP_SPECIALIZE.attribute


def demanded_stages(loop: ir.Operation) -> int | None:
    """The stages a loop demands, None if it leaves them open."""
    return demanded(loop, demands.STAGES)


def check_stages(function: ir.Operation) -> None:
    """Refuses stages that neither pipeline-loops nor specialize-warps has given a loop."""
    for loop in find_loops(function):
        stages = demanded_stages(loop)
        if stages is not None and stages > 1:
            reason = "its copies fill no rings that later iterations could use"
            raise error_at(loop, f"stages={stages} was asked for, but {reason}")


def demands_roles(function: ir.Operation) -> bool:
    """Whether a loop of the kernel has `tile.warp_specialize = true`, and none forbids it."""
    found = _role_demands(function)
    return bool(found) and all(found)


def forbids_roles(function: ir.Operation) -> bool:
    """Whether a loop of the kernel has `tile.warp_specialize = false`."""
    return not all(_role_demands(function))


def _role_demands(function: ir.Operation) -> list[bool]:
    found = (demanded(loop, demands.WARP_SPECIALIZE) for loop in find_loops(function))
    return [wanted for wanted in found if wanted is not None]
