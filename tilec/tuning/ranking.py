"""Ranks candidates by the model, before anything is compiled to machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilec.call.jit import Kernel
from tilec.call.specialization import specialize
from tilec.costs.launch_work import KernelWork, work_of
from tilec.costs.machine import Machine
from tilec.costs.model import predict
from tilec.messages.diagnostics import CompileError
from tilec.records import dataclass
from tilec.terms.demands import NUM_WARPS
from tilec.tuning.candidates import Candidate
from tilec.tuning.outcome import Trial
from tilec.tuning.progress import Phase


@dataclass(frozen=True)
class Ranking:
    """A trial a candidate, in the candidates' order; names of the arrays the kernel writes, and of
    those of them that it reads, too."""

    trials: tuple[Trial, ...]
    writes: frozenset[str]
    updates: frozenset[str]
    notes: tuple[str, ...]


def rank(
    kernel: Kernel,
    candidates: Sequence[Candidate],
    device: Any,
    bound: Mapping[str, Any],
    machine: Machine,
    grid: Any,
    phase: Phase,
) -> Ranking:
    """Predicts every candidate; one that does not build, or cannot run, is rejected in its trial.

    CompileError where none builds: then the mistake is the kernel's.
    """
    known: dict[Any, KernelWork | CompileError] = {}
    with phase("predicting", len(candidates)) as step:
        for candidate in candidates:
            key = _building_key(candidate)
            if key not in known:
                known[key] = _work(kernel, candidate, device, bound, machine, grid)
            step()
    trials, works = [], []
    for candidate in candidates:
        found = known[_building_key(candidate)]
        if isinstance(found, CompileError):
            trials.append(Trial(candidate, rejected=f"does not compile: {found.message}"))
            continue
        works.append(found)
        warps = candidate.demands.get(NUM_WARPS.name)
        work = found.work if warps is None else replace(found.work, warps=warps)
        trials.append(Trial(candidate).predicted(predict(work, machine)))
    if not works:
        raise next(error for error in known.values() if isinstance(error, CompileError))
    writes = frozenset().union(*(work.writes for work in works))
    reads = frozenset().union(*(work.reads for work in works))
    notes = dict.fromkeys(note for work in works for note in work.work.guessed)
    return Ranking(tuple(trials), writes, writes & reads, tuple(notes))


def _building_key(candidate: Candidate) -> Any:
    """A key that is equal where the program is: the number of warps is only an attribute of it."""
    pairs = candidate.fingerprint
    pairs.pop(NUM_WARPS.name, None)
    return tuple(sorted(pairs.items()))


def _work(
    kernel: Kernel,
    candidate: Candidate,
    device: Any,
    bound: Mapping[str, Any],
    machine: Machine,
    grid: Any,
) -> KernelWork | CompileError:
    values = {**bound, **candidate.constants}
    others = {name: v for name, v in candidate.demands.items() if name != NUM_WARPS.name}
    variant = kernel.demanding(**others) if others else kernel
    parameters = specialize(variant.parameters, values).parameters
    try:
        with variant.tile_module(device, values) as module:
            return work_of(module, parameters, values, machine.target, grid)
    except CompileError as error:
        return error
