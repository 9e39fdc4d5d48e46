"""The Hopper kernel by hand: right for any size, assembled as written, every slip found: those with
the ring by the compiler, all others by the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from frontend_cases import load_text
from shares import MODES
from test_explicit_kernels import changed

from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.examples.explicit_hopper_gemm import hopper_gemm
from tilec.hardware.target import TARGETS
from tilec.messages.diagnostics import CompileError
from tilec.runtime.emulator_device import FindingsError

SPECS = tuple(f"{name}:bf16[?,?:8;?:8,1]" for name in "abc")
SMALL = {"BN": 64, "INSTRUCTION": "wgmma.m64n64k16.f32.bf16.bf16"}


@pytest.fixture(autouse=True)
def _hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


def check_product(
    kernel: Kernel, mode: str, sizes: tuple[int, int, int], **constants: object
) -> None:
    """One launch against NumPy; what bf16 rounds away is 2^-9 of a value."""
    m, n, k = sizes
    rng = np.random.default_rng(m * n + k)
    a = rng.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((k, n)).astype(ml_dtypes.bfloat16)
    c = np.full((m, n), np.nan, ml_dtypes.bfloat16)
    kernel.on(f"emulator:{mode}")(a, b, c, **constants)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=2**-8, atol=1e-4 * max(k, 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "sizes",
    [(128, 64, 64), (129, 72, 200), (1, 8, 8), (520, 136, 72), (128, 64, 0), (300, 200, 136)],
    ids=str,
)
def test_the_product_is_right(sizes: tuple[int, int, int], mode: str) -> None:
    """Several tiles a CTA, edges along M, N and K, no K at all."""
    check_product(hopper_gemm, mode, sizes, **SMALL)


@pytest.mark.parametrize(("slots", "bk"), [(2, 64), (3, 128), (5, 64)])
def test_any_ring_will_do(slots: int, bk: int) -> None:
    check_product(hopper_gemm, "check", (300, 72, 456), **SMALL, SLOTS=slots, BK=bk)


def test_the_wide_tile() -> None:
    check_product(hopper_gemm, "check", (200, 520, 200))


@pytest.mark.parametrize("constants", [{}, SMALL], ids=["wide", "small"])
def test_it_assembles_as_written(constants: dict[str, object]) -> None:
    """No spills, and no word of ptxas about serialised wgmma (C75xx)."""
    compiled = hopper_gemm.compile(SPECS, constants, target="sm_90a")
    found = assemble(compiled.ptx, TARGETS["sm_90a"])
    assert found.spills == 0
    assert found.messages == ()
    assert compiled.threads == 384
    assert compiled.persistent
    assert compiled.ptx.count("setmaxnreg.dec.sync.aligned.u32 \t40") <= 1
    registers = re.findall(r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32\s+(\d+)", compiled.ptx)
    assert sorted(registers) == [("dec", "40"), ("inc", "232")]
    wide = constants.get("BN", 256)
    products = re.findall(rf"wgmma\.mma_async\.sync\.aligned\.m64n{wide}k16", compiled.ptx)
    assert len(products) == 4  # a k-step of 64
    assert compiled.ptx.count("wgmma.commit_group") == 1
    assert compiled.ptx.count("cp.async.bulk.tensor.2d.shared") == 1 + wide // 64
    assert compiled.ptx.count("cp.async.bulk.tensor.2d.global") == wide // 64
    assert compiled.ptx.count("cp.async.bulk.commit_group") == 1


RING_SLIPS = {
    "it is filled before it is read": (
        "ring.acquire(count)",
        "ring.slot(count)",
        "fills a slot that it has not acquired",
    ),
    "it is read before it is full": (
        "ring.wait(count)",
        "ring.slot(count)",
        "reads a slot that was not waited for",
    ),
    "the turn before is awaited": (
        "ring.wait(count)",
        "ring.wait(count, previous=True)",
        "releases a slot more than 2 times a turn",
    ),
    "a slot is released before it is read": (
        "acc = gpu.wgmma_wait(acc, pending=1)",
        "pass",
        "products may still read",
    ),
    "the slot in use is released": (
        "it\n            ring.release(ring.slot(count - 1)",
        "it\n            ring.release(slot",
        "products may still read",
    ),
    "too few bytes are announced": (
        "a_slots.bytes + b_slots.bytes",
        "a_slots.bytes",
        "or that is full",
    ),
    "too many bytes are announced": (
        "a_slots.bytes + b_slots.bytes",
        "a_slots.bytes + b_slots.bytes + 16",
        "nobody passes on",
    ),
    "the last slot is not released": ("if steps > 0:", "if steps < 0:", "nobody passes on"),
    "too many releases are expected": (
        "releases=WARPGROUPS",
        "releases=WARPGROUPS + 1",
        "nobody passes on",
    ),
    "every warp releases": (
        'by="warpgroup"',
        'by="warp"',
        "releases a slot more than 2 times a turn",
    ),
    "the count starts again in every tile": (
        "            zeros = gpu.zeros",
        "            count = 0\n            zeros = gpu.zeros",
        "waits for turn 0 of a ring whose slot was filled again",
    ),
}


@pytest.mark.parametrize("name", RING_SLIPS)
def test_a_ring_whose_sides_disagree_is_an_error(name: str, tmp_path: Path) -> None:
    old, new, message = RING_SLIPS[name]
    wrong = changed(tmp_path, hopper_gemm, (old, new))
    with pytest.raises(CompileError, match=message) as found:
        wrong.compile(SPECS, SMALL, target="sm_90a")
    assert found.value.location is not None


SLIPS = {
    "the output is not fenced": ('gpu.fence("async_shared")', "pass"),
    "the output is overwritten in flight": (
        "gpu.tma_wait(pending=0, read=True)  # the tile before",
        "pass  # ",
    ),
    "the output is stored before it is written": (
        '    gpu.fence("async_shared")\n    gpu.sync(barrier=1)',
        '    gpu.fence("async_shared")',
    ),
    "the output is overwritten before all know that it left": (
        "    gpu.sync(barrier=1)\n    out.store",
        "    out.store",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_what_the_author_forgot_is_found(name: str, tmp_path: Path) -> None:
    wrong = changed(tmp_path, hopper_gemm, SLIPS[name])
    with pytest.raises(FindingsError):
        check_product(wrong, "check", (300, 136, 264), **SMALL)


def test_the_text_unchanged_has_no_findings(tmp_path: Path) -> None:
    check_product(changed(tmp_path, hopper_gemm), "check", (300, 136, 264), **SMALL)


@pytest.mark.parametrize(
    ("target", "feature"), [("sm_80", "TMA"), ("sm_80", "MBARRIER"), ("sm_100a", "WGMMA")]
)
def test_other_hardware_is_refused_op_by_op(target: str, feature: str) -> None:
    with pytest.raises(CompileError, match=f"needs {feature}, which {target} does not have") as f:
        hopper_gemm.compile(SPECS, SMALL, target=target)
    assert all(error.location is not None for error in f.value.errors)
    assert "sm_90a" in str(f.value)


WGMMA_KERNEL = """
    @tilec.kernel(num_warps=4, grid=(1,))
    def k(
        a: tl.array, b: tl.array, c: tl.array, MMA: tl.const, MAJOR: tl.const, REGISTERS: tl.const
    ):
        M, N, K = 64, 48, 64
        acc_layout = gpu.accumulator(MMA, (M, N))
        right = gpu.alloc((K, N), b.dtype, gpu.swizzled((K, N), b.dtype, MAJOR, span=32))
        right.store(gpu.load(b, (0, 0), (K, N), gpu.blocked((K, N), warps=4, contiguous=MAJOR)))
        if REGISTERS:
            left = gpu.load(a, (0, 0), (M, K), gpu.lhs_fragments(MMA, acc_layout, K))
        else:
            left = gpu.alloc((M, K), a.dtype, gpu.swizzled((M, K), a.dtype))
            left.store(gpu.load(a, (0, 0), (M, K), gpu.blocked((M, K), warps=4)))
        gpu.fence("async_shared")
        gpu.sync()
        acc = gpu.wgmma_fence(gpu.zeros((M, N), c.dtype, acc_layout))
        tl.store(c, (0, 0), gpu.wgmma(left, right, acc, MMA).wait())
