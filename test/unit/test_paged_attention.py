"""Decoding from pages: few rows, many keys."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions

from tilec.examples.paged_attention import attend_pages

BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize(("width", "page", "stages"), [(64, 64, 3), (128, 64, 2), (128, 16, 4)])
def test_few_rows_take_two_warps_and_leave_room_for_four(
    width: int, page: int, stages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an H200 no other number of warps and slots took less for any of these."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    q, pool = np.empty((4, 32, width), BF16), np.empty((40, page, 8, width), BF16)
    table, lengths = np.empty((4, 10), np.int32), np.empty((4,), np.int32)
    logs = np.empty((4, 8, 2, 4), np.float32)
    parts = np.empty((*logs.shape, width), np.float32)
    arguments, sizes = (q, pool, pool, table, lengths, parts, logs, 0.1), {"HEADS": 4, "D": width}
    compiled = attend_pages.on("emulator").compiled(*arguments, PAGE=page, **sizes)
    chosen = [*decisions(compiled, "warps"), *decisions(compiled, "pipeline")]
    assert [one.split(" (")[0] for one in chosen] == ["2", f"{stages} stages"]
