"""Gradients of attention by one kernel, on the emulator, against float64; when it is taken."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import attended, error
from target_names import MAIN
from test_handed_gradients import launches

import tilec
from tilec.costs.machine import usual_machine
from tilec.hardware.target import find_target
from tilec.ops import gradient_launch, gradient_plan
from tilec.ops.attention_plan import Shapes
from tilec.ops.gradient_plan import HELD, WIDE, Paired

BF16 = ml_dtypes.bfloat16


@pytest.mark.share(3)
@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize(
    ("paired", "keys", "how"),
    [
        (Paired(True, HELD), 170, {"causal": False}),
        (Paired(True, HELD), 133, {"causal": True}),
        (Paired(False, HELD), 133, {"causal": True, "window": 50}),
        (Paired(False, WIDE), 133, {"causal": True}),
    ],
)
def test_one_kernel(
    paired: Paired, keys: int, how: Any, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs of keys and of queries, or of both; two heads share keys, neither of which fill
    blocks; sinks."""
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setattr(gradient_launch, "paired", lambda *_: paired)
    rng = np.random.default_rng(keys)
    q, do = (rng.standard_normal((1, 4, 133, n)).astype(BF16) for n in (24, 40))
    k, v = (rng.standard_normal((1, 2, keys, n)).astype(BF16) for n in (24, 40))
    logs = np.full(q.shape[:3], np.nan, np.float32)
    sinks = rng.standard_normal(4).astype(np.float32)
    options = {**how, "sinks": sinks, "device": "emulator:check"}
    out = tilec.ops.attention(q, k, v, logs=logs, **options)
    launched = launches(monkeypatch)
    found = tilec.ops.attention_gradients(do, q, k, v, out, logs, **options)
    kernel = "wide_gradients" if paired.held == WIDE else "paired_gradients"
    assert launched == ["deltas", kernel, "sink_gradients"]
    right = attended(*(x[0] for x in (q, k, v, do)), **how, sinks=sinks)[2:]
    for one, exact in zip(found[:3], right, strict=False):
        assert error(one[0], exact) < 1.5e-2
    assert error(found[3], right[3]) < 1.5e-2


@pytest.mark.parametrize("how", [{"cap": 5.0}, {"dropout": 0.1, "seed": 3}], ids=str)
def test_what_takes_more_registers(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_launch, "paired", lambda *_: Paired(True, HELD))
    rng = np.random.default_rng(3)
    q, k, v, do = (rng.standard_normal((1, 1, 20, 16)).astype(BF16) for _ in range(4))
    logs, how = np.full(q.shape[:3], np.nan, np.float32), {**how, "device": "emulator"}
    out = tilec.ops.attention(q, k, v, logs=logs, **how)
    launched = launches(monkeypatch)
    tilec.ops.attention_gradients(do, q, k, v, out, logs, **how)
    assert launched == ["query_gradients", "key_gradients"]


def test_when() -> None:
    """Where all programs run at once and are not much longer than parts of large ones: each by
    itself where all have a multiprocessor, else a long walk with a short one."""
    machine = usual_machine(find_target("sm_90a"))

    def found(heads: int, few: int, length: int, elements: int, causal: bool) -> Paired | None:
        sizes = Shapes(1, heads, few, length, length, elements, elements, None)
        return gradient_plan.paired(sizes, causal, None, machine)

    assert found(8, 8, 1024, 128, True) == Paired(False, HELD)
    assert found(6, 6, 1024, 64, True) == Paired(False, HELD)
    assert found(16, 16, 1024, 64, True) == Paired(False, WIDE)
    assert found(12, 12, 128, 64, False) == found(4, 4, 256, 64, True) == Paired(True, HELD)
    assert found(128, 128, 128, 64, True) is None  # one block a head: no walk is shorter
    assert found(16, 16, 1024, 128, True) is None  # twice as many as run at once
    assert found(26, 26, 1024, 64, False) is None
    assert found(8, 2, 1024, 64, True) is None  # few, long ones, of which large ones are cut
    assert found(4, 4, 1024, 64, True) is None
    assert found(6, 6, 1024, 256, True) is None
    sizes = Shapes(1, 8, 8, 1024, 1024, 128, 128, None)
    assert gradient_plan.heads_at_once(sizes, 2, machine) == 0  # CTAs share the work of 64 programs
