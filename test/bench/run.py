"""Times tilec and its peers side by side, from the artefacts of test/bench/build.py.

python test/bench/run.py [--sets memory matmul hopper attention fused grouped layers]
    [--only TEXT...] [--quick] [--minutes M] [--peers torch] [--profile LABEL]

Needs torch, and Triton for the comparison; of tilec only its runtime. Each case first checks every
peer against a float64 reference on fresh random data, then times the best ones. A case that fails
or hangs does not stop the run. Prints the table of ratios, writes bench.json to $OUT or build/.
Exit code 1 if a result was wrong or a case failed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

import regime_results
import results as results_of_bests
from case_sets import IN_REGIMES, SETS, USUAL
from measure import MeasureJob, interpret_triton, measure_case, warm_triton
from profiling import profile
from records import record_text, versions
from regime_timing import Duration
from regimes import RegimeJob, measure_regimes, warm_candidates
from tilec_calls import with_folder
from worker_pool import JobResult, run_jobs

ROOT = Path(__file__).resolve().parents[2]
SHOWN_FAILURES = 15
WARM_FROM = 4
"""Cases from which on all of Triton's candidates are compiled first, in many processes."""

Job = MeasureJob | RegimeJob


def main() -> int:
    """Parses the command line and runs."""
    options = _options()
    start = time.monotonic()
    jobs, missing = _jobs(options)
    if not jobs:
        print(f"no case of {' '.join(options.sets)} is named like {', '.join(options.only)}")
        return 1
    if options.profile is not None:
        return profile(jobs, options.profile)
    if options.device == "cuda" and options.peers == "all" and len(jobs) >= WARM_FROM:
        processes = min(12, os.cpu_count() or 1)
        for _ in run_jobs(_warm, jobs, timeout=120, processes=processes):
            pass  # what does not compile fails again, and is reported, where it is measured
        print(f"Triton's candidates compiled in {time.monotonic() - start:.0f} s", flush=True)
    results = []
    deadline = start + 60 * options.minutes
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        for result in run_jobs(_measure, jobs, timeout=options.timeout, deadline=deadline):
            results.append(result)
            _show_progress(result)
    except KeyboardInterrupt:
        print(f"cut short after {len(results)} of {len(jobs)} cases")
    return _report(options, results, missing, time.monotonic() - start)


def _interrupt(number: int, frame: Any) -> None:
    """What was measured until a `timeout` is reported too."""
    raise KeyboardInterrupt


def _warm(job: Job) -> None:
    if isinstance(job, RegimeJob):
        warm_candidates(job)
    else:
        warm_triton(job)


def _measure(job: Job) -> dict[str, Any]:
    return measure_regimes(job) if isinstance(job, RegimeJob) else measure_case(job)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=USUAL)
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="cases named like one of these"
    )
    parser.add_argument("--artefacts", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--quick", action="store_true", help="every fourth case, short timing")
    parser.add_argument("--budget-ms", type=float, default=500, help="of interleaved timing a case")
    parser.add_argument("--sustained-s", type=float, help="sustained seconds a peer and pass")
    parser.add_argument("--peers", choices=("all", "torch"), default="all")
    parser.add_argument("--finalists", type=int, default=1, help="variants after the screening")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a case")
    parser.add_argument("--minutes", type=float, default=8, help="begin no case after these")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31, help="of the inputs")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: dry run")
    parser.add_argument(
        "--profile", metavar="PEER", help='ncu on one peer, as "tilec default" or "torch"'
    )
    options = parser.parse_args()
    if options.quick:
        options.budget_ms = min(options.budget_ms, 50)
    if options.device == "cpu":
        if "layers" in options.sets:
            parser.error("layers have no small cases for a dry run")
        interpret_triton()
    return options


