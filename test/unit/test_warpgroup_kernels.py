"""Warpgroup instructions on the emulator against NumPy, and what ptxas says about them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulated import lower, run
from shares import MODES, modes
from warpgroup_kernels import Product, view_text

from tilec.compile.assembler import assemble
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError

TARGET = "sm_90a"
TOLERANCE = {"f32": 2e-6, "f16": 1e-2, "i32": 0.0}

BF16 = "wgmma.m64n{}k16.f32.bf16.bf16"
TYPES = [
    Product("wgmma.m64n64k16.f32.bf16.bf16", 64, 64, 64),
    Product("wgmma.m64n64k16.f32.f16.f16", 64, 64, 64),
    Product("wgmma.m64n64k16.f16.f16.f16", 64, 64, 64),
    Product("wgmma.m64n64k8.f32.tf32.tf32", 64, 64, 32),
    *(
        Product(f"wgmma.m64n64k32.f32.{a}.{b}", 64, 64, 128)
        for a in ("e4m3", "e5m2")
        for b in ("e4m3", "e5m2")
    ),
    Product("wgmma.m64n64k32.s32.s8.s8", 64, 64, 128),
]
MAJORS = [
    Product(BF16.format(64), 64, 128, 64, lhs=lhs, rhs=rhs)
    for lhs, rhs in (
        (("k", 128), ("mn", 128)),
        (("mn", 128), ("k", 64)),
        (("mn", 64), ("mn", 32)),
        (("k", 64), ("k", 32)),
        (("k", 32), ("mn", 64)),
        (("mn", 32), ("k", 0)),
        (("k", 0), ("mn", 0)),
        (("mn", 0), ("k", 128)),
    )
]
WIDTHS = [
    *(
        Product(BF16.format(n), 64, n, 32, rhs=rhs, lhs=("k", 64))
        for n in (8, 24, 96, 256)
        for rhs in (("k", 64), ("k", 32))
    ),
    Product(BF16.format(8), 64, 64, 32, lhs=("k", 64), rhs=("mn", 128)),
    Product(BF16.format(96), 64, 96, 32, lhs=("k", 64), rhs=("mn", 64)),
    Product("wgmma.m64n24k32.s32.s8.s8", 64, 48, 64, lhs=("k", 64), rhs=("k", 64)),
    Product("wgmma.m64n256k32.f32.e4m3.e5m2", 64, 256, 64, lhs=("k", 32), rhs=("k", 64)),
]
SHARED_TILES = [
    Product(BF16.format(64), 128, 64, 64, warps=4),
    Product(BF16.format(64), 128, 64, 64, warps=8),
    Product(BF16.format(128), 256, 128, 32, warps=8, lhs=("mn", 128), rhs=("mn", 64)),
    Product(BF16.format(64), 64, 128, 64, warps=8, rhs=("mn", 128)),
    Product(BF16.format(32), 64, 128, 64, warps=8),
    Product("wgmma.m64n64k16.f16.f16.f16", 256, 64, 32, warps=4, lhs=("k", 64), rhs=("k", 32)),
]
REGISTERS = [
    Product(BF16.format(64), 64, 64, 64, lhs=None),
    Product(BF16.format(32), 128, 64, 32, lhs=None, rhs=("mn", 64), warps=8),
    Product("wgmma.m64n64k16.f16.f16.f16", 128, 64, 32, lhs=None, rhs=("k", 64)),
    Product("wgmma.m64n64k8.f32.tf32.tf32", 64, 64, 32, lhs=None),
    Product("wgmma.m64n32k32.f32.e5m2.e4m3", 64, 64, 64, lhs=None, rhs=("k", 64)),
    Product("wgmma.m64n32k32.s32.s8.s8", 64, 32, 64, lhs=None, rhs=("k", 64)),
]
LOOPS = [
    Product(BF16.format(64), 64, 64, 64, steps=4),
    Product(BF16.format(64), 64, 64, 64, steps=3, in_flight=2, zero=True),
    Product(BF16.format(128), 128, 128, 32, warps=8, steps=3, lhs=("k", 64), rhs=("mn", 128)),
    Product("wgmma.m64n64k16.f16.f16.f16", 128, 64, 32, steps=3, lhs=("k", 64), rhs=("k", 64)),
    Product("wgmma.m64n64k32.s32.s8.s8", 64, 64, 64, steps=2, lhs=("k", 64), rhs=("k", 64)),
]
ZEROS = [
    Product(BF16.format(64), 64, 64, 64, zero=True),
    Product(BF16.format(64), 128, 128, 32, lhs=None, rhs=("k", 64), zero=True),
    Product("wgmma.m64n64k16.f16.f16.f16", 64, 64, 32, lhs=("k", 64), rhs=("k", 64), zero=True),
]
ALL = [*TYPES, *MAJORS, *WIDTHS, *SHARED_TILES, *REGISTERS, *LOOPS, *ZEROS]


def name_of(case: Product) -> str:
    """A readable test name."""
    sides = [f"{s[0]}{s[1]}" if s else "registers" for s in (case.lhs, case.rhs)]
    extra = f"-loop{case.steps}" if case.steps else ""
    return f"{case.name[6:]}-{case.m}x{case.n}x{case.k}-w{case.warps}-{'-'.join(sides)}{extra}"


@pytest.mark.share(2)
@pytest.mark.parametrize("case", ALL, ids=name_of)
def test_products_are_right_in_every_mode(case: Product) -> None:
    a, b, c = case.arguments(seed=case.n + case.k)
    expected = case.reference(a, b, c)
    scale = np.abs(expected).max()
    for mode in modes():
        result = c.copy()
        run(case.text(), [a, b, result], num_warps=case.warps, target=TARGET, mode=mode)
        np.testing.assert_allclose(
            result.astype(np.float64), expected, rtol=0, atol=TOLERANCE[case.row.acc] * scale
        )


ASSEMBLED = [TYPES[0], *TYPES[2:4], TYPES[5], TYPES[-1], *MAJORS[2:4], *WIDTHS[:2], WIDTHS[6]]
ASSEMBLED += [*SHARED_TILES[1:3], *REGISTERS, *LOOPS, *ZEROS]


@pytest.mark.share(2)
@pytest.mark.parametrize("case", ASSEMBLED, ids=name_of)
def test_ptxas_keeps_them_asynchronous(case: Product) -> None:
    ptx, _ = lower(case.text(), num_warps=case.warps, target=TARGET)
    found = assemble(ptx, find_target(TARGET))
    assert not [m for m in found.messages if "C75" in m]
    assert found.spills == 0


@pytest.mark.parametrize("mode", MODES)
def test_operands_may_be_views(mode: str) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((128, 128)).astype(ml_dtypes.bfloat16) for _ in range(2))
    for first in (0, 8, 64):
        c = np.zeros((64, 128), np.float32)
        arguments = [a, b, c, np.int32(first // 8)]
        run(view_text(8), arguments, num_warps=4, target=TARGET, mode=mode)
        expected = a[first : first + 64].astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_views_in_the_middle_of_a_matrix_are_refused() -> None:
    with pytest.raises(CompileError, match=r"the view begins at a multiple of 4 of dimension 0"):
        lower(view_text(4), num_warps=4, target=TARGET)
