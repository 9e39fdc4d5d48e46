"""Tiles that leave through the copy engine, in panels of any number and width."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilec.examples.matmul import matmul
from tilec.hardware.ring_stages import panel_bytes, pending_stores, store_slots

BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize("panels", range(1, 9))
@pytest.mark.parametrize("nbytes", [1 << 11, 1 << 13, 1 << 14, 1 << 15])
def test_a_panel_waits_for_what_had_its_slot_last(panels: int, nbytes: int) -> None:
    slots = store_slots(panels, nbytes)
    assert slots == 1 or (slots <= panels and (slots - 1) * nbytes <= 1 << 14)
    taken = [number % slots for _ in range(3) for number in range(panels)]
    for number in range(panels):
        now = 2 * panels + number
        before = max(n for n in range(now) if taken[n] == taken[now])
        assert pending_stores(number, panels, slots) == now - before - 1


def test_rows_that_fill_the_narrowest_swizzle_alone_go_whole() -> None:
    """A warp waits for each panel; an odd number of sectors needs no swizzle, and is not cut."""
    rows = (32, 64, 96, 160, 192, 224, 288, 384, 416, 480, 40)
    assert [panel_bytes(64, row) for row in rows] == [
        *(32, 64, 96, 160, 64, 224, 288, 128, 416, 480, 0)
    ]
    found = [panel_bytes(128, row) for row in (160, 224, 288, 352, 416, 480)]
    assert found == [160, 224, 96, 352, 416, 160]


@pytest.mark.parametrize("columns", [48, 112, 160, 192, 240])
@pytest.mark.parametrize("persistent", [True, False])
def test_products_leave_in_panels(
    columns: int, persistent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ragged ends, several programs a CTA; no panel is written that is still read, and each element
    arrives."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, shape).astype(BF16) for shape in ((200, 72), (72, 728)))
    c = np.full((200, 728), np.nan, BF16)
    kernel, sizes = matmul.demanding(persistent=persistent), {"BM": 64, "BN": columns, "BK": 64}
    kernel.check(a, b, c, **sizes)
    assert np.array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(BF16))
    assert "tensor store: TMA" in kernel.report(a, b, c, **sizes)
