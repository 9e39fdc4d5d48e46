"""Dot loops as warp-specialised kernels for sm_90a: on the emulator, and what ptxas says of them.

Each case states from the report that its loop took the path it is there for.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import (
    batched,
    decisions,
    demanded,
    gated,
    gathered,
    in_while,
    two_loops,
)
from shares import modes

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.examples import attention as attention_example
from tilec.examples.matmul import PRECISIONS, draw, matmul, reference
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops.attention_kernel import attention

BF16 = ml_dtypes.bfloat16
FP8 = ml_dtypes.float8_e4m3fn
TARGET = find_target("sm_90a")
SMALL = {"BM": 64, "BN": 64, "BK": 64}
BYTES = {"tf32": 4, "f16": 2, "bf16": 2, "fp8": 1, "s8": 1}
"""Of an element; the precisions that have warpgroup instructions."""


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with warpgroup instructions."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


def normal(*shape: int, seed: int = 0, dtype: Any = BF16) -> np.ndarray:
    """Random values of a dtype."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def exact(x: np.ndarray) -> np.ndarray:
    """As float64."""
    return x.astype(np.float64)


def run(
    kernel: Kernel, arguments: list[Any], expected: np.ndarray, dtype: Any = BF16,
    tolerance: float = 1e-2, scalars: tuple[float, ...] = (), **constants: Any,
) -> CompiledKernel:  # fmt: skip
    """Runs in check mode, by turns in late mode; compares; returns what ran."""
    most = np.abs(expected).max()
    for mode in modes():
        c = poisoned(expected.shape, dtype)
        there = kernel.on(f"emulator:{mode}")
        there(*arguments, c, *scalars, **constants)
        np.testing.assert_allclose(exact(c), expected, rtol=0, atol=tolerance * most)
    return there.compiled(*arguments, c, *scalars, **constants)


def stages(kernel: CompiledKernel) -> int:
    """Slots of the rings of a warp-specialised kernel; fails for any other."""
    (found,) = decisions(kernel, "warp specialisation")
    assert found.startswith("1 loading warp"), found
    return int(found.split(" stages")[0].rsplit(" ", 1)[1])


def assert_specialised(kernel: CompiledKernel, instructions: str) -> None:
    """Loaded by a warp of their own; what became of each loop's matrix instructions."""
    assert stages(kernel) >= 2
    found = decisions(kernel, "matrix instructions")
    assert found
    assert all(one.startswith(instructions) for one in found), found


def assert_clean(kernel: CompiledKernel) -> None:
    """ptxas keeps the matrix instructions asynchronous and spills nothing."""
    found = assemble(kernel.ptx, TARGET)
    assert not [message for message in found.messages if "C75" in message]
    assert found.spills == 0


ORDERS = ("CC", "CF", "FC", "FF")


