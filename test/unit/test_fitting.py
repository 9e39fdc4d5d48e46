"""Kernels fit by themselves: where the compiler's own choices exceed a memory, they take less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.compile.compiler import lower_to
from tilec.examples.attention import reference
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops.attention_kernel import attention
from tilec.ops.gradient_kernels import key_gradients


def chosen(
    kernel: Kernel, specs: list[str], constants: dict[str, Any], target: str
) -> dict[str, str]:
    """What the report of a kernel lowered for `target` says, by subject; the last of each."""
    module = kernel.source_module(specs, constants, target=target)

    def other(number: int) -> Any:
        return kernel.other_module(specs, constants, number, target=target)

    job = lower_to(module, find_target(target), "gpu_tile", other=other)
    assert job.launch["shared_bytes"] <= find_target(target).shared_bytes
    return {
        entry["about"]: f"{entry['chosen']}: {entry['why']}"
        for entry in job.context.report.decisions
    }


HEADS = [f"{name}:bf16[?,?,?,?:8;?:8,?:8,?:8,1]" for name in "qkvo"] + ["scale:f32"]


def test_a_ring_takes_fewer_stages_where_they_do_not_fit() -> None:
    found = chosen(attention, HEADS, {"D": 256, "BM": 128, "BN": 64}, "sm_80")
    assert found["fit"] == (
        "one stage: else the kernel needs 212992 bytes of shared memory, sm_80 has 166912"
    )
    assert found["pipeline"].startswith("no: a stage takes 65536 bytes of shared memory")


def test_demanded_stages_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(CompileError, match="needs 212992 bytes of shared memory, sm_80 has 166912"):
        chosen(attention, HEADS, {"D": 256, "BM": 128, "BN": 64, "STAGES": 2}, "sm_80")


def test_tiles_of_the_compilers_choice_are_others_or_halved_until_they_fit() -> None:
    arrays = [f"{name}:bf16[?,?,?,?:8;?:8,?:8,?:8,1]" for name in ("q", "k", "v", "do")]
    rows = [f"{name}:f32[?,?,?;?,?,1]" for name in ("logs", "delta")]
    made = [f"{name}:bf16[?,?,?,?:8;?:8,?:8,?:8,1]" for name in ("dk", "dv")]
    specs = [*arrays, *rows, *made, "scale:f32"]
    assert chosen(key_gradients, specs, {"D": 128}, "sm_80")["fit"].startswith("at most 2 stages")
    assert "pipeline" in chosen(key_gradients, specs, {"D": 128}, "sm_86")
    found = [key_gradients.other_module(specs, {"D": 128}, n, target="sm_86") for n in range(40)]
    modules = [module for module in found if module is not None]
    constants = [m.body.operations[0].attributes["tile.constants"] for m in modules]
    sides = [(each["BM"].value, each["BN"].value) for each in constants]
    assert sides[0] == (64, 128)
    assert len(set(sides)) == len(sides)
    assert sides[-2:] == [(16, 32), (16, 16)]


def test_sums_that_tensor_memory_has_no_room_for_come_to_registers() -> None:
    @tilec.kernel(grid=1)
    def three_sums(a: tl.array, b: tl.array, c: tl.array):
        sums = [tl.zeros((128, 256), tl.f32) for _ in range(3)]
        for k in tl.range(0, a.shape[1], 32):
            part = tl.load(a, (0, k), (128, 32))
            sums = [tl.dot(part, tl.load(b, (k, 256 * n), (32, 256)), sums[n]) for n in range(3)]
        for n in tl.static_range(3):
            tl.store(c, (0, 256 * n), sums[n])

    specs = ["a:bf16[?,?:8;?:8,1]", "b:bf16[?,?:8;?:8,1]", "c:f32[?,?:8;?:8,1]"]
    found = chosen(three_sums, specs, {}, "sm_100a")
    assert found["fit"].startswith("sums in registers: else the kernel needs 768 columns")
    assert found["dot instruction"].startswith("mma.m16n8k16")


@pytest.mark.parametrize(
    ("target", "tile", "fit"),
    [
        ("sm_89", (128, 32), "one stage"),
        ("sm_120a", (64, 64), "no buffers ahead of their use"),
    ],
)
def test_what_takes_less_is_right(
    target: str, tile: tuple[int, int], fit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, 72, 256)).astype(np.float16) for _ in range(3))
    o = np.full_like(q, np.nan)
    kernel = attention.on("emulator:check")
    constants = {"D": 256, "BM": tile[0], "BN": tile[1]}
    assert f"fit: {fit}" in kernel.report(q, k, v, o, 1 / 16, **constants)
    kernel(q, k, v, o, 1 / 16, **constants)
    expected = reference(q, k, v, False, 1 / 16)
    assert np.abs(o - expected).max() < 4e-3
