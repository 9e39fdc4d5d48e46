# ruff: noqa: E501  (lines of PTX)
"""mma.sync, ldmatrix, stmatrix, movmatrix and cp.async against NumPy on whole matrices.

Fragments are placed by formulas written here from the PTX ISA's text, element by element, and not
taken from the emulator.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load

HEAD = ".version 8.4\n.target sm_89\n.address_size 64\n"
DTYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "tf32": np.dtype("f4"),
    "s8": np.dtype("i1"), "u8": np.dtype("u1"), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2), "f64": np.dtype("f8"), "f32": np.dtype("f4"),
    "s32": np.dtype("i4"),
}  # fmt: skip


def a_place(kind: str, m: int, lane: int, i: int) -> tuple[int, int]:
    """Row and column of element i of lane's A fragment (PTX ISA 9.7.14.5.7 and following)."""
    group, thread = lane // 4, lane % 4
    if kind == "f64":
        return (group, thread + 4 * i) if m == 8 else (group + 8 * (i % 2), thread + 4 * (i // 2))
    if kind == "tf32":
        return group + 8 * (i % 2), thread + 4 * (i // 2)
    if kind in ("f16", "bf16"):
        row = group if i in (0, 1, 4, 5) else group + 8
        return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)
    if m == 8:
        return group, thread * 4 + i
    row = group if i < 4 or 8 <= i < 12 else group + 8
    return row, thread * 4 + (i & 3) + (16 if i >= 8 else 0)


def b_place(kind: str, lane: int, i: int) -> tuple[int, int]:
    group, thread = lane // 4, lane % 4
    if kind in ("f64", "tf32"):
        return thread + 4 * i, group
    if kind in ("f16", "bf16"):
        return thread * 2 + (i & 1) + (8 if i >= 2 else 0), group
    return thread * 4 + (i & 3) + (16 if i >= 4 else 0), group


def c_place(lane: int, i: int) -> tuple[int, int]:
    group, thread = lane // 4, lane % 4
    return group + (8 if i >= 2 else 0), thread * 2 + (i & 1)


def fragments(matrix: np.ndarray, place, count: int) -> np.ndarray:
    """(32, count) elements as the lanes hold them."""
    result = np.zeros((32, count), matrix.dtype)
    for lane in range(32):
        for i in range(count):
            result[lane, i] = matrix[place(lane, i)]
    return result


def loads(name: str, words: int, pointer: str, wide: bool) -> str:
    size = 8 if wide else 4
    lines = [f"mad.wide.u32 %rd9, %r1, {words * size}, {pointer};"]
    for i in range(words):
        lines.append(f"ld.global.b{size * 8} {name}{i}, [%rd9+{i * size}];")
    return " ".join(lines)


CASES = [
    ("m16n8k16", "f16", "f16", "f32"), ("m16n8k16", "f16", "f16", "f16"),
    ("m16n8k8", "f16", "f16", "f32"), ("m16n8k8", "f16", "f16", "f16"),
    ("m16n8k16", "bf16", "bf16", "f32"), ("m16n8k8", "bf16", "bf16", "f32"),
    ("m16n8k4", "tf32", "tf32", "f32"), ("m16n8k8", "tf32", "tf32", "f32"),
    ("m16n8k16", "s8", "s8", "s32"), ("m16n8k32", "s8", "u8", "s32"),
    ("m16n8k32", "u8", "s8", "s32"), ("m8n8k16", "u8", "u8", "s32"),
    ("m16n8k32", "e4m3", "e4m3", "f32"), ("m16n8k32", "e5m2", "e4m3", "f32"),
    ("m16n8k32", "e4m3", "e5m2", "f32"),
    ("m8n8k4", "f64", "f64", "f64"), ("m16n8k4", "f64", "f64", "f64"),
    ("m16n8k8", "f64", "f64", "f64"), ("m16n8k16", "f64", "f64", "f64"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "a_kind", "b_kind", "c_kind"), CASES)
def test_mma(shape: str, a_kind: str, b_kind: str, c_kind: str) -> None:
    m, n, k = (int(x) for x in shape[1:].replace("n", " ").replace("k", " ").split())
    rng = np.random.default_rng(0)

    def matrix(kind: str, rows: int, columns: int) -> np.ndarray:
        if kind in ("s8", "u8", "s32"):
            info = np.iinfo(DTYPES[kind])
            span = (info.min, info.max) if kind != "s32" else (-1000, 1000)
            return rng.integers(*span, (rows, columns)).astype(DTYPES[kind])
        return rng.standard_normal((rows, columns)).astype(DTYPES[kind])

    a, b, c = matrix(a_kind, m, k), matrix(b_kind, k, n), matrix(c_kind, m, n)
    af = fragments(a, lambda lane, i: a_place(a_kind, m, lane, i), m * k // 32)
    bf = fragments(b, lambda lane, i: b_place(b_kind, lane, i), k * n // 32)
    cf = fragments(c, c_place, m * n // 32)
    df = np.zeros_like(cf)
    wide = a_kind == "f64"
    size = 8 if wide else 4
    counts = [x.shape[1] * x.dtype.itemsize // size for x in (af, bf, cf)]
    names = [[f"%{'d' if wide else 'r'}{base + i}" for i in range(count)]
             for base, count in zip((10, 30, 40), counts, strict=True)]  # fmt: skip
    vectors = [f"{{{', '.join(group)}}}" for group in names]
    prefix = "%d" if wide else "%r"
    body = (
        f"{loads(prefix + '1', counts[0], '%rd1', wide)} {loads(prefix + '3', counts[1], '%rd2', wide)}"
        f"{loads(prefix + '4', counts[2], '%rd3', wide)}"
        f"mma.sync.aligned.{shape}.row.col.{c_kind}.{a_kind}.{b_kind}.{c_kind} "
        f"{vectors[2]}, {vectors[0]}, {vectors[1]}, {vectors[2]};"
        f"mad.wide.u32 %rd9, %r1, {counts[2] * size}, %rd4;"
    )
    for i, name in enumerate(names[2]):
        body += f"st.global.b{size * 8} [%rd9+{i * size}], {name};"
    text = (
        f"{HEAD}.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{\n"
        ".reg .b32 %r<60>; .reg .b64 %rd<20>; .reg .b64 %d<60>;\n"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];"
        f"ld.param.u64 %rd4, [d]; mov.u32 %r1, %laneid;\n{body}\nret; }}"
    )
    load(text).run("k", 1, 32, [af, bf, cf, df])
    left = a.astype(np.float64)
    right = b.astype(np.float64)
    if a_kind == "tf32":  # the hardware reads the upper 19 bits
        left = (a.view(np.uint32) & np.uint32(0xFFFFE000)).view("f4").astype(np.float64)
        right = (b.view(np.uint32) & np.uint32(0xFFFFE000)).view("f4").astype(np.float64)
    want = left @ right + c.astype(np.float64)
    got = np.zeros((m, n))
    for lane in range(32):
        for i in range(m * n // 32):
            got[c_place(lane, i)] = df[lane, i]
    tolerance = {"s32": 0, "f64": 1e-13, "f32": 2e-6 * k, "f16": 2e-2}[c_kind]
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def copy_kernel(body: str, shared: int = 4096) -> str:
    return (
        f"{HEAD}.visible .entry k(.param .u64 a, .param .u64 b) {{\n"
        ".reg .b32 %r<60>; .reg .b64 %rd<20>; .reg .pred %p<4>;\n"
        f".shared .align 128 .b8 s[{shared}];\n"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;\n"
        f"{body}\nret; }}"
    )


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("warps", [1, 3])
def test_ldmatrix(count: int, trans: str, warps: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 1 << 16, (warps, 32, 8), dtype=np.uint16)
    out = np.zeros((warps, 32, count), np.uint32)
    order = rng.permutation(32).astype(np.uint32)  # any row may stand anywhere
    registers = ", ".join(f"%r{20 + i}" for i in range(count))
    body = (
        "shr.u32 %r3, %r1, 5; and.b32 %r4, %r1, 31; mul.lo.u32 %r5, %r3, 512; add.u32 %r6, %r2, %r5;"
        "mad.wide.u32 %rd3, %r1, 16, %rd1; ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd3];"
        "mad.lo.u32 %r7, %r4, 16, %r6; st.shared.v4.b32 [%r7], {%r10, %r11, %r12, %r13};"
        "bar.sync 0; mul.lo.u32 %r8, %r4, 5; and.b32 %r8, %r8, 31; mad.lo.u32 %r9, %r8, 16, %r6;"
        f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%r9];"
        f"mad.wide.u32 %rd4, %r1, {4 * count}, %rd2;"
    )
    del order
    for i in range(count):
        body += f"st.global.b32 [%rd4+{4 * i}], %r{20 + i};"
    load(copy_kernel(body)).run("k", 1, 32 * warps, [a, out])
    got = out.view(np.uint16).reshape(warps, 32, count, 2)
    for warp in range(warps):
        for j in range(count):
            rows = np.stack([a[warp, (8 * j + r) * 5 % 32] for r in range(8)])
            for lane in range(32):
                for half in range(2):
                    r, col = lane // 4, 2 * (lane % 4) + half
                    want = rows[col, r] if trans else rows[r, col]
                    assert got[warp, lane, j, half] == want


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_is_the_inverse_of_ldmatrix_and_movmatrix_transposes(trans: str) -> None:
    a = np.random.default_rng(0).integers(0, 1 << 16, (32, 8), dtype=np.uint16)
    out = np.zeros((2, 32, 8), np.uint16)
    body = (
        "mad.wide.u32 %rd3, %r1, 16, %rd1; ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd3];"
        "mad.lo.u32 %r7, %r1, 16, %r2; st.shared.v4.b32 [%r7], {%r10, %r11, %r12, %r13};"
        "bar.warp.sync -1;"
        f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r20, %r21, %r22, %r23}}, [%r7];"
        f"stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r7+512], {{%r20, %r21, %r22, %r23}};"
        "movmatrix.sync.aligned.m8n8.trans.b16 %r24, %r20;"
        "bar.warp.sync -1; ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r7+512];"
        "mad.wide.u32 %rd4, %r1, 16, %rd2; st.global.v4.b32 [%rd4], {%r10, %r11, %r12, %r13};"
        "st.global.v2.b32 [%rd4+512], {%r20, %r24};"
    )
    load(copy_kernel(body)).run("k", 1, 32, [a, out])
    np.testing.assert_array_equal(out[0], a)
    plain = out[1, :, :2].reshape(8, 8)
    transposed = out[1, :, 2:4].reshape(8, 8)
    np.testing.assert_array_equal(plain.T, transposed)


@pytest.mark.parametrize("mode", ["eager", "late"])
@pytest.mark.parametrize(("cache", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
def test_cp_async_copies_and_fills_with_zeros(cache: str, size: int, mode: str) -> None:
    words = size // 4
    a = np.random.default_rng(0).integers(1, 255, 64 * size, dtype=np.uint8)
    out = np.zeros(64 * size, np.uint8)
    body = (
        f"mad.lo.u32 %r3, %r1, {size}, %r2; mad.wide.u32 %rd3, %r1, {size}, %rd1;"
        f"rem.u32 %r4, %r1, {size + 1};"
        f"cp.async.{cache}.shared.global.L2::128B [%r3], [%rd3], {size}, %r4;"
        "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"
        f"mad.wide.u32 %rd4, %r1, {size}, %rd2;"
    )
    for i in range(words):
        body += f"ld.shared.b32 %r10, [%r3+{4 * i}]; st.global.b32 [%rd4+{4 * i}], %r10;"
    load(copy_kernel(body)).run("k", 1, 64, [a, out], mode=mode)
    rows = a.reshape(64, size).copy()
    for i in range(64):
        rows[i, i % (size + 1) :] = 0
    np.testing.assert_array_equal(out.reshape(64, size), rows)


def test_cp_async_reads_nothing_where_the_source_size_is_zero() -> None:
    a = np.arange(40, dtype=np.uint32)
    out = np.zeros(64, np.uint32)
    body = (
        "mad.lo.u32 %r3, %r1, 4, %r2; mad.wide.u32 %rd3, %r1, 4, %rd1; setp.lt.u32 %p1, %r1, 40;"
        "selp.u32 %r4, 4, 0, %p1; cp.async.ca.shared.global [%r3], [%rd3], 4, %r4;"
        "cp.async.wait_all; ld.shared.b32 %r10, [%r3]; mad.wide.u32 %rd4, %r1, 4, %rd2;"
        "st.global.b32 [%rd4], %r10;"
    )
    load(copy_kernel(body)).run("k", 1, 64, [a, out])
    np.testing.assert_array_equal(out, np.where(np.arange(64) < 40, np.arange(64), 0))
    with pytest.raises(EmulatorError, match="out of bounds: 4 bytes at byte offset 160"):
        load(copy_kernel(body.replace("4, %r4", "4"))).run("k", 1, 64, [a, out])


def test_late_copies_poison_their_destination_until_they_are_waited_for() -> None:
    """Old bytes must not stand in for the copy: without the wait NaN patterns are read."""
    a = np.arange(64, dtype=np.uint32)
    out = np.zeros(64, np.uint32)
    body = (
        "mad.lo.u32 %r3, %r1, 4, %r2; mad.wide.u32 %rd3, %r1, 4, %rd1; st.shared.b32 [%r3], %r1;"
        "bar.sync 0; cp.async.ca.shared.global [%r3], [%rd3], 4; cp.async.commit_group; WAIT"
        "ld.shared.b32 %r10, [%r3]; mad.wide.u32 %rd4, %r1, 4, %rd2; st.global.b32 [%rd4], %r10;"
    )
    for wait, value in (("", 0xFFFFFFFF), ("cp.async.wait_group 0;", a)):
        load(copy_kernel(body.replace("WAIT", wait))).run("k", 1, 64, [a, out], mode="late")
        np.testing.assert_array_equal(out, value)


def test_fragments_are_taken_over_until_their_registers_are_written() -> None:
    """Two products of one A; then a register of it changes, by an instruction of a known form."""
    product = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%a0,%a1}, {%b0}, {%f0,%f1,%f2,%f3};"
    text = (
        HEAD
        + ".visible .entry k(.param .u64 p) { .reg .b64 %rd<10>; .reg .b32 %r1, %a<2>, %b<1>; .reg .f32 %f<4>;\n"
        "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.s64 %rd1, %rd1, %rd2;\n"
        "mov.b32 %a0, 0x3C003C00; mov.b32 %a1, %a0; mov.b32 %b0, %a0;\n"
        "mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0;\n"
        f"{product}\n{product}\nmov.b32 %a0, 0x40004000;\n{product}\n"
        "st.global.v4.f32 [%rd1], {%f0,%f1,%f2,%f3}; ret; }"
    )
    out = np.zeros((32, 4), np.float32)
    load(text).run("k", 1, 32, [out])
    np.testing.assert_array_equal(out, np.tile(np.float32([32, 32, 24, 24]), (32, 1)))
