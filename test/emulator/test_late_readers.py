# ruff: noqa: E501  (lines of PTX)
"""Late mode shows what an asynchronous reader takes that was issued before its operands arrived."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import load

KERNEL = """.version 8.6
.target TARGET
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b) {
    .reg .pred %p<9>; .reg .b32 %r<50>; .reg .b64 %rd<20>; .reg .f32 %f<9>;
    .shared .align 1024 .b8 s[8448]; .shared .align 8 .b8 bar[64];
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, bar;
    setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; setp.ne.u32 %p3, %r1, %r1; setp.lt.u32 %p4, %r1, 64;
    @%p1 mbarrier.init.shared::cta.b64 [%r3], COUNT; @%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1;
    @%p1 mbarrier.init.shared::cta.b64 [%r3+16], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
    shl.b32 %r4, %r1, 6; add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd5, %r4; add.s64 %rd6, %rd1, %rd5; shl.b32 %r6, %r1, 2;
    shr.u32 %r10, %r2, 4; cvt.u64.u32 %rd10, %r10; mul.wide.u32 %rd7, %r1, 4; add.s64 %rd7, %rd2, %rd7;
    BEGIN
    COPY
    ORDER
    END
    ret;
}"""
WAIT = "{{ .reg .pred done; W{0}: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3+{0}], 0; @!done bra W{0}; }}"
OTHER = (
    "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+16], 16;"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+8192], [%rd1], 16, [%r3+16];"
)
"""A copy behind the one that matters, on an mbarrier of its own."""
BULK = (
    "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 8192;"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 8192, [%r3];"
    + OTHER
)
BY_THREADS = (
    "".join(f"cp.async.cg.shared.global [%r5+{16 * n}], [%rd6+{16 * n}], 16;" for n in range(3))
    + "cp.async.ca.shared.global [%r5+48], [%rd6+48], 8; cp.async.ca.shared.global [%r5+56], [%rd6+56], 8;"
    "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r3];" + OTHER
)
ALLOC = (
    "@%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3+32], 32;"
    "@%p2 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; bar.sync 0; ld.shared.b32 %r7, [%r3+32];"
    "shr.u32 %r8, %r1, 5; shl.b32 %r8, %r8, 21; add.u32 %r8, %r7, %r8; cvt.u64.u32 %rd12, %r3;"
)
COMMIT = (
    "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%rd12+8];"
    + WAIT.format(8)
    + "tcgen05.fence::after_thread_sync; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r8]; tcgen05.wait::ld.sync.aligned;"
    "st.global.b32 [%rd7], %r20; bar.sync 0; @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 32;"
)
MATRICES = (
    f"or.b64 %rd10, %rd10, {128 >> 4 << 16 | 256 >> 4 << 32 | 1 << 46}; add.s64 %rd11, %rd10, 256;"
)
NAMES = ", ".join(f"%f{n}" for n in range(4))
READERS = {
    "tcgen05.mma": (
        "sm_100a",
        ALLOC + MATRICES + f"mov.b32 %r11, {1 << 4 | 32 >> 3 << 17 | 128 >> 4 << 24};",
        "@%p1 tcgen05.mma.cta_group::1.kind::f16 [%r7], %rd10, %rd11, %r11, %p3;",
        COMMIT,
    ),
    "tcgen05.cp": (
        "sm_100a",
        ALLOC + MATRICES,
        "@%p1 tcgen05.cp.cta_group::1.128x128b [%r7], %rd10;",
        COMMIT,
    ),
    "wgmma": (
        "sm_90a",
        MATRICES.replace(f"{1 << 46 | 128 >> 4 << 16 | 256 >> 4 << 32}", f"{128 >> 4 << 16 | 256 >> 4 << 32}"),
        "fence.proxy.async.shared::cta; wgmma.fence.sync.aligned;"
        f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{NAMES}}}, %rd10, %rd11, %p3, 1, 1, 0, 0;"
        "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned 0; mov.b32 %r20, %f0; st.global.b32 [%rd7], %r20;",
    ),
    "bulk store": (
        "sm_90a",
        "",
        "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 512; cp.async.bulk.commit_group;",
        "cp.async.bulk.wait_group 0;",
    ),
}  # fmt: skip
EXPECTED = {"tcgen05.mma": 16.0, "wgmma": 16.0}
ONES = np.full(4096, 1.0, np.float16)


@pytest.mark.parametrize("copy", ["bulk", "by threads"])
@pytest.mark.parametrize("reader", READERS)
def test_operands_that_were_not_waited_for(reader: str, copy: str) -> None:
    """Ones, where the wait stands in front of the reader; else the poison of what is on its way,
    though the copy is waited for before the reader is."""
    target, begin, issue, end = READERS[reader]
    full, other = WAIT.format(0), WAIT.format(16)
    parts = {"TARGET": target, "COPY": BULK if copy == "bulk" else BY_THREADS, "BEGIN": begin}
    parts |= {"COUNT": "1" if copy == "bulk" else "128", "END": end}
    found = {}
    for order in (full + other + issue, other + issue + full):
        text = KERNEL
        for name, value in {**parts, "ORDER": order}.items():
            text = text.replace(name, value)
        out = np.zeros(128, np.float32)
        load(text).run("k", 1, 128, [ONES, out], mode="late")
        found[order] = out
    right, wrong = found.values()
    assert (right == EXPECTED.get(reader, ONES.view(np.float32)[0])).all()
    assert np.isnan(wrong).all()


def test_warps_that_go_on_alone_add_to_the_sum_of_all() -> None:
    """Of two warpgroups that multiplied together, and wait for neither product, one is ahead."""
    product = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{NAMES}}}, %rd10, %rd11, SUM, 1, 1, 0, 0;"
    first, more = product.replace("SUM", "%p3"), product.replace("SUM", "%p5")
    body = (
        WAIT.format(0) + WAIT.format(16) + "setp.eq.u32 %p5, %r1, %r1; setp.lt.u32 %p6, %r1, 128;"
        f"setp.eq.u32 %p7, %r1, 128; wgmma.fence.sync.aligned; {first} {more} wgmma.commit_group.sync.aligned;"
        f"@!%p6 bra A; {WAIT.format(8)} A: {more} wgmma.commit_group.sync.aligned;"
        "@%p7 mbarrier.arrive.shared::cta.b64 _, [%r3+8];"
    )
    _, begin, _, end = READERS["wgmma"]
    parts = {
        "TARGET": "sm_90a",
        "COPY": BULK,
        "COUNT": "1",
        "BEGIN": begin,
        "ORDER": body,
        "END": end,
    }
    text = KERNEL
    for name, value in parts.items():
        text = text.replace(name, value)
    out = np.zeros(256, np.float32)
    load(text).run("k", 1, 256, [ONES, out], mode="late")
    assert (out == 48.0).all()
