# ruff: noqa: E501  (lines of PTX)
"""Check mode on small kernels: each rule fires on the wrong kernel and is silent on the right
one."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import Finding, load

HEAD = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "kernel.py"\n'
REGISTERS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;"


def check(body: str, threads: int = 64, grid: int = 1, size: int = 64) -> list[Finding]:
    """Findings of a kernel with 4 KiB of shared memory `s` (%r2) and one array (%rd1)."""
    text = (
        f"{HEAD}.visible .entry k(.param .u64 a) {{\n{REGISTERS}\n.shared .align 16 .b8 s[4096];\n"
        "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2;"
        "add.u32 %r4, %r2, %r3; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;"
        "mov.u32 %r20, %ctaid.x; setp.lt.u32 %p1, %r1, 32; xor.b32 %r5, %r3, 128; "
        f"add.u32 %r6, %r2, %r5;\n{body}\nret;\n}}"
    )
    array = np.arange(size, dtype=np.uint32)
    return load(text).run("k", grid, threads, [array], mode="check").findings


def test_a_barrier_orders_exchange_between_warps() -> None:
    right = "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r7, [%r6];"
    assert check(right) == []
    (finding,) = check(
        ".loc 1 12 3\nst.shared.u32 [%r4], %r1;\n.loc 1 15 7\nld.shared.u32 %r7, [%r6];"
    )
    assert (finding.kind, finding.memory) == ("race", "shared")
    assert finding.first is not None
    assert finding.second is not None
    assert str(finding.first.source) == "kernel.py:12:3"
    assert str(finding.second.source) == "kernel.py:15:7"
    assert finding.first.ptx_line == 10
    assert "read after write of another warp" in finding.missing
    assert "bar.sync" in finding.mend


def test_a_write_after_another_warps_read_needs_a_barrier() -> None:
    body = (
        "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r7, [%r6]; BARRIER"
        "st.shared.u32 [%r4], %r7;"
    )
    assert check(body.replace("BARRIER", "bar.sync 0;")) == []
    findings = check(body.replace("BARRIER", ""))
    assert [f.missing for f in findings] == ["nothing orders the write after another warp's read"]


def test_one_warp_needs_no_barrier() -> None:
    body = "st.shared.u32 [%r4], %r1; ld.shared.u32 %r7, [%r4]; st.shared.u32 [%r4], %r7;"
    assert check(body) == []


def test_two_warps_writing_one_address_at_once() -> None:
    (finding,) = check("st.shared.u32 [%r2], %r1;")
    assert finding.missing == "two warps write one address in one instruction"
    assert check("mov.u32 %r9, 5; st.shared.u32 [%r2], %r9;") == []  # the same value


def test_uninitialised_reads() -> None:
    (finding,) = check("ld.shared.u32 %r7, [%r4];")
    assert (finding.kind, finding.first) == ("uninitialised read", None)


def test_bytes_of_one_word_do_not_race() -> None:
    body = "add.u32 %r8, %r2, %r1; cvt.u16.u32 %h1, %r1; st.shared.u8 [%r8], %h1;"
    shifted = body.replace("%r2, %r1;", "%r2, %r1; shr.u32 %r9, %r1, 5; mad.lo.u32 %r8, %r1, 2, %r2;"
                           "and.b32 %r10, %r1, 31; mad.lo.u32 %r8, %r10, 2, %r2; add.u32 %r8, %r8, %r9;")  # fmt: skip
    assert check(shifted) == []  # the two warps write the even and the odd bytes
    word = shifted.replace(
        "st.shared.u8 [%r8], %h1;", "and.b32 %r8, %r8, -2; st.shared.u16 [%r8], %h1;"
    )
    assert [f.kind for f in check(word)] == ["race"]


def test_bytes_of_one_word_in_two_instructions() -> None:
    """Warp 0 writes the even bytes, warp 1 the odd ones, at different times; no order is needed."""
    body = (
        "and.b32 %r10, %r1, 31; mad.lo.u32 %r8, %r10, 2, %r2; cvt.u16.u32 %h1, %r1; @!%p1 bra ODD;"
        "st.shared.u8 [%r8], %h1; bra END;\nODD: st.shared.u8 [%r8+1], %h1;\nEND:"
    )
    assert check(body) == []
    assert [f.kind for f in check(body.replace("[%r8+1]", "[%r8]"))] == ["race"]


COPY = (
    "cp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.commit_group; WAIT BARRIER "
    "ld.shared.u32 %r7, [WHERE]; cp.async.wait_all;"
)


@pytest.mark.parametrize(
    ("wait", "barrier", "where", "mend"),
    [
        ("cp.async.wait_group 0;", "", "%r4", None),
        ("cp.async.wait_group 0;", "bar.sync 0;", "%r6", None),
        ("cp.async.wait_all;", "bar.sync 0;", "%r6", None),
        ("", "bar.sync 0;", "%r4", "wait with cp.async.wait_group"),
        ("cp.async.wait_group 1;", "", "%r4", "wait with cp.async.wait_group"),
        ("", "bar.sync 0;", "%r6", "let the copying warp run cp.async.wait_group"),
        ("cp.async.wait_group 0;", "", "%r6", "let the copying warp run cp.async.wait_group"),
        ("bar.sync 0;", "cp.async.wait_group 0;", "%r6", "let the copying warp run"),
    ],
)
def test_cp_async_needs_its_wait_then_a_barrier(
    wait: str, barrier: str, where: str, mend: str | None
) -> None:
    body = COPY.replace("WAIT", wait).replace("BARRIER", barrier).replace("WHERE", where)
    findings = check(body)
    if mend is None:
        assert findings == []
    else:
        assert len(findings) == 1
        assert findings[0].mend.startswith(mend)


def test_cp_async_must_not_overwrite_what_is_still_read() -> None:
    body = (
        "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r7, [%r6]; BARRIER "
        "cp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.wait_all;"
    )
    assert check(body.replace("BARRIER", "bar.sync 0;")) == []
    assert [f.kind for f in check(body.replace("BARRIER", ""))] == ["race"]


def test_named_barriers_order_producer_and_consumer() -> None:
    body = (
        "@%p1 bra P; bar.sync 1, 64; ld.shared.u32 %r7, [%r6]; bra E;\n"
        "P: st.shared.u32 [%r4], %r1; FIRST SECOND\nE:"
    )
    right = body.replace("FIRST", "").replace("SECOND", "bar.arrive 1, 64;")
    assert check(right) == []
    wrong = "@%p1 bra P; bar.sync 1, 64; ld.shared.u32 %r7, [%r6]; bra E;\n"
    wrong += "P: bar.arrive 1, 64; st.shared.u32 [%r4], %r1;\nE:"
    kinds = {f.kind for f in check(wrong)}
    assert "race" in kinds


def test_shared_atomics_do_not_race_with_each_other() -> None:
    body = "@%p1 st.shared.u32 [%r4], %r1; bar.sync 0; red.shared.add.u32 [%r2], %r1; AFTER"
    assert check(body.replace("AFTER", "bar.sync 0; ld.shared.u32 %r7, [%r2];")) == []
    assert [f.kind for f in check(body.replace("AFTER", "ld.shared.u32 %r7, [%r2];"))] == ["race"]


def test_global_races_between_ctas() -> None:
    own = "mad.lo.u32 %r8, %r20, 64, %r1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd5, %rd1, %rd4;"
    assert check(own + "st.global.u32 [%rd5], %r1;", grid=3, size=192) == []
    (finding,) = check("st.global.u32 [%rd3], %r20;", grid=3, size=192)
    assert (finding.kind, finding.memory) == ("race", "global")
    body = "ld.global.u32 %r9, [%rd3]; setp.eq.u32 %p2, %r20, 2; @%p2 st.global.u32 [%rd3], %r9;"
    assert [f.memory for f in check(body, grid=3, size=192)] == ["global"]
    assert check("red.global.add.u32 [%rd3], %r1;", grid=3, size=192) == []


def test_a_semaphore_orders_ctas() -> None:
    body = (
        "setp.ne.u32 %p2, %r20, 0; @%p2 bra SECOND; st.global.u32 [%rd3+256], %r1; FENCE bar.sync 0;"
        "setp.ne.u32 %p3, %r1, 0; @!%p3 SIGNAL; bra E;\n"
        "SECOND: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.ne.u32 %p4, %r8, 1; @%p4 bra SECOND;"
        "bar.sync 0; ld.global.u32 %r9, [%rd3+256];\nE:"
    )
    right = body.replace("FENCE", "fence.acq_rel.gpu;").replace(
        "SIGNAL", "st.release.gpu.global.u32 [%rd1], 1"
    )
    right = right.replace("[%rd1], 1", "[%rd1], %r21").replace(
        "setp.ne.u32 %p2", "mov.u32 %r21, 1; setp.ne.u32 %p2"
    )
    assert check(right, grid=2, size=192) == []
    assert check(right.replace("ld.acquire.gpu.global.u32 %r8", "mov.u32 %r8, 1; ld.global.u32 %r22"),
                 grid=2, size=192) != []  # fmt: skip


def test_errors_become_findings() -> None:
    (finding,) = check("ld.global.u32 %r7, [%rd3+4];")
    assert (finding.kind, finding.memory) == ("out of bounds", "global")
    assert "byte offset 256 of argument 0" in finding.missing
    (finding,) = check("ld.shared.u32 %r7, [%r4+4096];")
    assert (finding.kind, finding.memory) == ("out of bounds", "shared")
    (finding,) = check("@%p1 bra E; bar.sync 1, 64;\nE:")
    assert finding.kind == "deadlock"
    (finding,) = check("and.b32 %r9, %r1, 1; setp.eq.u32 %p2, %r9, 0; @%p2 bra A; bar.sync 0; bra E;"
                       "\nA: bar.sync 0;\nE:")  # fmt: skip
    assert finding.kind == "divergence"


def test_bank_conflicts_are_counted() -> None:
    text = (
        f"{HEAD}.visible .entry k() {{\n{REGISTERS}\n.shared .align 16 .b8 s[8192];\n"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r4, %r1, STRIDE, %r2;"
        "st.shared.KIND; ret; }"
    )

    def count(stride: int, kind: str) -> int:
        kernel = load(text.replace("STRIDE", str(stride)).replace("KIND", kind))
        return kernel.run("k", 1, 32, [], mode="check").statistics.bank_conflicts

    assert count(4, "u32 [%r4], %r1") == 0
    assert count(8, "u32 [%r4], %r1") == 1
    assert count(128, "u32 [%r4], %r1") == 31
    assert count(0, "u32 [%r4], %r1") == 0
    assert count(16, "v4.u32 [%r4], {%r1, %r1, %r1, %r1}") == 0
    assert count(32, "v4.u32 [%r4], {%r1, %r1, %r1, %r1}") == 4
    assert count(16, "v2.u32 [%r4], {%r1, %r1}") == 2
