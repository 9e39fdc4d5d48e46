"""The space of tiles that `tilec.ops.matmul(..., tune=True)` searches."""

from __future__ import annotations

from typing import Any

from tilec.ops.tile_choice import K_BYTES


def tile_space(element_bytes: int) -> list[dict[str, list[Any]]]:
    """The space that tuning searches: large tiles, and those of products with few rows."""
    deep = [K_BYTES // 2 // element_bytes, K_BYTES // element_bytes]
    large = {"BM": [128, 256], "BN": [128, 256], "BK": deep[1:]}
    in_turn = {"consumers": ["pingpong"]}
    return [
        {**large, "num_warps": [4, 8], "STAGES": [4]},
        {"BM": [64, 128, 256], "BN": [64, 128, 256], "BK": deep, "num_warps": [4, 8]},
        {"BM": [128], "BN": [96, 160, 192, 224], "BK": deep[1:], "num_warps": [8]},
        {**in_turn, "BM": [128], "BN": [128, 160, 192], "BK": deep[1:], "num_warps": [4]},
        {"BM": [64], "BN": [32, 64, 128], "BK": [2 * deep[1]], "num_warps": [4]},
        {"BM": [16, 32], "BN": [32, 64, 128], "BK": [deep[1], 2 * deep[1]], "num_warps": [4]},
    ]