@pytest.mark.share(4)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("precision", BYTES)
def test_every_precision_and_order(precision: str, order: str) -> None:
    """16-bit types are read in any order; the others need k contiguous, where copies are TMA, but
    for one operand of tf32."""
    row = PRECISIONS[precision]
    rng = np.random.default_rng(0)
    shapes = ((80, 176), (176, 144))
    a, b = (
        np.asarray(draw(rng, shape, row.inputs), order=side)
        for shape, side in zip(shapes, order, strict=True)
    )
    tiles = {"BM": 64, "BN": 64, "BK": 128 // BYTES[precision]}
    kernel = run(
        matmul, [a, b], reference(a, b), row.output, row.tolerance, PRECISION=row.dot, **tiles
    )
    (instruction,) = decisions(kernel, "dot instruction")
    assert instruction.startswith("wgmma"), instruction
    if BYTES[precision] == 2 or order == "CF" or (precision == "tf32" and order != "FC"):
        assert_specialised(kernel, "one group in flight")
    elif precision == "tf32":
        (found,) = decisions(kernel, "warp specialisation")
        assert "tensor copies and copies by cp.async" in found
    else:
        refused = decisions(kernel, "tensor map")
        assert all("contiguous along another dimension" in reason for reason in refused)
        assert refused
        assert not decisions(kernel, "warp specialisation")
    assert_clean(kernel)


@pytest.mark.parametrize("columns", [96, 192])
def test_warpgroups_whose_columns_straddle_panels(columns: int) -> None:
    """48 of 96 columns in panels of 32, 96 of 192 in panels of 64: the rhs lies along k instead."""
    a, b = normal(64, 64), normal(64, columns, seed=1)
    tiles = {"BM": 64, "BN": columns, "BK": 64}
    made = run(matmul.demanding(num_warps=8), [a, b], exact(a) @ exact(b), **tiles)
    assert decisions(made, "dot instruction")[0].startswith(f"wgmma.m64n{columns // 2}k16")


@pytest.mark.parametrize("precision", ["f64", "f32"])
def test_precisions_without_warpgroup_instructions(precision: str) -> None:
    row = PRECISIONS[precision]
    rng = np.random.default_rng(0)
    a, b = draw(rng, (40, 56), row.inputs), draw(rng, (56, 72), row.inputs)
    kernel = run(matmul, [a, b], reference(a, b), row.output, row.tolerance, BM=32, BN=32, BK=32)
    assert not decisions(kernel, "warp specialisation")


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("warps", "tiles"),
    [
        (4, (64, 24, 64)),
        (4, (64, 96, 32)),
        (4, (128, 64, 64)),
        (4, (64, 256, 32)),
        (8, (128, 256, 64)),
        (8, (256, 96, 32)),
        (8, (64, 64, 64)),
    ],
)
def test_tiles_and_warps(warps: int, tiles: tuple[int, int, int]) -> None:
    a, b = normal(264, 104), normal(264, 104, seed=1).T  # 24 columns fill no row of a box
    sizes = dict(zip(("BM", "BN", "BK"), tiles, strict=True))
    kernel = run(demanded.demanding(num_warps=warps), [a, b], exact(a) @ exact(b), **sizes)
    (found,) = decisions(kernel, "warp specialisation")
    assert f"{warps} computing" in found
    assert_specialised(kernel, "one group in flight")
    assert_clean(kernel)


@pytest.mark.parametrize("shape", [(8, 8, 8), (136, 200, 72), (72, 72, 0), (1, 8, 64)])
def test_ragged_sizes_by_tensor_copies(shape: tuple[int, int, int]) -> None:
    """k = 0 fills nothing and waits for nothing."""
    m, n, k = shape
    a, b = normal(m, k), normal(k, n, seed=1)
    if k == 0:  # a relative tolerance of nothing
        assert not (exact(a) @ exact(b)).any()
    kernel = run(demanded, [a, b], exact(a) @ exact(b), **SMALL)
    assert_specialised(kernel, "one group in flight")


@pytest.mark.parametrize(
    ("shape", "copies"),
    [
        ((71, 99, 67), ["only 2 bytes", "only 2 bytes"]),
        ((70, 99, 72), ["cp.async of 16 bytes", "only 2 bytes"]),
        ((70, 96, 67), ["only 2 bytes", "cp.async of 16 bytes"]),
    ],
)
def test_rows_no_tensor_map_can_describe(shape: tuple[int, int, int], copies: list[str]) -> None:
    """cp.async or plain loads: no roles, warpgroup instructions all the same."""
    m, n, k = shape
    a, b = normal(m, k), normal(k, n, seed=1)
    kernel = run(demanded, [a, b], exact(a) @ exact(b), **SMALL)
    found = decisions(kernel, "asynchronous copy")
    assert len(found) == len(copies)
    assert all(part in one for part, one in zip(copies, found, strict=True)), found
    (instruction,) = decisions(kernel, "dot instruction")
    assert instruction.startswith("wgmma"), instruction
    assert not decisions(kernel, "warp specialisation")
    assert_clean(kernel)


def test_more_programs_than_ctas() -> None:
    """The rings go round over program after program."""
    a, b = normal(328, 136), normal(136, 264, seed=1)
    kernel = run(demanded, [a, b], exact(a) @ exact(b), STAGES=3, **SMALL)
    assert kernel.persistent
    assert_specialised(kernel, "one group in flight")


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float16, FP8])
def test_output_dtypes(dtype: Any) -> None:
    a, b = normal(72, 72), normal(72, 208, seed=1)
    kernel = run(demanded, [a, b], exact(a) @ exact(b), dtype, 0.07, **SMALL)
    assert_specialised(kernel, "one group in flight")
    stores = decisions(kernel, "tensor store")
    assert [one.split(" (")[0] for one in stores] == ["TMA"]


