"""Launches of one stream that overlap: the next begins before the one in front of it has ended.

A launch whose kernel runs griddepcontrol.wait begins as soon as all CTAs of the one before it have
run griddepcontrol.launch_dependents, or ended (PTX ISA, griddepcontrol; CUDA C++ Programming Guide,
Programmatic Dependent Launch). Any other begins when all before it are over. The wait is for the
launch before alone, and what that has waited for: one that does not wait may be over while an
earlier one still runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilec.runtime.emulator.checking.global_shadow import GlobalHistory
from tilec.runtime.emulator.checking.shadow import granule_of
from tilec.runtime.emulator.execution.launch import Launch, Result
from tilec.runtime.emulator.memories.global_memory import GlobalMemory
from tilec.runtime.emulator.program import Dimensions, Program


@dataclass(frozen=True)
class Run:
    """One launch of a stream; see `Program.run`."""

    program: Program
    entry: str
    grid: Dimensions
    block: Dimensions
    args: Sequence[Any]
    shared_bytes: int = 0
    cluster: Dimensions = (1, 1, 1)


def run_stream(
    runs: Sequence[Run], mode: str = "check", *, tensor_fences: bool = True, seed: int | None = None
) -> list[Result]:
    """Execute launches of one stream, those that may overlap by turns; arrays are shared.

    In check mode an access that griddepcontrol.wait should have ordered behind an earlier launch is
    a finding of the launch that makes the later of the two accesses.
    Raises what `Program.run` raises.
    """
    launches = [
        run.program.launch(
            run.entry, run.grid, run.block, run.shared_bytes, run.cluster, mode, tensor_fences,
            seed=seed,
        )
        for run in runs
    ]  # fmt: skip
    _place(runs, launches)
    with np.errstate(all="ignore"):
        _advance(runs, launches)
    if launches:
        launches[0].memory.copy_back()
    return [Result("".join(x.printed), x.findings, x.statistics) for x in launches]


def _place(runs: Sequence[Run], launches: Sequence[Launch]) -> None:
    """One memory for all of them, and in check mode one history."""
    memory = GlobalMemory()
    for before, launch, run in zip([None, *launches], launches, runs, strict=False):
        launch.memory = memory
        if before is not None and waits_for_launches(launch):
            before.is_followed, launch.previous = True, before
            launch.covered = set()
        launch.note(run.args)
    memory.place_arguments()
    for launch, run in zip(launches, runs, strict=True):
        launch.allocate(run.args)
    memory.seal()
    granules = [granule_of(launch.entry.instructions, "global") for launch in launches]
    history = GlobalHistory(memory.bytes.size, min(granules, default=4))
    for launch in launches:
        launch.history = history
        launch.fill()


def waits_for_launches(launch: Launch) -> bool:
    """Whether a kernel waits by itself, and so may begin under the launch before it."""
    return any(
        i.opcode == "griddepcontrol" and i.modifiers == ("wait",) for i in launch.entry.instructions
    )


def _advance(runs: Sequence[Run], launches: Sequence[Launch]) -> None:
    """By turns, the newest first: what it does before it waits comes as early as it can."""
    begun: list[tuple[Launch, Iterator[None]]] = []
    waiting = list(zip(runs, launches, strict=True))
    while begun or waiting:
        while waiting and _may_begin(waiting[0][1], begun):
            run, launch = waiting.pop(0)
            begun.append((launch, run.program.advance(launch)))
        for launch, steps in reversed(list(begun)):
            next(steps, None)
            if launch.is_over:
                begun.remove((launch, steps))
                _tell_next(launches.index(launch), launches)


def _may_begin(launch: Launch, running: Sequence[tuple[Launch, Iterator[None]]]) -> bool:
    if launch.previous is None:
        return not running
    newest = not running or running[-1][0] is not launch.previous
    return newest or launch.previous.next_may_begin


def _tell_next(number: int, launches: Sequence[Launch]) -> None:
    """A launch is over: the wait of the next one covers it, and what its own has covered."""
    launch, following = launches[number], launches[number + 1 : number + 2]
    if following and following[0].covered is not None:
        earlier = range(number) if launch.covered is None else launch.covered
        following[0].covered |= {number, *(earlier if launch.waits or not launch.previous else ())}
