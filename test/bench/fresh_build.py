"""Compiles cases of `fresh.py` into a folder, as calls would; needs no GPU.

python test/bench/fresh_build.py --seed N [--each 2] [--only KERNEL...] --out FOLDER

Which tilec compiles is PYTHONPATH's choice, so that two trees compile the same cases.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

import fresh_places
import fresh_rows
import fresh_updates
from fresh_case import Fresh, Maker, Sizes
from worker_pool import run_jobs

from tilec.compile.assembler import assemble, locate_tool
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.runtime.artefact import save
from tilec.runtime.facts import index_bits, observe_parameter

TARGET = "sm_90a"
FILES = (fresh_rows, fresh_updates, fresh_places)
MAKERS: dict[str, Maker] = fresh_rows.ROWS | fresh_updates.UPDATES | fresh_places.PLACES


@dataclass(frozen=True)
class BuildJob:
    """Case `number` of a draw, and where its artefact goes."""

    number: int
    case: Fresh
    folder: Path


def draw(seed: int, each: int, only: Sequence[str] = (), *, small: bool = False) -> list[Fresh]:
    """`each` cases a kernel, the same for a seed whatever is left out."""
    found = []
    for name, make in MAKERS.items():
        for number in range(each):
            case = make(Sizes(hash_of(seed, name, number), small))
            if not only or name in only:
                found.append(case)
    return found


def hash_of(seed: int, name: str, number: int) -> int:
    """A seed of a case's own, so that a new kernel changes no other's sizes."""
    return (
        sum(ord(letter) * 31**at % 65521 for at, letter in enumerate(name)) + seed * 1009 + number
    )


def compile_case(case: Fresh) -> CompiledKernel:
    """What a call would launch."""
    kernel = next(vars(file)[case.kernel] for file in FILES if case.kernel in vars(file))
    views = {spec.name: spec.view() for spec in case.arrays}
    return kernel.compile(
        [observe_parameter(name, view) for name, view in views.items()],
        dict(case.constants),
        target=TARGET,
        index_bits=index_bits(list(views.values())),
        sizes={name: view.shape for name, view in views.items()},
        at_most=True,
    )


def build(job: BuildJob) -> dict[str, Any]:
    """The manifest's entry."""
    kernel = compile_case(job.case)
    path = job.folder / f"{job.number:03}.tilec"
    save(path, [kernel])
    constants = {n: v for n, v in kernel.constants.items() if type(v) is int}
    entry: dict[str, Any] = {"case": job.case.name, "file": path.name, "constants": constants}
    entry |= {"threads": kernel.threads, "shared": kernel.shared_bytes}
    if locate_tool("ptxas"):
        assembly = assemble(kernel.ptx, find_target(TARGET))
        entry |= {"registers": assembly.registers, "spills": assembly.spills}
    return entry


def main() -> int:
    """Parses the command line and compiles."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--each", type=int, default=2, help="cases of a kernel")
    parser.add_argument("--only", nargs="+", default=[], choices=list(MAKERS))
    parser.add_argument("--small", action="store_true", help="sizes for the emulator")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = draw(options.seed, options.each, options.only, small=options.small)
    jobs = [BuildJob(number, case, options.out) for number, case in enumerate(cases)]
    manifest, failed = {}, 0
    for result in run_jobs(build, jobs, timeout=150, processes=options.processes):
        if result.error is not None:
            failed += 1
            print(f"!! {result.job.case.name}: {result.error}"[:600], flush=True)
            continue
        manifest[result.job.case.name] = result.value
        print(f"{result.seconds:5.1f} s {result.value}", flush=True)
    (options.out / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
