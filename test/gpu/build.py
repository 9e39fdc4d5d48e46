"""Compiles every specialisation the correctness cases need, for each target, into build/gpu.

python test/gpu/build.py [--seed N] [--limit N] [--targets sm_90a sm_80] [--only TEXT]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from example_cases import ExampleCase, draw_cases, large_cases, targets_of
from example_kernels import KERNELS
from worker_pool import run_jobs

from tilec.runtime.artefact import save
from tilec.runtime.facts import index_bits, observe_parameter

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("sm_90a", "sm_80")
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Job:
    """One artefact: the cases that share it, and what to compile them for."""

    path: Path
    targets: tuple[str, ...]
    cases: tuple[ExampleCase, ...]


def compile_job(job: Job) -> int:
    """Compiles what the just-in-time compiler would for the job's cases; gives their number."""
    kernels = {}
    for case in job.cases:
        views = [spec.view() for spec in case.arrays]
        parameters = tuple(
            observe_parameter(spec.name, view)
            for spec, view in zip(case.arrays, views, strict=True)
        )
        bits = index_bits(views)
        for target in job.targets:
            key = (parameters, bits, target)
            if key not in kernels:
                kernels[key] = KERNELS[case.kernel].compile(
                    parameters, dict(case.constants), target=target, index_bits=bits
                )
    save(job.path, list(kernels.values()))
    return len(kernels)


def jobs_of(cases: Sequence[ExampleCase], targets: Sequence[str], out: Path) -> list[Job]:
    """One job an artefact."""
    by_artefact: dict[str, list[ExampleCase]] = {}
    for case in cases:
        by_artefact.setdefault(case.artefact, []).append(case)
    return [
        Job(out / f"{name}.tilec", chosen, tuple(group))
        for name, group in by_artefact.items()
        if (chosen := targets_of(group[0].kernel, targets))
    ]


def build(options: argparse.Namespace) -> int:
    """Builds all artefacts and the manifest; gives the number that failed, after printing them."""
    cases = draw_cases(options.seed, options.limit)
    if not options.no_large:
        cases = [*cases, *large_cases()]
    cases = [case for case in cases if options.only in case.name]
    jobs = jobs_of(cases, options.targets, options.out)
    failed = compiled = 0
    start = time.monotonic()
    for result in run_jobs(compile_job, jobs, timeout=600, processes=options.processes):
        if result.error is not None:
            failed += 1
            print(f"FAILED {result.job.path.stem}: {result.error}")
        else:
            compiled += result.value
    manifest = {
        "seed": options.seed,
        "limit": options.limit,
        "targets": list(options.targets),
        "large": not options.no_large,
    }
    (options.out / MANIFEST).write_text(json.dumps(manifest))
    seconds = time.monotonic() - start
    print(
        f"{compiled} specialisations, {failed} artefacts failed, {seconds:.0f} s, in {options.out}"
    )
    return failed


def main() -> int:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--limit", type=int, default=1200, help="largest matrix dimension")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS))
    parser.add_argument("--no-large", action="store_true", help="leave out arrays over 2 GiB")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--processes", type=int, default=2, help="that compile")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return int(build(options) > 0)


if __name__ == "__main__":
    sys.exit(main())
