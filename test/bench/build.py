"""Compiles every variant of every benched case into build/bench, here, without a GPU.

python test/bench/build.py [--only TEXT] [--sets memory matmul] [--target sm_90a]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from bench_cases import BenchCase, matmul_cases, memory_cases
from variant_compiler import compile_variant
from worker_pool import run_jobs

ROOT = Path(__file__).resolve().parents[2]
SETS = {"memory": memory_cases, "matmul": matmul_cases}
MANIFEST = "manifest.json"

Job = tuple[BenchCase, str, str]
"""(case, target of variants that name none, output folder)"""


def compile_case(job: Job) -> dict[str, dict[str, str]]:
    """Compiles all variants: label -> its file, or the reason it has none."""
    case, target, out = job
    files: dict[str, dict[str, str]] = {}
    for variant in case.variants:
        name = f"{case.name} {variant.label}".replace(" ", "-") + ".tilec"
        try:
            compile_variant(case, variant, target, Path(out) / name)
        except Exception as error:  # a variant may not fit the target; the others do
            files[variant.label] = {"error": f"{type(error).__name__}: {error}"[:500]}
        else:
            files[variant.label] = {"file": name}
    return files


def main() -> int:
    """Parses the command line; exit code 1 if a default did not compile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = [case for name in options.sets for case in SETS[name]() if options.only in case.name]
    jobs = [(case, options.target, str(options.out)) for case in cases]
    start = time.monotonic()
    manifest: dict[str, dict[str, dict[str, str]]] = {}
    failed = 0
    for result in run_jobs(compile_case, jobs, timeout=600, processes=2):
        case = result.job[0]
        files = result.value or {"default": {"error": str(result.error)}}
        manifest[case.name] = files
        for label, entry in files.items():
            if "error" in entry:
                print(f"FAILED {case.name} {label}: {entry['error'].splitlines()[0]}")
                failed += label == "default"
    path = options.out / MANIFEST
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | manifest))
    variants = sum("file" in entry for files in manifest.values() for entry in files.values())
    print(f"{variants} variants of {len(cases)} cases in {time.monotonic() - start:.0f} s")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
