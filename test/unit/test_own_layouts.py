"""An access that the report gives a layout of its own has it, in every process."""

from __future__ import annotations

from tilec.examples.selective_scan import selective_scan

ROWS = "f32[?,?,?:4;?:4,?:4,1]"


def test_a_load_has_the_layout_that_was_chosen_for_it() -> None:
    """Its rows lie in threads behind a conversion, which goes through shared memory: an op's hash
    follows the types of its results, so that what was chosen for it was found by luck alone."""
    specs = [f"{name}:{ROWS}" for name in ("x", "steps", "entry", "readout", "y")]
    specs += ["decay:f32[?,?:4;?:4,1]", "skip:f32[?]"]
    order = ("x", "steps", "decay", "entry", "readout", "skip", "y")
    specs.sort(key=lambda spec: order.index(spec.partition(":")[0]))
    kernel = selective_scan.compile(specs, {"N": 16}, target="sm_80")
    chosen = [d for d in kernel.report["decisions"] if d["about"] == "memory layout"]
    moved = [d["at"] for d in kernel.report["decisions"] if "conversion" in d["about"]]
    assert [d["chosen"] for d in chosen] == ["coalesced, unlike its neighbours'"]
    assert chosen[0]["at"] in moved
