"""Rows gathered by number on both sides of a product: the threads that multiply copy them by
cp.async under the product, which stays in flight over the back edge of its loop."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned
from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError

BF16 = ml_dtypes.bfloat16


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0], BM))
def chosen_rows(
    x: tl.array, w: tl.array, of_x: tl.array, of_w: tl.array, y: tl.array,
    BM: tl.const = 64, BK: tl.const = 32,
):  # fmt: skip
    """y = x[of_x] @ w[of_w].T"""
    m = tl.program_id(0) * BM
    left, right = tl.load(of_x, m, BM)[:, None], tl.load(of_w, 0, 64)[:, None]
    acc = tl.zeros((BM, 64), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        column = (k + tl.arange(BK))[None, :]
        acc = tl.dot(tl.gather(x, (left, column)), tl.gather(w, (right, column)).T, acc)
    tl.store(y, (m, 0), acc)


def _arguments(depth: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(depth)
    x, w = (rng.standard_normal((rows, depth)).astype(BF16) for rows in (90, 70))
    of_x, of_w = (rng.integers(0, len(a), n, np.int32) for a, n in ((x, 128), (w, 64)))
    return x, w, of_x, of_w, poisoned((128, 64), np.float32)


@pytest.mark.parametrize("depth", [16, 64, 352])
def test_rows_on_both_sides(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer iterations than stages, and more than the ring has slots; no access races."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x, w, of_x, of_w, y = _arguments(depth)
    there = chosen_rows.on("emulator:check")
    there(x, w, of_x, of_w, y)
    expected = x[of_x].astype(float) @ w[of_w].astype(float).T
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-3)
    kernel = there.compiled(x, w, of_x, of_w, y)
    assert decisions(kernel, "matrix instructions")[0].startswith("one group in flight (copies")


def test_the_emulator_finds_a_sync_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the loop: in front of the product, and between the wait for the product before and the
    copies into its slot; and the wait for the copies, and the fence."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    arguments = _arguments(352)
    made = chosen_rows.on("emulator").compiled(*arguments, BM=128)
    start = made.ptx.rindex("$L", 0, made.ptx.index("wgmma.mma_async"))
    end = made.ptx.index("bra", start)
    loop = made.ptx[start:end]

    def found(without: str) -> bool:
        gpu = EmulatorDevice("check")
        broken = made.ptx[:start] + without + made.ptx[end:]
        try:
            gpu.launch(gpu.load(replace(made, ptx=broken)), list(arguments), 1)
        except (FindingsError, EmulatorError):
            return True
        return bool(capsys.readouterr().err)

    assert not found(loop)
    words = r"(bar\.sync|fence\.proxy\.async\.shared::cta|cp\.async\.wait_group)[^;]*;"
    places = list(re.finditer(words, loop))
    assert len(places) == 4
    unseen = [at[0] for at in places if not found(loop[: at.start()] + loop[at.end() :])]
    assert not unseen
