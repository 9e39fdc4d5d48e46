"""Roles by hand, with every kind of producer: cp.async, plain loads, the copy engine (which
`test_explicit_hopper.py` has)."""

from __future__ import annotations

from pathlib import Path

import pytest
from frontend_cases import load_text
from shares import MODES
from test_explicit_kernels import check_product

from tilec.call.jit import Kernel
from tilec.runtime.emulator_device import FindingsError

HEAD = """
    MMA = "mma.m16n8k16.f32.bf16.bf16"

    @tilec.kernel(
        num_warps=4 + LOADERS,
        grid=lambda d, BM, BN: (tl.cdiv(d.shape[0], BM), tl.cdiv(d.shape[1], BN)),
    )
    def k(
        a: tl.array,
        bt: tl.array,
        d: tl.array,
        BM: tl.const = 64,
        BN: tl.const = 64,
        SLOTS: tl.const = 3,
    ):
        m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
        steps = tl.cdiv(a.shape[1], 16)
        a_ring = gpu.alloc((BM, 16), tl.bf16, gpu.swizzled((BM, 16), tl.bf16), slots=SLOTS)
        b_ring = gpu.alloc((16, BN), tl.bf16, gpu.swizzled((16, BN), tl.bf16, 0), slots=SLOTS)
        full = gpu.barrier_init(count=32 * LOADERS, slots=SLOTS)
        empty = gpu.barrier_init(count=4, slots=SLOTS)
        gpu.fence("barrier_init")
        gpu.sync()
        with gpu.role("load", first_warp=4, warps=LOADERS):
            for i in tl.range(steps):
                slot, parity = gpu.ring_position(i, slots=SLOTS)
                empty.wait(slot, ~parity)
"""
COPIES = """
                gpu.cp_async(a, a_ring.slot(slot), (m, i * 16))
                gpu.cp_async(bt, b_ring.slot(slot), (n, i * 16), dims=(1, 0))
                gpu.cp_async_arrive(full, slot)
"""
LOADS = """
                rows = gpu.blocked((BM, 16), LOADERS, 8)
                columns = gpu.blocked((16, BN), LOADERS, 8, contiguous=0)
                a_ring.slot(slot).store(gpu.load(a, (m, i * 16), (BM, 16), rows))
                b_ring.slot(slot).store(gpu.load(bt, (n, i * 16), (16, BN), columns, dims=(1, 0)))
                full.arrive(slot, per="thread")
"""
TAIL = """
        with gpu.role("multiply", first_warp=0, warps=4):
            layout = gpu.accumulator(MMA, (BM, BN), along_m=4)
            acc = gpu.zeros((BM, BN), tl.f32, layout)
            for i in tl.range(steps):
                slot, parity = gpu.ring_position(i, slots=SLOTS)
                full.wait(slot, parity)
                left = a_ring.slot(slot).load(gpu.lhs_fragments(MMA, layout))
                right = b_ring.slot(slot).load(gpu.rhs_fragments(MMA, layout))
                empty.arrive(slot, per="warp")
                acc = gpu.mma(left, right, acc, MMA)
            tl.store(d, (m, n), acc)
"""
PRODUCERS = {"cp.async": COPIES, "loads": LOADS}


@pytest.fixture(autouse=True)
def _hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


def kernel(tmp_path: Path, producer: str, loaders: int, *changes: tuple[str, str]) -> Kernel:
    """A kernel with that producer in so many warps, with some of its text replaced."""
    text = (HEAD + PRODUCERS[producer] + TAIL).replace("LOADERS", str(loaders))
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return load_text(text, tmp_path).k


@pytest.mark.share(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loaders", [1, 2, 4])
@pytest.mark.parametrize("producer", PRODUCERS)
def test_the_product_is_right(producer: str, loaders: int, mode: str, tmp_path: Path) -> None:
    made = kernel(tmp_path, producer, loaders)
    for sizes in ((64, 64, 64), (70, 66, 200), (5, 9, 0)):
        check_product(made, f"emulator:{mode}", sizes)


SLIPS = {
    "a slot is filled before it is read": ("empty.wait(slot, ~parity)", "pass"),
    "a slot is read before it is full": ("full.wait(slot, parity)", "pass"),
    "one warp's arrival stands for four": ("count=4,", "count=1,"),
    "a slot is freed before it is read": (
        "full.wait(slot, parity)",
        'full.wait(slot, parity)\n                empty.arrive(slot, per="warp")',
    ),
    "the ring is never freed": ('empty.arrive(slot, per="warp")', "pass"),
}


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("name", SLIPS)
def test_what_the_author_forgot_is_found(name: str, producer: str, tmp_path: Path) -> None:
    wrong = kernel(tmp_path, producer, 4, SLIPS[name])
    with pytest.raises(FindingsError):
        check_product(wrong, "emulator:check", (64, 64, 200))


@pytest.mark.parametrize("producer", PRODUCERS)
def test_an_early_arrival_is_found(producer: str, tmp_path: Path) -> None:
    """Threads arrive without waiting for their copies, or before their stores."""
    early = {
        "cp.async": ("gpu.cp_async_arrive(full, slot)", "full.arrive(slot)"),
        "loads": (
            "rows = gpu.blocked((BM, 16), 4, 8)",
            'full.arrive(slot, per="thread")\n                rows = gpu.blocked((BM, 16), 4, 8)',
        ),
    }
    changes = [early[producer]]
    if producer == "loads":
        changes.insert(0, ('                full.arrive(slot, per="thread")\n', ""))
    with pytest.raises(FindingsError):
        check_product(kernel(tmp_path, producer, 4, *changes), "emulator:check", (64, 64, 200))