"""
OPERANDS = {
    "f32.bf16.bf16": (ml_dtypes.bfloat16, np.float32, 16),
    "f32.f16.f16": (np.float16, np.float32, 16),
    "f16.f16.f16": (np.float16, np.float16, 16),
    "f32.tf32.tf32": (np.float32, np.float32, 8),
    "f32.e4m3.e5m2": (ml_dtypes.float8_e4m3fn, np.float32, 32),
    "s32.s8.s8": (np.int8, np.int32, 32),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("registers", [False, True], ids=["buffer", "registers"])
@pytest.mark.parametrize("major", [0, 1], ids=["k", "n"])
@pytest.mark.parametrize("types", OPERANDS)
def test_wgmma_of_every_kind(types: str, major: int, registers: bool, tmp_path: Path) -> None:
    """Both majors where the hardware has them, the left side from registers, N of 48."""
    dtype, result, k = OPERANDS[types]
    if major == 1 and k != 16:
        pytest.skip("only 16-bit types may be contiguous along n")
    instruction = f"wgmma.m64n48k{k}.{types}"
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, s).astype(dtype) for s in ((64, 64), (64, 48)))
    if types.endswith("e5m2"):
        b = b.astype(ml_dtypes.float8_e5m2)
    c = np.full((64, 48), 99, result)
    kernel = load_text(WGMMA_KERNEL, tmp_path).k.on("emulator:check")
    kernel(a, b, c, MMA=instruction, MAJOR=major, REGISTERS=registers)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


def test_warps_store_their_own_parts(tmp_path: Path) -> None:
    text = """
        @tilec.kernel(num_warps=4, grid=(1,))
        def k(x: tl.array, y: tl.array):
            L = gpu.accumulator("wgmma.m64n64k16.f32.bf16.bf16", (64, 64))
            target = gpu.make_tensor_map(y, (16, 64))
            buffer = gpu.alloc((64, 64), tl.bf16, gpu.swizzled((64, 64), tl.bf16))
            for i in tl.range(3):
                tile = gpu.load(x, (i * 64, 0), (64, 64), L) * 2.0
                gpu.warp_tma_store(tile.to(tl.bf16), buffer, target, (i * 64, 0))
            gpu.tma_wait()
    """
    x = np.random.default_rng(0).standard_normal((150, 72)).astype(np.float32)
    y = np.zeros((150, 56), ml_dtypes.bfloat16)
    load_text(text, tmp_path).k.on("emulator:check")(x, y)
    np.testing.assert_array_equal(y, (2 * x[:, :56]).astype(ml_dtypes.bfloat16))
