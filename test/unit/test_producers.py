"""Warp specialisation with every producer: tensor copies, cp.async, and loads with stores.

The load role fills what no tensor map describes; each case states from the report who fills what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import activated_right, decisions, matmul_grid
from test_warp_specialized import BYTES, assert_clean, exact, normal, run

import tilec
import tilec.language as tl
from tilec.examples import attention as attention_example
from tilec.examples.matmul import PRECISIONS, draw, reference
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.ops.attention_kernel import attention
from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError

TARGET = find_target("sm_90a")
PRODUCERS = {
    "tensor copies": 0,
    "copies by cp.async": 4,
    "loads and stores": 1,
}
"""How far a row's first element lies from a multiple of 16 bytes, in elements of 2 bytes."""


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with warpgroup instructions."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


@tilec.kernel(grid=matmul_grid)
def shifted(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, SHIFT: tl.const = 0,
    STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = True, PRECISION: tl.const = "ieee",
):  # fmt: skip
    """c = a[:, SHIFT:] @ b[:, SHIFT:], where a has as many columns behind SHIFT as b has rows."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.i32 if a.dtype == tl.i8 else tl.f32)
    for k in tl.range(0, b.shape[0], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
        left = tl.load(a, (m, k + SHIFT), (BM, BK))
        right = tl.load(b, (k, n + SHIFT), (BK, BN))
        acc = tl.dot(left, right, acc, PRECISION)
    tl.store(c, (m, n), acc.to(c.dtype))


def operands(m: int, n: int, k: int, shift: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Aligned arrays whose products start `shift` columns in, and what comes out."""
    rows = -(-(k + shift) // 8) * 8
    a, b = normal(m, rows), normal(k, n, seed=1)
    a[:, k + shift :] = 0
    return [a, b], exact(a)[:, shift : shift + k] @ exact(b)[:, shift:]


def filled_by(kernel: CompiledKernel) -> str:
    """Who fills the ring: the names in the report."""
    (found,) = decisions(kernel, "warp specialisation")
    return found.split("(")[1].removesuffix(" run ahead of their readers)")


def stages(kernel: CompiledKernel) -> int:
    """Slots of the rings."""
    (found,) = decisions(kernel, "warp specialisation")
    return int(found.split(" stages")[0].rsplit(" ", 1)[1])


# -- {TMA, cp.async, plain} x {4, 8 warps} x {128, 256 rows} --------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize("rows", [128, 256])
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("producer", PRODUCERS)
def test_the_twelve(producer: str, warps: int, rows: int) -> None:
    """Of which Triton 3.9 compiles two."""
    shift = PRODUCERS[producer]
    arguments, expected = operands(rows + 8, 56, 136, shift)
    constants = {"BM": rows, "BN": 64, "SHIFT": shift, "STAGES": 2}
    kernel = run(shifted.demanding(num_warps=warps), arguments, expected, **constants)
    assert filled_by(kernel) == producer
    assert stages(kernel) == 2
    (found,) = decisions(kernel, "warp specialisation")
    assert f"{warps} computing" in found
    assert decisions(kernel, "matrix instructions")[0].startswith("one group in flight")
    assert_clean(kernel)


# -- Other precisions and orders ------------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("order", ["CC", "FC", "FF"])
@pytest.mark.parametrize("precision", ["tf32", "fp8", "s8"])
def test_operands_that_are_not_contiguous_along_k(precision: str, order: str) -> None:
    """No tensor map turns them; the load role does, element by element, but for one operand of
    tf32, which the warps that multiply read as it is."""
    row = PRECISIONS[precision]
    rng = np.random.default_rng(0)
    shapes = ((80, 176), (176, 144))
    a, b = (
        np.asarray(draw(rng, shape, row.inputs), order=side)
        for shape, side in zip(shapes, order, strict=True)
    )
    tiles = {"BM": 64, "BN": 64, "BK": 128 // BYTES[precision], "PRECISION": row.dot}
    kernel = run(shifted, [a, b], reference(a, b), row.output, row.tolerance, **tiles)
    own = "copies by cp.async" if precision == "tf32" else "loads and stores"
    both = f"tensor copies and {own}"
    one, two = ("tensor copies", both) if precision == "tf32" else (both, own)
    assert filled_by(kernel) == {"CC": one, "FC": two, "FF": one}[order]
    assert_clean(kernel)


@tilec.kernel(grid=lambda a, b, d, e, c: (tl.cdiv(c.shape[0], 64), tl.cdiv(c.shape[1], 64)))
def sum_of_products(a: tl.array, b: tl.array, d: tl.array, e: tl.array, c: tl.array):
    """c = a @ b[:, 4:] + d @ e[:, 4:], whose second product is multiplied first."""
    m, n = tl.program_id(0) * 64, tl.program_id(1) * 64
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, a.shape[1], 64, warp_specialize=True):
        outer, inner = tl.load(a, (m, k), (64, 64)), tl.load(d, (m, k), (64, 64))
        acc = tl.dot(inner, tl.load(e, (k, n + 4), (64, 64)), acc)
        acc = tl.dot(outer, tl.load(b, (k, n + 4), (64, 64)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def test_a_turn_around_a_turn() -> None:
    """The tensor copy of each product is issued where it is loaded, and shares a ring with what
    threads copy later: the turn of the one ring stands inside that of the other."""
    m, n, k = 70, 72, 600
    a, b, d, e = (normal(*shape, seed=seed) for seed, shape in enumerate(((m, k), (k, n)) * 2))
    expected = exact(a) @ exact(b) + exact(d) @ exact(e)
    expected = np.pad(expected[:, 4:], ((0, 0), (0, 4)))
    kernel = run(sum_of_products, [a, b, d, e], expected)
    assert filled_by(kernel) == "tensor copies and copies by cp.async"
    assert_clean(kernel)


def test_tf32_with_odd_rows() -> None:
    """Four bytes are enough for cp.async."""
    row = PRECISIONS["tf32"]
    rng = np.random.default_rng(0)
    a, b = draw(rng, (67, 69), row.inputs), draw(rng, (69, 33), row.inputs)
    kernel = run(
        shifted, [a, b], reference(a, b), row.output, row.tolerance, BK=32, PRECISION=row.dot
    )
    assert filled_by(kernel) == "copies by cp.async"
    assert decisions(kernel, "producer")[0].startswith("cp.async of 4 bytes")


@pytest.mark.share(2)
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize(("m", "n", "k"), [(71, 99, 67), (70, 99, 72), (70, 96, 67)])
def test_odd_rows(m: int, n: int, k: int, warps: int) -> None:
    """One operand's rows, or both's, are odd."""
    a, b = normal(m, k), normal(k, n, seed=1)
    kernel = run(shifted.demanding(num_warps=warps), [a, b], exact(a) @ exact(b))
    assert "loads and stores" in filled_by(kernel)
    assert ("tensor copies" in filled_by(kernel)) == (m == 70)
    assert_clean(kernel)


@pytest.mark.parametrize("count", [None, 1])
def test_one_operand_by_cp_async_needs_no_demand(count: int | None) -> None:
    """Both operands lie across k: the lhs comes to registers, the rhs by cp.async. With one stage
    there are no roles: every thread copies, arrives and waits."""
    row = PRECISIONS["tf32"]
    rng = np.random.default_rng(0)
    a, b = np.asfortranarray(draw(rng, (72, 136), row.inputs)), draw(rng, (136, 40), row.inputs)
    constants = {"BK": 32, "STAGES": count, "WARP_SPECIALIZE": None, "PRECISION": row.dot}
    kernel = run(shifted, [a, b], reference(a, b), row.output, row.tolerance, **constants)
    assert decisions(kernel, "producer")[0].startswith("cp.async of 4 bytes")
    if count:
        found = decisions(kernel, "warp specialisation")
        assert found == ["no (one stage was asked for)"]
    else:
        assert filled_by(kernel) == "tensor copies and copies by cp.async"


# -- Work between load and product ----------------------------------------------------------------


def squares(b: np.ndarray) -> np.ndarray:
    """What `activated_right` multiplies by."""
    return exact((np.maximum(exact(b), 0) ** 2).astype(ml_dtypes.bfloat16))


@pytest.mark.share(2)
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize(("columns", "demand"), [(72, None), (72, True), (73, True)])
def test_elementwise_work_runs_in_the_load_role(
    columns: int, demand: bool | None, warps: int
) -> None:
    """Undemanded where it loads vectors."""
    a, b = normal(136, 200), normal(200, columns, seed=1)
    kernel = run(
        activated_right.demanding(num_warps=warps),
        [a, b],
        exact(a) @ squares(b),
        WARP_SPECIALIZE=demand,
    )
    assert decisions(kernel, "producer")[0] == (
        "loads and stores ('arith.truncf' stands between load and buffer)"
    )
    assert filled_by(kernel) == "tensor copies and loads and stores"
    assert decisions(kernel, "matrix instructions")[0].startswith("one group in flight")
    assert_clean(kernel)


@pytest.mark.parametrize("k", [0, 8, 64, 72, 200])
def test_loads_run_an_iteration_ahead(k: int) -> None:
    """Also where there is no iteration, or no other; a persistent CTA starts anew for each tile."""
    a, b = normal(200, k), normal(k, 72, seed=1)
    demanding = activated_right.demanding(persistent=True)
    kernel = run(demanding, [a, b], exact(a) @ squares(b), WARP_SPECIALIZE=True)
    assert "loads an iteration ahead (16 registers a thread hold what is under way)" in decisions(
        kernel, "producer"
    )


def test_elements_loaded_one_by_one_are_not_carried_over() -> None:
    a, b = normal(136, 200), normal(200, 73, seed=1)
    kernel = run(activated_right, [a, b], exact(a) @ squares(b), WARP_SPECIALIZE=True)
    assert not [line for line in decisions(kernel, "producer") if "ahead" in line]


@tilec.kernel(grid=matmul_grid)
def converted(
    a: tl.array, b: tl.array, scale: tl.f32, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c = a @ bf16(b * scale) for 8-bit b, negative elements below the diagonal only."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, warp_specialize=True):
        x = tl.load(b, (k, n), (BK, BN)).to(tl.f32) * scale
        below = (k + tl.arange(BK))[:, None] > (n + tl.arange(BN))[None, :]
        x = tl.where(below, x, tl.maximum(x, 0.0)).to(a.dtype)
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), x, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def test_conversions_and_masks_run_in_the_load_role() -> None:
    rng = np.random.default_rng(0)
    a, b = normal(56, 144), rng.integers(-8, 8, (144, 72), dtype=np.int8)
    x = b.astype(np.float32) * np.float32(0.3)
    x = np.where(np.arange(144)[:, None] > np.arange(72), x, np.maximum(x, 0))
    x = x.astype(ml_dtypes.bfloat16)
    kernel = run(converted, [a, b, 0.3], exact(a) @ exact(x))
    assert filled_by(kernel) == "tensor copies and loads and stores"
    assert_clean(kernel)


@tilec.kernel(grid=matmul_grid)
def normalised(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c = (a less the mean of each row of a block) @ b: a sum between load and product."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, warp_specialize=True):
        x = tl.load(a, (m, k), (BM, BK)).to(tl.f32)
        x = (x - tl.sum(x, 1)[:, None] / BK).to(b.dtype)
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def test_what_needs_other_threads_stays_with_the_readers() -> None:
    """The other operand is still loaded ahead."""
    a, b = normal(72, 128), normal(128, 56, seed=1)
    blocks = exact(a).reshape(72, 2, 64)
    x = (blocks - blocks.mean(2, keepdims=True)).reshape(72, 128).astype(ml_dtypes.bfloat16)
    kernel = run(normalised, [a, b], exact(x) @ exact(b), tolerance=2e-2)
    assert decisions(kernel, "producer") == ["no (its tile depends on 'tile.reduce')"]
    assert filled_by(kernel) == "tensor copies"


@pytest.mark.parametrize(("pitch", "causal"), [(67, True), (71, False)])
def test_attention_with_odd_heads(pitch: int, causal: bool) -> None:
    """Keys and values have barriers of their own."""
    q, k, v = (normal(1, 2, n, pitch, seed=seed)[..., :64] for seed, n in enumerate((70, 150, 150)))
    scale = 1 / np.sqrt(64)
    expected = attention_example.reference(q, k, v, causal, scale)
    constants = {"D": 64, "CAUSAL": causal, "BM": 64, "BN": 32, "WARP_SPECIALIZE": True}
    kernel = run(attention, [q, k, v], expected, tolerance=2e-2, scalars=(scale,), **constants)
    assert filled_by(kernel) == "loads and stores"


# -- Clusters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cluster", "n", "k"), [(2, 104, 131), ((1, 2), 99, 136)])
def test_neighbours_share_the_tensor_copies_and_store_the_rest(
    cluster: Any, n: int, k: int
) -> None:
    a, b = normal(200, k), normal(k, n, seed=1)
    kernel = run(shifted.demanding(cluster=cluster), [a, b], exact(a) @ exact(b), STAGES=3)
    assert filled_by(kernel) == "tensor copies and loads and stores"
    assert decisions(kernel, "cluster copy") == ["1/2 a CTA, multicast (they need the same tile)"]


# -- Values that a loop carries -------------------------------------------------------------------


@tilec.kernel(grid=1, num_warps=4)
def prefetched(a: tl.array, b: tl.array, c: tl.array):
    """c = a @ b of 64 rows and 32 columns; each iteration loads a's part of the next."""
    left = tl.load(a, (0, 0), (64, 64))
    acc = tl.zeros((64, 32), tl.f32)
    for k in tl.range(0, b.shape[0], 64):
        acc = tl.dot(left, tl.load(b, (k, 0), (64, 32)), acc)
        left = tl.load(a, (0, k + 64), (64, 64))
    tl.store(c, (0, 0), acc.to(c.dtype))


def test_a_load_role_carries_a_tile_to_the_next_iteration() -> None:
    (a, b), expected = operands(64, 32, 200, 0)
    made = run(prefetched, [a, b], expected)
    assert "loads and stores" in filled_by(made)


@tilec.kernel(grid=1, num_warps=4)
def with_highest(a: tl.array, b: tl.array, c: tl.array, highest: tl.array):
    """c = a @ b of 64 rows and columns; the sum of what is highest in each row of a's blocks."""
    acc = tl.zeros((64, 64), tl.f32)
    total = tl.zeros((64,), tl.f32)
    for k in tl.range(0, a.shape[1], 16, warp_specialize=True):
        left = tl.load(a, (0, k), (64, 16))
        acc = tl.dot(left, tl.load(b, (k, 0), (16, 64)), acc, precision="tf32")
        total = total + tl.max(left, 1)
    tl.store(c, (0, 0), acc)
    tl.store(highest, 0, total)


def test_sums_in_flight_share_no_register_with_what_else_starts_from_zero() -> None:
    """LLVM copied one behind the loop, in front of the wait for it."""
    a, b = normal(64, 48, dtype=np.float32), normal(48, 64, dtype=np.float32)
    c, highest = np.zeros((64, 64), np.float32), np.zeros(64, np.float32)
    with_highest.check(a, b, c, highest)
    np.testing.assert_allclose(highest, a.reshape(64, 3, 16).max(2).sum(1), rtol=0, atol=1e-5)
    made = with_highest.on("emulator").compiled(a, b, c, highest)
    assert decisions(made, "matrix instructions")[0].startswith("one group in flight")
    assert_clean(made)


# -- Mutants --------------------------------------------------------------------------------------


def mutants(ptx: str) -> Iterator[tuple[str, str]]:
    """(what was done, PTX): an instruction of the protocol left out, or a count that is wrong."""
    lines = ptx.split("\n")
    protocol = ("mbarrier.arrive", "fence.proxy.async", "try_wait")
    for number, line in enumerate(lines):
        count = re.search(r"(.*mbarrier\.init.*, )(\d+);", line)
        if count:
            for wrong in (int(count[2]) + 1, int(count[2]) - 1):
                if wrong:
                    changed = f"{count[1]}{wrong};"
                    yield (
                        f"{line} -> {wrong}",
                        "\n".join([*lines[:number], changed, *lines[number + 1 :]]),
                    )
        elif any(name in line for name in protocol) and "fence.proxy.async.global" not in line:
            instead = "setp.eq.b32 complete, 0, 0;" if "try_wait" in line else ""
            yield line.strip(), "\n".join([*lines[:number], instead, *lines[number + 1 :]])


@pytest.mark.parametrize("producer", ["copies by cp.async", "loads and stores"])
def test_the_emulator_finds_what_is_broken(
    producer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fence or an arrival left out, a wait that does not wait, an arrival too many or too few."""
    shift = PRODUCERS[producer]
    (a, b), expected = operands(64, 40, 232, shift)
    c = np.zeros(expected.shape, np.float32)
    constants = {"BK": 32, "SHIFT": shift, "STAGES": 2}
    made = shifted.on("emulator").compiled(a, b, c, **constants)

    def found(ptx: str) -> bool:
        """Whether a run has an error, a warning, or wrong sums."""
        gpu = EmulatorDevice("check")
        c[...] = np.nan
        try:
            gpu.launch(gpu.load(replace(made, ptx=ptx)), [a, b, c], 1)
        except (FindingsError, EmulatorError):
            return True
        return bool(capsys.readouterr().err) or not np.allclose(c, expected, rtol=0, atol=1e-3)

    assert not found(made.ptx)
    unseen = [what for what, ptx in mutants(made.ptx) if not found(ptx)]
    # The arrival behind the loop gives back the last slot, which a next program would wait for.
    assert len(unseen) == 1
    assert "mbarrier.arrive" in unseen[0]
