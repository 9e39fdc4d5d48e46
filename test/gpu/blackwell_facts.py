"""What the compiler believes of sm_100a that no such GPU has confirmed here, each with its test.

A fact counts as established where independent code for the hardware (Triton 3.6's PTX for sm_100a)
agrees with it on the emulator; these have less: documentation, or a single text. BLACKWELL.md lists
them; `test_blackwell_device.py` runs the tests, on a GPU with tensor memory or on the emulator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from tensor_cases import (
    COPIES,
    E4M3,
    E5M2,
    KINDS,
    check_copy,
    check_layouts,
    check_product,
    check_scaled,
    product,
    run,
)

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples.block_scaled_matmul import (
    FORMATS,
    arranged,
    block_scaled_matmul,
    packed,
    quantize,
    reference,
)
from tilec.examples.explicit_blackwell import blocked_product, pipelined_product, small_product
from tilec.examples.explicit_blackwell_pairs import pair_product
from tilec.examples.matmul import matmul


@dataclass(frozen=True)
class Fact:
    """`grounds`: what speaks for it. `used_in`: the code that relies on it. `check(device)` raises
    where it does not hold."""

    name: str
    statement: str
    grounds: str
    used_in: str
    check: Callable[[str], None]


FULL, HALF = "(128,64):(1@lane,1@col)", "((16,4),64):((1@lane,32@lane),1@col)"
WHOLE_LANES = "T(128):(1@0) V(64):(1@1)"


def _shapes_of_16_lanes(device: str) -> None:
    for layout in (
        "T(4,8,4):(1@1,1@0,32@0) V(2,16,2):(8@0,4@1,16@0)",
        "T(2,2,8,4):(8@0,1@1,1@0,32@0) V(32,2):(2@1,16@0)",
        "T(4,8,4):(2@1,1@0,32@0) V(2,2,8,2):(1@1,8@0,8@1,16@0)",
    ):
        check_layouts(device, FULL, WHOLE_LANES, layout)
        check_layouts(device, FULL, layout, WHOLE_LANES)


def _sixteen_of_32_lanes(device: str) -> None:
    fragments = "T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)"
    check_layouts(device, HALF, "T(16,2,4):(1@0,32@1,16@0) V(32):(1@1)", fragments)
    for kind in ("k16.f32.f16.f16", "k32.f32.e4m3.e5m2"):
        check_product(device, kind, 64, 128)


def _two_accumulators_in_one_lane_range(device: str) -> None:
    check_product(device, "k16.f32.f16.f16", 128, 64, block=64)


def _kinds(device: str) -> None:
    for kind, m in itertools.product(KINDS, (64, 128)):
        check_product(device, kind, m, 64)


def _lhs_in_tensor_memory(device: str) -> None:
    for kind, m in itertools.product(KINDS, (64, 128)):
        check_product(device, kind, m, 64, TENSOR=True)


def _narrow_types_along_m_and_n(device: str) -> None:
    for kind in ("k32.f32.e4m3.e5m2", "k32.s32.s8.s8"):
        for a_major, b_major in itertools.product((0, 1), (0, 1)):
            check_product(device, kind, 128, 128, A_MAJOR=a_major, B_MAJOR=b_major)


def _widths(device: str) -> None:
    for m, n in ((64, 24), (128, 48), (64, 200), (128, 240)):
        check_product(device, "k16.f32.bf16.bf16", m, n, SPAN=32)


def _halves_in_columns(device: str) -> None:
    layout = WHOLE_LANES
    check_layouts(device, FULL, layout, layout, np.float16)
    check_product(device, "k16.f16.f16.f16", 128, 64)


def _packed(device: str) -> None:
    for dtype, bits in ((np.float16, 16), (ml_dtypes.bfloat16, 16), (E4M3, 8), (np.int8, 8)):
        check_layouts(device, f"(128,64):(1@lane,{bits}@bit)", WHOLE_LANES, WHOLE_LANES, dtype)


def _copies(device: str) -> None:
    for name, swizzled in itertools.product(COPIES, (False, True)):
        check_copy(device, name, swizzled=swizzled)


def _tf32_operands(device: str) -> None:
    """A product of 1 + 2^-11 (which 10 bits of mantissa do not hold) and 1, exact but for that."""
    a, b = np.full((128, 32), 1 + 2.0**-11, np.float32), np.ones((32, 64), np.float32)
    found = _raw_product(device, a, b)
    assert (found == 64).all(), f"expected truncated operands, found {found[0, 0]!r}"


def _raw_product(device: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.zeros((a.shape[0], b.shape[1]), np.float32)
    name = f"tcgen05.m{a.shape[0]}n{b.shape[1]}k8.f32.tf32.tf32"
    run(product, device, (a, b), c, M=a.shape[0], N=b.shape[1], BLOCK=a.shape[0], MMA=name)
    return c


def _completion(device: str) -> None:
    """Random data through every kernel that waits for commits in loops, several launches."""
    rng = np.random.default_rng(5)
    for kernel, trial in itertools.product((blocked_product, pipelined_product), range(2)):
        a, b = (rng.standard_normal(s).astype(np.float16) for s in ((208, 304), (304, 416)))
        c = np.zeros((208, 416), np.float16)
        run(kernel, device, (a, b), c, BM=64, BN=64, BK=64)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, expected, rtol=2**-9, atol=1e-2, err_msg=str(trial))


def _stores_before_products(device: str) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((128, 128)).astype(np.float16) for _ in range(2))
    c = rng.standard_normal((128, 128)).astype(np.float32)
    for in_tensor_memory in (False, True):
        d = np.zeros_like(c)
        constants = {"LHS_IN_TENSOR_MEMORY": in_tensor_memory}
        run(small_product, device, (a, b, c), d, **constants)
        expected = a.astype(np.float64) @ b.astype(np.float64) + c
        np.testing.assert_allclose(d, expected, rtol=1e-4, atol=1e-4)


def _pairs(device: str) -> None:
    """Both places of the accumulator; each half of b fetched by the CTA that has it."""
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((300, 200), (200, 264)))
    below = {
        "BM": 64,
        "BN": 128,
        "MMA": "tcgen05.pair.m128n128k16.f32.f16.f16",
        "MEMORY": "(64,(64,2)):(1@lane,(1@col,64@lane))",
    }
    for constants in ({}, below):
        c = np.zeros((300, 264), np.float16)
        run(pair_product, device, (a, b), c, **constants)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, expected, rtol=2**-9, atol=1e-2)


def _scales_of_blocks(device: str) -> None:
    """Products as the compiler makes them: tcgen05.cp and products by one thread, in order."""
    rng = np.random.default_rng(0)
    for form in FORMATS.values():
        a, b = (quantize(rng.standard_normal((rows, 1024)), form) for rows in (300, 200))
        left, right = packed(a[0]), packed(b[0])
        c = np.full((300, 200), np.nan, np.float32)
        blocks = 128 * (1024 // left.shape[1]) // form.block
        inputs = (left, arranged(a[1]), right.T, arranged(b[1]))
        run(block_scaled_matmul, device, inputs, c, BLOCKS=blocks)
        expected = reference(*a) @ reference(*b).T
        np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def _block_scales(device: str) -> None:
    for kinds, (n, k) in itertools.product(
        ((E4M3, E4M3), (E5M2, E4M3)), ((128, 128), (256, 128), (128, 256))
    ):
        check_scaled(device, kinds, n, k)


@tilec.kernel(persistent="dynamic", num_warps=4, grid=lambda counts: counts.shape)
def count_programs(counts: tl.array):
    """counts[i, j] += 1 by program (i, j)."""
    at = (tl.program_id(0), tl.program_id(1))
    tl.atomic_add(counts, at, tl.full((1, 1), 1, tl.i32))


def _requests(device: str) -> None:
    shape = (31, 3) if device.startswith("emulator") else (4099, 31)
    for _ in range(3):
        counts = np.zeros(shape, np.int32)
        run(count_programs, device, (), counts)
        np.testing.assert_array_equal(counts, 1)
    _exact_product(matmul.demanding(persistent="dynamic"), device)


def _exact_product(kernel: Kernel, device: str) -> None:
    """Of small integers, more programs than run side by side."""
    rows = 512 if device.startswith("emulator") else 1 << 16
    draw = np.random.default_rng(0).integers
    a = draw(-4, 5, (rows, 64)).astype(ml_dtypes.bfloat16)
    b = draw(-4, 5, (64, 192)).astype(ml_dtypes.bfloat16)
    c = np.zeros((rows, 192), ml_dtypes.bfloat16)
    run(kernel, device, (a, b), c, BM=128, BN=64, BK=32)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, exact.astype(c.dtype))


def _requests_of_clusters(device: str) -> None:
    for cluster in ((2, 1), (1, 2)):
        _exact_product(matmul.demanding(persistent="dynamic", cluster=cluster), device)


def _multicasts(device: str) -> None:
    _exact_product(matmul.demanding(cluster=(1, 2)), device)


def _multicasts_of_pairs(device: str) -> None:
    for cluster in ((4, 1), (2, 2)):
        _exact_product(matmul.demanding(cluster=cluster), device)


FACTS = (
    Fact(
        "shapes of 16 lanes",
        "lane and column of each register of .16x64b, .16x128b and .16x256b, two halves of a warp",
        "two texts that agree; .16x256b also Triton's PTX",
        "tilec/hardware/tensor_access.py FORMS",
        _shapes_of_16_lanes,
    ),
    Fact(
        "M of 64",
        "row m of an accumulator of 64 rows lies in lane m % 16 + 32 * (m / 16)",
        "the ISA's figure; Triton's PTX for f16",
        "tilec/hardware/tensor_tiles.py _check_rows",
        _sixteen_of_32_lanes,
    ),
    Fact(
        "M of 64 from lane 16 on",
        "an accumulator of 64 rows may begin in lane 16, beside another one",
        "the ISA's figure",
        "tilec/hardware/tensor_tiles.py _check_start, tilec/hardware/tensor_memory.py "
        "blocked_tensor_memory",
        _two_accumulators_in_one_lane_range,
    ),
    Fact(
        "instruction descriptor",
        "bits of the types of kinds tf32, f8f6f4 and i8, and of M and N",
        "two texts that agree; f16 also Triton's PTX",
        "tilec/hardware/tensor_tiles.py instruction_descriptor",
        _kinds,
    ),
    Fact(
        "an lhs in tensor memory",
        "elements of 32 bits of k in a column, the first in the lowest bits, for 8 to 32 bits",
        "one text; 16 bits also Triton's PTX",
        "tilec/hardware/tensor_tiles.py check_lhs",
        _lhs_in_tensor_memory,
    ),
    Fact(
        "8 bits along M and N",
        "8-bit operands may be contiguous along M or N, with the strides of 16-bit ones",
        "one text",
        "tilec/hardware/tensor_tiles.py tensor_operand",
        _narrow_types_along_m_and_n,
    ),
    Fact(
        "odd widths",
        "N is any multiple of 8 for M = 64, of 16 for M = 128; 32-byte swizzles along N",
        "two texts that agree",
        "tilec/hardware/mma_shapes.py tensor_ns",
        _widths,
    ),
    Fact(
        "f16 accumulators",
        "an f16 accumulator has a column an element, in its low half",
        "no text; the emulator's reading",
        "tilec/hardware/tensor_tiles.py check_accumulator",
        _halves_in_columns,
    ),
    Fact(
        "elements that share a column",
        "tcgen05.ld and .st move 32-bit columns as they are",
        "the ISA's text",
        "passes/lower_to_nvvm/tensor_memory.py",
        _packed,
    ),
    Fact(
        "tcgen05.cp",
        "rows, lanes and copies of every shape; plain and 128-byte swizzled sources",
        "one text; 32x128b of a source without a swizzle also Triton's PTX",
        "tilec/hardware/tensor_tiles.py COPY_SHAPES",
        _copies,
    ),
    Fact(
        "tf32 operands",
        "tcgen05.mma drops the 13 low bits of f32 operands in memory",
        "one text",
        "runtime/emulator/instructions/mma.py; nothing in the compiler rounds them",
        _tf32_operands,
    ),
    Fact(
        "completion",
        "a commit arrives once, when all products of its thread are done; operands are then free",
        "the ISA's text",
        "passes/lower_to_nvvm/tcgen05.py lower_commit",
        _completion,
    ),
    Fact(
        "pairs of CTAs",
        "which rows, columns and lanes each CTA has; alloc, commit, dealloc; M = 128 and 256",
        "two texts that agree",
        "tilec/hardware/tensor_tiles.py _check_halves, passes/lower_to_nvvm/tcgen05.py",
        _pairs,
    ),
    Fact(
        "block scales",
        "lanes, columns and bytes of scales; the descriptors of kinds mxf8f6f4, mxf4 and mxf4nvf4",
        "one text each; Triton's PTX for all three",
        "tilec/hardware/tensor_tiles.py scaled_descriptor, scales_layout",
        _block_scales,
    ),
    Fact(
        "scales in order",
        "a tcgen05.cp keeps its place between products that one thread issues",
        "Triton's PTX relies on it; the ISA's text has cp before mma only",
        "passes/dots/block_scales.py, passes/roles/multiply_role.py",
        _scales_of_blocks,
    ),
    Fact(
        "cluster launch control",
        "an answer names a CTA that will not start; each program runs once",
        "the ISA's text and the programming guide's example",
        "passes/lower_to_nvvm/launch_control.py lower_read, passes/request_programs.py",
        _requests,
    ),
    Fact(
        "requests of clusters",
        "one CTA asks for a cluster; the answer, its first CTA, comes to all, at one place",
        "the ISA's text",
        "passes/request_programs.py, passes/lower_to_nvvm/launch_control.py lower_next_program",
        _requests_of_clusters,
    ),
    Fact(
        "commits to several CTAs",
        "a commit with a mask arrives in each of its CTAs, whose multicasts filled what was read",
        "the ISA's text",
        "passes/share_copies.py, passes/lower_to_nvvm/tcgen05.py lower_multicast_commit",
        _multicasts,
    ),
    Fact(
        "multicasts of pairs",
        "a multicast with .cta_group::2 counts its bytes in the even CTA of each pair it goes to",
        "the ISA's text",
        "passes/pair_products.py, passes/lower_to_nvvm/tma.py lower_tma_load",
        _multicasts_of_pairs,
    ),
    Fact(
        "what threads wrote",
        "tcgen05.st, its wait, tcgen05.fence and a sync order it before another thread's products",
        "the ISA's text",
        "tilec/examples/explicit_blackwell.py, passes/fence_tensor_memory.py",
        _stores_before_products,
    ),
)
