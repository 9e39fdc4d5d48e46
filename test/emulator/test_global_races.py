# ruff: noqa: E501  (lines of PTX)
"""Races on global memory inside a CTA or cluster, and with bulk copies."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import Finding, TensorMap, load

WAIT = (
    "{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [bar], 0; @!done bra W; }"
)
KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 a) {
    .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
    .shared .align 1024 .b8 s[4096]; .shared .align 8 .b8 bar[8];
    ld.param.u64 %rd1, [a]; mov.b64 %rd9, map; cvta.param.u64 %rd9, %rd9; mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; xor.b32 %r2, %r1, 32; mov.u32 %r20, %ctaid.x;
    mul.wide.u32 %rd4, %r2, 4; add.s64 %rd5, %rd1, %rd4; setp.eq.u32 %p1, %r1, 0;
    setp.lt.u32 %p2, %r1, 32; mov.u32 %r9, 0; shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3;
    @%p1 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
BODY
    ret;
}"""


def check(body: str, grid: int = 1, threads: int = 64, cluster: int = 1) -> list[Finding]:
    """Findings of a kernel with an array of 128 words (%rd1), of which %rd3 is the thread's own, %rd5
    that of the thread a warp away; a tensor map of it in rows of 16 (%rd9); one mbarrier."""
    array = np.arange(128, dtype=np.uint32)
    tensor_map = TensorMap(array, (16, 8), (64,), (16, 4))
    program = load(KERNEL.replace("BODY", body))
    arguments = [tensor_map, array]
    return program.run("k", grid, threads, arguments, cluster=cluster, mode="check").findings


ORDERS = (
    "bar.sync 0;",
    "bar.sync 3, 64;",
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    "fence.acq_rel.gpu; bar.sync 0;",
)
ACCESSES = {
    "read after write": ("st.global.u32 [%rd3], %r1;", "ld.global.u32 %r5, [%rd5];", "this read"),
    "write after read": ("ld.global.u32 %r5, [%rd5];", "st.global.u32 [%rd3], %r1;", "this write"),
    "write after write": ("st.global.u32 [%rd3], %r1;", "st.global.u32 [%rd5], %r1;", "this write"),
    "generic": ("st.u32 [%rd3], %r1;", "ld.u32 %r5, [%rd5];", "this read"),
    "atomic": ("red.global.add.u32 [%rd3], %r1;", "ld.global.u32 %r5, [%rd5];", "this read"),
    "cp.async": ("st.global.u32 [%rd3], %r1;", "cp.async.ca.shared.global [%r4], [%rd5], 4;", "this read"),
}  # fmt: skip

END = "cp.async.wait_all;"


@pytest.mark.parametrize("kind", ACCESSES)
def test_warps_of_a_cta_meet_between_their_accesses(kind: str) -> None:
    first, second, missing = ACCESSES[kind]
    assert [check(first + order + second + END) for order in ORDERS] == [[]] * len(ORDERS)
    (finding,) = check(first + "bar.warp.sync -1;" + second + END)
    assert (finding.kind, finding.memory, finding.severity) == ("race", "global", "error")
    assert finding.first is not None
    assert finding.second is not None
    assert (finding.first.text + ";", finding.second.text + ";") == (first, second)
    assert missing in finding.missing
    assert "another warp's access" in finding.missing
    assert "bar.sync" in finding.mend


def test_one_warp_is_in_order_and_atomics_do_not_race() -> None:
    assert (
        check("st.global.u32 [%rd3], %r1; ld.global.u32 %r5, [%rd3]; st.global.u32 [%rd3], %r5;")
        == []
    )
    assert (
        check("red.global.add.u32 [%rd1], %r1; atom.global.add.u32 %r5, [%rd1], %r1;", grid=3) == []
    )


def test_one_instruction_of_two_warps() -> None:
    """Different values at one address race; the same value everywhere does no harm."""
    (finding,) = check("st.global.u32 [%rd1], %r1;")
    assert finding.missing == "two warps write one address in one instruction"
    assert check("st.global.u32 [%rd1], %r9;") == []


def test_a_reader_between_two_others_is_remembered() -> None:
    """All four warps read a word, then the last one writes it."""
    body = "ld.global.u32 %r5, [%rd1]; ORDER setp.gt.u32 %p3, %r1, 127; @%p3 bra E; setp.gt.u32 %p4, %r1, 95; @%p4 st.global.u32 [%rd1], %r9;\nE:"
    assert check(body.replace("ORDER", "bar.sync 0;"), threads=128) == []
    assert len(check(body.replace("ORDER", ""), threads=128)) == 1


