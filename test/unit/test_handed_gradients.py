"""Gradients of attention by kernels that hand the gradients of scores on, on the emulator, against
float64; when they are taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import attended, error
from target_names import MAIN

import tilec
from tilec.costs.machine import Machine, usual_machine
from tilec.examples.attention_backward import reference
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.ops import gradient_launch, gradient_plan
from tilec.ops.attention_plan import Shapes
from tilec.ops.handed_kernels import handed_query_gradients, handing_key_gradients

BF16 = ml_dtypes.bfloat16
ALL_HEADS = 4 * 21 * 32 * 2
"""Bytes of the gradients of scores in `test_scratch`."""


@pytest.mark.share(3)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("target", MAIN)
def test_some_heads_at_a_time(target: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three heads of keys, then the last one; more keys than queries, neither of which fill
    tiles; a cap, sinks."""
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setattr(gradient_plan, "_saves", lambda *_: True)
    monkeypatch.setattr(gradient_launch, "paired", lambda *_: None)
    monkeypatch.setattr(gradient_plan, "MOST_BYTES", 2 * 2 * 150 * 160 * 2)
    rng = np.random.default_rng(causal)
    q, do = (rng.standard_normal((1, 6, 133, n)).astype(BF16) for n in (24, 40))
    k, v = (rng.standard_normal((1, 3, 150, n)).astype(BF16) for n in (24, 40))
    logs = np.full(q.shape[:3], np.nan, np.float32)
    sinks = rng.standard_normal(6).astype(np.float32)
    options = {"causal": causal, "cap": 5.0, "sinks": sinks, "device": "emulator:check"}
    out = tilec.ops.attention(q, k, v, logs=logs, **options)
    launched = launches(monkeypatch)
    found = tilec.ops.attention_gradients(do, q, k, v, out, logs, **options)
    steps = ["handing_key_gradients", "handed_query_gradients"]
    assert launched == ["deltas", *steps, *steps, "sink_gradients"]
    how = {"causal": causal, "cap": 5.0, "sinks": sinks}
    right = attended(*(x[0] for x in (q, k, v, do)), **how)[2:]
    for one, exact in zip(found[:3], right, strict=False):
        assert error(one[0], exact) < 1.5e-2
    assert error(found[3], right[3]) < 1.5e-2


def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that calls launch from now on."""
    names: list[str] = []
    launch = gradient_launch.Call.launch

    def noted(call: Any, name: str, *rest: Any, **named: Any) -> None:
        names.append(name)
        launch(call, name, *rest, **named)

    monkeypatch.setattr(gradient_launch.Call, "launch", noted)
    return names


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("scratch", "steps"), [(None, 1), (ALL_HEADS, 1), (ALL_HEADS - 1, 2), (1, 0), (0, 0)]
)
def test_scratch(scratch: int | None, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All heads go through memory at once, half of them, none, as far as the caller allows."""
    monkeypatch.setattr(gradient_plan, "_saves", lambda *_: True)
    monkeypatch.setattr(gradient_launch, "paired", lambda *_: None)
    rng = np.random.default_rng(5)
    q, do = (rng.standard_normal((1, 4, 21, 16)).astype(BF16) for _ in range(2))
    k, v = (rng.standard_normal((1, 2, 21, 16)).astype(BF16) for _ in range(2))
    logs = np.full(q.shape[:3], np.nan, np.float32)
    options = {"causal": True, "scratch": scratch, "device": "emulator"}
    out = tilec.ops.attention(q, k, v, logs=logs, **options)
    launched = launches(monkeypatch)
    found = tilec.ops.attention_gradients(do, q, k, v, out, logs, **options)
    assert launched.count("handing_key_gradients") == steps
    assert launched.count("query_gradients") == (not steps)
    right = attended(*(x[0] for x in (q, k, v, do)), causal=True)[2:5]
    assert max(error(x[0], y) for x, y in zip(found, right, strict=True)) < 1.5e-2


@pytest.mark.parametrize(
    ("target", "causal"), [("sm_90a", True), ("sm_90a", False), ("sm_80", True)]
)
@pytest.mark.parametrize("tiles", [((64, 64), (128, 64)), ((96, 128), (64, 32))])
def test_what_no_query_sees_is_not_read(
    tiles: Any, target: str, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that are not written hold no numbers; tiles of the two kernels that do not meet, more
    of them than a ring has slots."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(len(target))
    shape = (1, 1, 840, 16)
    q, k, v, do = (rng.standard_normal(shape).astype(BF16) for _ in range(4))
    o, logs, *expected = reference(q, k, v, do, causal, 0.25)
    logs, delta = logs.astype(np.float32), (o * do.astype(np.float64)).sum(-1).astype(np.float32)
    dscores = poisoned((1, 840, 864), BF16)
    dq, dk, dv = (poisoned(shape, BF16) for _ in range(3))
    (size, many), (rows, step) = tiles
    how = {"first": 0, "count": 1, "scale": 0.25, "D": 16, "CAUSAL": causal}
    handing_key_gradients.check(q, k, v, do, logs, delta, dscores, dk, dv, BM=size, BN=many, **how)
    assert np.isnan(dscores.astype(np.float32)).any() == causal
    handed_query_gradients.check(q, k, dscores, dq, BM=rows, BN=step, **how)
    for found, right in zip((dq, dk, dv), expected, strict=True):
        assert np.abs(found.astype(np.float64) - right).max() <= 1e-2 * np.abs(right).max()


def test_which_way() -> None:
    """Heads of 128 elements hand on, where memory is as fast as an H200's or an H100's, those of 64
    do not; never more than two gigabytes at once, and nothing where one head alone takes more."""
    machine = usual_machine(find_target("sm_90a"))

    def heads(
        elements: int, length: int, machine: Machine = machine, most: int | None = None
    ) -> int:
        sizes = Shapes(16384 // length or 1, 16, 8, length, length, elements, elements, None)
        return gradient_plan.heads_at_once(sizes, 2, machine, most)

    assert heads(128, 1024) == 16 * 8
    assert heads(128, 4096) == 32
    assert heads(128, 16384) == 2
    assert heads(128, 32768) == 0
    assert heads(64, 4096) == 0
    assert heads(128, 4096, most=1 << 29) == 8
    assert heads(128, 4096, most=12 << 26) == 11  # of 32: 11, 11 and 10
    assert heads(128, 4096, most=1 << 28) == 0  # too few programs a launch
    assert heads(128, 4096, most=1 << 34) == 32
    assert heads(128, 4096, replace(machine, memory_gb_per_s=3350)) == 32
    assert heads(128, 4096, replace(machine, memory_gb_per_s=1000)) == 0
