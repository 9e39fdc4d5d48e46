"""Measures one case in its own process: checks all peers, screens them, times the best together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from bench_cases import BenchCase
from kernel_checks import OUTPUTS, Check, call_arguments, compare
from results import AGAIN, DEFAULT
from tensors import Storage, random_values
from timing import CudaClock, HostClock, rotated_sets, time_peers
from torch_peers import torch_call

from tilec.runtime.artefact import load

try:
    from triton_peers import triton_launches
except ImportError as error:
    triton_launches, _no_triton = None, str(error)

SLACK = {"f8E4M3FN": 4.0, "f8E5M2": 4.0}
"""Other peers' fp8 products accumulate over more steps in fewer bits than ours may."""
FINALISTS = 2
"""Of tilec's variants and of Triton's, how many go on from the screening."""

Call = Callable[[Mapping[str, torch.Tensor]], Any]


@dataclass(frozen=True)
class MeasureJob:
    """What to measure. `files`: variant label -> artefact. `budget_ms`: for the final rounds."""

    case: BenchCase
    files: Mapping[str, str]
    device: str
    seed: int
    budget_ms: float


@dataclass
class _Bench:
    """The case's tensors, a set per rotation, and what went wrong with whom."""

    case: BenchCase
    sets: list[dict[str, Storage]]
    clock: Any
    failures: dict[str, str] = field(default_factory=dict)

    def tensors(self, number: int) -> dict[str, torch.Tensor]:
        return {name: storage.tensor for name, storage in self.sets[number].items()}


def warm_triton(job: MeasureJob) -> None:
    """Compiles Triton's candidates into its disk cache."""
    tensors = {
        spec.name: Storage(replace(spec, shape=(16,), strides=(1,)), job.device).tensor
        for spec in job.case.arrays
    }
    if job.case.kernel == "matmul":
        tensors = {
            spec.name: tensors[spec.name].as_strided((1, 1), spec.strides)
            for spec in job.case.arrays
        }
    for launch in triton_launches(job.case) if triton_launches else ():
        launch.warm(tensors)


def measure_case(job: MeasureJob) -> dict[str, Any]:
    """Timings of all peers in the final, and of the others in the screening; see `run.py`."""
    cuda = job.device == "cuda"
    if cuda:
        torch.cuda.empty_cache()
    case = job.case if cuda else shrunk(job.case)
    bench = _Bench(case, _input_sets(case, job), CudaClock() if cuda else HostClock())
    calls = _right_ones(bench, _calls(bench, job))
    every = {name: _on_sets(bench, call) for name, call in calls.items()}
    sets = len(bench.sets)
    least = 5 if cuda else 1
    screened = time_peers(every, bench.clock, sets=sets, budget_ms=30, least_rounds=least)
    order = sorted(screened, key=lambda name: screened[name].us)
    finalists = [name for name in order if name in (DEFAULT, "torch")]
    for family in ("tilec", "triton"):
        finalists += [name for name in order if name.split()[0] == family][:FINALISTS]
    chosen = {name: every[name] for name in dict.fromkeys(finalists)}
    if DEFAULT in chosen:
        chosen[AGAIN] = every[DEFAULT]
    final = time_peers(
        chosen, bench.clock, sets=sets, budget_ms=job.budget_ms, least_rounds=3 * least
    )
    return {
        "case": case.name,
        "kernel": case.kernel,
        "nbytes": case.nbytes,
        "flops": case.flops,
        "input_sets": sets,
        "data_seed": job.seed,
        "final": {name: asdict(timing) for name, timing in final.items()},
        "screened": {name: asdict(timing) for name, timing in screened.items()},
        "failures": bench.failures,
    }


def shrunk(case: BenchCase) -> BenchCase:
    """The case small enough for the emulator, with the same facts and the same columns."""
    if case.kernel == "matmul":
        return replace(case, shape=(128, 128, 128))
    first, *rest = case.shape
    return replace(case, shape=((16 if rest else 4096) + first % 16, *rest))


def _input_sets(case: BenchCase, job: MeasureJob) -> list[dict[str, Storage]]:
    generator = torch.Generator(device=job.device).manual_seed(job.seed)
    sets = []
    for _ in range(rotated_sets(case.nbytes) if job.device == "cuda" else 2):
        storages = {spec.name: Storage(spec, job.device) for spec in case.arrays}
        for name, storage in storages.items():
            if name != OUTPUTS[case.kernel]:
                storage.fill(random_values(storage.spec, generator))
        sets.append(storages)
    return sets


def _calls(bench: _Bench, job: MeasureJob) -> dict[str, Call]:
    """Every peer by name: its family, then its variant."""
    case = bench.case
    calls: dict[str, Call] = {"torch": torch_call(case)}
    for label, path in job.files.items():
        name = f"tilec {label}"
        try:
            calls[name] = _tilec_call(case, path)
        except Exception as error:
            bench.failures[name] = f"{type(error).__name__}: {error}"
    if triton_launches is None:
        bench.failures["triton"] = _no_triton
        return calls
    return calls | {f"triton {launch.label}": launch.launch for launch in triton_launches(case)}


def _tilec_call(case: BenchCase, path: str) -> Call:
    launcher = load(path)

    def call(tensors: Mapping[str, torch.Tensor]) -> None:
        launcher(*call_arguments(case.kernel, list(tensors.values())))

    return call


def _on_sets(bench: _Bench, call: Call) -> Callable[[int], Any]:
    sets = [bench.tensors(number) for number in range(len(bench.sets))]
    return lambda number: call(sets[number])


def _right_ones(bench: _Bench, calls: Mapping[str, Call]) -> dict[str, Call]:
    """The peers that run and give the right result on set 0; says in `failures` why others do not.

    A CUDA error is not survived: it is raised, and names the peer that was running.
    """
    right = {}
    for name, call in calls.items():
        try:
            reason = _wrong(bench, call)
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error)[:400]}"
            try:
                bench.clock.wait()
            except Exception:
                raise RuntimeError(f"{name} broke the CUDA context: {reason}") from error
        if reason:
            bench.failures[name] = reason
        else:
            right[name] = call
    return right


def _wrong(bench: _Bench, call: Call) -> str:
    """Runs on a poisoned output; what is wrong with the result, or nothing."""
    case = bench.case
    output = bench.sets[0][OUTPUTS[case.kernel]]
    output.poison()
    tensors = bench.tensors(0)
    result = call(tensors)
    bench.clock.wait()
    compared = dict(tensors)
    if isinstance(result, torch.Tensor):
        compared[OUTPUTS[case.kernel]] = result
    slack = SLACK.get(case.dtype, 1.0)
    found = compare(Check(case.kernel, case.precision, slack=slack), compared)
    return f"WRONG RESULT: {found.wrong} of {found.count}, {found.first}" if found.wrong else ""


def interpret_triton() -> None:
    """Makes Triton run on the CPU, for dry runs; before anything imports it."""
    os.environ["TRITON_INTERPRET"] = "1"
