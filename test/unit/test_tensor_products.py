"""Products into tensor memory: every kind, shape, major, and place of the operands."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from frontend_cases import load_text

from tilec.assembler import assemble
from tilec.diagnostics import CompileError
from tilec.target import TARGETS

PRODUCT = """
    @tilec.kernel(num_warps=4, grid=(1,))
    def k(
        a: tl.array, b: tl.array, c: tl.array, MMA: tl.const, M: tl.const, N: tl.const,
        BLOCK: tl.const, A_MAJOR: tl.const = 1, B_MAJOR: tl.const = 0, TENSOR: tl.const = False,
        SPAN: tl.const = None,
    ):
        K = 128 // (a.dtype.bits // 8)
        right = gpu.alloc((K, N), b.dtype, gpu.swizzled((K, N), b.dtype, B_MAJOR, SPAN))
        right.store(gpu.load(b, (0, 0), (K, N), gpu.blocked((K, N), warps=4, contiguous=B_MAJOR)))
        memory = gpu.tensor_memory((M, N), (BLOCK, N))
        acc = gpu.alloc_tensor_memory((M, N), c.dtype, memory)
        if TENSOR:
            rows = gpu.tensor_memory((M, K), (BLOCK, K), bits=a.dtype.bits)
            left = gpu.alloc_tensor_memory((M, K), a.dtype, rows)
            left.store(gpu.load(a, (0, 0), (M, K), gpu.tensor_rows(rows, 4)))
        else:
            left = gpu.alloc((M, K), a.dtype, gpu.swizzled((M, K), a.dtype, A_MAJOR))
            split = gpu.blocked((M, K), warps=4, contiguous=A_MAJOR)
            left.store(gpu.load(a, (0, 0), (M, K), split))
        done = gpu.barrier_init(count=1, slots=2)
        gpu.fence("barrier_init")
        gpu.fence("async_shared")
        gpu.fence("tcgen05_before")
        gpu.sync()
        gpu.fence("tcgen05_after")
        gpu.tcgen05_mma(left, right, acc, False, MMA)
        gpu.tcgen05_mma(left, right, acc, True, MMA, barrier=done, slot=1, commit=a.shape[0] > 0)
        done.wait(1, False)
        gpu.fence("tcgen05_after")
        tl.store(c, (0, 0), acc.load(gpu.tensor_rows(memory, 4)))
"""
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
KINDS = {
    "k16.f32.f16.f16": (np.float16, np.float16, np.float32),
    "k16.f16.f16.f16": (np.float16, np.float16, np.float16),
    "k16.f32.bf16.bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
    "k8.f32.tf32.tf32": (np.float32, np.float32, np.float32),
    "k32.f32.e4m3.e5m2": (E4M3, E5M2, np.float32),
    "k32.f16.e5m2.e4m3": (E5M2, E4M3, np.float16),
    "k32.s32.s8.s8": (np.int8, np.int8, np.int32),
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_text(PRODUCT, tmp_path_factory.mktemp("products"))


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_100a")


def check(kernels: ModuleType, kind: str, m: int, n: int, mode: str = "check", **more: object):
    """2 a @ b of small whole numbers, exact in every type."""
    left, right, result = KINDS[kind]
    block = int(more.pop("block", min(m, 128)))
    k = 128 // np.dtype(left).itemsize
    rng = np.random.default_rng(m + n)
    a, b = (rng.integers(-2, 3, s).astype(t) for s, t in (((m, k), left), ((k, n), right)))
    c = np.full((m, n), 77, result)
    constants = {"M": m, "N": n, "BLOCK": block, **more}
    name = f"tcgen05.m{block}n{more.pop('width', n)}{kind}"
    constants.pop("width", None)
    kernel = kernels.k.on(f"emulator:{mode}")
    kernel(a, b, c, MMA=name, **constants)
    expected = 2 * (a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_array_equal(c.astype(np.float64), expected)
    return kernel.compiled(a, b, c, MMA=name, **constants)


@pytest.mark.parametrize("tensor", [False, True], ids=["shared", "tensor"])
@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str, m: int, tensor: bool, kernels: ModuleType) -> None:
    mode = "late" if tensor else "check"
    compiled = check(kernels, kind, m, 64, mode, TENSOR=tensor)
    assert assemble(compiled.ptx, TARGETS["sm_100a"]).spills == 0
    assert compiled.ptx.count("tcgen05.mma.cta_group::1.kind::") == 2 * 4  # 128 bytes of k
    assert compiled.ptx.count("tcgen05.commit") == 1


@pytest.mark.parametrize(
    ("m", "n", "span"), [(64, 24, 32), (128, 48, 32), (64, 200, 32), (128, 240, 32)]
)
def test_widths_that_are_no_powers_of_two(m: int, n: int, span: int, kernels: ModuleType) -> None:
    check(kernels, "k16.f32.bf16.bf16", m, n, B_MAJOR=0, SPAN=span)


@pytest.mark.parametrize("b_major", [0, 1])
@pytest.mark.parametrize("a_major", [0, 1])
@pytest.mark.parametrize("kind", ["k16.f32.f16.f16", "k32.f32.e4m3.e5m2", "k32.s32.s8.s8"])
def test_either_major(kind: str, a_major: int, b_major: int, kernels: ModuleType) -> None:
    check(kernels, kind, 128, 128, A_MAJOR=a_major, B_MAJOR=b_major)


@pytest.mark.parametrize(("m", "n", "block", "width"), [(256, 64, 128, 64), (128, 64, 64, 32)])
@pytest.mark.parametrize("tensor", [False, True], ids=["shared", "tensor"])
def test_several_instructions(
    m: int, n: int, block: int, width: int, tensor: bool, kernels: ModuleType
) -> None:
    compiled = check(
        kernels, "k16.f32.f16.f16", m, n, "check", block=block, width=width, TENSOR=tensor
    )
    count = (m // block) * (n // width) * 4
    assert compiled.ptx.count("tcgen05.mma.cta_group::1.kind::f16") == 2 * count


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"A_MAJOR": 0}, "reads operands that are contiguous along k"),
        ({"B_MAJOR": 1}, "reads operands that are contiguous along k"),
    ],
)
def test_wide_elements_lie_along_k(
    constants: dict[str, int], message: str, kernels: ModuleType
) -> None:
    with pytest.raises(CompileError, match=message):
        check(kernels, "k8.f32.tf32.tf32", 128, 64, **constants)


def test_the_largest_instruction_is_chosen(tmp_path: Path) -> None:
    text = PRODUCT.replace("False, MMA)", "False)").replace("True, MMA,", "True,")
    compiled = check(load_text(text, tmp_path), "k16.f32.bf16.bf16", 256, 48, SPAN=32)
    assert compiled.ptx.count("tcgen05.mma") == 2 * 2 * 4
