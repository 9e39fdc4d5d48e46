# ruff: noqa: E501  (lines of PTX)
"""What threads read, and a bulk copy overwrites then: a proxy fence has to stand in between."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import Finding, load

FENCE = "fence.proxy.async.shared::cta;"
WAIT = "{{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [{0}], {1}; @!done bra W; }}"
LOAD = (
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 512, [full];"
)
KERNEL = (
    """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a) {
    .reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<9>; .reg .f32 %f<64>;
    .shared .align 1024 .b8 s[1024]; .shared .align 8 .b8 full[8]; .shared .align 8 .b8 empty[8];
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [full], 1; @%p1 mbarrier.init.shared::cta.b64 [empty], READERS;
    bar.sync 0; setp.lt.u32 %p2, %r1, READERS; mov.u32 %r2, s; and.b32 %r3, %r1, 31;
    mad.lo.u32 %r4, %r3, 16, %r2; @%p2 bra READ;
    setp.ne.u32 %p3, %r1, READERS; @%p3 bra END; LOAD
"""
    + WAIT.format("empty", 0)
    + """
    BEFORE_LOAD LOAD bra END;
READ:
"""
    + WAIT.format("full", 0)
    + """
    ACCESS
    AFTER_READ
    mbarrier.arrive.shared::cta.b64 _, [empty];
"""
    + WAIT.format("full", 1)
    + """
END:
    ret;
}"""
)
ACCESSES = (
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r4];",
    "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r4]; add.u32 %r10, %r10, %r11;",
)


def check(access: str, after_read: str = "", before_load: str = "", readers: int = 32) -> list[Finding]:  # fmt: skip
    """A warp (or some) reads a slot, gives it back, and another's bulk load fills it again."""
    parts = {"ACCESS": access, "AFTER_READ": after_read, "BEFORE_LOAD": before_load, "LOAD": LOAD}
    text = KERNEL
    for name in ("BEFORE_LOAD", "AFTER_READ", "ACCESS", "LOAD"):
        text = text.replace(name, parts[name])
    text = text.replace("READERS", str(readers))
    source = np.arange(512, dtype=np.uint8)
    return load(text).run("k", 1, readers + 32, [source], mode="check").findings


@pytest.mark.parametrize("access", ACCESSES)
def test_reads_are_fenced_before_a_copy_overwrites_them(access: str) -> None:
    (finding,) = check(access)
    assert (finding.kind, finding.severity) == ("missing proxy fence", "error")
    assert finding.first is not None
    assert finding.second is not None
    assert finding.first.text.startswith(access.partition(".")[0])
    assert finding.second.text.startswith("cp.async.bulk")
    assert "overwrite what the generic proxy still reads" in finding.missing
    assert finding.mend.startswith("run fence.proxy.async after the read")


@pytest.mark.parametrize("access", ACCESSES)
def test_the_fence_stands_with_the_reader_or_with_the_copy(access: str) -> None:
    assert check(access, after_read=FENCE) == []
    assert check(access, before_load=FENCE) == []


def test_a_fence_in_front_of_the_read_is_no_use() -> None:
    (finding,) = check(FENCE + ACCESSES[0])
    assert finding.kind == "missing proxy fence"


PRODUCT = (
    "{ .reg .b64 %d<2>; mov.b64 %d1, 524320; wgmma.fence.sync.aligned;"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r10, %r11, %r12, %r13},"
    "%d1, 0, 1, 1, 0; wgmma.commit_group.sync.aligned; } wgmma.wait_group.sync.aligned 0;"
)


def test_a_product_that_takes_what_was_read_is_as_good_as_a_fence() -> None:
    """Its operand B lies in bytes that nobody writes."""

    def kinds(access: str) -> set[str]:
        return {f.kind for f in check(access, readers=128)} - {"uninitialised read"}

    assert kinds(ACCESSES[0] + PRODUCT) == set()
    assert kinds(PRODUCT + ACCESSES[0]) == {"missing proxy fence"}
