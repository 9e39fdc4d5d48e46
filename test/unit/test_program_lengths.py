"""Programs of different lengths: each runs once, whatever CTAs there are, and long ones meet short
ones."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.runtime import emulator_device

ROWS = 8


@tilec.kernel(grid=lambda o: (o.shape[1], o.shape[0]), num_warps=1, persistent=True)
def triangle(o: tl.array, work: tl.array):
    """o[z, i] += i + 1, by as many steps; work[CTA] += steps."""
    z, i = tl.program_id(1), tl.program_id(0)
    steps = tl.zeros((), tl.i32)
    for _ in tl.range(0, i + 1):
        steps += tl.inline_ptx("mov.u32 $0, 1;", "=r", [], tl.i32)  # known to nobody
    cta = tl.inline_ptx("mov.u32 $0, %ctaid.x;", "=r", [], tl.i32, pure=True)
    tl.atomic_add(o, (z, i), steps)
    tl.atomic_add(work, (cta,), steps)


@pytest.mark.parametrize("ctas", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("heads", [1, 2, 3, 7])
def test_every_program_once(ctas: int, heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator_device, "RESIDENT_CTAS", ctas)
    o, work = np.zeros((heads, ROWS), np.int32), np.zeros(ctas, np.int32)
    triangle.on("emulator")(o, work)
    assert (o == np.arange(1, ROWS + 1)).all()
    assert work.sum() == o.sum()
    # Turns in pairs take ROWS + 1 steps; one without another, or in the middle, at most ROWS.
    assert work.max() <= (heads * ROWS // ctas // 2 + 1) * (ROWS + 1)
    assert work.max() - work.min() <= ROWS + 1