def test_readers_of_several_ctas_are_remembered() -> None:
    """All warps of three CTAs read a word, then the last CTA writes it."""
    body = "ld.global.u32 %r5, [%rd1]; bar.sync 0; setp.eq.u32 %p3, %r20, 2; @%p3 ld.global.u32 %r5, [%rd1]; bar.sync 0; @%p3 st.global.u32 [%rd1], %r9;"
    (finding,) = check(body, grid=3)
    assert finding.missing.startswith("two CTAs, and nothing orders this write")
    assert check(body) == []


def test_ctas_of_a_cluster_meet_at_its_barrier() -> None:
    """A CTA writes what its neighbour reads."""
    body = (
        "mad.lo.u32 %r5, %r20, 32, %r1; mul.wide.u32 %rd6, %r5, 4; add.s64 %rd6, %rd1, %rd6; st.global.u32 [%rd6], %r1;"
        "MEET xor.b32 %r6, %r20, 1; mad.lo.u32 %r5, %r6, 32, %r1; mul.wide.u32 %rd6, %r5, 4; add.s64 %rd6, %rd1, %rd6;"
        "ld.global.u32 %r7, [%rd6];"
    )
    meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    assert check(body.replace("MEET", meet), 2, 32, 2) == []
    (finding,) = check(body.replace("MEET", "bar.sync 0;"), 2, 32, 2)
    assert finding.missing.startswith("two CTAs, and nothing orders this read")


STORE = (
    "st.shared.u32 [%r4], %r1; fence.proxy.async.shared::cta; bar.sync 0; mov.u32 %r8, 0;"
    "@%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd9, {%r8, %r8}], [s];"
    "@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 0;"
)
LINEAR = STORE.replace(
    "tensor.2d.global.shared::cta.bulk_group [%rd9, {%r8, %r8}], [s]",
    "global.shared::cta.bulk_group [%rd1], [s], 256",
)
READ = "ld.global.u32 %r5, [%rd3];"


@pytest.mark.parametrize("store", [STORE, LINEAR])
def test_what_a_bulk_store_writes_is_waited_for(store: str) -> None:
    wait = "@%p1 cp.async.bulk.wait_group 0;"
    assert check(store + wait + "bar.sync 0;" + READ) == []
    (finding,) = check(store + "bar.sync 0;" + READ)
    assert finding.missing == "the bulk store may still be under way"
    assert "wait_group 0 (.read is not enough)" in finding.mend
    (finding,) = check(store + wait + READ)  # the other warp has not been told
    assert "another warp's access" in finding.missing
    (finding,) = check(store + "bar.sync 0;" + wait + READ)
    assert "another warp's access" in finding.missing


def test_bulk_stores_of_one_tile() -> None:
    """The second must not pass the first; reductions may come in any order."""
    twice = STORE + STORE.partition("bar.sync 0;")[2]
    (finding,) = check(twice)
    assert finding.missing == "the bulk store may still be under way"
    reductions = twice.replace("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
    reductions = reductions.replace("shared::cta.bulk_group", "shared::cta.add.tile.bulk_group")
    assert check(reductions) == []
    assert [f.memory for f in check(reductions + "bar.sync 0;" + READ)] == ["global"]


LOAD = (
    "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256; mov.u32 %r8, 0; @%p1 cp.async.bulk.tensor.2d"
    ".shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd9, {%r8, %r8}], [bar];" + WAIT
)
LINEAR_LOAD = LOAD.replace("tensor.2d.", "").replace("[%rd9, {%r8, %r8}]", "[%rd1], 256")


@pytest.mark.parametrize("load_", [LOAD, LINEAR_LOAD])
def test_what_threads_wrote_is_fenced_before_a_bulk_load(load_: str) -> None:
    write = "st.global.u32 [%rd3], %r1;"
    assert check(write + "fence.proxy.async; bar.sync 0;" + load_) == []
    assert check(write + "bar.sync 0; fence.proxy.async;" + load_) == []
    (finding,) = check(write + "bar.sync 0;" + load_)
    assert (finding.kind, finding.memory) == ("missing proxy fence", "global")
    found = check(write + "fence.proxy.async;" + load_)  # by the other warp, too
    assert {f.kind for f in found} == {"race"}
