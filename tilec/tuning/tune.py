"""Chooses a candidate for one call: model, compile, measure; each step rejects with its reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilec.call.jit import Kernel
from tilec.costs.machine import Machine
from tilec.messages.diagnostics import CompileError
from tilec.records import dataclass
from tilec.runtime.cuda.stopwatch import is_captured
from tilec.tuning.candidates import Candidate
from tilec.tuning.compilation import compile_candidates, first_that_compiles
from tilec.tuning.measurement import Measured, measure
from tilec.tuning.outcome import Outcome, Trial
from tilec.tuning.progress import Progress
from tilec.tuning.ranking import Ranking, rank


@dataclass(frozen=True)
class Call:
    """One call to tune for.

    `variant_of`: the kernel with a candidate's demands. `values`: the arguments by name, `bound`
    the same described. `stream`: the driver's number.
    """

    kernel: Kernel
    variant_of: Callable[[Candidate], Kernel]
    device: Any
    machine: Machine
    values: Mapping[str, Any]
    bound: Mapping[str, Any]
    grid: Any
    stream: int


@dataclass(frozen=True)
class Settings:
    """`most`: how many candidates are compiled and timed; the default comes on top.

    `tolerance`: see `DType.tolerance`; `progress`: see `Progress`.
    """

    most: int = 12
    tolerance: float | None = None
    progress: bool | None = None


def tune(call: Call, candidates: Sequence[Candidate], settings: Settings) -> Outcome:
    """The outcome for a call: measured on a GPU, else by the model.

    CompileError where no candidate compiles. What a launch raises is passed on.
    """
    start = time.perf_counter()
    progress = Progress(call.kernel.name, settings.progress)
    ranking = rank(
        call.kernel, candidates, call.device, call.bound, call.machine, call.grid, progress.phase
    )
    can_measure = call.device.kind == "cuda" and not is_captured(call.device.context, call.stream)
    if can_measure:
        outcome = _by_measuring(call, ranking, settings, progress)
    else:
        outcome = _by_model(call, ranking)
    return replace(outcome, seconds=time.perf_counter() - start)


def _by_model(call: Call, ranking: Ranking) -> Outcome:
    """The best predicted candidate that compiles."""
    order = _ranked(ranking.trials)
    tried = [ranking.trials[n].candidate for n in order]
    variants = [(call.variant_of(candidate), candidate) for candidate in tried]
    first, failures = first_that_compiles(variants, call.device, call.bound)
    trials = list(ranking.trials)
    for position, reason in failures.items():
        trials[order[position]] = replace(trials[order[position]], rejected=reason)
    if first < 0:
        raise _none_left(call, trials)
    why = "the model's choice; nothing was measured"
    return _outcome(call, trials, order[first], "model", why, ranking)


def _by_measuring(call: Call, ranking: Ranking, settings: Settings, progress: Progress) -> Outcome:
    """The fastest of the best predicted candidates, and the default among them."""
    trials = list(ranking.trials)
    order = _ranked(ranking.trials)
    taken = [n for n in order if n == 0] + [n for n in order if n][: settings.most]
    for number in order:
        if number not in taken:
            trials[number] = replace(trials[number], rejected="not timed: the model prefers others")
    tried = {n: trials[n].candidate for n in taken}
    variants = {n: (call.variant_of(candidate), candidate) for n, candidate in tried.items()}
    with progress.phase("compiling", len(variants)) as step:
        failures = compile_candidates(variants, call.device, call.bound, step)
    running = {n: variant for n, variant in variants.items() if n not in failures}
    times: dict[int, Measured] = {}
    if running:
        times, wrong = measure(
            running,
            call.device,
            call.values,
            call.bound,
            writes=ranking.writes,
            updates=ranking.updates,
            grid=call.grid,
            stream=call.stream,
            tolerance=settings.tolerance,
            phase=progress.phase,
        )
        failures |= wrong
    for number, reason in failures.items():
        trials[number] = replace(trials[number], rejected=reason)
    if not times:
        raise _none_left(call, trials)
    for number, found in times.items():
        trials[number] = replace(
            trials[number], measured_us=found.us, low_us=found.low, high_us=found.high
        )
    winner = min(times, key=lambda n: times[n].us)
    # A tie goes to the default: what cannot be told apart is no reason to leave it.
    if 0 in times and times[0].low <= times[winner].us:
        winner = 0
    return _outcome(call, trials, winner, "measured", f"fastest of {len(times)} timed", ranking)


def _ranked(trials: Sequence[Trial]) -> list[int]:
    """The numbers of those that may run, the fastest by prediction first."""
    possible = [n for n, trial in enumerate(trials) if not trial.rejected]
    return sorted(possible, key=lambda n: (trials[n].predicted_us, n))


def _outcome(
    call: Call, trials: Sequence[Trial], winner: int, source: str, why: str, ranking: Ranking
) -> Outcome:
    return Outcome(
        call.kernel.name,
        call.machine.name,
        trials[winner].candidate,
        source,
        why,
        tuple(trials),
        notes=(f"predictions go by {call.machine.figures}", *ranking.notes),
    )


def _none_left(call: Call, trials: Sequence[Trial]) -> CompileError:
    reasons = [f"{trial.candidate.label}: {trial.rejected}" for trial in trials]
    return CompileError(f"no candidate of {call.kernel.name} is usable", None, reasons)
