"""Every op of the dialects is lowered, or gone before the lowering."""

from __future__ import annotations

from tilec.dialects import gpu_tile, tile
from tilec.passes.checks.levels import EXPANDED_OPS, SPLIT_OPS
from tilec.passes.lower_to_nvvm import RULES


def test_every_op_has_a_lowering_rule_or_is_gone_before() -> None:
    ops = {op.OPERATION_NAME for dialect in (tile, gpu_tile) for op in dialect.Op.ALL}
    split = {op.OPERATION_NAME for op in (*SPLIT_OPS, *EXPANDED_OPS)}
    assert ops - split == {name for name in RULES if name.startswith(("tile.", "gpu_tile."))}
