# ruff: noqa: E501  (lines of PTX)
"""CTAs tell each other by flags in global memory that something is written; a fence may be missing."""

from __future__ import annotations

import pytest
from test_global_races import check

from tilec.runtime.emulator import Finding

WRITE, READ = "st.global.u32 [%rd3], %r1;", "ld.global.u32 %r5, [%rd3];"
FENCE = "fence.acq_rel.gpu;"
TELL = "@%p1 red.ORDER.gpu.global.add.u32 [%rd1+256], 1;"
SEE = "@!%p1 bra MN;\nSN: ld.ORDER.gpu.global.u32 %r8, [%rd1+256]; setp.lt.u32 %p4, %r8, COUNT; @%p4 bra SN;\nMN:"
RELEASE, RELAXED = (TELL.replace("ORDER", order) for order in ("release", "relaxed"))
ACQUIRE, UNORDERED = (SEE.replace("ORDER", order) for order in ("acquire", "relaxed"))
ELSEWHERE = "@%p1 atom.acq_rel.gpu.global.add.u32 %r9, [%rd1+300], 1;"
TELLS = {"release": RELEASE, "fence": FENCE + RELAXED}
SEES = {"acquire": ACQUIRE, "fence": UNORDERED + FENCE}


def in_turn(*parts: str) -> list[Finding]:
    """Findings where each CTA does one of the parts, behind its warps' meetings."""
    text = ""
    for number, part in enumerate(parts):
        seen = (
            part.replace("COUNT", str(64 + number))
            .replace("MN", f"M{number}")
            .replace("SN", f"S{number}")
        )
        text += f"setp.ne.u32 %p3, %r20, {number}; @%p3 bra N{number};{seen} bra E;\nN{number}:"
    return check(text + "\nE:", grid=len(parts))


@pytest.mark.parametrize("see", SEES)
@pytest.mark.parametrize("tell", TELLS)
@pytest.mark.parametrize("write", [WRITE, "red.relaxed.gpu.global.add.u32 [%rd3], 1;"])
def test_a_flag_orders_what_is_released_and_acquired(write: str, tell: str, see: str) -> None:
    assert in_turn(write + "bar.sync 0;" + TELLS[tell], SEES[see] + "bar.sync 0;" + READ) == []


MISSING = {
    "nothing released": (RELAXED, UNORDERED + FENCE),
    "nothing acquired": (FENCE + RELAXED, UNORDERED),
    "released too late": (RELAXED + FENCE, UNORDERED + FENCE),
    "acquired too early": (FENCE + RELAXED, FENCE + UNORDERED),
    "released at another address": (RELAXED + ELSEWHERE, ACQUIRE),
    "acquired at another address": (RELEASE, UNORDERED + ELSEWHERE),
    "overwritten": (
        RELEASE + "mov.u32 %r10, 65; @%p1 st.relaxed.gpu.global.u32 [%rd1+256], %r10;",
        ACQUIRE,
    ),
    "released before it is written": (FENCE, ACQUIRE),
}


@pytest.mark.parametrize("what", MISSING)
def test_a_flag_alone_orders_nothing(what: str) -> None:
    tell, see = MISSING[what]
    written = WRITE + "bar.sync 0;"
    parts = FENCE + written + RELAXED if tell == FENCE else written + tell
    (finding,) = in_turn(parts, see + "bar.sync 0;" + READ)
    assert (finding.kind, finding.memory) == ("race", "global")
    assert finding.missing.startswith("two CTAs, and nothing orders this read")


def test_what_atomics_add_is_read_behind_a_flag() -> None:
    """A plain read beside atomics of another CTA is a race, too."""
    add = "red.relaxed.gpu.global.add.u32 [%rd3], 1; bar.sync 0;"
    (finding,) = in_turn(add + RELAXED, UNORDERED + "bar.sync 0;" + READ)
    assert finding.missing.startswith("two CTAs")


@pytest.mark.parametrize("order", ["release", "relaxed"])
def test_what_a_cta_knows_it_passes_on(order: str) -> None:
    """The last of four reads what the first wrote; each tells the next, or adds to its flag."""
    first, last = WRITE + "bar.sync 0;" + RELEASE, ACQUIRE + "bar.sync 0;" + READ
    passed = [ACQUIRE + TELL.replace("ORDER", order)] * 2
    assert in_turn(first, *passed, last) == []  # relaxed: of the same read-modify-writes
    apart = [part.replace("add.u32 [%rd1+256]", f"add.u32 [%rd1+{256 + 4 * n}]").replace("%r8, [%rd1+256]", f"%r8, [%rd1+{256 + 4 * (n - 1)}]")
             for n, part in enumerate((first, *passed, last))]  # fmt: skip
    counted = [part.replace("COUNT", str(65 + n - 1)) for n, part in enumerate(apart)]
    found = in_turn(*counted)
    assert [f.memory for f in found] == ([] if order == "release" else ["global"])


IN_TURN = "{SEE}bar.sync 0;" + READ + "bar.sync 0;" + WRITE + "bar.sync 0;"


@pytest.mark.parametrize("missing", [False, True])
def test_what_a_cta_has_read_itself_is_no_read_of_another(missing: bool) -> None:
    """Each of three reads and writes what the one before did, as under a lock: its own reads are
    younger than what it acquired. One that acquires nothing is found."""
    first = READ + "bar.sync 0;" + WRITE + "bar.sync 0;" + RELEASE
    later = SEE.replace("ORDER", "relaxed") if missing else ACQUIRE
    turns = [IN_TURN.replace("{SEE}", see) + RELEASE for see in (ACQUIRE, later)]
    found = in_turn(first, *turns)
    assert {f.missing.split(",")[0] for f in found} == ({"two CTAs"} if missing else set())


def test_reads_of_several_are_waited_for() -> None:
    """Two read, and tell a third, which has read, too, and writes; or one tells nobody."""
    read = READ + "bar.sync 0;"
    both = "@!%p1 bra MN;\nSN: ld.acquire.gpu.global.u32 %r8, [%rd1+256]; setp.lt.u32 %p4, %r8, 66; @%p4 bra SN;\nMN:"
    last = both + "bar.sync 0;" + read + WRITE
    assert in_turn(read + RELEASE, read + RELEASE, last) == []
    (finding,) = in_turn(read + RELEASE, read + RELAXED, last)
    assert finding.missing.startswith("two CTAs")
