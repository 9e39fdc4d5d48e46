"""The benched layers say what their kernels take."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from layer_cases import LayerCase, layer_cases
from layer_compiler import KERNELS

from tilec.runtime.launch_argument import REQUIRED

DEMANDS = {"num_warps", "persistent"}


@pytest.mark.parametrize("case", layer_cases(), ids=lambda case: case.name)
def test_steps_fit_their_kernels(case: LayerCase) -> None:
    arrays = {spec.name for spec in case.arrays}
    constants = set()
    for step in case.steps:
        parameters = KERNELS[step.kernel].parameters
        own = {p.name for p in parameters if p.kind == "const"}
        needed = {p.name for p in parameters if p.default is REQUIRED} - own
        assert len(step.arguments) == len(needed)
        assert {name for name in step.arguments if isinstance(name, str)} <= arrays
        assert {name for name, _ in step.constants} <= own
        constants |= own
    assert {*case.outputs, *case.changed} <= arrays
    assert all({*configuration} <= constants | DEMANDS for configuration in case.worth_trying)
