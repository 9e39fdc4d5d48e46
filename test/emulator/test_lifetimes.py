# ruff: noqa: E501  (lines of PTX)
"""What is under way when a CTA ends: each kind, ordered before the end and not."""

from __future__ import annotations

import numpy as np
import pytest
from small_kernel import FENCE, INIT, MEET, PROLOGUE, WAIT, WRITE, check, kinds, run

from tilec.runtime.emulator import EmulatorError

RELAXED = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
START = INIT + RELAXED
ARRIVE = "@%p1 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r6];"
RELEASE = ARRIVE.replace("relaxed", "release")
EXPECT = "@%p1 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r6], 0;"
STORE = "st.shared::cluster.u32 [%r5], %r1;"
COMMIT = (
    "mov.b16 %h1, 3; @%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster"
    ".multicast::cluster.b64 [%r3], %h1;"
)
COUNT = "@%p6 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;"
PAIR = (
    "mov.b32 %r8, 0; mapa.shared::cluster.u32 %r9, %r3, %r8; setp.ne.u32 %p7, %r20, 0; and.pred %p7, %p7, %p1;"
    "@%p7 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [%r2], [%rd4, { %r8, %r8 }], [%r9];"
)
COPY = "@%p6 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r2], 128, [%r6];"
SEND = "@!%p5 bra A; " + WRITE + FENCE + "\nA: " + PROLOGUE.replace("256", "128") + RELAXED + COPY
RECEIVE = "@%p5 bra E; " + WAIT + "\nE:"
ASYNC = "cp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.commit_group;"
UNDER_WAY = {
    "relaxed arrival": (START + ARRIVE + RELAXED, "lost arrival", ARRIVE),
    "releasing arrival": (START + RELEASE + RELAXED, "lost arrival", RELEASE),
    "arrival that expects bytes": (START + EXPECT + RELAXED, "lost arrival", EXPECT),
    "arrival, and no meeting": (START + ARRIVE, "lost arrival", ARRIVE),
    "arrival behind the meeting": (START + MEET + ARRIVE, "lost arrival", ARRIVE),
    "arrival behind the fence": (START + "fence.acq_rel.cluster;" + ARRIVE + RELAXED, "lost arrival", ARRIVE),
    "arrival that only one waits for": (START + ARRIVE + "@%p5 bra E;" + WAIT + "\nE:" + RELAXED, "lost arrival", ARRIVE),
    "store": (START + STORE + RELAXED, "lost access", STORE),
    "commit that nobody waits for": (START + COMMIT + MEET, "lost signal", COMMIT),
    "commit that only one waits for": (START + COMMIT + "@!%p5 bra E;" + WAIT + "\nE:" + MEET, "lost signal", COMMIT),
    "bytes that another CTA counts": (INIT + COUNT + RELAXED + PAIR + MEET, "unfinished load, lost signal", PAIR),
    "copy whose sender ends": (SEND + RECEIVE, "unfinished send", COPY),
    "cp.async": (ASYNC, "unfinished copy", ASYNC),
}  # fmt: skip
OVER = {
    "relaxed arrival": START + ARRIVE + MEET,
    "releasing arrival": START + RELEASE + MEET,
    "arrival that expects bytes": START + EXPECT + MEET,
    "arrival before a fence": START + ARRIVE + "fence.acq_rel.cluster;" + RELAXED,
    "arrivals whose phase both wait for": START + ARRIVE + WAIT + RELAXED,
    "store": START + STORE + MEET,
    "commit that both wait for": START + COMMIT + WAIT + RELAXED,
    "copy whose sender meets the receiver": SEND + RECEIVE + RELAXED,
    "cp.async": ASYNC + "cp.async.wait_all;",
    "bytes that another CTA counts": INIT
    + COUNT
    + RELAXED
    + PAIR
    + "@!%p5 bra E;"
    + WAIT
    + "\nE:"
    + RELAXED,
}


LATE = [what for what, (_, kind, _) in UNDER_WAY.items() if kind in ("lost arrival", "lost signal")]


@pytest.mark.parametrize("what", UNDER_WAY)
def test_what_may_come_too_late_is_found(what: str) -> None:
    """Each finding names the instruction, and the CTAs that ended."""
    body, expected, text = UNDER_WAY[what]
    found = check(body, 2, 32)
    assert kinds(found) == set(expected.split(", "))
    for finding in found:
        assert finding.second is not None
        assert finding.second.text in text
        assert "of the cluster" in finding.missing


@pytest.mark.parametrize("what", OVER)
def test_what_comes_in_time_is_right(what: str) -> None:
    assert check(OVER[what], 2, 32) == []
    for seed in (None, 0, 1, 2):
        run(OVER[what], 2, 32, "late", seed=seed)


def test_the_ctas_that_ended_are_named() -> None:
    (both,) = check(UNDER_WAY["relaxed arrival"][0], 2, 32)
    assert both.missing == "CTAs 0, 1 of the cluster may have ended when this arrives"
    (one,) = check(UNDER_WAY["commit that only one waits for"][0], 2, 32)
    assert one.missing.startswith("CTA 1 of the cluster may have ended")


def test_a_warp_that_is_gone_meets_nobody() -> None:
    """The cluster's meeting is of the warps that are left: theirs releases nothing of it."""
    body = START + "setp.eq.u32 %p3, %r1, 32; @%p2 bra G; {} G:" + MEET
    arrival = RELEASE.replace("%p1", "%p3")
    found = check(body.format(arrival + "\nret;\n"), 2)
    assert [(f.kind, f.second and f.second.text + ";") for f in found] == [
        ("lost arrival", arrival)
    ]
    assert check(body.format(arrival + "\n"), 2) == []


@pytest.mark.parametrize("what", LATE)
def test_late_mode_lets_it_hit_a_cta_that_has_ended(what: str) -> None:
    with pytest.raises(EmulatorError, match="of the cluster is accessed, which has ended"):
        run(UNDER_WAY[what][0], 2, 32, "late")


def test_work_of_any_age_comes_at_any_time() -> None:
    """With some seeds the arrival is in time, with others not."""
    ends = set()
    for seed in range(8):
        try:
            run(UNDER_WAY["relaxed arrival"][0], 2, 32, "late", seed=seed)
            ends.add("in time")
        except EmulatorError as error:
            ends.add(error.kind)
    assert ends == {"in time", "ended CTA"}


STORES = {
    "copy": "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 128; cp.async.bulk.commit_group;",
    "reduction": "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b32 [%rd1], [%r2], 128; cp.async.bulk.commit_group;",
}


@pytest.mark.parametrize("store", STORES)
def test_a_bulk_store_reads_what_is_there_when_its_cta_has_ended(store: str) -> None:
    body = WRITE + FENCE + "bar.sync 0;" + STORES[store]
    assert kinds(check(body, 1, 32)) == {"unfinished store"}
    lost, right = np.zeros((2, 512), np.uint32)
    run(body, 1, 32, "late", lost)
    run(body + "cp.async.bulk.wait_group.read 0;", 1, 32, "late", right)
    assert (lost[:32] == 0xFFFFFFFF).all()
    np.testing.assert_array_equal(right[:32], np.arange(32))
