"""Measures one case in its regimes, in its own process: checks all peers, screens them, then times
the untuned and the best variants, the anchor and the best of each kind of peer in every regime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from drawn_peers import compiled_calls
from measured_cases import (
    BOUND,
    RegimeCase,
    candidates_of,
    changed,
    expected_of,
    filled,
    torch_calls,
    written,
)
from regime_timing import Duration, burst, captured, sustained
from tensors import Storage
from tilec_calls import tilec_call
from timing import CudaClock, HostClock, Timing, rotated_sets, time_peers

BURST, SUSTAINED, INTERLEAVED = "burst", "sustained", "interleaved"
DEFAULT = "tilec default"
Call = Callable[[Mapping[str, torch.Tensor]], Any]


@dataclass(frozen=True)
class RegimeJob:
    """What to measure. `files`: variant label -> the build's manifest entry, its artefacts with
    their folder. `peers`: "all", or "torch" alone.

    `finalists`: how many of tilec's variants go on from the screening. `compiled`: torch.compile is
    a peer, too. `small`: the case is small enough for the emulator as it is. `regimes`: those to
    measure, where not those that the case has goals for.
    """

    case: RegimeCase
    files: Mapping[str, Mapping[str, Any]]
    device: str
    seed: int
    duration: Duration
    peers: str = "all"
    finalists: int = 1
    compiled: bool = False
    small: bool = False
    regimes: tuple[str, ...] = ()


def warm_candidates(job: RegimeJob) -> None:
    """Compiles Triton's candidates into its disk cache."""
    tensors = {
        spec.name: Storage(replace(spec, shape=(16,), strides=(1,)), job.device).tensor
        for spec in job.case.arrays
    }
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(launch.warm, tensors) for launch in candidates_of(job.case)]:
            done.exception()  # what does not compile fails again where it is checked


def warm_compiled(job: RegimeJob) -> None:
    """Compiles torch's graphs into its disk cache, by running them."""
    calls = compiled_calls(job.case)
    if not calls:
        return
    generator = torch.Generator(device=job.device).manual_seed(job.seed)
    storages = filled(job.case, job.device, generator)
    for call in calls.values():
        with suppress(Exception):  # what does not compile fails again where it is checked
            call({name: storage.tensor for name, storage in storages.items()})
    del storages
    if job.device == "cuda":
        torch.cuda.empty_cache()  # the processes beside this one need memory, too


def measure_regimes(job: RegimeJob) -> dict[str, Any]:
    """The record of a case: timings by regime, the screening, failures."""
    cuda = job.device == "cuda"
    clock = CudaClock() if cuda else HostClock()
    case = job.case if cuda or job.small else job.case.shrunk()
    if cuda:
        torch.cuda.empty_cache()
        if job.peers == "all":
            warm_candidates(job)
    sets = _input_sets(case, job)
    failures: dict[str, str] = {}
    calls = _right_ones(case, sets[0], _calls(case, job, failures), clock, failures)
    tensors = [{name: storage.tensor for name, storage in s.items()} for s in sets]
    every = {name: _on_sets(call, tensors) for name, call in calls.items()}
    every = _graphable(every, len(sets), clock, failures)
    screened = time_peers(every, clock, sets=len(sets), budget_ms=30, least_rounds=5 if cuda else 1)
    final = {name: every[name] for name in finalists(screened, job)}
    timings = {
        regime: _timed(regime, final, clock, len(sets), job.duration)
        for regime in job.regimes or dict(case.goals)
    }
    return {
        "case": case.name,
        "kernel": case.kernel,
        "flops": case.flops,
        "goals": dict(case.goals),
        "anchor": case.anchor,
        "rivals": list(case.rivals),
        "untuned": list(case.untuned),
        "regimes": {r: {n: asdict(t) for n, t in found.items()} for r, found in timings.items()},
        "screened": {name: asdict(timing) for name, timing in screened.items()},
        "failures": failures,
        "input_sets": len(sets),
        "data_seed": job.seed,
        "duration": asdict(job.duration),
    }


def finalists(screened: Mapping[str, Timing], job: RegimeJob) -> list[str]:
    """tilec's untuned ones and fastest, and the fastest of what the anchor and each rival name.

    With few finalists only the anchor, and the fastest of Triton and of torch.
    """
    order = sorted(screened, key=lambda name: screened[name].us)
    found = [name for name in job.case.untuned if name in screened]
    found += [name for name in order if name.startswith("tilec")][: job.finalists]
    rivals = ("triton", "torch") if job.duration.few else job.case.rivals
    for begin in (job.case.anchor, *rivals):
        found += [name for name in order if name.startswith(begin)][:1]
    return list(dict.fromkeys(found))