# -- Demands --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_demanded_stages(count: int) -> None:
    a, b = normal(72, 456), normal(456, 72, seed=1)
    kernel = run(demanded, [a, b], exact(a) @ exact(b), STAGES=count, **SMALL)
    assert stages(kernel) == count


def test_a_ring_of_one_slot_if_that_is_all_the_author_wants() -> None:
    """The slot comes back in its iteration: nothing may be in flight over the back edge."""
    a, b = normal(72, 200), normal(200, 72, seed=1)
    kernel = run(demanded, [a, b], exact(a) @ exact(b), STAGES=1, WARP_SPECIALIZE=True, **SMALL)
    assert stages(kernel) == 1
    assert decisions(kernel, "matrix instructions") == [
        "finished in each iteration (the ring it reads has one slot)"
    ]
    kernel = run(demanded, [a, b], exact(a) @ exact(b), STAGES=1, **SMALL)
    assert decisions(kernel, "warp specialisation") == ["no (one stage was asked for)"]


@pytest.mark.parametrize("count", [None, 3])
def test_forbidden_roles_leave_cp_async_pipelines(count: int | None) -> None:
    a, b = normal(72, 200), normal(200, 72, seed=1)
    constants = {**SMALL, "STAGES": count, "WARP_SPECIALIZE": False}
    kernel = run(demanded, [a, b], exact(a) @ exact(b), **constants)
    assert decisions(kernel, "tensor map") == ["no (warp_specialize=False)"]
    assert not decisions(kernel, "warp specialisation")
    assert decisions(kernel, "pipeline")[0].startswith(f"{count or 4} stages")


def test_two_loops_share_their_stages() -> None:
    a, b = normal(72, 136), normal(136, 72, seed=1)
    kernel = run(two_loops, [a, b], 2 * (exact(a) @ exact(b)), FIRST=3, **SMALL)
    assert stages(kernel) == 3
    assert_specialised(kernel, "one group in flight")


