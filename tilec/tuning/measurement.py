"""Times candidates on a GPU: interleaved, cold L2, medians, on arrays that are nobody's.

Nothing of the caller's is changed. Every array that the kernel writes is replaced by a copy of the
same shape, strides and alignment; one that the kernel also reads (an in-place update, an atomic
sum) is copied from the original again before each launch. The comparison of results starts from
such a copy, too, so what a kernel leaves alone counts as equal.
"""

from __future__ import annotations

import functools
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tilec.call.jit import Kernel
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.properties import device_properties
from tilec.runtime.cuda.scratch import ScratchArray
from tilec.runtime.cuda.stopwatch import Stopwatch
from tilec.tuning.agreement import difference
from tilec.tuning.candidates import Candidate
from tilec.tuning.progress import Phase, Step

LEAST_ROUNDS = 5
"""Of each candidate: a median that two disturbed rounds do not move."""
MOST_ROUNDS = 40
"""Of a short kernel: the median of so many has a fifth of the spread between rounds as its error
(1.25 / sqrt(40))."""
BUDGET_MS = 60.0
"""Measured time a candidate, about: short kernels get more rounds; with 12 candidates less than a
second."""
HOPELESS = 1.25
"""After the first rounds, a candidate this many times slower than the best is measured no more:
medians of 5 rounds are not off by a quarter."""


@dataclass(frozen=True)
class Measured:
    """Microseconds: median, 10th and 90th percentile of the rounds."""

    us: float
    low: float
    high: float


@dataclass
class _Runner:
    launch: Callable[[], None]
    times: list[float] = field(default_factory=list)


def measure(
    variants: Mapping[int, tuple[Kernel, Candidate]],
    device: Any,
    values: Mapping[str, Any],
    bound: Mapping[str, Any],
    *,
    writes: frozenset[str],
    updates: frozenset[str],
    grid: Any,
    stream: int,
    tolerance: float | None,
    phase: Phase,
) -> tuple[dict[int, Measured], dict[int, str]]:
    """Times by number, and what is wrong with those that computed something else than the first.

    `values`: the call's arguments by name, `bound` the same described. Raises what a launch raises,
    CudaError above all: after a crash no other candidate can run in this process.
    """
    context = device.context
    scratch = {
        name: ScratchArray(context, bound[name], stream)
        for name in writes
        if isinstance(bound[name], ArrayView)
    }
    updated = [scratch[name] for name in scratch if name in updates]
    copies = {name: copy.array for name, copy in scratch.items()}
    runners = {}
    for number, (kernel, candidate) in variants.items():
        launcher, parts = kernel.taken_apart({**values, **candidate.constants})
        arguments = {**parts, **copies}.values()
        runners[number] = _Runner(functools.partial(launcher, *arguments, grid=grid, stream=stream))
    with phase("comparing results", len(runners)) as step:
        wrong = _compare(runners, list(scratch.values()), device, tolerance, step)
    right = {number: runner for number, runner in runners.items() if number not in wrong}
    flush_bytes = 2 * device_properties(device.index).l2_bytes
    with Stopwatch(context, stream, flush_bytes) as watch:
        _time(list(right.values()), watch, updated, phase)
    return {number: _summary(runner.times) for number, runner in right.items()}, wrong


def _compare(
    runners: Mapping[int, _Runner],
    scratch: Sequence[ScratchArray],
    device: Any,
    tolerance: float | None,
    step: Step,
) -> dict[int, str]:
    """Launches each once; what is wrong with those whose results differ from the first's."""
    expected: list[np.ndarray] | None = None
    wrong = {}
    for number, runner in runners.items():
        for copy in scratch:
            copy.restore()
        runner.launch()
        device.synchronize()
        found = [copy.array.numpy() for copy in scratch]
        step()
        if expected is None:
            expected = found
            continue
        for copy, one, two in zip(scratch, found, expected, strict=True):
            reason = difference(one, two, copy.array.dtype, tolerance)
            if reason:
                wrong[number] = f"another result than the first candidate's: {reason}"
    return wrong


def _time(
    runners: list[_Runner], watch: Stopwatch, updated: Sequence[ScratchArray], phase: Phase
) -> None:
    """Rounds over all runners, in an order drawn anew each time; drops the hopeless ones early."""
    rng = random.Random(0)

    def play(order: list[_Runner], rounds: int, what: str) -> None:
        with phase(what, rounds * len(order)) as step:
            for _ in range(rounds):
                rng.shuffle(order)
                for runner in order:
                    for copy in updated:
                        copy.restore()
                    runner.times.append(watch.measure(runner.launch))
                    step()

    play(list(runners), LEAST_ROUNDS, "timing all")
    medians = {id(runner): statistics.median(runner.times) for runner in runners}
    best = min(medians.values())
    rounds = int(min(MOST_ROUNDS, max(LEAST_ROUNDS, BUDGET_MS * 1000 / max(best, 1.0))))
    hopeful = [runner for runner in runners if medians[id(runner)] <= HOPELESS * best]
    play(hopeful, rounds - LEAST_ROUNDS, "timing the best")


def _summary(times: list[float]) -> Measured:
    ordered = sorted(times)
    last = len(ordered) - 1
    return Measured(
        statistics.median(ordered), ordered[round(0.1 * last)], ordered[round(0.9 * last)]
    )
