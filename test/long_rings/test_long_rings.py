"""Every ring wraps at least twice, and CTAs that stay take three programs: in check and late mode.

`make test` runs the cases of `CHEAP`, `make test-mutants` all (see `ring_sweep.py`).
"""

from __future__ import annotations

import importlib
import os
import pkgutil

import numpy as np
import pytest
from ring_checks import check_case, plan_of, why_short
from ring_plans import RingPlan, recorded
from ringed_examples import ALL
from ringed_examples import CASES as EXAMPLES
from ringed_products import CASES as PRODUCTS
from shares import WHOLE

import tilec.examples
from tilec.examples.matmul import matmul
from tilec.executable.kernel import CompiledKernel

EVERYTHING = EXAMPLES | PRODUCTS
CHEAP = (
    ("matmul bf16", "sm_80"),
    ("demands alone", "sm_90a"),
    ("demands cluster", "sm_90a"),
    ("demands pingpong", "sm_90a"),
    ("query_gradients 64", "sm_90a"),
    ("query_gradients 128", "sm_100a"),
    ("explicit pair_product", "sm_100a"),
)
"""One of each way to fill and to empty rings."""
WITHOUT_RINGS = (
    *("adam", "cross_entropy", "indexing", "layer_norm", "rms_norm", "row_sum", "running"),
    *("selective_scan", "softmax", "vector_add"),
)
"""Examples of which no kernel has a ring of its own or CTAs that stay."""


def cases() -> list[tuple[str, str]]:
    """Names and targets that this run takes."""
    every = [(name, target) for name, (_, targets) in EVERYTHING.items() for target in targets]
    return every if WHOLE in os.environ else list(CHEAP)


@pytest.mark.parametrize(("name", "target"), cases())
def test_full_length(name: str, target: str) -> None:
    case, targets = EVERYTHING[name]
    assert target in targets
    outcome = check_case(case, target)
    assert outcome.finding == ""
    assert outcome.plan.stages > 1 or outcome.plan.programs > 1 or target == "sm_80"


def test_a_case_runs_for_one_target_behind_another() -> None:
    """The first one's tiles are not the second one's: its plan would grow with its size."""
    case, _ = PRODUCTS["ops batch"]
    for target in ("sm_80", "sm_90a"):
        assert check_case(case, target, modes=("late",)).finding == ""


def test_tiles_that_change_with_each_size_are_kept() -> None:
    """Longer sums choose more parts, for which they must be longer, with other tiles again."""
    case, _ = EXAMPLES["matmul f16"]
    plan, found = plan_of(case, "sm_90a")
    assert found == ""
    assert plan.parts > 1


def test_every_example_is_here_or_has_no_ring() -> None:
    """Cases by the modules of their kernels; `make test-mutants` runs those without."""
    modules = {module.name for module in pkgutil.iter_modules(tilec.examples.__path__)}
    imported = {
        name for name in modules if name in vars(importlib.import_module("ringed_examples"))
    }
    assert imported | {*WITHOUT_RINGS} == modules
    assert imported.isdisjoint(WITHOUT_RINGS)


@pytest.mark.parametrize("target", ALL if WHOLE in os.environ else ())
@pytest.mark.parametrize("name", WITHOUT_RINGS)
def test_examples_without_rings(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    example = importlib.import_module(f"tilec.examples.{name}")
    with recorded() as recorder:
        getattr(example, "main", lambda: None)()
    assert {RingPlan.of(kernel).programs for kernel in recorder.kernels} <= {1}
    assert {RingPlan.of(kernel).stages for kernel in recorder.kernels} <= {1}


def compiled(stages: int, *, persistent: bool) -> CompiledKernel:
    """A kernel for clusters of two of which a report tells so."""
    report = {"decisions": [{"about": "x", "chosen": "y", "stages": stages}]}
    return CompiledKernel(
        name="k",
        target="sm_90a",
        ptx="",
        parameters=(),
        grid=None,
        threads=128,
        shared_bytes=0,
        index_bits=32,
        constants={"BK": 64},
        report=report,
        persistent=persistent,
        cluster=(2, 1, 1),
    )


def test_sizes_follow_from_the_plan() -> None:
    plan = RingPlan.of(compiled(4, persistent=True))
    assert (plan.stages, plan.programs, plan.constants) == (4, 13, {"BK": 64})
    assert plan.iterations == 12
    assert -(-plan.along(64) // 64) == 12
    assert -(-plan.across(128, 2) // 128) * 2 >= 13
    assert RingPlan.of(compiled(1, persistent=False)).across(64) == 80
    assert not RingPlan(3, 7).covers(RingPlan(4, 7))
    assert not RingPlan(4, 7).covers(RingPlan(4, 7, parts=2))
    assert not RingPlan(4, 7, constants={"BK": 32}).covers(RingPlan(4, 7, constants={"BK": 64}))


def test_rings_that_did_not_wrap_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    a, c = np.zeros((256, 64), np.float16), np.zeros((256, 64), np.float16)
    with recorded() as recorder:
        matmul.on("emulator")(a, a[:64], c, BM=64, BN=64, BK=64)
    assert "matmul: 4 programs for 2 CTAs" in why_short(recorder)
    with recorded() as recorder:
        kernel = matmul.demanding(persistent=False).on("emulator")
        kernel(a, a[:64], c, BM=64, BN=64, BK=64)
    assert "turned twice, a ring has" in why_short(recorder)
