"""Launches like one before do what a first launch does, however their arrays lie: random launches
of a kernel that remembers, on a stand-in for a GPU, beside a kernel that does not."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tilec.triton  # noqa: E402
from tilec.costs.machine import usual_machine  # noqa: E402
from tilec.runtime.arrays import CUDA, ArrayView  # noqa: E402
from tilec.runtime.device import device  # noqa: E402
from tilec.runtime.emulator_device import EmulatorDevice  # noqa: E402
from tilec.runtime.errors import ArgumentError  # noqa: E402

KERNELS = Path(__file__).parent / "kernels"
LAUNCHES = 60


class StandIn(EmulatorDevice):
    """The emulator, launched as a GPU is: by plans, of which only pointers and numbers are new.
    `memories`: where arrays may lie; `again`: how often a plan ran without being made."""

    kind = CUDA

    def __init__(self, memories: list[tuple[int, int]]) -> None:
        super().__init__()
        self.memories, self.again = memories, 0

    def plan(self, loaded: Any, values: Any, grid: Any) -> Any:
        return SimpleNamespace(loaded=loaded, values=values, grid=grid, device_index=0)

    def start(self, plan: Any, values: Any, grid: Any, stream: int) -> None:
        self.launch(plan.loaded, values, grid)

    def launch_plan(self, plan: Any, new: Any, stream: int) -> None:
        values = []
        for value, given in zip(plan.values, new, strict=True):
            if isinstance(value, ArrayView):
                ends = next(m for m in self.memories if m[0] <= given < m[1])
                values.append(replace(value, pointer=given, memory=ends if value.memory else None))
            else:
                values.append(given)
        self.again += 1
        self.launch(plan.loaded, values, plan.grid)


def vector_add(drawn: Any, at: Any) -> tuple[tuple[Any, ...], int]:
    n = int(drawn.choice([250, 245]))
    return (at(n), at(n), at(n), n), 1


def shift(drawn: Any, at: Any) -> tuple[tuple[Any, ...], int]:
    return (at(400), at(256), 16), 2


def dropout(drawn: Any, at: Any) -> tuple[tuple[Any, ...], int]:
    return (at(200), at(200), 200, float(drawn.random()), int(drawn.integers(1, 999))), 2


def chunks(drawn: Any, at: Any) -> tuple[tuple[Any, ...], Any]:
    chunk, rows = int(drawn.choice([9, 10])), int(drawn.choice([20, 27]))
    return (at(27 * 32), at(27 * 32), rows, chunk), (1, 3)


def stand_in_for(pools: list[Any], monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A stand-in whose memory are these tensors."""
    ends = [(p.data_ptr(), p.data_ptr() + p.untyped_storage().nbytes()) for p in pools]
    made = StandIn(ends)
    monkeypatch.setattr("tilec.triton.known_launches.launch_plan", made.launch_plan)
    kernel_module: Any = sys.modules["tilec.triton.kernel"]
    # It has no driver to ask for its multiprocessors.
    monkeypatch.setattr(kernel_module, "machine_of", lambda _, target: usual_machine(target))
    found = kernel_module.device_of
    monkeypatch.setattr(
        kernel_module, "device_of", lambda named, wanted: wanted or found(named, wanted)
    )
    return made


