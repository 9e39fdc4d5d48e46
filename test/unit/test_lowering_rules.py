"""Every op of the dialects is lowered, or gone before the lowering."""

from __future__ import annotations

from tilec.dialects import gpu_tile, tile
from tilec.passes.lower_to_nvvm import RULES


def test_every_op_has_a_lowering_rule_or_is_gone_before() -> None:
    ops = (*tile.Op.ALL, *gpu_tile.Op.ALL)
    assert {op.OPERATION_NAME for op in ops if op.LOWERED} == {
        name for name in RULES if name.startswith(("tile.", "gpu_tile."))
    }
