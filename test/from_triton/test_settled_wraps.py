"""Wraps that change nothing in a launch (`settled.py`): rectangles then, and right in others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from target_names import MAIN

import tilec.triton
from tilec.triton.kernel import TritonKernel

RNG = np.random.default_rng(67)
WRAPS = {
    "remainder": "%w = arith.remsi %e, %ns : tensor<32xi32>",
    "choice": """%in = arith.cmpi slt, %e, %ns : tensor<32xi32>
    %w = arith.select %in, %e, %zeros : tensor<32xi1>, tensor<32xi32>""",
    "minimum": """%last = arith.subi %ns, %ones : tensor<32xi32>
    %w = arith.minsi %e, %last : tensor<32xi32>""",
}


@pytest.fixture(params=MAIN)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compiles for this target."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


def rows(wrap: str, step: int = 1) -> TritonKernel:
    """`out[32 * pid + i] = x[wrapped(32 * pid + i - shift)] + y[i % m]`."""
    given = [f"%{name}: !tt.ptr<f32>" for name in ("x", "y", "out")]
    given += [f"%{name}: i32" for name in ("n", "m", "shift")]
    return tilec.triton.kernel(f"""
module {{
  tt.func public @rows({", ".join(given)}) {{
    %zeros = arith.constant dense<0> : tensor<32xi32>
    %ones = arith.constant dense<1> : tensor<32xi32>
    %c32 = arith.constant 32 : i32
    %step = arith.constant dense<{step}> : tensor<32xi32>
    %pid = tt.get_program_id x : i32
    %at = arith.muli %pid, %c32 : i32
    %from = arith.subi %at, %shift : i32
    %i = tt.make_range {{end = 32 : i32, start = 0 : i32}} : tensor<32xi32>
    %s = tt.splat %from : i32 -> tensor<32xi32>
    %j = arith.muli %i, %step : tensor<32xi32>
    %e = arith.addi %s, %j : tensor<32xi32>
    %ns = tt.splat %n : i32 -> tensor<32xi32>
    {WRAPS[wrap]}
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %p = tt.addptr %xs, %w : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %v = tt.load %p : tensor<32x!tt.ptr<f32>>
    %ms = tt.splat %m : i32 -> tensor<32xi32>
    %k = arith.remsi %i, %ms : tensor<32xi32>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %q = tt.addptr %ys, %k : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %u = tt.load %q : tensor<32x!tt.ptr<f32>>
    %r = arith.addf %v, %u : tensor<32xf32>
    %os = tt.splat %out : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %ats = tt.splat %at : i32 -> tensor<32xi32>
    %o = arith.addi %ats, %i : tensor<32xi32>
    %w2 = tt.addptr %os, %o : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    tt.store %w2, %r : tensor<32x!tt.ptr<f32>>
    tt.return
  }}
}}
""", "k.ttir").on("emulator:check")  # fmt: skip


def wrapped(wrap: str, at: Any, n: int) -> Any:
    """Where elements come from."""
    if wrap == "remainder":
        return np.fmod(at, n)
    return np.minimum(at, n - 1) if wrap == "minimum" else np.where(at < n, at, 0)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(
    ("n", "m", "shift", "gathers"),
    [(96, 32, 0, 0), (75, 32, 0, 1), (95, 32, 0, 1), (96, 31, 0, 1), (96, 32, 1, 1), (40, 7, 9, 2)],
    ids=["whole", "short", "one short", "another wraps", "below 0", "both wrap"],
)
def test_a_launch_looks_whether_any_program_wraps(
    target: str, wrap: str, n: int, m: int, shift: int, gathers: int
) -> None:
    """Each on its own, the first element and the last."""
    memory, y, out = (RNG.standard_normal(200).astype(np.float32) for _ in range(3))
    x, kernel = memory[50:], rows(wrap)
    arguments = x, y, out, n, m, shift
    kernel[3](*arguments)
    at = wrapped(wrap, np.arange(96) - shift, n)
    np.testing.assert_array_equal(out[:96], memory[50 + at] + y[np.arange(96) % 32 % m])
    assert kernel.report(*arguments, grid=3).count("gather or scatter") == gathers


def test_elements_that_lie_apart(target: str) -> None:
    """Of 32 elements three apart the last one is 93 further."""
    for n, gathers in ((158, 0), (157, 1)):
        x, y, out = (RNG.standard_normal(200).astype(np.float32) for _ in range(3))
        kernel, arguments = rows("remainder", 3), (x, y, out, n, 32, 0)
        kernel[3](*arguments)
        at = (np.arange(96) // 32 * 32 + np.arange(96) % 32 * 3) % n
        np.testing.assert_array_equal(out[:96], x[at] + y[np.arange(96) % 32])
        assert kernel.report(*arguments, grid=3).count("gather or scatter") == gathers


def test_what_a_wrap_comes_from_decides_a_launch() -> None:
    assert rows("remainder").plan().deciding == {"n", "m", "shift"}
