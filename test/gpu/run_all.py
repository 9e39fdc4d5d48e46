"""Runs the correctness cases from the artefacts of test/gpu/build.py; needs torch and a GPU.

python test/gpu/run_all.py [--artefacts build/gpu] [--seed N] [--only TEXT] [--processes N]

Each case gets fresh random data and poisoned outputs, and is compared element by element with a
float64 reference. Failures do not stop the run. Exit code 0 only if every case passed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from check_case import check_case, context_is_lost
from example_cases import ExampleCase, draw_cases, large_cases, targets_of
from worker_pool import JobResult, run_jobs

from tilec.runtime.artefact import load

ROOT = Path(__file__).resolve().parents[2]

CaseJob = tuple[str, str, str, int, list[ExampleCase]]
"""(artefact file, target, device, seed of the data, cases)"""


def check_artefact(job: CaseJob) -> list[dict[str, Any]]:
    """Checks cases of one artefact, one record each, up to one that breaks the CUDA context.

    The rest is then for another process.
    """
    path, target, device, seed, cases = job
    launcher = load(path, target=target)
    records = []
    for number, case in enumerate(cases):
        start = time.monotonic()
        try:
            record = check_case(launcher, case, device, seed + number)
        except Exception as error:
            record = {"error": f"{type(error).__name__}: {str(error)[:600]}"}
        record |= {"case": case.name, "target": target, "seconds": time.monotonic() - start}
        records.append(record)
        if "error" in record and context_is_lost(device):
            record["lost"] = True
            break
    return records


def records_of(result: JobResult) -> list[dict[str, Any]]:
    """The records of a job; where its process died or hung, every case of it failed."""
    if result.error is None:
        return result.value
    _, target, _, _, cases = result.job
    return [{"case": c.name, "target": target, "error": result.error} for c in cases]


def _lost_context(records: list[dict[str, Any]]) -> bool:
    return any("lost" in record for record in records)


def rest_of(result: JobResult) -> CaseJob | None:
    """The job of the cases that come after one that ended its process."""
    path, target, device, seed, cases = result.job
    done = len(records_of(result))
    return (path, target, device, seed + done, cases[done:]) if cases[done:] else None


def run(jobs: list[CaseJob], timeout: float, processes: int) -> list[dict[str, Any]]:
    """All records, of the cases after an error too."""
    records = []
    while jobs:
        ended = run_jobs(
            check_artefact, jobs, timeout=timeout, processes=processes, spent=_lost_context
        )
        results = list(ended)
        records += [record for result in results for record in records_of(result)]
        jobs = [rest for result in results if (rest := rest_of(result)) is not None]
    return records


def jobs_of(
    cases: list[ExampleCase], targets: list[str], artefacts: Path, device: str, seed: int
) -> list[CaseJob]:
    """One job an artefact and target: the process that runs it assembles its kernels once."""
    by_artefact: dict[str, list[ExampleCase]] = {}
    for case in cases:
        by_artefact.setdefault(case.artefact, []).append(case)
    return [
        (str(artefacts / f"{name}.tilec"), target, device, seed, group)
        for name, group in by_artefact.items()
        for target in targets_of(group[0].kernel, targets)
    ]


@cache
def versions() -> dict[str, str]:
    """What the run ran on."""
    import torch

    found = {"python": platform.python_version(), "torch": torch.__version__}
    if torch.cuda.is_available():
        found |= {"gpu": torch.cuda.get_device_name(0), "cuda": str(torch.version.cuda)}
    return found


def report(records: list[dict[str, Any]], options: argparse.Namespace, seconds: float) -> int:
    """Prints failures and totals, writes the JSON; gives the number that failed."""
    failures = [r for r in records if r.get("error") or r.get("wrong")]
    for failure in failures[: options.show]:
        reason = failure.get("error") or f"{failure['wrong']} wrong, {failure['first']}"
        print(f"FAILED {failure['target']} {failure['case']}\n       {reason[:900]}")
    failed_in = Counter((r["case"].split(" ")[0], r["target"]) for r in failures)
    print("kernel and target: passed/all, worst relative error")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["case"].split(" ")[0], record["target"]), []).append(record)
    for (name, target), group in sorted(groups.items()):
        worst = max((r.get("relative_error", 0.0) for r in group), default=0.0)
        passed = len(group) - failed_in[name, target]
        print(f"  {name:42s} {target:8s} {passed:3d}/{len(group):3d}  {worst:.1e}")
    summary = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": sys.argv,
        "seed": options.seed,
        "seconds": seconds,
        "passed": len(records) - len(failures),
        "failed": len(failures),
        **versions(),
    }
    out = Path(os.environ.get("OUT") or ROOT / "build")
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu-correctness.json").write_text(json.dumps(summary | {"records": records}))
    print(
        f"{summary['passed']} passed / {summary['failed']} failed "
        f"in {seconds:.0f} s (data seed {options.seed})"
    )
    return len(failures)


def main() -> int:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--artefacts", type=Path, default=ROOT / "build" / "gpu")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31, help="of the data")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--targets", nargs="+", help="default: all that were built")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu for the emulator")
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--timeout", type=float, default=90, help="seconds for one artefact")
    parser.add_argument("--show", type=int, default=25, help="failures printed in full")
    options = parser.parse_args()
    built = json.loads((options.artefacts / "manifest.json").read_text())
    drawn = draw_cases(built["seed"], built["limit"])
    large = large_cases() if built["large"] and options.device == "cuda" else []
    targets = options.targets or built["targets"]
    start = time.monotonic()
    records = []
    # Large cases one at a time: two of them and their references do not fit into 80 GB.
    for cases, processes in ((drawn, options.processes), (large, 1)):
        asked = [case for case in cases if options.only in case.name]
        jobs = jobs_of(asked, targets, options.artefacts, options.device, options.seed)
        records += run(jobs, options.timeout, processes)
    return int(report(records, options, time.monotonic() - start) > 0)


if __name__ == "__main__":
    sys.exit(main())