A, B, C = normal(72, 72), normal(72, 72, seed=1), normal(72, 72)
REFUSALS = {
    "addresses from memory": (
        gathered, [A, B, np.zeros(2, np.int32), C], {"WARP_SPECIALIZE": True}, "for k in tl.range(",
        r"warp_specialize=True was asked for, but its address depends on 'tile.reduce'",
    ),
    "no warp left": (
        demanded.demanding(num_warps=32), [A, B, C], {"WARP_SPECIALIZE": True, "BM": 512},
        "for k in tl.range(",
        r"warp_specialize=True was asked for, but 32 warps leave none for loading",
    ),
    "too many stages": (
        demanded, [A, B, C], {"STAGES": 20}, "def demanded",
        r"the kernel needs \d+ bytes of shared memory, sm_90a has 232448",
    ),
    "different stages": (
        two_loops, [A, B, C], {"FIRST": 2, "SECOND": 3}, "stages=SECOND",
        r"loops of one kernel share their load role and so their stages: \[2, 3\]",
    ),
    "stages without roles": (
        demanded.demanding(num_warps=32), [A, B, C], {"STAGES": 3, "BM": 512}, "for k in tl.range(",
        r"stages=3 was asked for, but 32 warps leave none for loading",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_demands_that_cannot_be_met(name: str) -> None:
    kernel, arrays, constants, line, message = REFUSALS[name]
    with pytest.raises(CompileError, match=message) as caught:
        kernel.on("emulator").compiled(*arrays, **constants)
    assert line in str(caught.value)


def test_demanded_roles_on_a_target_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    message = "warp_specialize=True was asked for, but sm_80 does not move registers between warps"
    with pytest.raises(CompileError, match=message):
        demanded.on("emulator").compiled(A, B, C, WARP_SPECIALIZE=True)


# -- Other loops ----------------------------------------------------------------------------------


@pytest.mark.parametrize("warps", [4, 8])
def test_two_products_share_an_operand(warps: int) -> None:
    a, b, g = normal(136, 200), normal(200, 72, seed=1), normal(200, 72, seed=2)
    expected = (exact(a) @ exact(b)) * (exact(a) @ exact(g))
    kernel = run(gated.demanding(num_warps=warps), [a, b, g], expected, WARP_SPECIALIZE=True)
    assert stages(kernel) >= 2
    assert_clean(kernel)


def test_a_batch() -> None:
    a, b = normal(3, 72, 104), normal(3, 104, 72, seed=1)
    kernel = run(batched, [a, b], exact(a) @ exact(b))
    assert_specialised(kernel, "one group in flight")
    assert [one.split(" (")[0] for one in decisions(kernel, "tensor store")] == ["TMA"]
    assert_clean(kernel)


def test_a_loop_in_a_while() -> None:
    """The count of the ring's turns runs on through both."""
    a, b = normal(72, 264), normal(264, 72, seed=1)
    kernel = run(in_while, [a, b], 2 * (exact(a) @ exact(b)), STAGES=2, WARP_SPECIALIZE=True)
    assert_specialised(kernel, "one group in flight")
    assert_clean(kernel)


def test_addresses_from_memory() -> None:
    """The load role would need them first: one slot, filled by the threads that read it."""
    a, b, start = normal(136, 72), normal(72, 72, seed=1), np.array([8, -3, 1], np.int32)
    kernel = run(gathered, [a, b, start], moved_rows(a, start, 64) @ exact(b))
    refused = "no (its address depends on 'tile.reduce')"
    assert decisions(kernel, "warp specialisation") == [refused]
    assert_clean(kernel)


def moved_rows(a: np.ndarray, start: np.ndarray, rows: int) -> np.ndarray:
    """Each tile of rows of a, moved by its start; zeros outside."""
    padded = np.pad(exact(a), ((rows, 2 * rows), (0, 0)))
    tiles = [padded[rows * (i + 1) + s :][:rows] for i, s in enumerate(start)]
    return np.concatenate(tiles)[: len(a)]


# -- Attention ------------------------------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("width", "dtype"), [(64, np.float16), (128, BF16)])
def test_attention(width: int, dtype: Any, causal: bool) -> None:
    q, k, v = (
        normal(1, 2, n, width, seed=seed, dtype=dtype) for seed, n in enumerate((70, 150, 150))
    )
    scale = 1 / math.sqrt(width)
    expected = attention_example.reference(q, k, v, causal, scale)
    tolerance = attention_example.TOLERANCE[dtype]
    constants = {"D": width, "CAUSAL": causal, "BM": 64, "BN": 32}
    kernel = run(
        attention,
        [q, k, v],
        expected,
        dtype,
        tolerance,
        (scale,),
        WARP_SPECIALIZE=True,
        **constants,
    )
    assert_specialised(kernel, "rotated")
    assert_clean(kernel)


@tilec.kernel(grid=1, num_warps=4)
def transposed(a: tl.array, b: tl.array, c: tl.array, highest: tl.array):
    """c.T += a @ b, whose negative sums below -100 are cut off in each step."""
    acc = tl.zeros((64, 128), tl.f32)
    total = tl.zeros((64,), tl.f32)
    for k in tl.range(0, a.shape[1], 32):
        left = tl.load(a, (0, k), (64, 32))
        acc = tl.dot(left, tl.load(b, (k, 0), (32, 128)), acc)
        total = total + tl.max(left.to(tl.f32), 1)
        acc = tl.maximum(acc, -100)
    at = (tl.arange(128)[:, None], tl.arange(64)[None, :])
    tl.atomic_add(c, at, tl.clamp(acc, -3, 3).T)
    tl.store(highest, 0, total)


def test_no_register_moves_between_a_product_and_the_wait_behind_it() -> None:
    """LLVM moved all 64 sums to other registers there."""
    a, b = normal(127, 168, dtype=FP8)[:, :160], normal(160, 256, dtype=FP8)
    c, highest = np.zeros((64, 128), np.float32).T, np.zeros(128, np.float32)
    transposed.check(a, b, c, highest)
    made = transposed.on("emulator").compiled(a, b, c, highest)
    assert not [line for line in assemble(made.ptx, TARGET).messages if "C75" in line]
