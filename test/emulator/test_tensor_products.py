# ruff: noqa: E501  (lines of PTX)
"""tcgen05 products of CTA pairs, with scale factors, of narrow floats and into f16, against NumPy."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, Result, load

MODES = ("eager", "late", "check")
LBO, SBO = 128, 256
DESCRIPTOR = LBO >> 4 << 16 | SBO >> 4 << 32 | 1 << 46
WAIT = "{{ .reg .pred done; W{0}: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3+8], {0}; @!done bra W{0}; }}"


def kernel(body: str, group: int, columns: int = 128, shared: int = 65536):
    """s (%r2) is filled from a (%rd1; each CTA of a pair from its own part); %r4 is tensor memory.

    Thread 0 of rank 0 (%p1) runs `body`; then every thread stores the columns of its lane to b.
    """
    names = [f"%r{100 + i}" for i in range(64)]
    read = ""
    for half in range(columns // 64):
        read += f"add.u32 %r9, %r8, {64 * half}; tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{', '.join(names)}}}, [%r9]; tcgen05.wait::ld.sync.aligned;"
        read += "".join(
            f"st.global.b32 [%rd5+{4 * (64 * half + i)}], {name};" for i, name in enumerate(names)
        )
    meet = (
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
        if group == 2
        else "bar.sync 0;"
    )
    return load(
        ".version 8.8\n.target sm_100a\n.address_size 64\n"
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 bytes) {\n"
        ".reg .pred %p<9>; .reg .b32 %r<300>; .reg .b64 %rd<30>;\n"
        f".shared .align 1024 .b8 s[{shared}];\n.shared .align 8 .b8 bar[64];\n"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r90, [bytes]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;"
        "mov.u32 %r3, bar; mov.u32 %r91, %cluster_ctarank; or.b32 %r92, %r1, %r91; setp.eq.u32 %p1, %r92, 0; shr.u32 %r5, %r1, 5;"
        f"setp.lt.u32 %p2, %r1, 32; @%p2 tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r3], {columns};"
        "setp.eq.u32 %p6, %r1, 0; @%p6 mbarrier.init.shared::cta.b64 [%r3+8], 1;"
        "mul.wide.u32 %rd6, %r91, %r90; add.s64 %rd1, %rd1, %rd6;"
        "shl.b32 %r80, %r1, 4;\nFILL: setp.ge.u32 %p7, %r80, %r90; @%p7 bra FILLED;"
        "add.u32 %r82, %r2, %r80; cvt.u64.u32 %rd20, %r80; add.s64 %rd21, %rd1, %rd20;"
        "ld.global.v4.b32 {%r83, %r84, %r85, %r86}, [%rd21]; st.shared.v4.b32 [%r82], {%r83, %r84, %r85, %r86};"
        "add.u32 %r80, %r80, 2048; bra FILL;\nFILLED: fence.proxy.async.shared::cta;"
        f"bar.sync 0; ld.shared.b32 %r4, [%r3]; {meet}"
        f"and.b32 %r20, %r2, 0xffffff; shr.u32 %r10, %r20, 4; cvt.u64.u32 %rd10, %r10; or.b64 %rd10, %rd10, {DESCRIPTOR};"
        "cvt.u64.u32 %rd12, %r3; setp.ne.u32 %p3, %r1, %r1; setp.eq.u32 %p4, %r1, %r1;\n"
        f"@!%p1 bra DONE;\n{body}\nDONE:\n{WAIT.format(0)}\ntcgen05.fence::after_thread_sync;"
        f"shl.b32 %r7, %r5, 21; add.u32 %r8, %r4, %r7; mad.lo.u32 %r93, %r91, 128, %r1; mad.wide.u32 %rd5, %r93, {4 * columns}, %rd2;"
        f"{read}\nbar.sync 0; {meet} @%p2 tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r4, {columns};\nret;\n}}"
    )


def commit(group: int) -> str:
    if group == 1:
        return "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%rd12+8];"
    return "mov.b16 %h1, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r94], %h1;"


def run(
    body: str, images: list[np.ndarray], mode: str, columns: int = 128
) -> tuple[np.ndarray, Result]:
    group = len(images)
    if group == 2:
        body = "{ .reg .b16 %h<4>; add.u32 %r94, %r3, 8;\n" + body + commit(2) + "}"
    else:
        body += commit(1)
    size = max(image.size for image in images)
    assert size % 16 == 0
    raw = np.concatenate([np.pad(image, (0, size - image.size)) for image in images])
    out = np.zeros((128 * group, columns), np.uint32)
    result = kernel(body, group, columns).run(
        "k", group, 128, [raw, out, size], cluster=group, mode=mode
    )
    assert [f for f in result.findings if f.kind != "uninitialised read"] == []
    return out, result


def cores(rows_of_32_bytes: np.ndarray) -> np.ndarray:
    """Rows of 32 bytes as core matrices of 8 rows x 16 bytes."""
    raw = rows_of_32_bytes.view(np.uint8).reshape(rows_of_32_bytes.shape[0] // 8, 8, 2, 16)
    return np.ascontiguousarray(raw.transpose(0, 2, 1, 3)).reshape(-1)


def describe(m: int, n: int, d: int = 1, a: int = 0, b: int = 0) -> int:
    return d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24


def product(
    kind: str,
    description: int,
    b_start: int,
    keep: str,
    group: int,
    tail: str = "",
    middle: str = "",
) -> str:
    """One tcgen05.mma: A at the start of shared memory, B behind it."""
    return (
        f"add.s64 %rd11, %rd10, {b_start >> 4}; mov.b32 %r11, {description};"
        f"tcgen05.mma.cta_group::{group}.kind::{kind} [%r4], %rd10, %rd11, %r11, {middle}{keep}{tail};"
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("m", "n"), [(256, 64), (128, 96)])
def test_pairs_of_ctas(m: int, n: int, mode: str) -> None:
    """Each CTA holds half of the rows of A and B, and gets the rows of its A."""
    rng = np.random.default_rng(m)
    a, b = (rng.standard_normal((rows, 16)).astype(np.float16) for rows in (m, n))
    images = [
        np.concatenate([cores(part) for part in halves])
        for halves in zip(np.split(a, 2), np.split(b, 2), strict=True)
    ]
    text = product("f16", describe(m, n), m // 2 * 32, "%p3", 2) + product(
        "f16", describe(m, n), m // 2 * 32, "%p4", 2
    )
    out, _ = run(text, images, mode)
    want = 2 * a.astype(np.float64) @ b.astype(np.float64).T
    for i, j in itertools.product(range(m), range(n)):
        rank, row = divmod(i, m // 2)
        lane, column = (row, j) if m == 256 else (row + 64 * (j >= n // 2), j % (n // 2))
        assert (
            abs(out[128 * rank + lane, column : column + 1].view(np.float32)[0] - want[i, j]) < 1e-4
        )


def test_a_pair_needs_a_cluster() -> None:
    program = kernel(product("f16", describe(256, 32), 4096, "%p3", 2), 2)
    with pytest.raises(EmulatorError, match="needs a cluster of CTA pairs"):
        program.run("k", 1, 128, [np.zeros(8192, np.uint8), np.zeros((128, 128), np.uint32), 8192])


NARROW = {"e4m3": (ml_dtypes.float8_e4m3fn, 8, 0), "e5m2": (ml_dtypes.float8_e5m2, 8, 1), "e2m3": (ml_dtypes.float6_e2m3fn, 6, 3),
          "e3m2": (ml_dtypes.float6_e3m2fn, 6, 4), "e2m1": (ml_dtypes.float4_e2m1fn, 4, 5)}  # fmt: skip


def draw_codes(
    kind: str, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Random finite codes and their values."""
    dtype, bits, _ = NARROW[kind]
    codes = rng.integers(0, 1 << bits, shape).astype(np.uint8)
    values = codes.view(dtype).astype(np.float64)
    while not np.isfinite(values).all():
        bad = ~np.isfinite(values)
        codes[bad] = rng.integers(0, 1 << bits, int(bad.sum())).astype(np.uint8)
        values = codes.view(dtype).astype(np.float64)
    return codes, values


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes of rows as a stream of bits, low first."""
    flat = (codes[..., None] >> np.arange(bits)) & 1
    return np.packbits(flat.reshape(codes.shape[0], -1).astype(np.uint8), axis=1, bitorder="little")


def padded(codes: np.ndarray, bits: int) -> np.ndarray:
    """Every 16 codes in the first bytes of 16."""
    groups = packed(codes.reshape(-1, 16), bits)
    return np.pad(groups, ((0, 0), (0, 16 - groups.shape[1]))).reshape(codes.shape[0], -1)


@pytest.mark.parametrize(
    "kinds", [("e4m3", "e2m1"), ("e2m3", "e3m2"), ("e3m2", "e5m2"), ("e2m1", "e2m3")]
)
def test_eight_six_and_four_bits(kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(5)
    m, n = 128, 32
    (ca, va), (cb, vb) = (
        draw_codes(kind, (rows, 32), rng) for kind, rows in zip(kinds, (m, n), strict=True)
    )
    image = np.concatenate(
        [cores(padded(codes, NARROW[kind][1])) for codes, kind in zip((ca, cb), kinds, strict=True)]
    )
    description = describe(m, n, 1, NARROW[kinds[0]][2], NARROW[kinds[1]][2])
    out, _ = run(product("f8f6f4", description, m * 32, "%p3", 1), [image], "eager")
    want = va @ vb.T
    limit = 1e-6 * np.abs(want).max()
    np.testing.assert_allclose(out[:, :n].view(np.float32), want, rtol=1e-5, atol=limit)


@pytest.mark.parametrize("mode", MODES)
def test_f16_accumulators_fill_low_halves(mode: str) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((rows, 16)).astype(np.float16) for rows in (128, 16))
    text = product("f16", describe(128, 16, 0), 4096, "%p3", 1) + product(
        "f16", describe(128, 16, 0), 4096, "%p4", 1
    )
    out, _ = run(text, [np.concatenate([cores(a), cores(b)])], mode)
    got = out[:, :16].astype(np.uint16).view(np.float16)
    np.testing.assert_allclose(
        got, 2 * a.astype(np.float64) @ b.astype(np.float64).T, rtol=4e-3, atol=4e-3
    )


def test_the_old_accumulator_can_be_scaled_down() -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal((rows, 16)).astype(np.float16) for rows in (128, 16))
    text = product("f16", describe(128, 16), 4096, "%p3", 1) + product(
        "f16", describe(128, 16), 4096, "%p4", 1, ", 3"
    )
    out, _ = run(text, [np.concatenate([cores(a), cores(b)])], "eager")
    np.testing.assert_allclose(
        out[:, :16].view(np.float32),
        1.125 * a.astype(np.float64) @ b.astype(np.float64).T,
        rtol=1e-5,
        atol=1e-4,
    )


# -- scale factors --------------------------------------------------------------------------------

SCALES = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}
SCALED = [("mxf8f6f4", "block32", "e4m3", 1, "ue8m0", 3), ("mxf8f6f4", "scale_vec::1X", "e2m3", 1, "ue8m0", 0),
          ("mxf4", "scale_vec::2X", "e2m1", 2, "ue8m0", 2), ("mxf4nvf4", "block16", "e2m1", 4, "ue4m3", 0),
          ("mxf4nvf4", "scale_vec::2X", "e2m1", 2, "ue8m0", 0)]  # fmt: skip


def scale_image(codes: np.ndarray, first: int) -> np.ndarray:
    """32 rows of 16 bytes per 128 rows: byte 4*(row/32) + first + s of row%32 (other bytes: 0xEE)."""
    rows, count = codes.shape
    image = np.full((-(-rows // 128), 32, 16), 0xEE, np.uint8)
    for row, s in itertools.product(range(rows), range(count)):
        image[row // 128, row % 32, 4 * (row // 32 % 4) + first + s] = codes[row, s]
    return image.reshape(-1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("case", SCALED, ids=lambda case: ".".join(map(str, case)))
def test_block_scaling(case: tuple, group: int, mode: str) -> None:
    kind, vector, element, count, scale, first = case
    rng = np.random.default_rng(8)
    m, n, k = 128 * group, 48 if group == 1 else 160, 64 if "mxf4" in kind else 32
    (ca, va), (cb, vb) = (draw_codes(element, (rows, k), rng) for rows in (m, n))
    bits = NARROW[element][1]
    store = (lambda codes: packed(codes, 4)) if k == 64 else (lambda codes: padded(codes, bits))
    low, high = (120, 135) if scale == "ue8m0" else (0x20, 0x50)
    sa, sb = (rng.integers(low, high, (rows, count)).astype(np.uint8) for rows in (m, n))
    images, starts = [], []
    for rank in range(group):
        parts = [cores(store(np.split(ca, group)[rank])), cores(store(np.split(cb, group)[rank])),
                 scale_image(np.split(sa, group)[rank], first), scale_image(sb, first)]  # fmt: skip
        starts = np.cumsum([0, *(part.size for part in parts)]).tolist()
        images.append(np.concatenate(parts))
    copies = ""
    plain = SBO >> 4 << 32 | LBO >> 4 << 16 | 1 << 46  # 8 rows of 16 bytes are 128 bytes
    plain = plain & ~(0x3FFF << 32) | 128 >> 4 << 32
    for number, start in enumerate(
        [*range(starts[2], starts[3], 512), *range(starts[3], starts[4], 512)]
    ):
        copies += f"add.u32 %r21, %r10, {start >> 4}; cvt.u64.u32 %rd13, %r21; or.b64 %rd13, %rd13, {plain};"
        copies += f"add.u32 %r22, %r4, {240 + 4 * number - 80}; tcgen05.cp.cta_group::{group}.32x128b.warpx4 [%r22], %rd13;"
    a_columns = 4
    formats = NARROW[element][2] if kind == "mxf8f6f4" else 1
    description = (
        formats << 7
        | formats << 10
        | n >> 3 << 17
        | (scale == "ue8m0") << 23
        | m >> 7 << 27
        | first << 29
        | first << 4
    )
    b_start = starts[1]
    text = copies + f"add.u32 %r23, %r4, 160; add.u32 %r24, %r4, {160 + a_columns};"
    text += product(
        f"{kind}.block_scale.{vector}",
        description & 0xFFFFFFFF,
        b_start,
        "%p3",
        group,
        "",
        "[%r23], [%r24], ",
    )
    out, _ = run(text, images, mode, 256)
    wide_a = va * np.repeat(sa.view(SCALES[scale]).astype(np.float64), k // count, 1)
    wide_b = vb * np.repeat(sb.view(SCALES[scale]).astype(np.float64), k // count, 1)
    want = wide_a @ wide_b.T
    np.testing.assert_allclose(
        out[:, :n].view(np.float32), want, rtol=1e-5, atol=1e-5 * np.abs(want).max()
    )


def test_scale_factors_belong_in_every_quarter() -> None:
    """Copied to the first 32 lanes only, the other rows are scaled by what stands there: 0."""
    rng = np.random.default_rng(9)
    (ca, va), (cb, vb) = (draw_codes("e4m3", (rows, 32), rng) for rows in (128, 16))
    ones = np.full((128, 1), 127, np.uint8)
    parts = [cores(ca), cores(cb), scale_image(ones, 0)]
    starts = np.cumsum([0, *(part.size for part in parts)]).tolist()
    zero = "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r22], %rd13;"
    body = (
        f"add.u32 %r21, %r10, {starts[2] >> 4}; cvt.u64.u32 %rd13, %r21; or.b64 %rd13, %rd13, {128 >> 4 << 32 | 1 << 46}; add.u32 %r22, %r4, 64; {zero}"
        "add.u32 %r23, %r4, 64;"
        + product(
            "mxf8f6f4.block_scale",
            16 >> 3 << 17 | 1 << 23 | 1 << 27,
            starts[1],
            "%p3",
            1,
            "",
            "[%r23], [%r23], ",
        )
    )
    out, _ = run(body, [np.concatenate(parts)], "eager")
    np.testing.assert_allclose(out[:, :16].view(np.float32), va @ vb.T, rtol=1e-5, atol=1e-2)
    once = body.replace("32x128b.warpx4", "4x256b")
    out, _ = run(once, [np.concatenate(parts)], "eager")
    assert not np.allclose(out[:, :16].view(np.float32), va @ vb.T)


@pytest.mark.parametrize(("change", "message"), [
    (1 << 2, "sparsity is unsupported"), (7 << 7, "operand formats 7"), (1 << 31, "K of 96"), (1 << 28, "shape M=384"),
])  # fmt: skip
def test_wrong_instruction_descriptors(change: int, message: str) -> None:
    text = product(
        "mxf8f6f4.block_scale",
        (16 >> 3 << 17 | 1 << 23 | 1 << 27) | change,
        4096,
        "%p3",
        1,
        "",
        "[%r4], [%r4], ",
    )
    with pytest.raises(EmulatorError, match=message):
        run(text, [np.zeros(8192, np.uint8)], "eager")


# -- copies and shifts ----------------------------------------------------------------------------


def copied(
    shape: str, rows: int, width: int, images: list[np.ndarray], extra: str = ""
) -> np.ndarray:
    group = len(images)
    descriptor = (
        1 << 46 | 128 >> 4 << 32 | (16 * rows) >> 4 << 16
    )  # 16-byte parts of all rows, one after the other
    body = f"cvt.u64.u32 %rd13, %r10; or.b64 %rd13, %rd13, {descriptor}; tcgen05.cp.cta_group::{group}.{shape} [%r4], %rd13;{extra}"
    out, _ = run(body, images, "eager")
    return out


def by_parts(image: np.ndarray) -> np.ndarray:
    """(rows, width) bytes with the 16-byte parts of all rows one after the other."""
    return np.ascontiguousarray(image.reshape(image.shape[0], -1, 16).transpose(1, 0, 2)).reshape(
        -1
    )


COPIES = [("128x256b", 128, 32), ("128x128b", 128, 16), ("4x256b", 4, 32), ("64x128b.warpx2::02_13", 64, 16),
          ("64x128b.warpx2::01_23", 64, 16), ("32x128b.warpx4", 32, 16)]  # fmt: skip


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(("shape", "rows", "width"), COPIES)
def test_copies_of_every_shape(shape: str, rows: int, width: int, group: int) -> None:
    rng = np.random.default_rng(rows)
    images = [rng.integers(0, 256, (rows, width)).astype(np.uint8) for _ in range(group)]
    out = copied(shape, rows, width, [by_parts(image) for image in images])
    for rank, image in enumerate(images):
        words = image.view(np.uint32)
        for lane in range(128):
            source = {"128x256b": lane, "128x128b": lane, "64x128b.warpx2::02_13": lane % 64, "32x128b.warpx4": lane % 32,
                      "64x128b.warpx2::01_23": lane % 32 + 32 * (lane // 64)}.get(shape)  # fmt: skip
            if shape == "4x256b":
                if lane % 32:
                    continue
                source = lane // 32
            np.testing.assert_array_equal(out[128 * rank + lane, : width // 4], words[source])


@pytest.mark.parametrize(("source", "bits", "shift"), [("b6x16_p32", 6, 0), ("b4x16_p64", 4, 2)])
def test_copies_that_widen(source: str, bits: int, shift: int) -> None:
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (128, 16)).astype(np.uint8)
    out = copied(f"128x128b.b8x16.{source}", 128, 16, [padded(codes, bits).reshape(-1)])
    np.testing.assert_array_equal(out[:, :4].copy().view(np.uint8), codes << shift)


def test_shift_moves_pieces_to_the_next_lane() -> None:
    image = np.random.default_rng(3).integers(0, 256, (128, 32)).astype(np.uint8)
    out = copied(
        "128x256b",
        128,
        32,
        [by_parts(image)],
        "add.u32 %r22, %r4, 0x200000; tcgen05.shift.cta_group::1.down [%r22];",
    )
    want = image.view(np.uint32).copy()
    want[33:64] = want[32:63]
    np.testing.assert_array_equal(out[:, :8], want)
    with pytest.raises(EmulatorError, match="no multiple of 32"):
        copied(
            "128x256b",
            128,
            32,
            [by_parts(image)],
            "add.u32 %r22, %r4, 0x10000; tcgen05.shift.cta_group::1.down [%r22];",
        )
