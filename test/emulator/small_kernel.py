# ruff: noqa: E501  (lines of PTX)
"""One small kernel, whose synchronisation tests fill in: right, or wrong in one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilec.runtime.emulator import Finding, Result, TensorMap, load

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .align 64 .b8 map[128]) {
    .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .b16 %h<3>;
    .shared .align 1024 .b8 s[4096]; .shared .align 8 .b8 bar[64];
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r2, s; mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; mov.u32 %r0, 0;
    shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r2; mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1;
    mapa.shared::cluster.u32 %r5, %r4, %r21; mapa.shared::cluster.u32 %r6, %r3, %r21;
    mapa.shared::cluster.u32 %r7, %r2, %r21; add.u32 %r7, %r7, 1024; setp.eq.u32 %p5, %r20, 0; and.pred %p6, %p5, %p1;
    mov.b64 %rd4, map; cvta.param.u64 %rd4, %rd4;
BODY
    ret;
}"""
INIT = (
    "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster; bar.sync 0;"
)
EXPECT = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;"
LOAD = "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r3];"
WAIT = (
    "{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3], 0; @!done bra W; }"
)
READ = "ld.shared.u32 %r8, [%r4];"
WRITE = "st.shared.u32 [%r4], %r1;"
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
FENCE = "fence.proxy.async.shared::cta;"
PROLOGUE = INIT + EXPECT


def run(
    body: str,
    cluster: int = 1,
    threads: int = 64,
    mode: str = "check",
    words: np.ndarray | None = None,
    **options: Any,
) -> Result:
    """One cluster, whose threads have a word each of shared memory (%r4), and of their neighbour's
    (%r5); one mbarrier (%r3, the neighbour's %r6). %rd1: 512 `words`, %rd4: a map of them as 32
    rows."""
    array = np.arange(512, dtype=np.uint32) if words is None else words
    rows = TensorMap(array, (16, 32), (64,), (16, 4))
    program = load(KERNEL.replace("BODY", body))
    return program.run("k", cluster, threads, [array, rows], cluster=cluster, mode=mode, **options)


def check(body: str, cluster: int = 1, threads: int = 64) -> list[Finding]:
    """Findings of `run` in check mode."""
    return run(body, cluster, threads).findings


def kinds(found: list[Finding]) -> set[str]:
    return {finding.kind for finding in found}
