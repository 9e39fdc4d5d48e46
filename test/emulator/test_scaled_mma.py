"""mma.sync with block scaling against float64: fragments and selectors by formulas of the PTX ISA's
text ("Block Scaling for mma.sync", "Matrix Fragments for mma.m16n8k32 / k64"), lane by lane."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilec.compile.assembler import assemble
from tilec.hardware.target import find_target
from tilec.runtime.emulator import UnsupportedInstruction, load

DTYPES = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 8),
    "e5m2": (ml_dtypes.float8_e5m2, 8),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6),
    "e2m3": (ml_dtypes.float6_e2m3fn, 6),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4),
}
SCALES = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}
CASES = [
    ("mxf8f6f4", "", "e4m3", "e5m2", "ue8m0", (3, 1), (1, 2)),
    ("mxf8f6f4", ".scale_vec::1X", "e5m2", "e4m3", "ue8m0", (0, 0), (2, 0)),
    ("mxf8f6f4", "", "e2m1", "e3m2", "ue8m0", (1, 1), (0, 3)),
    ("mxf8f6f4", "", "e2m3", "e2m1", "ue8m0", (2, 0), (3, 1)),
    ("mxf4", "", "e2m1", "e2m1", "ue8m0", (2, 1), (0, 3)),
    ("mxf4", ".scale_vec::2X", "e2m1", "e2m1", "ue8m0", (0, 0), (2, 1)),
    ("mxf4nvf4", ".scale_vec::2X", "e2m1", "e2m1", "ue8m0", (2, 0), (2, 2)),
    ("mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1", "ue4m3", (0, 1), (0, 1)),
]


def program(name: str, types: str, picks: tuple[tuple[int, int], tuple[int, int]]) -> str:
    (byte_a, lane_a), (byte_b, lane_b) = picks
    shape = "m16n8k32" if "mxf8" in name else "m16n8k64"
    return f"""
.version 8.8
.target sm_121a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {{
  .reg .b64 %rd<6>; .reg .b32 %r<30>; .reg .b16 %h<3>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %tid.x; mad.wide.u32 %rd3, %r1, 32, %rd1; mad.wide.u32 %rd4, %r1, 16, %rd2;
  ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd3];
  ld.global.v4.b32 {{%r14, %r15, %r16, %r17}}, [%rd3+16];
  ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd4];
  mov.b16 %h1, {byte_b}; mov.b16 %h2, {lane_b};
  mma.sync.aligned.{shape}.row.col.{name}.f32.{types}
    {{%r20, %r21, %r22, %r23}}, {{%r10, %r11, %r12, %r13}}, {{%r14, %r15}},
    {{%r20, %r21, %r22, %r23}}, %r16, {{{byte_a}, {lane_a}}}, %r17, {{%h1, %h2}};
  st.global.v4.b32 [%rd4], {{%r20, %r21, %r22, %r23}};
  ret;
}}"""


def words_of(matrix: np.ndarray, kind: str, dense: bool, rows: int) -> np.ndarray:
    """(32, rows / 8 x 2) registers of a matrix (rows, k): element i of lane's register r."""
    codes = matrix.view(np.uint8).astype(np.uint64)
    per, bits = (8, 4) if dense else (4, 8)
    shift = 2 if kind == "e2m1" and not dense else 0
    count = rows // 8
    words = np.zeros((32, 2 * count), np.uint64)
    for lane in range(32):
        for r in range(2 * count):
            for i in range(per):
                row = lane // 4 + 8 * (r % count)
                column = per * (lane % 4) + i + 4 * per * (r // count)
                words[lane, r] |= codes[row, column] << np.uint64(shift + bits * i)
    return words.astype(np.uint32)


@pytest.mark.parametrize(("kind", "vector", "a_type", "b_type", "scale", "a_pick", "b_pick"), CASES)
def test_scaled_mma(
    kind: str, vector: str, a_type: str, b_type: str, scale: str, a_pick: tuple, b_pick: tuple
) -> None:
    rng, dense = np.random.default_rng(0), kind != "mxf8f6f4"
    depth = 64 if dense else 32
    count = {".scale_vec::4X": 4, ".scale_vec::2X": 2}.get(vector, 2 if dense else 1)
    a, b = (
        rng.standard_normal((rows, depth)).astype(DTYPES[name][0])
        for rows, name in ((16, a_type), (8, b_type))
    )
    # Every byte of every lane is a scale, so that a wrong one is seen.
    held = rng.integers(120, 134, (2, 32, 4)).astype(np.uint8) - (0 if scale == "ue8m0" else 70)
    registers = [words_of(a, a_type, dense, 16), words_of(b, b_type, dense, 8)]
    given = np.hstack([*registers, *(side.copy().view(np.uint32) for side in held)])
    c = rng.standard_normal((32, 4)).astype(np.float32)
    found = c.copy()
    name = f"kind::{kind}.block_scale{vector}"
    text = program(name, f"{a_type}.{b_type}.f32.{scale}", (a_pick, b_pick))
    load(text).run("k", 1, 32, [given, found])
    values = held.view(SCALES[scale]).astype(np.float64)
    left, right = a.astype(np.float64), b.astype(np.float64)
    for row in range(16):
        of = values[0, 4 * (row % 8) + 2 * a_pick[1] + row // 8, a_pick[0] :][:count]
        left[row] *= np.repeat(of, depth // count)
    for column in range(8):
        of = values[1, 4 * column + b_pick[1], b_pick[0] :][:count]
        right[column] *= np.repeat(of, depth // count)
    product = left @ right.T
    for lane in range(32):
        for i in range(4):
            expected = product[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2] + c[lane, i]
            np.testing.assert_allclose(found[lane, i], expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    "modifiers",
    [
        "kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue4m3",
        "kind::mxf8f6f4.block_scale.scale_vec::2X.f32.e4m3.e4m3.f32.ue8m0",
        "kind::mxf4.block_scale.f32.e4m3.e2m1.f32.ue8m0",
        "kind::f8f6f4.f32.e2m1.e2m1.f32",
    ],
)
def test_other_combinations_are_refused(modifiers: str) -> None:
    name, _, types = modifiers.partition(".f32.")
    with pytest.raises(UnsupportedInstruction):
        load(program(name, types, ((0, 0), (0, 0))))


def test_ptxas_takes_the_programs() -> None:
    for kind, vector, a_type, b_type, scale, *picks in CASES[:1] + CASES[-1:]:
        types = f"{a_type}.{b_type}.f32.{scale}"
        text = program(f"kind::{kind}.block_scale{vector}", types, (picks[0], picks[1]))
        assert assemble(text, find_target("sm_121a")).cubin