def _timed(
    regime: str, peers: Mapping[str, Any], clock: Any, sets: int, duration: Duration
) -> dict[str, Timing]:
    if regime == INTERLEAVED or not clock.graphs:
        budget = duration.interleaved_ms if clock.graphs else 1
        least = 15 if clock.graphs else 1
        return time_peers(peers, clock, sets=sets, budget_ms=budget, least_rounds=least)
    measure = {BURST: burst, SUSTAINED: sustained}[regime]
    return measure(peers, clock, sets=sets, duration=duration)


def _input_sets(case: RegimeCase, job: RegimeJob) -> list[dict[str, Storage]]:
    generator = torch.Generator(device=job.device).manual_seed(job.seed)
    count = rotated_sets(case.nbytes) if job.device == "cuda" else 2
    return [filled(case, job.device, generator) for _ in range(count)]


def _calls(case: RegimeCase, job: RegimeJob, failures: dict[str, str]) -> dict[str, Call]:
    """Every peer by name: its family, then its variant."""
    calls: dict[str, Call] = dict(torch_calls(case))
    for label, entry in job.files.items():
        name = f"tilec {label}"
        try:
            calls[name] = tilec_call(case, entry, job.device)
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}"
    if job.compiled:
        calls |= compiled_calls(case)
    if job.peers == "all":
        calls |= {f"triton {launch.label}": launch.launch for launch in candidates_of(case)}
    return calls


def peer_calls(job: RegimeJob) -> dict[str, Callable[[], Any]]:
    """Every peer of a case, to launch on one set of inputs."""
    generator = torch.Generator(device=job.device).manual_seed(job.seed)
    storages = filled(job.case, job.device, generator)
    tensors = {name: storage.tensor for name, storage in storages.items()}
    calls = _calls(job.case, job, {})
    return {name: lambda call=call: call(tensors) for name, call in calls.items()}


def _graphable(
    peers: Mapping[str, Callable[[int], Any]], sets: int, clock: Any, failures: dict[str, str]
) -> dict[str, Callable[[int], Any]]:
    """The peers that a CUDA graph can hold; `failures` gets why it cannot hold others.

    Each meets all sets first: some make something of a set at its first sight and keep it.
    """
    if not clock.graphs:
        return dict(peers)
    found = {}
    for name, peer in peers.items():
        for number in range(sets):
            peer(number)
        try:
            with torch.cuda.stream(torch.cuda.current_stream()):  # also where a capture fails
                captured(peer, [0])
            found[name] = peer
        except Exception as error:
            failures[name] = f"not in a CUDA graph: {str(error)[:300]}"
    clock.wait()
    return found


def _on_sets(call: Call, tensors: list[dict[str, torch.Tensor]]) -> Callable[[int], Any]:
    return lambda number: call(tensors[number])


def _right_ones(
    case: RegimeCase,
    storages: dict[str, Storage],
    calls: Mapping[str, Call],
    clock: Any,
    failures: dict[str, str],
) -> dict[str, Call]:
    """The peers that run and give the right result on set 0; `failures` gets why others do not.

    A CUDA error is not survived: it is raised, and names the peer that was running.
    """
    tensors = {name: storage.tensor for name, storage in storages.items()}
    expected = expected_of(case, tensors)
    before = {name: tensors[name].clone() for name in changed(case)}
    right = {}
    for name, call in calls.items():
        for output in written(case):
            storages[output].poison()
        for output, values in before.items():
            storages[output].fill(values)
        try:
            result = call(tensors)
            clock.wait()
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {str(error)[:400]}"
            try:
                clock.wait()
            except Exception:
                raise RuntimeError(f"{name} broke the context: {failures[name]}") from error
            continue
        if name.startswith(BOUND):
            right[name] = call
            continue
        found = result
        if not isinstance(found, (torch.Tensor, tuple)):
            outputs = [tensors[output] for output in written(case)]
            found = outputs[0] if len(outputs) == 1 else outputs
        # cuBLAS may split K and add the parts up in the output's dtype, which costs it digits.
        reason = expected.wrong(found, elements=not name.startswith("torch"))
        if reason:
            failures[name] = f"WRONG RESULT: {reason}"
        else:
            right[name] = call
    return right
