"""What `tl.auto` chooses for launches whose tiles were all timed on an H200, against the best.

The records are `auto_tiles.py`'s, and cases of them that were timed again; the model was fitted to
a part of the first one's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import auto_kernels
import pytest

from tilec.call.auto_tiles import Tiles
from tilec.call.call_class import class_of
from tilec.call.jit import Kernel
from tilec.call.specialization import specialize
from tilec.costs.machine import usual_machine
from tilec.examples.matmul import matmul
from tilec.hardware.target import find_target
from tilec.ops.attention_kernel import attention
from tilec.runtime.arrays import ArrayView
from tilec.runtime.launch_argument import REQUIRED

TARGET = find_target("sm_90a")
RECORDS = [
    Path(__file__).parent / "results" / f"auto-tiles-h200-{date}.json"
    for date in ("2026-11-23", "2026-11-28")
]
FIRST, AGAIN = (json.loads(record.read_text())["cases"] for record in RECORDS)
LATEST = {case["case"] for case in AGAIN}
CASES: list[dict[str, Any]] = [*(c for c in FIRST if c["case"] not in LATEST), *AGAIN]
KERNELS = {
    kernel.name: kernel for kernel in vars(auto_kernels).values() if isinstance(kernel, Kernel)
}
KERNELS |= {"attention": attention, "matmul": matmul}
MOST_LOST = {
    "gated": (1.06, 1.12),
    "matmul": (1.03, 1.1),
    "updated_product": (1.12, 1.25),
    "losses": (1.06, 1.11),
    "recurrence": (1.09, 1.1),  # timed when decays were asked for late, most in short chunks
}
USUALLY_LOST = (1.04, 1.1)
"""Of the best tile's time: in the mean of a kernel's cases, and in any of them."""
FLOATS = (("recurrence", "g"), ("losses", "sums"))
"""Arrays of f32: kernel and name."""


def groups() -> dict[str, list[dict[str, Any]]]:
    """The cases by kernel and constants."""
    found: dict[str, list[dict[str, Any]]] = {}
    for case in CASES:
        name = " ".join([case["kernel"], *(f"{n}={v}" for n, v in case["constants"].items())])
        found.setdefault(name, []).append(case)
    return found


def arguments(kernel: Kernel, case: Mapping[str, Any]) -> dict[str, Any]:
    """Of the call that was timed, arrays without memory."""
    name, shape = case["output"]
    shapes = [*case["inputs"].items(), (name, shape)]
    defaults = {p.name: p.default for p in kernel.parameters if p.default is not REQUIRED}
    given: dict[str, Any] = {**defaults, **case["constants"]}
    rest = iter(shapes)
    for parameter in kernel.parameters:
        if parameter.kind == "array":
            named, sizes = next(rest)
            strides = tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
            dtype = "f32" if (kernel.name, named) in FLOATS else "bf16"
            given[parameter.name] = ArrayView(0, tuple(sizes), strides, dtype, ("cuda", 0))
        elif parameter.name not in given:
            given[parameter.name] = _scalar(parameter.name, case)
    return given


def _scalar(name: str, case: Mapping[str, Any]) -> float:
    """The rows of one part of losses, or the scale of scores."""
    if name != "part":
        return 0.1
    parts = case["output"][1][1]
    return -(-case["inputs"]["w"][0] // parts)


def lost(case: Mapping[str, Any]) -> float:
    """The time of the tile that is chosen today, the first that was timed, of the best's."""
    kernel = KERNELS[case["kernel"]]
    values = arguments(kernel, case)
    wanted = specialize(kernel.parameters, values)
    call = class_of(wanted.parameters, values, usual_machine(TARGET))
    for tiles in kernel._programs.choices(wanted, TARGET).order(call):
        sizes = dict(tiles.chosen)
        label = "x".join(str(sizes[n]) for n in sorted(sizes, key=lambda n: (n == "BK", n)))
        found = next((name for name in (f"{label}{_ways(tiles)}", label) if name in case["us"]), "")
        if found and found not in case["unsound"]:
            return case["us"][found] / min(case["us"].values())
    raise AssertionError(f"no choice for {case['case']} was timed")


def _ways(tiles: Tiles) -> str:
    """As in 64x128x64/c21: a cluster of two programs, one below the other."""
    down, across = tiles.cluster
    return f"/c{down}{across}" if down * across > 1 else f"/p{tiles.parts}" * (tiles.parts > 1)


@pytest.mark.share(4)
@pytest.mark.parametrize("group", groups())
def test_tiles_are_chosen_as_they_were_timed(group: str) -> None:
    ratios = [lost(case) for case in groups()[group]]
    mean, once = MOST_LOST.get(group.partition(" ")[0], USUALLY_LOST)
    assert max(ratios) <= once
    assert math.prod(ratios) ** (1 / len(ratios)) <= mean
