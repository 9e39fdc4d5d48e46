"""mbarrier waits may return false: who does not ask again is found, who need not is left alone."""

from __future__ import annotations

import pytest
from test_wrong_synchronisation import INIT, LOAD, PROLOGUE, READ, WAIT, check, kinds

ONCE = WAIT.replace("W: ", "").replace("@!done bra W;", "")
MUST = WAIT.replace("W: ", "").replace("bra W", "trap")
POLL = WAIT.replace("try_wait", "test_wait").replace("@!done", "@!done nanosleep.u32 20; @!done")
ARRIVE = "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r3]; bar.sync 0;"
AGAIN = "fence.proxy.async; bar.sync 0;" + PROLOGUE[len(INIT) :] + LOAD
SECOND = WAIT.replace("W", "V").replace("[%r3], 0", "[%r3], 1")


@pytest.mark.parametrize("once", [ONCE, ONCE.replace("try_wait", "test_wait")])
def test_nobody_asks_again(once: str) -> None:
    found = check(PROLOGUE + LOAD + once + READ)
    assert kinds(found) == {"race", "unfinished load"}
    (race,) = (finding for finding in found if finding.kind == "race")
    assert "try_wait" in race.mend or "test_wait" in race.mend
    assert "returned false, as it may: ask again until it is true" in race.mend


def test_nobody_asks_again_in_a_later_phase() -> None:
    """The wait stands behind one that is repeated: each place is tried by itself."""
    first = PROLOGUE + LOAD + WAIT + READ + AGAIN
    assert check(first + SECOND + READ) == []
    once = SECOND.replace("V: ", "").replace("@!done bra V;", "")
    assert "race" in kinds(check(first + once + READ))


def test_a_place_that_is_certain_at_first() -> None:
    """A loop's first wait, for the phase before the first, cannot return false; its second can."""
    loop = (
        "mov.u32 %r10, 1; T: { .reg .pred done;"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%r3], %r10;RETRY }"
        + READ + "fence.proxy.async; bar.sync 0;"
        + "setp.eq.u32 %p3, %r10, 0; xor.b32 %r10, %r10, 1; @%p3 bra E;"
        + PROLOGUE[len(INIT) :] + LOAD + "bra T;\nE:"
    )  # fmt: skip
    whole = "st.shared.u32 [%r4], %r0; fence.proxy.async;" + INIT + loop
    assert check(whole.replace("RETRY", "@!done bra T;")) == []
    assert "race" in kinds(check(whole.replace("RETRY", "")))


@pytest.mark.parametrize(
    "body",
    [
        PROLOGUE + LOAD + POLL + READ,
        PROLOGUE + LOAD + WAIT + MUST + READ,
        PROLOGUE + LOAD + "@!%p2 bra M;" + WAIT + "M: bar.sync 0;" + MUST + READ,
        INIT + MUST.replace("[%r3], 0", "[%r3], 1"),
        INIT + ARRIVE + MUST,
    ],
    ids=["polls", "asked before", "one warp waits, all meet", "before the first phase", "arrived"],
)
def test_waits_that_are_right(body: str) -> None:
    """What is ordered behind all that completes the phase need not ask twice."""
    assert check(body) == []
