"""The example kernels on a GPU, compiled just in time; `run_all.py` runs them from artefacts."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_case import check_case
from example_cases import ONE_TARGET, ExampleCase, draw_cases, large_cases
from example_kernels import KERNELS
from gpu_marks import needs_gpu

import tilec
from tilec.hardware.target import TARGETS

pytestmark = needs_gpu()
SEED = 20261121


@pytest.mark.parametrize("case", [*draw_cases(SEED), *large_cases()], ids=lambda case: case.name)
def test_result_agrees_with_float64(case: ExampleCase) -> None:
    only = ONE_TARGET.get(case.kernel)
    if only and tilec.device("cuda").compute_capability != TARGETS[only].compute_capability:
        pytest.skip(f"written for {only}")
    kernel = functools.partial(KERNELS[case.kernel], **dict(case.constants))
    record = check_case(kernel, case, "cuda", seed=SEED)
    assert not record["wrong"], record["first"]
