"""An access that the report gives a layout of its own has it, in every process."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(num_warps=4)
def to_rows(columns: tl.array, rows: tl.array):
    """The neighbours of one array are not those of the other."""
    tl.store(rows, (0, 0), tl.load(columns, (0, 0), (64, 64)) * 2.0)


def test_a_load_has_the_layout_that_was_chosen_for_it() -> None:
    """One of the two lies in threads behind a conversion, which goes through shared memory: an op's
    hash follows the types of its results, so that what was chosen for it was found by luck
    alone."""
    specs = ["columns:f32[?,?;1,?:4]", "rows:f32[?,?:4;?:4,1]"]
    kernel = to_rows.compile(specs, target="sm_80")
    chosen = [d for d in kernel.report["decisions"] if d["about"] == "memory layout"]
    moved = [d["at"] for d in kernel.report["decisions"] if "conversion" in d["about"]]
    assert [d["chosen"] for d in chosen] == ["coalesced, unlike its neighbours'"]
    assert chosen[0]["at"] in moved
