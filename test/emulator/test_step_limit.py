"""A loop that does not end: the emulator says after a number of steps who runs where."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load
from tilec.runtime.emulator.program import STEPS

ENDLESS = """.version 8.6
.target sm_80
.address_size 64
.file 1 "spin.py"
.visible .entry k(.param .u64 a) {
.reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %d<4>;
ld.param.u64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
setp.ge.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r2, 161; @!%p2 bra E;
@%p1 bra M;
.loc 1 7 3
L: add.u32 %r3, %r3, 1; st.global.u32 [%d1], %r3; bra L;
.loc 1 9 3
M: bar.sync 0;
E: ret; }
"""
COUNTED = ENDLESS.replace("bra L;", "setp.lt.u32 %p3, %r3, 100; @%p3 bra L;")


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_who_runs_where(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of CTAs are of the grid, not of those that run side by side."""
    monkeypatch.setenv("TILEC_EMULATOR_STEPS", "3000")
    program, array = load(ENDLESS), np.zeros(1, np.uint32)
    if mode == "check":
        (finding,) = program.run("k", 200, 64, [array], mode=mode).findings
        kind, message, place = finding.kind, finding.missing, finding.second
    else:
        with pytest.raises(EmulatorError) as caught:
            program.run("k", 200, 64, [array], mode=mode)
        kind, message, place = caught.value.kind, caught.value.message, caught.value.place
    assert kind == "step limit"
    assert "no end after 3000 steps" in message
    assert "TILEC_EMULATOR_STEPS" in message
    assert "CTA 161: warp 0 running on, now at spin.py:7:3" in message
    assert "CTA 161: warp 1 at bar.sync 0" in message or "spin.py:9:3" in message
    assert place is not None
    assert str(place.source) == "spin.py:7:3"


def test_the_limit_is_a_number_of_steps() -> None:
    """What lanes and CTAs side by side run together counts once, each batch by itself."""
    program, array = load(COUNTED), np.zeros(1, np.uint32)
    program.run("k", 200, 64, [array], steps=600)
    with pytest.raises(EmulatorError, match="no end after 400 steps"):
        program.run("k", 200, 64, [array], steps=400)
    assert STEPS >= 10_000_000


@pytest.mark.parametrize("text", ["0", "-3", "many", "1e6"])
def test_wrong_limits(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_EMULATOR_STEPS", text)
    with pytest.raises(ValueError, match=rf"TILEC_EMULATOR_STEPS is '{text}'; expected a positive"):
        load(COUNTED).run("k", 1, 64, [np.zeros(1, np.uint32)])
    with pytest.raises(ValueError, match="steps is 0; expected a positive number"):
        load(COUNTED).run("k", 1, 64, [np.zeros(1, np.uint32)], steps=0)
