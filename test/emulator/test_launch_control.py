# ruff: noqa: E501  (lines of PTX)
"""clusterlaunchcontrol, 128-bit registers, and stmatrix of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load

MODES = ("eager", "late", "check")
HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
WAIT = "{{ .reg .pred done; {0}: mbarrier.try_wait.parity.shared::cta.b64 done, [bar], %r30; @!done bra {0}; }}"
# Each CTA adds 1 to the count of its tile, and of every tile it takes over.
PERSISTENT = """
.visible .entry k(.param .u64 a) {
.reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .b128 %q;
.shared .align 16 .b8 response[16]; .shared .align 8 .b8 bar[8];
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r30, 0;
@%p1 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ctaid.y; mov.u32 %r12, %nctaid.x;
TILE: mad.lo.u32 %r13, %r11, %r12, %r10; mul.wide.u32 %rd2, %r13, 4; add.s64 %rd3, %rd1, %rd2;
@%p1 red.global.add.u32 [%rd3], 1;
BEFORE
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytesALL.b128 [response], [bar];
WAIT
ld.shared.b128 %q, [response];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q;
QUERY
xor.b32 %r30, %r30, 1; AFTER
@%p2 bra TILE;
ret; }
"""
QUERY = (
    "@%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r10, %r11, %r14, _}, %q;"
)
QUERY_BY_AXIS = (
    "@%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %q;"
    "@%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r11, %q;"
)
# All have read the response before it is overwritten, for the async proxy too.
MEET = "fence.proxy.async.shared::cta; bar.sync 0;"


def persistent(query: str, meet: str = MEET, wait: str = WAIT.format("W")) -> str:
    text = PERSISTENT.replace("QUERY", query).replace("WAIT", wait)
    return HEAD + text.replace("AFTER", meet).replace("BEFORE", "").replace("ALL", "")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", [QUERY, QUERY_BY_AXIS])
def test_every_tile_is_done_once(query: str, mode: str) -> None:
    counts = np.zeros((7, 11), np.uint32)
    result = load(persistent(query)).run("k", (11, 7), 64, [counts], mode=mode)
    assert result.findings == []
    assert (counts == 1).all()
    plain = np.zeros((7, 11), np.uint32)
    launched = load(persistent(query).replace("@%p2 bra TILE;", "")).run("k", (11, 7), 64, [plain])
    assert 11 < plain.sum() < 77, "some CTAs were cancelled"
    assert launched.statistics.warp_instructions > 0


def test_a_response_that_is_not_waited_for() -> None:
    counts = np.zeros((7, 11), np.uint32)
    findings = (
        load(persistent(QUERY, wait="")).run("k", (11, 7), 64, [counts], mode="check").findings
    )
    assert "the bulk copy may still be under way" in {f.missing for f in findings}


def test_a_response_that_is_overwritten_while_others_read() -> None:
    counts = np.zeros((7, 11), np.uint32)
    findings = load(persistent(QUERY, "")).run("k", (11, 7), 64, [counts], mode="check").findings
    assert {f.memory for f in findings} >= {"shared"}


def test_the_response_for_a_whole_cluster() -> None:
    text = PERSISTENT.replace("ALL", ".multicast::cluster::all").replace("QUERY", QUERY)
    text = text.replace("WAIT", WAIT.format("W")).replace("AFTER", MEET)
    text = text.replace(
        "BEFORE",
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mov.u32 %r20, %cluster_ctarank; setp.eq.and.u32 %p4, %r20, 0, %p1;",
    )
    text = text.replace("@%p1 clusterlaunch", "@%p4 clusterlaunch")
    text = text.replace("xor.b32 %r30", "add.u32 %r10, %r10, %r20; xor.b32 %r30")
    counts = np.zeros((6, 8), np.uint32)
    load(HEAD + text).run("k", (8, 6), 64, [counts], cluster=(2, 1, 1))
    assert (counts == 1).all()


def test_wide_registers() -> None:
    text = HEAD + (
        ".visible .entry k(.param .u64 a) { .reg .b64 %rd<9>; .reg .b128 %q<4>; .reg .b32 %r<3>; ld.param.u64 %rd1, [a];"
        "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.s64 %rd1, %rd1, %rd2; ld.global.b128 %q1, [%rd1];"
        "mov.b128 {%rd3, %rd4}, %q1; mov.b128 %q2, {%rd4, %rd3}; mov.b128 %q3, %q2; st.global.b128 [%rd1], %q3; ret; }"
    )
    values = np.arange(64, dtype=np.uint64).reshape(32, 2)
    load(text).run("k", 1, 32, [values])
    np.testing.assert_array_equal(values, np.arange(64).reshape(32, 2)[:, ::-1])


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_of_bytes(count: int) -> None:
    """Byte j of lane l is element (l/4 + 8*(j/2), 2*(l%4) + j%2) of a 16x8 matrix."""
    names = ", ".join(f"%r{20 + i}" for i in range(count))
    loads = "".join(f"ld.global.b32 %r{20 + i}, [%rd3+{128 * i}];" for i in range(count))
    text = HEAD + (
        ".visible .entry k(.param .u64 a, .param .u64 b) { .reg .b64 %rd<9>; .reg .b32 %r<40>; .shared .align 16 .b8 s[512];"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;"
        f"add.s64 %rd3, %rd1, %rd4; {loads} mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 16, %r2;"
        f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r3], {{{names}}}; bar.warp.sync -1;"
        "mul.wide.u32 %rd5, %r1, 16; add.s64 %rd5, %rd2, %rd5; ld.shared.v4.b32 {%r30, %r31, %r32, %r33}, [%r3];"
        "st.global.v4.b32 [%rd5], {%r30, %r31, %r32, %r33}; ret; }"
    )
    matrices = np.random.default_rng(count).integers(0, 256, (count, 16, 8)).astype(np.uint8)
    registers = np.zeros((count, 32, 4), np.uint8)
    for lane in range(32):
        for j in range(4):
            registers[:, lane, j] = matrices[:, lane // 4 + 8 * (j // 2), 2 * (lane % 4) + j % 2]
    out = np.zeros((4, 8, 16), np.uint8)
    load(text).run("k", 1, 32, [registers, out])
    np.testing.assert_array_equal(out[:count], matrices.transpose(0, 2, 1))


@pytest.mark.parametrize(("form", "reason"), [
    ("stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r3], {%r20};", "modifiers"),
    ("clusterlaunchcontrol.try_cancel.async.b128 [%r3];", "form"),
    ("clusterlaunchcontrol.query_cancel.first.b128 %r3, %q1;", "modifiers"),
])  # fmt: skip
def test_other_forms_are_refused(form: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"unsupported: .*{reason}"):
        load(HEAD + ".visible .entry k() { .reg .b32 %r<40>; .reg .b128 %q<3>; " + form + " ret; }")


def test_sixteen_byte_alignment() -> None:
    text = persistent(QUERY).replace("[response], [bar]", "[response+8], [bar]")
    with pytest.raises(EmulatorError, match="misaligned"):
        load(text).run("k", 4, 64, [np.zeros(4, np.uint32)])
