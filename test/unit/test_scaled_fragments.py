"""`tl.dot_scaled` by mma.sync with block scales, which has them in registers: 12.x."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scaled_kernels import scaled_matmul
from test_block_scales import E2M1, E2M3, E3M2, E4M3, E5M2, E8M0, operand

import tilec
import tilec.language as tl
from tilec.compile.assembler import assemble
from tilec.compile.compiler import compile_module
from tilec.compile.llvm_level import is_llvm_level, lower_llvm
from tilec.compile.source import parse_source
from tilec.dialects.context import make_context
from tilec.examples.block_scaled_matmul import arranged, packed
from tilec.hardware.fragments import accumulator_layout
from tilec.hardware.layout import Layout
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.ptx_version import feature_of
from tilec.hardware.scale_fragments import scale_layout, scale_place
from tilec.hardware.target import Feature, find_target
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError
from tilec.ops.scaled_kernel import scaled_product

TARGET = "sm_120a"
BF16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True)
def _without_tensor_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", TARGET)


KINDS: dict[str, tuple[tuple[Any, Any], Any, int, str]] = {
    "e4m3": ((E4M3, E4M3), E8M0, 32, "mma.mx.m16n8k32.f32.e4m3.e4m3"),
    "e5m2 e4m3": ((E5M2, E4M3), E8M0, 32, "mma.mx.m16n8k32.f32.e5m2.e4m3"),
    "e3m2 e2m3": ((E3M2, E2M3), E8M0, 32, "mma.mx.m16n8k32.f32.e3m2.e2m3"),
    "e2m1 e5m2": ((E2M1, E5M2), E8M0, 32, "mma.mx.m16n8k32.f32.e2m3.e5m2"),
    "e3m2 e2m1": ((E3M2, E2M1), E8M0, 32, "mma.mx.m16n8k32.f32.e3m2.e2m3"),
    "mx e2m1": ((E2M1, E2M1), E8M0, 32, "mma.mx.m16n8k64.f32.e2m1.e2m1"),
    "nv e2m1": ((E2M1, E2M1), E4M3, 16, "mma.nv.m16n8k64.f32.e2m1.e2m1"),
}
PTX = {
    "mx.m16n8k32": "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X",
    "mx.m16n8k64": "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X",
    "nv.m16n8k64": "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X",
}


def decisions(compiled: Any) -> dict[str, str]:
    """The last decision about each subject."""
    return {entry["about"]: entry["chosen"] for entry in compiled.report["decisions"]}


def check(
    kind: str,
    sizes: tuple[int, int, int],
    tile: tuple[int, int, int],
    how: str = "",
    device: str = "emulator:check",
    **demands: Any,
) -> Any:
    """Random operands and scales against float64; `how`: "", "transposed" scales, or "arranged"."""
    (left, right), scale, block, instruction = KINDS[kind]
    rng, (m, n, k), (bm, bn, bk) = np.random.default_rng(sum(sizes)), sizes, tile
    a, a_scale, x = operand(rng, m, k, left, scale, block)
    b, b_scale, y = operand(rng, n, k, right, scale, block)
    c, empty = np.full((m, n), np.nan, np.float32), (0, 0, 0, 0, 1.0, 0)
    if how == "arranged":
        a_scale, b_scale = arranged(a_scale), arranged(b_scale)
    elif how == "transposed":
        a_scale, b_scale = np.asfortranarray(a_scale), np.asfortranarray(b_scale).T
    else:
        b_scale = b_scale.T
    kernel = scaled_product.demanding(**demands).on(device)
    constants = {"BM": bm, "BN": bn, "BK": bk, "BLOCK": block, "ARRANGED": how == "arranged"}
    kernel(a, a_scale, b.T, b_scale, c, *empty, **constants)
    expected = x @ y.T
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    compiled = kernel.compiled(a, a_scale, b.T, b_scale, c, *empty, **constants)
    assert decisions(compiled)["dot instruction"] == instruction
    family = next(name for name in PTX if name in instruction)
    formats = ".".join(instruction.split(".")[-2:])
    given = re.findall(r"mma\.sync\.aligned\.(\S+)", compiled.ptx)
    factors = "ue8m0" if scale is E8M0 else "ue4m3"
    assert set(given) == {f"{PTX[family]}.f32.{formats}.f32.{factors}"}
    return compiled


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str) -> None:
    """Sizes that fill no tile, and rings that wrap; scales come by threads."""
    compiled = check(kind, (52, 40, 448), (32, 32, 64), device="emulator:late")
    assert assemble(compiled.ptx, find_target(TARGET)).spills == 0


@pytest.mark.parametrize(
    ("kind", "tile", "how", "num_warps"),
    [
        ("e4m3", (48, 24, 128), "", 2),
        ("mx e2m1", (16, 96, 64), "transposed", 4),
        ("nv e2m1", (80, 16, 192), "", 1),
        ("e3m2 e2m1", (24, 40, 96), "transposed", 4),
    ],
)
def test_tiles_of_any_shape(
    kind: str, tile: tuple[int, int, int], how: str, num_warps: int
) -> None:
    """Words that serve several instructions, one, and more than there are; rows past the tile's
    end; fewer than four blocks in a word, and more."""
    check(kind, (52, 72, 192), tile, how, num_warps=num_warps)


@pytest.mark.parametrize(
    ("kind", "mode", "k", "bytes_"), [("e4m3", "check", 512, 4), ("nv e2m1", "late", 1024, 8)]
)
def test_scales_come_by_cp_async(kind: str, mode: str, k: int, bytes_: int) -> None:
    """Those of a row in a step, where their rows are multiples of 16 bytes; fragments of the next
    iteration are read ahead, scales among them."""
    compiled = check(kind, (52, 40, k), (32, 32, 128), device=f"emulator:{mode}")
    assert decisions(compiled)["asynchronous copy"] == f"cp.async of {bytes_} bytes"
    assert int(decisions(compiled)["pipeline"].split()[0]) * 128 <= k
    assert "cp.async.bulk" not in compiled.ptx


@pytest.mark.parametrize(
    ("kind", "mode", "demands", "k"),
    [
        ("e4m3", "check", {}, 512),
        ("mx e2m1", "late", {"num_warps": 4}, 896),
        ("nv e2m1", "check", {"persistent": True}, 768),
        ("e5m2 e4m3", "late", {"cluster": 2}, 384),
    ],
    ids=["8 bits", "4 bits", "persistent", "cluster"],
)
def test_scales_come_by_tensor_copies(
    kind: str, mode: str, demands: dict[str, Any], k: int
) -> None:
    """Those that lie in their array as cuBLAS arranges them; a warp keeps the rings filled."""
    device = f"emulator:{mode}"
    compiled = check(kind, (140, 40, k), (128, 128, 128), "arranged", device, **demands)
    entries = compiled.report["decisions"]
    copies = [entry["chosen"] for entry in entries if entry["about"] == "asynchronous copy"]
    assert copies == ["TMA"] * 4
    roles = decisions(compiled)["warp specialisation"]
    assert int(re.search(r"(\d+) stages", roles)[1]) * 128 < k
    assert len(re.findall(r"ld\.shared\.b(8|16)\b", compiled.ptx)) == 0
    assert assemble(compiled.ptx, find_target(TARGET)).spills == 0


def test_the_other_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_121a")
    compiled = check("nv e2m1", (20, 24, 64), (16, 16, 64))
    assert assemble(compiled.ptx, find_target("sm_121a")).cubin
    assert ".version 8.8" in compiled.ptx


@pytest.mark.parametrize(
    ("dtypes", "scales", "block", "reason"),
    [
        ((BF16, E4M3), (E8M0, E8M0), 32, "no instruction multiplies bf16 by e4m3 with a scale of"),
        ((E5M2, E5M2), (E8M0, E8M0), 16, "e5m2 by e5m2 with a scale of i8 per 16"),
        ((E4M3, E4M3), (E8M0, E4M3), 32, "the two sides have different scales"),
        ((E2M1, E2M1), (E8M0, E8M0), 32, "k = 32 is no multiple of the instruction's 64"),
    ],
    ids=["bf16", "blocks", "scales", "depth"],
)
def test_what_is_multiplied_out(
    dtypes: tuple[Any, Any], scales: tuple[Any, Any], block: int, reason: str
) -> None:
    rng = np.random.default_rng(0)
    a, a_scale, x = operand(rng, 24, 96, dtypes[0], scales[0], block)
    b, b_scale, y = operand(rng, 16, 96, dtypes[1], scales[1], block)
    c = np.full((24, 16), np.nan, np.float32)
    depth = 16 if dtypes[0] is E2M1 else 32
    constants = {"BM": 32, "BN": 16, "BYTES": depth, "BLOCKS": 32 // block}
    kernel = scaled_matmul.on("emulator:check")
    kernel(a, a_scale, b.T, b_scale.T, c, **constants)
    expected = x @ y.T
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    compiled = kernel.compiled(a, a_scale, b.T, b_scale.T, c, **constants)
    (found,) = (e for e in compiled.report["decisions"] if e["about"] == "scales")
    assert found["chosen"] == "multiplied out, in bf16"
    assert reason in found["why"]
    assert "block_scale" not in compiled.ptx


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_others_refuse_the_instruction(target: str, tmp_path: Path) -> None:
    """A dump made for 12.x, at every level that names it."""
    dtypes = {"a": "f8E4M3FN", "a_scale": "i8", "b": "f8E4M3FN", "b_scale": "i8", "c": "f32"}
    specs = [f"{name}:{dtype}[?,?:16;?:16,1]" for name, dtype in dtypes.items()]
    constants = {"BM": 16, "BN": 8, "BYTES": 32, "BLOCKS": 1}
    scaled_matmul.compile(specs, constants, target=TARGET, dump_dir=str(tmp_path))
    for stage in ("infer-layouts", "stage-operands", "lower-to-nvvm", "llvm"):
        (dump,) = tmp_path.glob(f"*-{stage}.mlir")
        module = parse_source(dump.read_text(), str(dump), make_context())
        given = (find_target(target), "ptx") if is_llvm_level(module) else (find_target(target),)
        compiled = lower_llvm if is_llvm_level(module) else compile_module
        needs = f"needs MMA_SYNC_BLOCK_SCALE, which {target} does not have"
        with pytest.raises(CompileError, match=needs):
            compiled(module, *given)


def test_three_warpgroups_cannot_share_them() -> None:
    with pytest.raises(CompileError, match="num_warps=12 was asked for, but sm_120a has no instr"):
        check("e4m3", (96, 96, 128), (96, 96, 128), num_warps=12)


def test_inline_text_is_known_too() -> None:
    name = f"mma.sync.aligned.{PTX['mx.m16n8k32']}.f32.e4m3.e4m3.f32.ue8m0"
    assert feature_of(name) is Feature.MMA_SYNC_BLOCK_SCALE
    assert feature_of("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32") is Feature.MMA_SYNC_FP8


@pytest.mark.parametrize(("code", "value"), [(0, 2.0**-127), (255, np.nan)])
def test_the_ends_of_the_range(code: int, value: float) -> None:
    """Scales in no loop, one side without any, which then is 1."""

    @tilec.kernel(grid=(1,))
    def ends(a: tl.array, s: tl.array, c: tl.array):
        x = tl.load(a, (0, 0), (16, 32))
        tl.store(c, (0, 0), tl.dot_scaled(x, tl.load(s, (0, 0), (16, 1)), x.T, None))

    a, s = np.ones((16, 32), E5M2), np.full((16, 1), code, np.uint8).view(E8M0)
    c = np.zeros((16, 16), np.float32)
    ends.on("emulator:check")(a, s, c)
    np.testing.assert_array_equal(c, np.full((16, 16), 32 * value, np.float32))


def test_ones_are_of_the_other_sides_kind() -> None:
    @tilec.kernel(grid=(1,))
    def one_side(a: tl.array, b: tl.array, s: tl.array, c: tl.array):
        y, t = tl.load(b, (0, 0), (32, 8)), tl.load(s, (0, 0), (4, 8))
        tl.store(c, (0, 0), tl.dot_scaled(tl.load(a, (0, 0), (16, 32)), None, y, t))

    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 64)).astype(E2M1)
    b, scale, y = operand(rng, 8, 64, E2M1, E4M3, 16)
    a, c = packed(x), np.zeros((16, 8), np.float32)
    kernel = one_side.on("emulator:check")
    kernel(a, b.T, scale.T, c)
    np.testing.assert_allclose(c, x.astype(np.float64) @ y.T, rtol=1e-5, atol=1e-4)
    chosen = decisions(kernel.compiled(a, b.T, scale.T, c))["dot instruction"]
    assert chosen == "mma.nv.m16n8k64.f32.e2m1.e2m1"


def test_bits_above_six_are_no_part_of_a_number() -> None:
    @tilec.kernel(grid=(1,))
    def padded(a: tl.array, b: tl.array, c: tl.array):
        x = tl.load(a, (0, 0), (16, 32))
        tl.store(c, (0, 0), tl.dot_scaled(x, None, tl.load(b, (0, 0), (32, 8)), None))

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((16, 32)).astype(E3M2), rng.standard_normal((32, 8)).astype(E4M3)
    c = np.zeros((16, 8), np.float32)
    dirty = (x.view(np.uint8) | rng.integers(0, 4, (16, 32), np.uint8) << 6).view(E3M2)
    kernel = padded.on("emulator:check")
    kernel(dirty, y, c)
    np.testing.assert_allclose(c, x.astype(np.float64) @ y.astype(np.float64), rtol=1e-5)
    assert kernel.compiled(dirty, y, c).ptx.count("1061109567") == 4  # 0x3f3f3f3f, a register each


MX = "mma.mx.m16n8k32.f32.e4m3.e5m2"
ACC = gpu.accumulator(MX, (32, 32))


@tilec.kernel(num_warps=1, grid=1)
def by_hand(a: tl.array, a_scale: tl.array, b: tl.array, b_scale: tl.array, c: tl.array):
    """One warp, every layout said."""
    left = gpu.load(a_scale, (0, 0), (32, 2), gpu.lhs_scales(MX, ACC, 2))
    right = gpu.load(b_scale, (0, 0), (2, 32), gpu.rhs_scales(MX, ACC, 2))
    acc = gpu.zeros((32, 32), tl.f32, ACC)
    for step in tl.static_range(2):
        x = gpu.load(a, (0, step * 32), (32, 32), gpu.lhs_fragments(MX, ACC))
        y = gpu.load(b, (step * 32, 0), (32, 32), gpu.rhs_fragments(MX, ACC))
        acc = gpu.mma_scaled(x, left, y, right, acc, MX, step)
    tl.store(c, (0, 0), acc)


NV = "mma.nv.m16n8k64.f32.e2m1.e2m1"
ROW = gpu.accumulator(NV, (16, 8))


@tilec.kernel(num_warps=1, grid=1)
def by_hand_at_once(a: tl.array, a_scale: tl.array, b: tl.array, b_scale: tl.array, c: tl.array):
    """Two steps of the instruction in one op."""
    left = gpu.load(a_scale, (0, 0), (16, 8), gpu.lhs_scales(NV, ROW, 8))
    right = gpu.load(b_scale, (0, 0), (8, 8), gpu.rhs_scales(NV, ROW, 8))
    x = gpu.load(a, (0, 0), (16, 64), gpu.lhs_fragments(NV, ROW, 64))
    y = gpu.load(b, (0, 0), (64, 8), gpu.rhs_fragments(NV, ROW, 64))
    acc = gpu.zeros((16, 8), tl.f32, ROW)
    tl.store(c, (0, 0), gpu.mma_scaled(x, left, y, right, acc, NV))


@pytest.mark.parametrize(
    ("kernel", "kinds", "scale", "sizes"),
    [
        (by_hand, (E4M3, E5M2), E8M0, (32, 32, 64)),
        (by_hand_at_once, (E2M1, E2M1), E4M3, (16, 8, 128)),
    ],
)
def test_by_hand(
    kernel: Any, kinds: tuple[Any, Any], scale: Any, sizes: tuple[int, int, int]
) -> None:
    rng, (m, n, k), block = np.random.default_rng(1), sizes, 32 if scale is E8M0 else 16
    a, a_scale, x = operand(rng, m, k, kinds[0], scale, block)
    b, b_scale, y = operand(rng, n, k, kinds[1], scale, block)
    c = np.full((m, n), np.nan, np.float32)
    if scale is E8M0:
        a_scale, b_scale = a_scale.view(np.int8), b_scale.view(np.int8)
    else:
        a, b = a.view(np.int8), b.view(np.int8)
    kernel.on("emulator:check")(a, a_scale, b.T, b_scale.T, c)
    expected = x @ y.T
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def accumulators() -> list[tuple[str, Layout, tuple[int, int]]]:
    """Instructions, and their sums over grids of warps: one to six of them a warp along each
    dimension."""
    found = []
    for name in (MX, "mma.nv.m16n8k64.f32.e2m1.e2m1"):
        for shape, warps in (((16, 8), (1, 1)), ((96, 48), (1, 2)), ((64, 96), (2, 1))):
            found.append((name, accumulator_layout(find_instruction(name), shape, *warps), shape))
    return found


@pytest.mark.parametrize(("name", "acc", "shape"), accumulators())
@pytest.mark.parametrize("axis", [0, 1])
def test_lanes_and_bytes_are_the_isas(
    name: str, acc: Layout, shape: tuple[int, int], axis: int
) -> None:
    """PTX ISA 9.0, "Block scaling for mma.sync", from the text: of A, thread-id 0 is lanes 0 and 1
    of each four, 1 lanes 2 and 3, with rows lane / 4 and lane / 4 + 8; of B it is the lane itself,
    with column lane / 4. byte-id is 0 to 3 for one scale, 0 for four."""
    row, blocks = find_instruction(name), 8
    scales, own = scale_layout(row, acc, blocks, axis), (row.m, row.n)[axis]
    values = scales.value_coordinates(2)
    starts = {at[axis] for at in acc.value_coordinates(2) if at[axis] % own == 0}
    for start in sorted(starts):
        for block in range(0, blocks, row.scale_blocks):
            place = scale_place(row, acc, scales, (start, block), axis)
            assert place.byte == (0 if "nv" in name else block % 4)
            for part in range(own):
                pick = place.thread if axis else 2 * place.thread + part // 8
                lane = 4 * (part % 8) + pick
                for warp in range(acc.num_threads // 32):
                    base = acc.thread_coordinates(32 * warp, 2)[axis]
                    thread = scales.thread_coordinates(32 * warp + lane, 2)
                    held = [values[register] for register in place.registers]
                    found = {(thread[axis] + v[axis], v[1 - axis]) for v in held}
                    first = block // 4 * 4
                    assert found == {(base + start + part, first + n) for n in range(4)}
                    assert [v[1 - axis] for v in held] == list(range(first, first + 4))
    assert {at[axis] for at in acc.value_coordinates(2)} <= set(range(max(shape)))
