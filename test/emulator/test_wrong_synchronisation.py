# ruff: noqa: E501  (lines of PTX)
"""Small kernels whose synchronisation is wrong in one place: each gets a finding that names it."""

from __future__ import annotations

import pytest
from small_kernel import (
    EXPECT,
    FENCE,
    INIT,
    LOAD,
    MEET,
    PROLOGUE,
    READ,
    WAIT,
    WRITE,
    check,
    kinds,
)

ON_A_CTA = {
    "right": (PROLOGUE + LOAD + WAIT + READ, set()),
    "parity of the next phase": (PROLOGUE + LOAD + WAIT.replace("[%r3], 0", "[%r3], 1") + READ, {"deadlock"}),
    "nothing expected": (INIT + "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r3];" + LOAD + WAIT + READ, {"race", "unfinished load"}),
    "nobody arrives": (INIT + LOAD + WAIT + READ, {"deadlock"}),
    "too many bytes": (PROLOGUE.replace("256", "272") + LOAD + WAIT + READ, {"deadlock"}),
    "too few bytes": (PROLOGUE.replace("256", "240") + LOAD + WAIT + READ, {"deadlock"}),
    "count too high": (PROLOGUE.replace("[%r3], 1", "[%r3], 2") + LOAD + WAIT + READ, {"deadlock"}),
    "no wait": (PROLOGUE + LOAD + READ, {"race", "unfinished load"}),
    "nobody needs the copy": (PROLOGUE + LOAD, {"unfinished load"}),
    "the mbarrier is overwritten": (INIT + "@%p1 st.shared.u32 [%r3], %r0; bar.sync 0;" + EXPECT + LOAD + WAIT + READ, {"mbarrier"}),
    "half a named barrier": ("@%p2 bra E; bar.sync 1, 96;\nE:", {"deadlock"}),
    "counts that differ": ("@%p2 bra A; bar.sync 1, 64; bra E;\nA: bar.sync 1, 128;\nE:", {"deadlock", "barrier"}),
    "no cp.async.commit_group": ("cp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.wait_group 0;" + READ, {"race", "unfinished copy"}),
}  # fmt: skip


@pytest.mark.parametrize("what", ON_A_CTA)
def test_on_a_cta(what: str) -> None:
    body, expected = ON_A_CTA[what]
    found = check(body)
    assert bool(found) == bool(expected)
    assert kinds(found) <= expected


def test_an_overwritten_mbarrier_names_the_store() -> None:
    found = check(ON_A_CTA["the mbarrier is overwritten"][0])
    assert {f.first.text for f in found if f.first} == {"@%p1 st.shared.u32 [%r3], %r0"}
    again = INIT + "@%p1 st.shared.u32 [%r3], %r0; bar.sync 0;" + PROLOGUE + LOAD + WAIT + READ
    assert check(again) == []


STORE = (
    f"{WRITE}{FENCE} bar.sync 0; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 256;"
    "COMMIT cp.async.bulk.commit_group; AWAIT cp.async.bulk.wait_group.read 0; bar.sync 0; st.shared.u32 [%r4], %r0;"
)


@pytest.mark.parametrize(
    ("commit", "wait", "right"),
    [("@%p1", "@%p1", True), ("", "", True), ("@%p1", "@%p7", False), ("@%p7", "@%p1", False)],
)
def test_groups_of_bulk_stores_are_a_threads_own(commit: str, wait: str, right: bool) -> None:
    """%p7 is the thread beside."""
    text = STORE.replace("COMMIT", commit).replace("AWAIT", wait)
    expected = set() if right else {"race", "unfinished store"}
    assert kinds(check("setp.eq.u32 %p7, %r1, 1;" + text)) == expected


COPY = "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r2], 128, [%r6];"
SEND = (
    PROLOGUE.replace("256", "128")
    + WRITE
    + FENCE
    + MEET
    + COPY
    + WAIT
    + "ld.shared.u32 %r8, [%r4+1024];"
    + MEET
)
SPREAD = (
    PROLOGUE + MEET + "mov.b16 %h1, 3; @!%p6 bra L; cp.async.bulk.shared::cluster.global"
    ".mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd1], 256, [%r3], %h1;\nL:"
)
REMOTE = {
    "ld": "ld.shared::cluster.u32 %r8, [%r5];",
    "st": "st.shared::cluster.u32 [%r5+512], %r1;",
    "red": "red.shared::cluster.add.u32 [%r5], %r1;",
}


@pytest.mark.parametrize("access", REMOTE)
def test_ctas_reach_into_each_other_between_two_meetings(access: str) -> None:
    reach = REMOTE[access]
    assert check(WRITE + MEET + reach + MEET, 2, 32) == []
    (finding,) = check(WRITE + MEET + reach, 2, 32)
    assert (finding.kind, finding.memory) == ("lost access", "shared")
    assert finding.second is not None
    assert finding.second.text + ";" == reach
    assert "may have ended" in finding.missing
    found = check(reach + MEET, 2, 32)
    assert "early access" in kinds(found)


ON_A_CLUSTER = {
    "right copy": (SEND, set()),
    "source not fenced": (SEND.replace(FENCE, ""), {"missing proxy fence"}),
    "source not written": (SEND.replace(WRITE, ""), {"uninitialised read"}),
    "nobody waits for the copy": (SEND.partition(COPY)[0] + COPY + MEET, {"unfinished load", "unfinished send"}),
    "right multicast": (SPREAD + WAIT + READ + MEET, set()),
    "a receiver that does not wait": (SPREAD + "@!%p5 bra E;" + WAIT + READ + "\nE:", {"unfinished load"}),
    "a wait without arrival": ("barrier.cluster.wait.aligned;", {"cluster barrier"}),
    "two arrivals": ("barrier.cluster.arrive.aligned; " + MEET, {"cluster barrier"}),
}  # fmt: skip


@pytest.mark.parametrize("what", ON_A_CLUSTER)
def test_on_a_cluster(what: str) -> None:
    body, expected = ON_A_CLUSTER[what]
    assert kinds(check(body, 2, 32)) == expected
