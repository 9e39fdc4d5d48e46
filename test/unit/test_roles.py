"""Roles that hand tiles to each other through rings of mbarriers: emulator, ptxas, refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from role_kernels import COLUMNS, ROWS, compile_text, product_text, role, sum_text, turn_text

from tilec.compile.assembler import assemble
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.runtime.device import device
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import FindingsError

MODES = ("emulator", "emulator:late", "emulator:check")
TARGETS = ("sm_90a", "sm_100a")


def run_sum(made: CompiledKernel, steps: int) -> None:
    """Runs a kernel of `sum_text` in every mode."""
    rng = np.random.default_rng(steps)
    x = rng.standard_normal((max(steps, 1) * ROWS, COLUMNS)).astype(np.float32)
    used = x[: steps * ROWS]
    for mode in MODES:
        y = np.full((ROWS, COLUMNS), np.nan, np.float32)
        z = np.full_like(x, np.nan)
        gpu = device(mode)
        gpu.launch(gpu.load(made), [x, y, z, steps], 1)
        expected = used.reshape(steps, ROWS, COLUMNS).astype(np.float64).sum(axis=0)
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(z[: len(used)], 2 * used)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("producer", "slots", "fill", "use"),
    [
        ("thread", 1, 4, 4),
        ("thread", 3, 4, 4),
        ("warp", 2, 1, 4),
        ("warp", 5, 8, 2),
        ("copies", 3, 4, 4),
        ("copies", 4, 2, 8),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_tiles_go_through_a_ring(
    producer: str, slots: int, fill: int, use: int, target: str
) -> None:
    text = sum_text(producer, slots=slots, fill_warps=fill, use_warps=use)
    made = compile_text(text, use, target)
    assert made.threads == 32 * (fill + use)
    for steps in (0, 1, 2 * slots + 1):
        run_sum(made, steps)


@pytest.mark.share(2)
@pytest.mark.parametrize("producer", ["copies", "warp", "tma"])
@pytest.mark.parametrize(("use", "m", "n", "slots"), [(4, 64, 64, 3), (8, 128, 128, 2)])
def test_warpgroups_multiply_what_a_role_brings(
    producer: str, use: int, m: int, n: int, slots: int
) -> None:
    made = compile_text(product_text(producer, slots=slots, use_warps=use, m=m, n=n), use, "sm_90a")
    rng = np.random.default_rng(m + n)
    for mode, steps in product(MODES, (0, 1, 5)):
        k = 64 * max(steps, 1)
        a = rng.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
        b = rng.standard_normal((k, n)).astype(ml_dtypes.bfloat16)
        c = np.full((m, n), np.nan, np.float32)
        gpu = device(mode)
        gpu.launch(gpu.load(made), [a, b, c, steps], 1)
        used = 64 * steps
        expected = a[:, :used].astype(np.float64) @ b[:used].astype(np.float64)
        np.testing.assert_allclose(c, expected, rtol=0, atol=1e-5 * max(1.0, k**0.5))


@pytest.mark.parametrize("producer", ["copies", "warp", "tma"])
def test_ptxas_keeps_roles_asynchronous(producer: str) -> None:
    text = product_text(producer, slots=3, use_warps=8, m=128, n=256)
    made = compile_text(text, 8, "sm_90a")
    found = assemble(made.ptx, find_target("sm_90a"))
    assert not [m for m in found.messages if "C75" in m or "setmaxnreg" in m]
    assert found.spills == 0
    assert found.registers <= 168


def test_slots_cost_no_division() -> None:
    text = sum_text("warp", slots=5, fill_warps=4, use_warps=4)
    assert not {"div.u32", "rem.u32"} & set(compile_text(text, 4, "sm_90a").ptx.split())


@pytest.mark.parametrize("warps", [(4, 4), (4, 2), (1, 8)])
@pytest.mark.parametrize("target", TARGETS)
def test_roles_sync_their_own_warps(warps: tuple[int, int], target: str) -> None:
    made = compile_text(turn_text(*warps), warps[0], target)
    assert f"bar.sync 1, {32 * warps[0]};" in made.ptx or warps[0] == 1
    assert f"bar.sync 2, {32 * warps[1]};" in made.ptx
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((16, 64)).astype(np.float32) for _ in range(2))
    for mode in MODES:
        first, second = np.zeros((64, 16), np.float32), np.zeros((64, 16), np.float32)
        gpu = device(mode)
        gpu.launch(gpu.load(made), [x, y, first, second], 1)
        np.testing.assert_array_equal(first, x.T)
        np.testing.assert_array_equal(second, y.T)


def kernel(body: str, total: int) -> str:
    """A kernel without parameters."""
    head = f"func.func @k() attributes {{tile.kernel, tile.total_warps = {total} : i32}}"
    return f"{head} {{\n{body}\n  return\n}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (kernel(role("late", 4, 8, ""), 8), "role 'late' ends at warp 12 of 8"),
        (
            kernel(role("outer", 0, 8, role("inner", 0, 4, "")), 8),
            "role 'inner' is inside another role",
        ),
        (
            kernel(role("one", 0, 4, "", 240) + role("two", 4, 8, "", 232), 12),
            "the roles hold 90112 registers, a CTA of 384 threads begins with 64512",
        ),
        (
            kernel(role("one", 0, 4, "", 48) + role("two", 4, 8, "", 232), 12),
            "the roles hold 65536 registers, a CTA of 384 threads begins with 64512",
        ),
        (
            kernel(role("one", 0, 4, "", 96) + role("two", 4, 4, "", 248), 9),
            r"48384 \(168 a thread\)",
        ),
        (kernel("", 2), "tile.total_warps is 2, fewer than the 4 of layouts"),
    ],
)
def test_roles_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compile_text(text, 4, "sm_90a")


def test_registers_move_from_the_share_of_all() -> None:
    body = role("give", 0, 4, "", 40) + role("take", 4, 8, "", 232)
    ptx = compile_text(kernel(body, 12), 4, "sm_90a").ptx
    assert ".maxnreg 168" in ptx
    assert "setmaxnreg.dec.sync.aligned.u32 40;" in ptx
    assert "setmaxnreg.inc.sync.aligned.u32 232;" in ptx


def run_product(made: CompiledKernel, steps: int) -> float:
    """Runs a kernel of `product_text` (64 by 64) in check mode; the largest error."""
    rng = np.random.default_rng(steps)
    a = rng.standard_normal((64, 64 * steps)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((64 * steps, 64)).astype(ml_dtypes.bfloat16)
    c = np.full((64, 64), np.nan, np.float32)
    gpu = device("emulator:check")
    gpu.launch(gpu.load(made), [a, b, c, steps], 1)
    return float(np.abs(c - a.astype(np.float64) @ b.astype(np.float64)).max())


LEFT_OUT = (
    "try_wait",
    "mbarrier.arrive",
    "bar.sync",
    "fence.proxy",
    "wgmma.fence",
    "wgmma.commit",
    "wgmma.wait",
)
"""Instructions whose absence must not go unseen."""


def broken(ptx: str) -> list[tuple[str, str]]:
    """(the line, PTX without it) for each instruction of the protocol."""
    lines = ptx.split("\n")
    found = []
    for number, line in enumerate(lines):
        if any(name in line for name in LEFT_OUT):
            instead = "setp.eq.b32 complete, 0, 0;" if "try_wait" in line else ""
            mutant = [*lines[:number], instead, *lines[number + 1 :]]
            found.append((line.strip(), "\n".join(mutant)))
    return found


@pytest.mark.parametrize(("producer", "instructions"), [("tma", 9), ("warp", 10)])
def test_the_emulator_finds_what_is_left_out(producer: str, instructions: int) -> None:
    """Every instruction of the protocol is needed, and each mistake is found."""
    made = compile_text(product_text(producer, slots=3), 4, "sm_90a")
    assert run_product(made, 7) < 1e-4
    mutants = broken(made.ptx)
    assert len(mutants) == instructions
    for line, ptx in mutants:
        with pytest.raises((FindingsError, EmulatorError)):
            pytest.fail(f"{line}: {run_product(replace(made, ptx=ptx), 7)}")