@pytest.mark.parametrize(
    "draw", [vector_add, shift, dropout, chunks], ids=lambda draw: draw.__name__
)
def test_launches_again(draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(31)
    pools = [torch.zeros(1500), torch.zeros(1500)]
    stand_in = stand_in_for(pools, monkeypatch)
    text = (KERNELS / f"{draw.__name__}.ttir").read_text()
    again = tilec.triton.kernel(text)
    again.device = stand_in
    errors = 0
    for _ in range(LAUNCHES):
        for pool in pools:
            pool.copy_(torch.from_numpy(drawn.standard_normal(1500).astype(np.float32)))
        before = [pool.clone() for pool in pools]

        def at(n: int) -> Any:
            start = int(drawn.choice([0, 0, 260, 260, 520, 521]))
            return pools[drawn.integers(2)][start:]

        arguments, grid = draw(drawn, at)
        first = tilec.triton.kernel(text)
        first.device = device("emulator")
        results: list[Any] = []
        for one in (first, again):
            for pool, kept in zip(pools, before, strict=True):
                pool.copy_(kept)
            try:
                one[grid](*arguments)
                results.append([pool.clone() for pool in pools])
            except ArgumentError as error:
                results.append(str(error))
        if isinstance(results[0], str):
            errors += 1
            assert results[0] == results[1]
        else:
            assert all(map(torch.equal, *results))
    assert stand_in.again > LAUNCHES / 10 + LAUNCHES / 4 * (draw is dropout)
    assert errors < LAUNCHES / 2


def test_calls_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    import jit_kernels

    drawn = np.random.default_rng(32)
    pools = [torch.randn(300), torch.randn(300)]
    stand_in = stand_in_for(pools, monkeypatch)
    monkeypatch.setattr("tilec.triton.takeover.calls.current_stream_in", lambda _: lambda _: 0)
    scaled = tilec.triton.kernel(jit_kernels.scaled, device="emulator")
    calls = [
        lambda x, out, n, s: (scaled[grid](out, x, n, s), 3.5),
        lambda x, out, n, s: (scaled[(2,)](out, x, n, s), 3.5),
        lambda x, out, n, s: (scaled[grid](out, n=n, scale=s, x_ptr=x), 3.5),
        lambda x, out, n, s: (scaled[grid](x_ptr=x, out_ptr=out, scale=s, n=n, shift=1), 1.5),
        lambda x, out, n, s: (scaled[grid](out, x, n, s, shift=1), 1.5),
        lambda x, out, n, s: (scaled[grid](out, x, n, s, offset=1), 4.0),
        lambda x, out, n, s: (scaled[grid](out, x, n, s, offset=0.25), 3.25),
        lambda x, out, n, s: (scaled[grid](out, x, n, s, offset=-0.0), 3.0),
    ]
    grid = lambda given: (-(-given["n"] // given["BLOCK"]),)  # noqa: E731
    for _ in range(90):
        start = int(drawn.choice([0, 4]))
        x, out = (pools[drawn.integers(2)][start:] for _ in range(2))
        n, s = int(drawn.choice([200, 256])), float(drawn.standard_normal())
        x.copy_(torch.randn(x.shape))
        number = drawn.integers(len(calls))
        reach = 128 if number == 1 else n
        expected, kept = x[:reach] * s, out[reach:].clone()
        kernel, added = calls[number](x, out, n, s)
        assert kernel.metadata.tilec
        if kernel.function.device is not stand_in:
            kernel.function.device = stand_in  # from its next launch on
        torch.testing.assert_close(out[:reach], expected + added)
        assert torch.equal(out[reach:], kept)
    assert stand_in.again > 10


def test_calls_with_integers_that_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that no array is made of: one launch of each class is planned, and each below 0."""
    pytest.importorskip("triton")
    import jit_kernels

    x, out = torch.randn(128), torch.zeros(128)
    stand_in = stand_in_for([x, out], monkeypatch)
    monkeypatch.setattr("tilec.triton.takeover.calls.current_stream_in", lambda _: lambda _: 0)
    scaled = tilec.triton.kernel(jit_kernels.scaled, device="emulator")
    again = []
    for shift in (5, 1, 16, 5, 1, 16, 6, 7, 1, 999, 48, 0, -3, 9, -5, -3, 1 << 20, 1):
        before = stand_in.again
        kernel = scaled[(2,)](out, x, 128, 2.0, shift)
        torch.testing.assert_close(out, 2 * x + 0.5 + shift)
        again.append(stand_in.again > before)
        kernel.function.device = stand_in
    # Each of the three kernels first ran on another device than the stand-in, and once on it.
    assert again == [False] * 6 + [True] * 6 + [False, True, False, True, True, True]
