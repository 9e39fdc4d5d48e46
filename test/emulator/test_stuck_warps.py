"""The deadlock report is short: warps and CTAs that wait alike are one line."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load
from tilec.runtime.emulator.stuck_warps import StuckWarps, ranges


def test_ranges() -> None:
    assert ranges("warp", [3]) == "warp 3"
    assert ranges("warp", [9, 1, 0]) == "warps 0, 1, 9"
    assert ranges("CTA", [0, 1, 2, 3, 7, 9, 10, 11]) == "CTAs 0-3, 7, 9-11"


def test_alike_waits_are_one_line() -> None:
    stuck = StuckWarps()
    for cta in range(4):
        stuck.add(cta, range(8), "at A")
        stuck.add(cta, [8], "at B")
    stuck.add(4, [0], "at A")
    assert stuck.lines() == [
        "CTAs 0-3: warps 0-7 at A",
        "CTA 4: warp 0 at A",
        "CTAs 0-3: warp 8 at B",
    ]
    for number in range(30):
        stuck.add(0, [0], f"at {number}")
    assert len(stuck.lines()) == 13
    assert stuck.lines()[-1] == "and 21 more"


@pytest.mark.parametrize("mode", ["eager", "check"])
def test_who_waits_for_an_mbarrier_nobody_arrives_at(mode: str) -> None:
    text = (
        '.version 8.6\n.target sm_90a\n.address_size 64\n.file 1 "ring.py"\n'
        ".visible .entry k(.param .u64 a) { .reg .pred %p<4>; .reg .b32 %r<4>;\n"
        ".shared .align 8 .b8 bar[8]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
        "@%p1 mbarrier.init.shared::cta.b64 [bar], 2; bar.sync 0;\n.loc 1 5 1\n"
        "@%p1 mbarrier.arrive.shared::cta.b64 _, [bar];\n.loc 1 7 9\n"
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W; ret; }"
    )
    arguments = [np.zeros(1, np.uint32)]
    try:
        (finding,) = load(text).run("k", 3, 96, arguments, mode=mode).findings
        shown = str(finding)
    except EmulatorError as error:
        shown = str(error)
    line = next(line for line in shown.splitlines() if "CTAs" in line)
    assert line.strip().startswith(
        "CTAs 0-2: warps 0-2 at ring.py:7:9 (PTX line 11: mbarrier.try_wait"
    )
    assert "waits for parity 0, phase 0 in progress, 1 of 2 arrivals missing" in line
    assert "0 transaction bytes missing, last arrival ring.py:5:1" in line
    assert shown.count("CTA") == 1
    if mode == "check":
        assert shown.startswith("error: deadlock: ring.py:7:9 ")
