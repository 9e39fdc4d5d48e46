"""Who polls a word of memory lets asynchronous work go on, and is found out where it never ends."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
WAIT_FOR_THE_NEXT = (
    HEAD + ".visible .entry ring(.param .u64 flags) { .reg .pred %p<3>; .reg .b32 %r<5>;\n"
    ".reg .b64 %d<5>; ld.param.u64 %d1, [flags]; mov.u32 %r1, %ctaid.x; add.u32 %r2, %r1, 1;\n"
    "and.b32 %r2, %r2, 3; mul.wide.u32 %d2, %r2, 4; add.u64 %d2, %d1, %d2;\n"
    "again: atom.acquire.gpu.global.cas.b32 %r3, [%d2], 1, 0; setp.eq.u32 %p1, %r3, 0;\n"
    "@%p1 bra again; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d1, %d3;\n"
    "atom.release.gpu.global.exch.b32 %r4, [%d3], 1; ret; }\n"
)
"""CTA i takes flag i + 1 down, then puts flag i up."""
POLL_BESIDE_A_COPY = (
    HEAD + ".visible .entry k(.param .u64 a, .param .u64 flag) {\n"
    ".reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %d<5>; .shared .align 16 .b8 s[16];\n"
    ".shared .align 8 .b8 bar[8]; ld.param.u64 %d1, [a]; ld.param.u64 %d2, [flag];\n"
    "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra poll;\n"
    "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n"
    "mbarrier.arrive.expect_tx.shared.b64 %d3, [bar], 16;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1], 16, [bar];\n"
    "wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra wait;\n"
    "ld.shared.u32 %r2, [s]; atom.release.gpu.global.exch.b32 %r3, [%d2], %r2; ret;\n"
    "poll: atom.acquire.gpu.global.or.b32 %r4, [%d2], 0; setp.eq.u32 %p3, %r4, 0;\n"
    "@%p3 bra poll; ret; }\n"
)
"""CTA 0 polls until CTA 1 has written what a copy brings it."""
WORK_BETWEEN_POLLS = (
    HEAD + ".visible .entry k(.param .u64 flag) {\n"
    ".reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %d<5>; ld.param.u64 %d1, [flag];\n"
    "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 2; @%p1 bra last;\n"
    "setp.eq.u32 %p1, %r1, 1; @%p1 bra work;\n"
    "first: ld.acquire.gpu.global.u32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra first; ret;\n"
    "work: mov.u32 %r3, 0;\n"
    "more: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 500; @%p3 bra more;\n"
    "st.release.gpu.global.u32 [%d1], %r3; ret;\n"
    "last: ld.acquire.gpu.global.u32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra last; ret; }\n"
)
"""CTAs 0 and 2 poll, in front of and behind the instructions at which CTA 1 is."""


@pytest.mark.parametrize("mode", ["eager", "late"])
def test_a_ring_of_waiting_ctas_is_a_deadlock(mode: str) -> None:
    flags = np.zeros(4, np.int32)
    with pytest.raises(EmulatorError, match="asking again and again") as caught:
        load(WAIT_FOR_THE_NEXT).run("ring", grid=(4, 1, 1), block=1, args=[flags], mode=mode)
    assert "CTAs 0-3: warp 0" in str(caught.value)


def test_check_mode_reports_it() -> None:
    flags = np.zeros(4, np.int32)
    ring = load(WAIT_FOR_THE_NEXT)
    found = ring.run("ring", grid=(4, 1, 1), block=1, args=[flags], mode="check").findings
    assert [finding.kind for finding in found] == ["deadlock"]


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_one_flag_frees_the_ring(mode: str) -> None:
    flags = np.array([0, 0, 1, 0], np.int32)
    ring = load(WAIT_FOR_THE_NEXT)
    result = ring.run("ring", grid=(4, 1, 1), block=1, args=[flags], mode=mode)
    assert not result.findings
    assert flags.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_copies_end_while_others_poll(mode: str) -> None:
    a, flag = np.full(4, 7, np.int32), np.zeros(1, np.int32)
    program = load(POLL_BESIDE_A_COPY)
    result = program.run("k", grid=(2, 1, 1), block=1, args=[a, flag], mode=mode)
    assert not [finding for finding in result.findings if finding.kind == "deadlock"]
    assert flag[0] == 7


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_who_stands_between_pollers_has_turns(mode: str) -> None:
    flag = np.zeros(1, np.int32)
    program = load(WORK_BETWEEN_POLLS)
    result = program.run("k", grid=(3, 1, 1), block=1, args=[flag], mode=mode)
    assert not result.findings
    assert flag[0] == 500
