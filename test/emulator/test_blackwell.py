# ruff: noqa: E501  (lines of PTX)
"""Tensor memory and tcgen05 on hand-written PTX; placements written here from the ISA's tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load

HEAD = ".version 8.6\n.target sm_100a\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<300>; .reg .b64 %rd<30>;"
ALLOC = (
    "setp.lt.u32 %p2, %r1, 32; @%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3], {0};"
    "@%p2 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; bar.sync 0; ld.shared.b32 %r4, [%r3];"
)
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
FREE = "bar.sync 0; @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, {0};"


def kernel(body: str, shared: int = 65536):
    return load(
        f"{HEAD}.visible .entry k(.param .u64 a, .param .u64 b) {{\n{REGISTERS}\n"
        f".shared .align 1024 .b8 s[{shared}];\n.shared .align 8 .b8 bar[64];\n"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;"
        "mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0; shr.u32 %r5, %r1, 5; and.b32 %r6, %r1, 31;\n"
        f"{body}\nret;\n}}"
    )


def place(shape: str, r: int, lane: int, split: int) -> tuple[int, int]:
    """(row, column) that register r of a lane names, for tcgen05.ld/.st."""
    if shape == "32x32b":
        return lane, r
    if shape == "16x64b":
        return lane // 4 + 8 * (lane % 2), (lane // 2) % 2 + 2 * r
    if shape == "16x128b":
        return lane // 4 + (8 if r & 1 else 0), lane % 4 + 4 * (r >> 1)
    if shape == "16x256b":
        return lane // 4 + (8 if r & 2 else 0), (r & 1) + 2 * (lane % 4) + 8 * (r >> 2)
    return lane & 15, r + (split if lane >= 16 else 0)


SHAPES = [("32x32b", "x8", 8), ("16x64b", "x4", 4), ("16x128b", "x2", 4), ("16x256b", "x2", 8),
          ("16x32bx2", "x8", 8)]  # fmt: skip


@pytest.mark.parametrize(
    ("done", "kinds"),
    [
        ("tcgen05.wait::ld.sync.aligned; bar.sync 0;", []),
        ("bar.sync 0; tcgen05.wait::ld.sync.aligned;", ["race"]),  # its loads may be under way
        ("tcgen05.wait::ld.sync.aligned;", ["race"]),  # the other warps' may
    ],
)
def test_tensor_memory_is_freed_when_all_are_done(done: str, kinds: list[str]) -> None:
    body = ALLOC.format(32) + "shl.b32 %r7, %r5, 21; add.u32 %r8, %r4, %r7; mov.u32 %r20, 0;"
    body += "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {%r20}; tcgen05.wait::st.sync.aligned;"
    body += "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r21}, [%r8];"
    out = np.zeros(4, np.uint32)
    free = FREE.format(32).removeprefix("bar.sync 0;")
    found = kernel(body + done + free).run("k", 1, 128, [out, out], mode="check").findings
    assert {f.kind for f in found} == set(kinds), found
    assert all(f.memory == "tensor memory" for f in found)


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
@pytest.mark.parametrize(("shape", "repeat", "count"), SHAPES)
def test_store_by_rows_load_by_shape(shape: str, repeat: str, count: int, mode: str) -> None:
    """Write lane*1000 + column with 32x32b, read it back with every other shape."""
    split = 16
    names = [f"%r{20 + i}" for i in range(32)]
    body = ALLOC.format(64) + "shl.b32 %r7, %r5, 21; add.u32 %r8, %r4, %r7;"
    body += "".join(f"mad.lo.u32 {name}, %r1, 1000, {i};" for i, name in enumerate(names))
    body += f"tcgen05.st.sync.aligned.32x32b.x32.b32 [%r8], {{{', '.join(names)}}};"
    body += "tcgen05.wait::st.sync.aligned;"
    registers = ", ".join(f"%r{100 + i}" for i in range(count))
    tail = f", {split}" if shape == "16x32bx2" else ""
    rows = 32 if shape == "32x32b" else 16
    body += (
        f"tcgen05.ld.sync.aligned.{shape}.{repeat}.b32 {{{registers}}}, [%r8 + {0}]{tail};"
        f"tcgen05.wait::ld.sync.aligned; mad.wide.u32 %rd5, %r1, {4 * count}, %rd2;"
    )
    for i in range(count):
        body += f"st.global.b32 [%rd5+{4 * i}], %r{100 + i};"
    out = np.zeros((128, count), np.uint32)
    result = kernel(body + FREE.format(64)).run("k", 1, 128, [out, out], mode=mode)
    assert result.findings == []
    for t, r in itertools.product(range(128), range(count)):
        row, column = place(shape, r, t % 32, split)
        assert row < rows
        assert out[t, r] == (t // 32 * 32 + row) * 1000 + column


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
@pytest.mark.parametrize(("shape", "repeat", "count"), [("32x32b", "x4", 4), ("16x256b", "x1", 4)])
def test_two_columns_in_a_register(shape: str, repeat: str, count: int, mode: str) -> None:
    """Unpacked into the low halves of 16 columns, packed again by another shape."""
    names = [f"%r{20 + i}" for i in range(8)]
    loaded = [f"%r{100 + i}" for i in range(count)]
    body = ALLOC.format(64) + "shl.b32 %r7, %r5, 21; add.u32 %r8, %r4, %r7; shl.b32 %r9, %r1, 8;"
    for i, name in enumerate(names):  # halves lane*256 + 2i and lane*256 + 2i + 1
        body += f"add.u32 %r10, %r9, {2 * i}; add.u32 %r11, %r10, 1; shl.b32 %r11, %r11, 16; or.b32 {name}, %r10, %r11;"
    body += (
        f"tcgen05.st.sync.aligned.32x32b.x8.unpack::16b.b32 [%r8], {{{', '.join(names)}}};"
        "tcgen05.wait::st.sync.aligned;"
        f"tcgen05.ld.sync.aligned.{shape}.{repeat}.pack::16b.b32 {{{', '.join(loaded)}}}, [%r8];"
        f"tcgen05.wait::ld.sync.aligned; mad.wide.u32 %rd5, %r1, {4 * count}, %rd2;"
    )
    for i, name in enumerate(loaded):
        body += f"st.global.b32 [%rd5+{4 * i}], {name};"
    out = np.zeros((128, count), np.uint32)
    result = kernel(body + FREE.format(64)).run("k", 1, 128, [out, out], mode=mode)
    assert result.findings == []
    halves = out.view(np.uint16).reshape(128, count, 2)
    for t, r in itertools.product(range(128), range(count)):
        row, column = place(shape, r, t % 32, 0)
        first = (t // 32 * 32 + row) * 256 + 2 * column
        assert halves[t, r].tolist() == [first, first + 1]


def test_tensor_memory_mistakes() -> None:
    a = np.zeros(4, np.uint32)
    load_ = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r4];"
    for body, message in (
        (ALLOC.format(48), "power of two"),
        (ALLOC.format(32), "ends with 32 tensor memory columns"),
        (ALLOC.format(32) + load_ + FREE.format(32), "out of the reach of a warp"),
        (ALLOC.format(32) + FREE.format(64), "not all allocated"),
        (ALLOC.format(32) + "add.u32 %r4, %r4, 32; @%p2 " + load_, "not all allocated"),
        (ALLOC.format(32) + ALLOC.format(32), "after relinquish"),
    ):
        with pytest.raises(EmulatorError, match=message):
            kernel(body).run("k", 1, 128, [a, a])


def product_kernel(m: int, n: int, ws: str, wait: str, keep: str) -> str:
    """One 16-bit product of K-major core matrices without swizzle; D read back by 32x32b."""
    description = 1 << 4 | n >> 3 << 17 | m >> 4 << 24
    rows = 16 * (m // 8) * 16  # bytes of A: m rows x 32 bytes
    names = ", ".join(f"%r{100 + i}" for i in range(32))
    body = ALLOC.format(64) + (
        "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1;"
        f"mov.u32 %r80, %r1;\nFILL: setp.ge.u32 %p7, %r80, {(m + n) * 2}; @%p7 bra FILLED;"
        "shl.b32 %r81, %r80, 4; add.u32 %r82, %r2, %r81; cvt.u64.u32 %rd20, %r81;"
        "add.s64 %rd21, %rd1, %rd20; ld.global.v4.b32 {%r83, %r84, %r85, %r86}, [%rd21];"
        "st.shared.v4.b32 [%r82], {%r83, %r84, %r85, %r86}; add.u32 %r80, %r80, 128; bra FILL;\n"
        "FILLED: fence.proxy.async.shared::cta; bar.sync 0;"
        "shr.u32 %r10, %r2, 4; cvt.u64.u32 %rd10, %r10; or.b64 %rd10, %rd10, "
        f"{128 >> 4 << 16 | 256 >> 4 << 32 | 1 << 46}; add.s64 %rd11, %rd10, {rows >> 4 << 1 >> 1};"
        f"mov.b32 %r11, {description}; setp.ne.u32 %p3, %r1, %r1; setp.eq.u32 %p4, %r1, %r1;"
        f"@%p1 tcgen05.mma{ws}.cta_group::1.kind::f16 [%r4], %rd10, %rd11, %r11, {keep};"
        f"@%p1 tcgen05.mma{ws}.cta_group::1.kind::f16 [%r4], %rd10, %rd11, %r11, %p4;"
        "cvt.u64.u32 %rd12, %r3; @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
        " [%rd12+8];" + wait + f"{AFTER} shl.b32 %r7, %r5, 21; add.u32 %r8, %r4, %r7;"
        f"tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{names}}}, [%r8]; tcgen05.wait::ld.sync.aligned;"
        "mul.wide.u32 %rd5, %r1, 128; add.s64 %rd5, %rd5, %rd2;"
    )
    for i in range(32):
        body += f"st.global.b32 [%rd5+{4 * i}], %r{100 + i};"
    return body + FREE.format(64)


WAIT = "{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3+8], 0; @!done bra W; }"


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
@pytest.mark.parametrize(("m", "n", "ws"), [(128, 32, ""), (64, 32, ""), (64, 64, ".ws"),
                                            (32, 64, ".ws")])  # fmt: skip
def test_product_layouts(m: int, n: int, ws: str, mode: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((r, 16)).astype(np.float16) for r in (m, n))

    def cores(matrix: np.ndarray) -> np.ndarray:
        rows = matrix.view(np.uint8).reshape(matrix.shape[0] // 8, 8, 2, 16)
        return np.ascontiguousarray(rows.transpose(0, 2, 1, 3)).reshape(-1)

    image = np.concatenate([cores(a), cores(b)])
    out = np.zeros((128, 32), np.float32)
    text = product_kernel(m, n, ws, WAIT, "%p3")
    result = kernel(text).run("k", 1, 128, [image, out], mode=mode)
    uninitialised = [f for f in result.findings if f.kind == "uninitialised read"]
    assert len(result.findings) == len(uninitialised)  # M=64 leaves half of the lanes unwritten
    want = 2 * a.astype(np.float64) @ b.astype(np.float64).T
    for i, j in itertools.product(range(m), range(n)):
        if m == 128:
            lane, column = i, j
        elif not ws:
            lane, column = i % 16 + 32 * (i // 16), j
        elif m == 64:
            lane, column = i + 64 * (j >= n // 2), j % (n // 2)
        else:
            lane, column = i + 32 * (j // (n // 4)), j % (n // 4)
        assert abs(out[lane, column] - want[i, j]) < 1e-4


def test_reading_before_the_commit_is_waited_for() -> None:
    image, out = np.zeros(160 * 32, np.uint8), np.zeros((128, 32), np.float32)
    text = product_kernel(128, 32, "", "", "%p3")
    kinds = [f for f in kernel(text).run("k", 1, 128, [image, out], mode="check").findings]
    assert {(f.kind, f.memory) for f in kinds} == {
        ("race", "tensor memory"),
        ("lost signal", "mbarrier"),
        ("unfinished product", "shared"),
    }
    out[...] = 0
    with pytest.raises(EmulatorError, match="its CTA is accessed, which has ended"):
        kernel(text).run("k", 1, 128, [image, out], mode="late")
    assert np.isnan(out).all()
    uninitialised = product_kernel(128, 32, "", WAIT, "%p4")
    found = kernel(uninitialised).run("k", 1, 128, [image, out], mode="check").findings
    assert [(f.kind, f.memory) for f in found] == [("uninitialised read", "tensor memory")]


@pytest.mark.parametrize(
    ("shape", "rows", "columns", "lanes"),
    [("128x256b", 128, 8, [[0]]), ("128x128b", 128, 4, [[0]]),
     ("64x128b.warpx2::02_13", 64, 4, [[0, 64]]), ("32x128b.warpx4", 32, 4, [[0, 32, 64, 96]])],
)  # fmt: skip
def test_copies_from_shared_memory(shape: str, rows: int, columns: int, lanes: list) -> None:
    """Rows of 16 bytes without swizzle: (r/8)*SBO + (r%8)*16, second half LBO further."""
    source = np.random.default_rng(0).integers(0, 1 << 32, (rows, columns), dtype=np.uint32)
    image = np.zeros(8192, np.uint8)
    sbo, lbo = 128, 4096
    for r, half in itertools.product(range(rows), range(columns // 4)):
        start = r // 8 * sbo + r % 8 * 16 + half * lbo
        image[start : start + 16] = source[r, 4 * half : 4 * half + 4].view(np.uint8)
    names = ", ".join(f"%r{100 + i}" for i in range(8))
    zeros = ", ".join(["%r90"] * 8)
    body = ALLOC.format(32) + (
        "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1; mov.u32 %r90, 0;"
        "mov.u32 %r80, %r1;\nFILL: setp.ge.u32 %p7, %r80, 512; @%p7 bra FILLED;"
        "shl.b32 %r81, %r80, 4; add.u32 %r82, %r2, %r81; cvt.u64.u32 %rd20, %r81;"
        "add.s64 %rd21, %rd1, %rd20; ld.global.v4.b32 {%r83, %r84, %r85, %r86}, [%rd21];"
        "st.shared.v4.b32 [%r82], {%r83, %r84, %r85, %r86}; add.u32 %r80, %r80, 128; bra FILL;\n"
        "FILLED: shl.b32 %r7, %r5, 21; add.u32 %r8, %r4, %r7;"
        f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r8], {{{zeros}}}; tcgen05.wait::st.sync.aligned;"
        f"fence.proxy.async.shared::cta; {BEFORE} bar.sync 0; {AFTER}"
        "shr.u32 %r10, %r2, 4; cvt.u64.u32 %rd10, %r10; or.b64 %rd10, %rd10, "
        f"{lbo >> 4 << 16 | sbo >> 4 << 32 | 1 << 46};"
        f"@%p1 tcgen05.cp.cta_group::1.{shape} [%r4], %rd10; cvt.u64.u32 %rd12, %r3;"
        "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%rd12+8];"
        + WAIT
        + f"{AFTER} tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{names}}}, [%r8]; tcgen05.wait::ld.sync.aligned;"
        "mul.wide.u32 %rd5, %r1, 32; add.s64 %rd5, %rd5, %rd2;"
    )
    for i in range(8):
        body += f"st.global.b32 [%rd5+{4 * i}], %r{100 + i};"
    for mode in ("eager", "late", "check"):
        out = np.zeros((128, 8), np.uint32)
        result = kernel(body + FREE.format(32)).run("k", 1, 128, [image, out], mode=mode)
        assert result.findings == []
        expected = np.zeros_like(out)
        for first in lanes[0]:
            count = 32 if shape.startswith(("64", "32")) else rows
            expected[first : first + (64 if shape.startswith("64") else count), :columns] = source
        np.testing.assert_array_equal(out, expected)


STORE_TENSOR = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {%r20}; tcgen05.wait::st.sync.aligned;"
LOAD_TENSOR = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r21}, [%r8]; tcgen05.wait::ld.sync.aligned;"
EXCHANGE = f"""{ALLOC.format(32)} mov.u32 %r20, 7; setp.lt.u32 %p3, %r5, 4;
and.b32 %r7, %r5, 3; shl.b32 %r7, %r7, 21; add.u32 %r8, %r4, %r7;
@!%p3 bra WRITTEN; {STORE_TENSOR}
WRITTEN: {BEFORE} bar.sync 0; {AFTER}
@%p3 bra READ; {LOAD_TENSOR}
READ: {BEFORE} bar.sync 0; {AFTER}
@!%p3 bra END; {STORE_TENSOR}
END: {FREE.format(32)}"""
"""Warps 0..3 write tensor memory, warps 4..7, which reach the same lanes, read it, 0..3 write."""


@pytest.mark.parametrize("dropped", range(4))
def test_tcgen05_fences_are_asked_for(dropped: int) -> None:
    """Each of the four fences is needed; without, nothing orders the accesses that meet there."""
    out = np.zeros(4, np.uint32)
    fences = [i for i in range(len(EXCHANGE)) if EXCHANGE.startswith((BEFORE, AFTER), i)]
    assert len(fences) == 4
    assert kernel(EXCHANGE).run("k", 1, 256, [out, out], mode="check").findings == []
    at = fences[dropped]
    broken = kernel(EXCHANGE[:at] + EXCHANGE[EXCHANGE.index(";", at) + 1 :])
    found = broken.run("k", 1, 256, [out, out], mode="check").findings
    assert {f.kind for f in found} == {"missing tensor fence"}
    assert all(("before" if dropped % 2 == 0 else "after") in f.mend for f in found)
    relaxed = broken.run("k", 1, 256, [out, out], mode="check", tensor_fences=False)
    assert relaxed.findings == []


def test_a_commit_has_its_own_fence_but_its_waiter_has_not() -> None:
    """Threads and the one that issued the products alike."""
    image, out = np.zeros(160 * 32, np.uint8), np.zeros((128, 32), np.float32)
    text = product_kernel(128, 32, "", WAIT, "%p3")
    assert AFTER in text
    found = kernel(text.replace(AFTER, "")).run("k", 1, 128, [image, out], mode="check").findings
    assert {f.kind for f in found} == {"missing tensor fence"}
    assert all("second access" in f.missing for f in found)
