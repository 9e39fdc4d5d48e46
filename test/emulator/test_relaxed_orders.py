# ruff: noqa: E501  (lines of PTX)
"""Relaxed arrivals and waits at mbarriers say that something is over, and order nothing else."""

from __future__ import annotations

import pytest
from small_kernel import EXPECT, INIT, LOAD, MEET, PROLOGUE, READ, WAIT, WRITE, check, kinds

RELEASE, RELAXED = (
    f"@%p1 mbarrier.arrive.{order}.cluster.shared::cluster.b64 _, [%r6];"
    for order in ("release", "relaxed")
)
FENCE = "fence.acq_rel.cluster;"
ACQUIRED, UNORDERED = (
    WAIT.replace("parity.", f"parity.{order}.cluster.") for order in ("acquire", "relaxed")
)
ARRIVALS = {"release": RELEASE, "relaxed": RELAXED, "fenced": FENCE + RELAXED}
WAITS = {"acquire": ACQUIRED, "relaxed": UNORDERED, "fenced": UNORDERED + FENCE}
NEIGHBOURS = "ld.shared::cluster.u32 %r8, [%r5];"


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("arrival", ARRIVALS)
def test_what_was_written_is_ordered_by_a_release_and_an_acquire(arrival: str, wait: str) -> None:
    """Each CTA writes, tells its neighbour, and reads what that has written."""
    found = check(INIT + MEET + WRITE + ARRIVALS[arrival] + WAITS[wait] + NEIGHBOURS + MEET, 2, 32)
    assert kinds(found) == ({"race"} if "relaxed" in (arrival, wait) else set())
    for finding in found:
        assert finding.first is not None
        assert finding.first.text + ";" == WRITE


def test_a_relaxed_wait_does_not_show_what_a_copy_wrote() -> None:
    relaxed = WAIT.replace("parity.", "parity.relaxed.cta.")
    assert check(PROLOGUE + LOAD + WAIT + READ) == []
    (found,) = check(PROLOGUE + LOAD + relaxed + READ)
    assert (found.kind, found.missing) == ("race", "the bulk copy may still be under way")
    assert check(PROLOGUE + LOAD + relaxed + FENCE + READ) == []


# Rank 0 loads, stores what it loaded, and tells rank 1, which overwrites it by a copy of its own.
HANDED_ON = (
    INIT.replace("fence", "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1; fence") + MEET
    + "@!%p5 bra T;" + EXPECT + LOAD + WAIT
    + "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+8], 128;"
    "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1+512], [%r2], 128;"
    "@%p1 cp.async.bulk.commit_group; DONE" + RELAXED
    + WAIT.replace("[%r3]", "[%r3+8]").replace("W", "V") + "bra E;\nT:"
    + UNORDERED.replace("W", "U")
    + "add.u32 %r10, %r7, -1024; add.u32 %r11, %r6, 8;"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd1+1024], 128, [%r11];"
    "\nE:" + MEET + "@%p6 cp.async.bulk.wait_group 0;"
)  # fmt: skip


def test_what_a_bulk_store_has_read_is_over_for_whoever_is_told() -> None:
    assert check(HANDED_ON.replace("DONE", "@%p1 cp.async.bulk.wait_group.read 0;"), 2, 32) == []
    (found,) = check(HANDED_ON.replace("DONE", ""), 2, 32)
    assert (found.kind, found.missing) == ("race", "a bulk store may still read these bytes")
