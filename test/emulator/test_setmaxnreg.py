# ruff: noqa: E501  (lines of PTX)
"""setmaxnreg: the register file is finite, and a warpgroup asks as one."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, load


def run(body: str, directive: str = "", mode: str = "eager"):
    text = (
        f".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{directive}\n"
        "{ .reg .pred %p<4>; .reg .b32 %r<9>; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 128;"
        f"setp.lt.u32 %p2, %r1, 32;\n{body}\nret; }}"
    )
    return load(text).run("k", 1, 384, [np.zeros(1, np.uint32)], mode=mode)


SPLIT = "@!%p1 bra OTHERS; setmaxnreg.dec.sync.aligned.u32 {0}; ret; OTHERS: setmaxnreg.inc.sync.aligned.u32 {1};"


def test_a_producer_gives_what_two_consumers_take() -> None:
    run(SPLIT.format(24, 240))
    run(SPLIT.format(40, 232))


@pytest.mark.parametrize(("body", "directive"), [
    (SPLIT.format(40, 240), ""),
    (SPLIT.format(24, 256), ""),
    ("@%p1 bra END; setmaxnreg.inc.sync.aligned.u32 240; END:", ".maxnreg 168"),
])  # fmt: skip
def test_too_many_registers_would_wait_for_ever(body: str, directive: str) -> None:
    with pytest.raises(EmulatorError, match=r"setmaxnreg would wait for ever.*65536"):
        run(body, directive)
    (finding,) = run(body, directive, "check").findings
    assert finding.kind == "registers"


def test_a_part_of_a_warpgroup() -> None:
    with pytest.raises(EmulatorError, match="do not all ask setmaxnreg for the same"):
        run("@%p2 bra END; setmaxnreg.dec.sync.aligned.u32 40; END:")
