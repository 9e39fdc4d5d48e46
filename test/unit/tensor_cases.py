"""Small kernels about tensor memory, each with its check: on the emulator, or a GPU that has it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.hardware.layout import parse_layout
from tilec.hardware.tensor_memory import parse_tensor_memory_layout
from tilec.language import gpu

TARGET = "sm_100a"
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def run(
    kernel: Kernel, device: str, inputs: tuple[np.ndarray, ...], out: np.ndarray, **constants: Any
) -> Kernel:
    """Calls a kernel on a device; on a GPU the arrays are copied there and back."""
    on = kernel.on(device)
    where = tilec.device(device)
    if where.kind == "emulator":
        on(*inputs, out, **constants)
        return on
    placed = [where.array(a) for a in (*inputs, out)]
    on(*placed, **constants)
    where.copy_back(placed[-1], out)
    return on


@tilec.kernel(num_warps=4, grid=(1,))
def store_and_load(
    x: tl.array, y: tl.array, MEMORY: tl.const, SHAPE: tl.const, FIRST: tl.const, SECOND: tl.const
):
    """y = x: written in one register layout, read in another."""
    there = gpu.alloc_tensor_memory(SHAPE, x.dtype, gpu.tensor_layout(MEMORY))
    there.store(gpu.load(x, (0, 0), SHAPE, gpu.layout(FIRST)))
    gpu.fence("tcgen05_before")
    gpu.sync()
    gpu.fence("tcgen05_after")
    tl.store(y, (0, 0), there.load(gpu.layout(SECOND)))


def check_layouts(
    device: str, memory: str, first: str, second: str, dtype: Any = np.float32
) -> str:
    """What is written in `first` is read in `second`. Gives the PTX."""
    shape = parse_tensor_memory_layout(memory).shape
    kernel = store_and_load.demanding(num_warps=parse_layout(second).num_threads // 32)
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    y = np.zeros(shape, dtype)
    constants = {"MEMORY": memory, "SHAPE": shape, "FIRST": first, "SECOND": second}
    kernel = run(kernel, device, (x,), y, **constants)
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32))
    return kernel.compiled(x, y, **constants).ptx


@tilec.kernel(num_warps=4, grid=(1,))
def product(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    M: tl.const,
    N: tl.const,
    BLOCK: tl.const,
    MMA: tl.const = None,
    A_MAJOR: tl.const = 1,
    B_MAJOR: tl.const = 0,
    TENSOR: tl.const = False,
    SPAN: tl.const = None,
):
    """c = 2 a @ b by two products into one accumulator, the second added to the first.

    TENSOR: a in tensor memory. MAJOR: which dimension of an operand is contiguous. SPAN: bytes of
    b's swizzle, 0 for none.
    """
    K = 128 // (a.dtype.bits // 8)
    shared = gpu.swizzled((K, N), b.dtype, B_MAJOR, SPAN)
    right = gpu.alloc((K, N), b.dtype, shared)
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


KINDS = {
    "k16.f32.f16.f16": (np.float16, np.float16, np.float32),
    "k16.f16.f16.f16": (np.float16, np.float16, np.float16),
    "k16.f32.bf16.bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
    "k8.f32.tf32.tf32": (np.float32, np.float32, np.float32),
    "k32.f32.e4m3.e5m2": (E4M3, E5M2, np.float32),
    "k32.f16.e5m2.e4m3": (E5M2, E4M3, np.float16),
    "k32.s32.s8.s8": (np.int8, np.int8, np.int32),
}


def check_product(
    device: str,
    kind: str,
    m: int,
    n: int,
    *,
    block: int = 0,
    width: int = 0,
    chosen: bool = False,
    **constants: Any,
) -> Any:
    """The product of small whole numbers, exact in every type. Gives the compiled kernel.

    By instructions of `block` x `width`, `chosen`: by those that the compiler takes.
    """
    left, right, result = KINDS[kind]
    block, width = block or min(m, 128), width or n
    k = 128 // np.dtype(left).itemsize
    rng = np.random.default_rng(m + n)
    a, b = (rng.integers(-2, 3, s).astype(t) for s, t in (((m, k), left), ((k, n), right)))
    c = np.full((m, n), 77, result)
    constants |= {"M": m, "N": n, "BLOCK": block}
    if not chosen:
        constants["MMA"] = f"tcgen05.m{block}n{width}{kind}"
    kernel = run(product, device, (a, b), c, **constants)
    expected = 2 * (a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_array_equal(c.astype(np.float64), expected)
    return kernel.compiled(a, b, c, **constants)


@tilec.kernel(num_warps=4, grid=(1,))
def copy_to_lanes(
    x: tl.array, y: tl.array, SHAPE: tl.const, ROWS: tl.const, MEMORY: tl.const, SHARED: tl.const
):
    """y = what all lanes hold after a tcgen05.cp of SHAPE into zeros."""
    source = gpu.alloc((ROWS, 32), tl.f32, gpu.shared(SHARED))
    memory = gpu.tensor_layout(MEMORY)
    lanes = gpu.tensor_rows(memory, 4)
    there = gpu.alloc_tensor_memory((128, 32), tl.f32, memory)
    done = gpu.barrier_init(count=1)
    gpu.fence("barrier_init")
    there.store(gpu.zeros((128, 32), tl.f32, lanes))
    source.store(gpu.load(x, (0, 0), (ROWS, 32), gpu.blocked((ROWS, 32), warps=4)))
    gpu.fence("async_shared")
    gpu.fence("tcgen05_before")
    gpu.sync()
    gpu.fence("tcgen05_after")
    gpu.tcgen05_copy(source, there.view((0, 0), (ROWS, 32)), SHAPE)
    gpu.tcgen05_commit(done)
    done.wait(0, False)
    gpu.fence("tcgen05_after")
    tl.store(y, (0, 0), there.load(lanes))


COPIES = {
    "128x256b": (128, "(128,32):(1@lane,1@col)"),
    "128x128b": (128, "(128,32):(1@lane,1@col)"),
    "4x256b": (4, "((4,32),32):((32@lane,1@lane),1@col)"),
    "64x128b.warpx2::02_13": (64, "(128,32):(1@lane,1@col)"),
    "64x128b.warpx2::01_23": (64, "((32,2,2),32):((1@lane,64@lane,32@lane),1@col)"),
    "32x128b.warpx4": (32, "(128,32):(1@lane,1@col)"),
}
"""Rows, and a layout of all lanes in which the copies follow each other."""


def check_copy(device: str, name: str, *, swizzled: bool) -> Any:
    """tcgen05.cp of every row, and of its copies. Gives the compiled kernel."""
    rows, memory = COPIES[name]
    shared = f"((8,{rows // 8}),(4,8)):((4,32),(1,{rows * 4}))"
    if rows < 8:
        shared = "(4,(4,8)):(4,(1,32))"
    if swizzled:
        shared = f"S<3,4,3> o ({rows},32):(32,1)"
    x = np.random.default_rng(3).standard_normal((rows, 32)).astype(np.float32)
    y = np.full((128, 32), np.nan, np.float32)
    constants = {"SHAPE": name, "ROWS": rows, "MEMORY": memory, "SHARED": shared}
    kernel = run(copy_to_lanes, device, (x,), y, **constants)
    copies = 1 if rows in (4, 128) else 128 // rows
    expected = np.zeros((128, 32), np.float32)
    expected[: copies * rows] = np.tile(x, (copies, 1))
    np.testing.assert_array_equal(y, expected)
    return kernel.compiled(x, y, **constants)


@tilec.kernel(num_warps=4, grid=(1,))
def scaled_product(
    a: tl.array,
    a_scale: tl.array,
    b: tl.array,
    b_scale: tl.array,
    c: tl.array,
    N: tl.const,
    K: tl.const,
    MMA: tl.const,
    SCALES: tl.const,
):
    """c = (a * its scales) @ (b * its scales), 128 x N, scales through shared memory.

    SCALES: where the scales of 128 rows, and of N, lie there: 16 bytes a lane, piece by piece.
    """
    M, BLOCKS = 128, K // 32
    left = gpu.alloc((M, K), a.dtype, gpu.swizzled((M, K), a.dtype))
    right = gpu.alloc((N, K), b.dtype, gpu.swizzled((N, K), b.dtype))
    left.store(gpu.load(a, (0, 0), (M, K), gpu.blocked((M, K), warps=4, width=16)))
    right.store(gpu.load(b, (0, 0), (N, K), gpu.blocked((N, K), warps=4, width=16)))
    left_image = gpu.alloc((M, BLOCKS), tl.i8, gpu.shared(SCALES[0]))
    right_image = gpu.alloc((N, BLOCKS), tl.i8, gpu.shared(SCALES[1]))
    rows = gpu.blocked((M, BLOCKS), warps=4)
    columns = gpu.blocked((N, BLOCKS), warps=4)
    left_image.store(gpu.load(a_scale, (0, 0), (M, BLOCKS), rows))
    right_image.store(gpu.load(b_scale, (0, 0), (N, BLOCKS), columns))
    left_scale = gpu.alloc_tensor_memory((M, BLOCKS), tl.i8, gpu.tensor_scales(M, BLOCKS))
    right_scale = gpu.alloc_tensor_memory((N, BLOCKS), tl.i8, gpu.tensor_scales(N, BLOCKS))
    memory = gpu.tensor_memory((M, N))
    acc = gpu.alloc_tensor_memory((M, N), tl.f32, memory)
    done = gpu.barrier_init(count=1)
    gpu.fence("barrier_init")
    gpu.fence("async_shared")
    gpu.sync()
    gpu.tcgen05_copy(left_image, left_scale, "32x128b.warpx4")
    gpu.tcgen05_copy(right_image, right_scale, "32x128b.warpx4")
    transposed = right.permute((1, 0))
    gpu.tcgen05_mma_scaled(left, left_scale, transposed, right_scale, acc, False, MMA)
    gpu.tcgen05_commit(done)
    done.wait(0, False)
    gpu.fence("tcgen05_after")
    for n in tl.static_range(0, N, 64):
        part = gpu.tensor_rows(gpu.tensor_memory((M, 64)), 4)
        tl.store(c, (0, n), acc.view((0, n), (M, 64)).load(part))


def scales_image(rows: int, blocks: int) -> str:
    """Shared memory from which tcgen05.cp brings scales: pieces of 512 bytes, 16 a lane."""
    columns, groups = rows // 32, blocks // 4
    inner = min(columns, 4)
    along = f"(4,{groups})" if groups > 1 else "4"
    steps = f"(1,{columns // inner * 512})" if groups > 1 else "1"
    return f"((32,{inner},{columns // inner}),{along}):((16,4,512),{steps})"


def check_scaled(device: str, kinds: tuple[Any, Any], n: int, k: int) -> Any:
    """Random data and scales between 1/16 and 16. Gives the compiled kernel."""
    rng = np.random.default_rng(n + k)
    left, right = kinds
    a, b = (rng.standard_normal((size, k)).astype(kind) for size, kind in ((128, left), (n, right)))
    scales = [rng.integers(123, 132, (size, k // 32)).astype(np.uint8) for size in (128, n)]
    c = np.full((128, n), np.nan, np.float32)
    short = {E4M3: "e4m3", E5M2: "e5m2"}
    constants = {
        "N": n,
        "K": k,
        "MMA": f"tcgen05.mx.m128n{n}k32.f32.{short[left]}.{short[right]}",
        "SCALES": (scales_image(128, k // 32), scales_image(n, k // 32)),
    }
    inputs = (a, scales[0].view(np.int8), b, scales[1].view(np.int8))
    kernel = run(scaled_product, device, inputs, c, **constants)
    wide = [
        x.astype(np.float64) * np.repeat(2.0 ** (s.astype(np.float64) - 127), 32, 1)
        for x, s in ((a, scales[0]), (b, scales[1]))
    ]
    np.testing.assert_allclose(c, wide[0] @ wide[1].T, rtol=1e-4, atol=1e-3 * k)
    return kernel.compiled(*inputs, c, **constants)
