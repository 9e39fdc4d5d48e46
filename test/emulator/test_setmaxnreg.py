# ruff: noqa: E501  (lines of PTX)
"""setmaxnreg: warps give registers to the pool of their CTA and wait for it; warpgroups ask as one."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load

FULL = ".reqntid 384 .minnctapersm 1"


def run(body: str, directive: str = FULL, mode: str = "eager", threads: int = 384, **given: int):
    text = (
        f".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{directive}\n"
        "{ .reg .pred %p<4>; .reg .b32 %r<9>; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 128;"
        f"setp.lt.u32 %p2, %r1, 32;\n{body}\nret; }}"
    )
    return load(text).run("k", 2, threads, [np.zeros(1, np.uint32)], mode=mode, **given)


INC, DEC = "setmaxnreg.inc.sync.aligned.u32 {};", "setmaxnreg.dec.sync.aligned.u32 {};"
SPLIT = f"@!%p1 bra OTHERS; {DEC.format('{0}')} ret; OTHERS: {INC.format('{1}')}"
TAKES_FIRST = f"@%p1 bra GIVE; {INC.format(240)} ret; GIVE: {DEC.format(24)}"


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_a_producer_gives_what_two_consumers_take(mode: str) -> None:
    for body in (SPLIT.format(24, 240), SPLIT.format(40, 232), TAKES_FIRST):
        assert run(body, mode=mode).findings == []


@pytest.mark.parametrize(("body", "directive", "message"), [
    (SPLIT.format(40, 240), FULL, r"CTAs 0, 1: warp 11 .* waits for 2304 registers; the pool of the CTA, launched with 168 a thread, has 256"),
    (SPLIT.format(48, 232), FULL, r"CTAs 0, 1: warps? 1?[014].* waits for 2048 registers; the pool"),
    (SPLIT.format(24, 240), ".maxnreg 160", "launched with 160 a thread"),
    (SPLIT.format(24, 240), ".maxntid 384 .maxnreg 200 .minnctapersm 1 .maxnreg 128", "launched with 128 a thread"),
    ("@%p1 bra END; " + INC.format(240) + " END:", ".maxnreg 168", "waits for 2304 registers.*has 0"),
    (INC.format(176), FULL, "CTAs 0, 1: warps 0-11.* waits for 256 registers"),
])  # fmt: skip
def test_too_many_registers_are_waited_for_for_ever(
    body: str, directive: str, message: str
) -> None:
    """The pool is what the CTA was launched with, not the 64 Ki registers of a multiprocessor."""
    with pytest.raises(EmulatorError, match=message) as caught:
        run(body, directive)
    assert "deadlock" in str(caught.value)
    (finding,) = run(body, directive, "check").findings
    assert finding.kind == "deadlock"
    assert finding.second is not None
    assert "setmaxnreg.inc" in finding.second.text


@pytest.mark.parametrize(("directive", "threads", "most"), [
    (".reqntid 256 .minnctapersm 1", 256, 256),
    (".reqntid 256 .minnctapersm 1 // at most 232", 256, 232),
    (".maxntid 384, 1, 1 .minnctapersm 1", 384, 168),
    (".reqntid 288 .minnctapersm 1", 288, 168),
    (".reqntid 160 .minnctapersm 2", 160, 168),
    (".reqntid 256 .minnctapersm 2 .maxnreg 200", 256, 128),
    (".reqntid 384 .maxnreg 167", 384, 168),
    (".reqntid 384 .maxnreg 200", 384, 200),
    (".reqntid 256 .maxnreg 168 // at most 80", 256, 80),
])  # fmt: skip
def test_what_ptxas_gives_a_thread(directive: str, threads: int, most: int) -> None:
    """As ptxas 13.0 -v says of such an entry: the registers used are those at launch, no more than
    an .inc that stands somewhere asks for."""
    directive, _, limit = directive.partition(" // at most ")
    body = f"{INC.format(24)} ret; {INC.format(limit or 256)}"
    with pytest.raises(EmulatorError, match=rf"inc to 24 .* has {most} a thread"):
        run(body, directive, threads=threads)


def test_registers_given_from_outside() -> None:
    run(SPLIT.format(24, 240), "", registers=168)
    with pytest.raises(EmulatorError, match="launched with 160 a thread"):
        run(SPLIT.format(24, 240), "", registers=160)


@pytest.mark.parametrize(("body", "message"), [
    (INC.format(160), "setmaxnreg.inc to 160 registers of a warp that has 168 a thread"),
    (DEC.format(176), "setmaxnreg.dec to 176 registers of a warp that has 168 a thread"),
    (DEC.format(40) + "bar.sync 0;" + DEC.format(48), "dec to 48 .* has 40"),
    ("@%p2 bra END;" + DEC.format(40) + "END:", "do not all ask setmaxnreg for the same"),
    ("setp.lt.u32 %p3, %r1, 8; @%p3 " + DEC.format(40), "a part of a warp runs setmaxnreg"),
])  # fmt: skip
def test_what_is_undefined(body: str, message: str) -> None:
    body += "\n@%p1 ret; bra X; X: ret; " + INC.format(240)  # never run; ptxas sees it
    with pytest.raises(EmulatorError, match=message):
        run(body)
    assert [found.kind for found in run(body, mode="check").findings] == ["registers"]


def test_nobody_knows_the_registers_at_launch() -> None:
    """ptxas 13.0 leaves setmaxnreg out (C7508), whatever it asks for."""
    found = run(SPLIT.format(40, 256), ".reqntid 384", "check").findings
    assert [(finding.severity, finding.kind) for finding in found] == [("warning", "registers")] * 2
    assert "cannot know the registers at launch" in found[0].missing
    assert run(SPLIT.format(40, 256), ".reqntid 384").findings == []
