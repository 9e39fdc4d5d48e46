"""Compiles every variant of every benched case into build/bench, here, without a GPU.

python test/bench/build.py [--sets memory matmul hopper attention fused grouped layers]
    [--only TEXT...] [--target sm_90a] [--cubin] [--untuned]
    [--sweep BM=128,256 BN=128 BK=64 num_warps=8 STAGES=3,4]

One artefact serves all cases that the just-in-time compiler would compile it once for.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from bench_cases import Variant
from case_sets import SETS, USUAL
from configurations import sweep
from variant_compiler import artefact_key, compile_variant
from worker_pool import JobResult, run_jobs

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = "manifest.json"
SPILLS_SHOWN = 16
"""Bytes of spills from which on a variant is named in the output."""


@dataclass(frozen=True)
class Job:
    """One artefact: a variant of the first case that needs it."""

    case: Any
    variant: Variant
    target: str
    path: Path
    cubin: bool


def compile_job(job: Job) -> dict[str, Any]:
    """Compiles; gives what the kernel takes."""
    return compile_variant(job.case, job.variant, job.target, job.path, cubin=job.cubin)


def main() -> int:
    """Parses the command line; exit code 1 if a default did not compile."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = [
        case
        for name in options.sets
        for case in SETS[name]()
        if any(text in case.name for text in options.only)
    ]
    configurations = sweep(options.sweep)
    start = time.monotonic()
    jobs: dict[str, Job] = {}
    needed: dict[str, dict[str, str]] = {}
    for case in cases:
        variants = case.swept(configurations) if configurations else case.variants
        if options.untuned:
            variants = tuple(one for one in variants if f"tilec {one.label}" in case.untuned)
        needed[case.name] = {}
        for variant in variants:
            key = artefact_key(case, variant, options.target)
            path = options.out / f"{variant.kernel}-{key}.tilec"
            jobs.setdefault(key, Job(case, variant, options.target, path, options.cubin))
            needed[case.name][variant.label] = key
    entries = {}
    keys = {job.path: key for key, job in jobs.items()}
    results = run_jobs(compile_job, list(jobs.values()), timeout=600, processes=options.processes)
    for result in results:
        entries[keys[result.job.path]] = _entry(result)
    manifest = {
        name: {label: entries[key] for label, key in labels.items()}
        for name, labels in needed.items()
    }
    failed = _show(manifest)
    path = options.out / MANIFEST
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | manifest))
    seconds = time.monotonic() - start
    variants = sum("file" in entry for files in manifest.values() for entry in files.values())
    print(f"{len(jobs)} artefacts, {variants} variants of {len(cases)} cases in {seconds:.0f} s")
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="cases named like one of these"
    )
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=USUAL)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--cubin", action="store_true", help="with machine code by ptxas")
    parser.add_argument(
        "--sweep",
        nargs="+",
        default=[],
        metavar="NAME=VALUES",
        help="all combinations instead of the cases' own variants (sets hopper, attention)",
    )
    parser.add_argument("--untuned", action="store_true", help="what nobody chose alone")
    parser.add_argument("--processes", type=int, default=2, help="that compile")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    return parser.parse_args()


def _entry(result: JobResult) -> dict[str, Any]:
    """What the manifest says of an artefact: its file and needs, or why it has none."""
    if result.error is not None:
        return {"error": result.error[:500]}
    return {"file": result.job.path.name, "kernel": result.job.variant.kernel, **result.value}


def _show(manifest: dict[str, dict[str, Any]]) -> bool:
    """Prints what failed, spills or warns, once; whether a default failed."""
    lines: dict[str, str] = {}
    failed = False
    for case, files in manifest.items():
        for label, entry in files.items():
            if "error" in entry:
                failed |= label == "default"
                reason = entry["error"].splitlines()[0]
                lines.setdefault(f"FAILED {label}: {reason}", case)
                continue
            notes = list(entry.get("messages", ()))
            if entry.get("spills", 0) >= SPILLS_SHOWN:
                notes.append(f"{entry['spills']} bytes of spills, {entry['registers']} registers")
            for note in notes:
                lines.setdefault(f"{label}: {note}", case)
    for line, case in lines.items():
        print(f"{case}: {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