def _jobs(options: argparse.Namespace) -> tuple[list[Job], dict[str, dict[str, str]]]:
    """The jobs, and for each case the variants that did not compile, with the reason."""
    built = json.loads((options.artefacts / "manifest.json").read_text())
    named = [(name, case) for name in options.sets for case in SETS[name]()]
    named = [
        (name, case) for name, case in named if any(text in case.name for text in options.only)
    ]
    named = named[::4] if options.quick else named
    duration = _duration(options, len(named))
    jobs: list[Job] = []
    missing = {}
    for number, (name, case) in enumerate(named):
        entries = built.get(case.name, {"default": {"error": "not built"}})
        entries = {label: with_folder(options.artefacts, e) for label, e in entries.items()}
        compiled = {label: entry for label, entry in entries.items() if "file" in entry}
        seed = options.seed + number
        if name in IN_REGIMES:
            peers, finalists = options.peers, options.finalists
            jobs.append(RegimeJob(case, compiled, options.device, seed, duration, peers, finalists))
        else:
            files = {label: entry["file"] for label, entry in compiled.items()}
            jobs.append(MeasureJob(case, files, options.device, seed, options.budget_ms))
        if errors := {label: e["error"] for label, e in entries.items() if "error" in e}:
            missing[case.name] = errors
    return jobs, missing


SUSTAINED_S = 1.2
"""Shorter runs end before the power limit has set the clock, and compare nothing."""
FIXED_S = 8.0
"""A case takes about this long beside its sustained runs: checks, screening, bursts."""
PEERS = 6
"""About this many finalists."""


def _duration(options: argparse.Namespace, cases: int) -> Duration:
    """Two passes of all kinds of peers; where the minutes are too short for that, one pass, or one
    of the fastest peer alone."""
    seconds = options.sustained_s or SUSTAINED_S
    left = 60 * options.minutes / max(cases, 1) - FIXED_S
    passes = 2 if left >= 2 * PEERS * seconds else 1
    few = options.quick or left < PEERS * seconds
    return Duration(6 if few else 12, 0.025, seconds, passes, options.budget_ms, few)


def _show_progress(result: JobResult) -> None:
    name, seconds = result.job.case.name, result.seconds
    print(f"{name}: {'FAILED' if result.error else 'done'} in {seconds:.1f} s", flush=True)


def _report(
    options: argparse.Namespace,
    results: list[JobResult],
    missing: dict[str, dict[str, str]],
    seconds: float,
) -> int:
    """Failures, then the table, last the totals; everything into the JSON."""
    records = [result.value for result in results if result.error is None]
    broken = {r.job.case.name: r.error for r in results if r.error is not None}
    summary: dict[str, Any] = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": sys.argv,
        "seconds": round(seconds, 1),
        "versions": versions(),
        "records": records,
        "broken": broken,
        "not_compiled": missing,
    }
    out = Path(os.environ.get("OUT") or ROOT / "build")
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(record_text(summary) + "\n")
    failures = [(r["case"], *failure) for r in records for failure in r["failures"].items()]
    for case, name, reason in failures[:SHOWN_FAILURES]:
        print(f"!! {case}: {name}: {reason.splitlines()[0][:160]}")
    if len(failures) > SHOWN_FAILURES:
        print(f"!! and {len(failures) - SHOWN_FAILURES} more in bench.json")
    wrong = sum(name.startswith("tilec") for _, name, _ in failures)
    for name, reason in broken.items():
        print(f"!! {name}: {str(reason).splitlines()[0][:300]}")
    in_regimes = [record for record in records if "regimes" in record]
    plain = [record for record in records if "regimes" not in record]
    print("\n".join([*results_of_bests.table(plain), *regime_results.table(in_regimes)]))
    print(", ".join(f"{name} {version}" for name, version in summary["versions"].items()))
    print(f"{len(records)} cases, {len(broken)} failed, {wrong} tilec variants wrong or not run, ")
    print(f"{sum(map(len, missing.values()))} not compiled; {seconds:.0f} s")
    return int(bool(wrong or broken))


if __name__ == "__main__":
    sys.exit(main())
