"""Runs a case at the size its own plan asks for, and says what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from ring_plans import PROGRAMS, TURNS, Call, Case, Recorder, RingPlan, recorded

from tilec.call.jit import Kernel
from tilec.examples.running import poisoned

MODES = ("check", "late")
_TRIES = 6


@dataclass(frozen=True)
class Outcome:
    """What one case did on one target; `finding` is empty where all is right."""

    plan: RingPlan
    kernels: tuple[str, ...]
    finding: str


def check_case(case: Case, target: str, modes: tuple[str, ...] = MODES) -> Outcome:
    """The case at a size at which every ring wraps twice. A size can change the plan: the case
    grows until it fits its own."""
    plan = RingPlan()
    with _environment(TILEC_TARGET=target):
        for _ in range(_TRIES):
            found, recorder = _run(case(plan), modes[0])
            own = recorder.plan()
            if found or plan.covers(own):
                break
            plan = RingPlan(
                max(plan.stages, own.stages),
                max(plan.programs, own.programs),
                max(plan.parts, own.parts),
                own.constants,
            )
        else:
            found = f"its plan grows with its size: {plan}"
        found = found or why_short(recorder)
        for mode in modes[1:] if not found else ():
            found, recorder = _run(case(plan), mode)
    return Outcome(plan, tuple(kernel.name for kernel in recorder.kernels), found)


def why_short(recorder: Recorder) -> str:
    """Which rings did not wrap, and which CTAs had too few programs: "" if none."""
    for kernel, phases, (programs, ctas) in zip(
        recorder.kernels, recorder.phases, recorder.grids, strict=True
    ):
        plan = RingPlan.of(kernel)
        if kernel.persistent and not kernel.dynamic and programs < PROGRAMS * ctas:
            return f"{kernel.name}: {programs} programs for {ctas} CTAs"
        turned = sum(phase > TURNS for phase in phases.values())
        slots = 0 if plan.stages == 1 else min(plan.stages, len(phases))
        if phases and turned < slots:
            return f"{kernel.name}: {turned} mbarriers turned twice, a ring has {slots}: {phases}"
    return ""


def _run(call: Call, mode: str) -> tuple[str, Recorder]:
    """What is wrong, and what ran."""
    arguments = list(call.arguments)
    for place, expected in call.expected.items():
        if arguments[place] is None or isinstance(arguments[place], type):
            arguments[place] = poisoned(expected.shape, arguments[place] or np.float32)
        else:
            arguments[place] = arguments[place].copy()
    with recorded() as recorder, _environment(TILEC_DEVICE=f"emulator:{mode}"):
        try:
            kernel = call.kernel
            launched = kernel.on(f"emulator:{mode}") if isinstance(kernel, Kernel) else kernel
            launched(*arguments, **call.constants)
        except Exception as error:
            return f"{mode}: {type(error).__name__}: {error}", recorder
    for place, expected in call.expected.items():
        found = np.asarray(arguments[place]).astype(np.float64)
        scale = float(np.abs(expected).max(initial=0.0)) or 1.0
        error = float(np.abs(found - expected).max(initial=0.0)) / scale
        if not error <= call.tolerance:  # NaN is not
            return f"{mode}: argument {place} is off by {error:.2e}", recorder
    return "", recorder


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
