"""Runs a case at the size its own plan asks for, and says what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from ring_plans import PROGRAMS, TURNS, Call, Case, Recorder, RingPlan, recorded

from tilec.call.jit import Kernel
from tilec.examples.running import poisoned

MODES = ("check", "late")
_FREE_TRIES = 3
"""Sizes that may choose tiles of their own, each for those of the last: 2 are enough for most."""
_TRIES = 6


@dataclass(frozen=True)
class Outcome:
    """What one case did on one target; `finding` is empty where all is right."""

    plan: RingPlan
    kernels: tuple[str, ...]
    finding: str


def check_case(case: Case, target: str, modes: tuple[str, ...] = MODES) -> Outcome:
    """The case at a size at which every ring wraps twice."""
    with _environment(TILEC_TARGET=target):
        plan, call, found = _sized(case)
        if call is None:
            return Outcome(plan, (), found)
        names: tuple[str, ...] = ()
        for mode in modes:
            found, recorder = _run(call, mode)
            names = tuple(kernel.name for kernel in recorder.kernels)
            if found := found or why_short(recorder):
                break
    return Outcome(plan, names, found)


def plan_of(case: Case, target: str) -> tuple[RingPlan, str]:
    """The plan of the size that a case runs at, and why there is none."""
    with _environment(TILEC_TARGET=target):
        plan, _, found = _sized(case)
    return plan, found


def _sized(case: Case) -> tuple[RingPlan, Call | None, str]:
    """A plan, and the case at the size that the plan asks for, whose own it is; None, and why,
    where there is no such size. Nothing runs.

    A size can change the plan: it grows until it fits its own. Where each size has other tiles,
    those of the last are kept, as if the author had named them.
    """
    plan, kept = RingPlan(), None
    for number in range(_TRIES):
        call = case(plan) if kept is None else _with_choice(case(plan), kept)
        found, recorder = _run(call, MODES[0], only_plan=True)
        if found:
            return plan, None, found
        own = recorder.plan()
        if plan.covers(own):
            return plan, call, ""
        if number + 1 == _FREE_TRIES and isinstance(call.kernel, Kernel):
            plan = kept = own
        else:
            plan = plan.grown(own)
    return plan, None, f"its plan grows with its size: {plan}"


def _with_choice(call: Call, choice: RingPlan) -> Call:
    """The call with what was chosen for another size."""
    kernel = call.kernel
    assert isinstance(kernel, Kernel)
    demanded = kernel.demanding(sum_parts=choice.parts) if choice.parts > 1 else kernel
    return replace(call, kernel=demanded, constants={**call.constants, **choice.constants})


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


def _run(call: Call, mode: str, *, only_plan: bool = False) -> tuple[str, Recorder]:
    """What is wrong, and what ran, or would have."""
    arguments = list(call.arguments)
    for place, expected in call.expected.items():
        if arguments[place] is None or isinstance(arguments[place], type):
            arguments[place] = poisoned(expected.shape, arguments[place] or np.float32)
        else:
            arguments[place] = arguments[place].copy()
    with recorded(only_plan=only_plan) as recorder, _environment(TILEC_DEVICE=f"emulator:{mode}"):
        try:
            kernel = call.kernel
            launched = kernel.on(f"emulator:{mode}") if isinstance(kernel, Kernel) else kernel
            launched(*arguments, **call.constants)
        except Exception as error:
            return f"{mode}: {type(error).__name__}: {error}", recorder
    for place, expected in call.expected.items() if not only_plan else ():
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
