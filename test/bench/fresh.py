"""Kernels that no other set has, of drawn sizes, as tilec's README has its readers write them and
leave them, beside the best of a small space of Triton's.

python test/bench/fresh_build.py --seed N --out FOLDER     # no GPU
python test/bench/fresh.py --seed N --warm                 # Triton's, into its cache
python test/bench/fresh.py --seed N --builds now=FOLDER [before=FOLDER]

Everything is compared with float64 first. Prints the ratios of speeds, the worst first.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from fresh_build import MAKERS, draw, hash_of
from fresh_case import Fresh
from records import record_text, versions
from worker_pool import run_jobs

FINALISTS = 2
"""Of Triton's candidates, after a screening."""
MEASURE_S, WARM_S = 40, 150


@dataclass(frozen=True)
class TimeJob:
    """A case, and by build the artefact's path."""

    case: Fresh
    files: Mapping[str, str]
    device: str
    seed: int
    budget_ms: float


def candidates(case: Fresh) -> Iterator[Any]:
    """Triton's launches."""
    from fresh_places_triton import PLACE_CANDIDATES
    from fresh_rows_triton import ROW_CANDIDATES
    from fresh_updates_triton import UPDATE_CANDIDATES

    every = ROW_CANDIDATES | UPDATE_CANDIDATES | PLACE_CANDIDATES
    return every[case.kernel](case)


def warm(job: TimeJob) -> int:
    """Compiles Triton's candidates without launching; gives their number."""
    import torch
    from tensors import DTYPES

    tensors = {
        spec.name: torch.empty(16, dtype=DTYPES[spec.dtype], device=job.device)
        for spec in job.case.arrays
    }
    count = 0
    for launch in candidates(job.case):
        launch.warm(tensors)
        count += 1
    return count


def time_case(job: TimeJob) -> dict[str, Any]:
    """Microseconds by peer, Triton's screening, and what was wrong."""
    import torch
    from fresh_references import expected, made_inputs, wrong
    from timing import CudaClock, HostClock, rotated_sets, time_peers

    from tilec.runtime.artefact import load

    case, clock = job.case, CudaClock() if job.device == "cuda" else HostClock()
    generator = torch.Generator(job.device).manual_seed(job.seed)
    first = made_inputs(case, job.device, generator)
    wanted = expected(case, first)
    calls: dict[str, Any] = {}
    for name, file in job.files.items():
        calls[name] = _artefact_call(case, load(file))
    for launch in candidates(case) if job.device == "cuda" else ():
        calls[f"triton {launch.label}"] = launch.launch
    failures = {}
    for name, call in list(calls.items()):
        try:
            t = first | {o: first[o].clone() for o in case.outputs}
            call(t)
            clock.wait()
            if reason := wrong(case, t, wanted):
                failures[name] = reason
        except Exception as error:  # a candidate that does not fit the device
            failures[name] = f"{type(error).__name__}: {error}"[:300]
        if name in failures:
            del calls[name]
    del wanted
    sets = rotated_sets(case.nbytes) if clock.graphs else 1
    tensors = [{n: x.clone() for n, x in first.items()} for _ in range(sets)]
    peers = {n: (lambda i, call=call: call(tensors[i])) for n, call in calls.items()}
    rivals = {n: peer for n, peer in peers.items() if n.startswith("triton")}
    about = {"sets": sets, "most_rounds": 200}
    screened = time_peers(rivals, clock, **about, budget_ms=6, least_rounds=2) if rivals else {}
    best = sorted(screened, key=lambda n: screened[n].us)[:FINALISTS]
    finals = {n: p for n, p in peers.items() if n in best or n not in rivals}
    found = time_peers(finals, clock, **about, budget_ms=job.budget_ms, least_rounds=5)
    return {
        "us": {n: [round(v, 3) for v in (t.us, t.low, t.high)] for n, t in found.items()},
        "screened": {n: round(t.us, 2) for n, t in screened.items()},
        "failures": failures,
        "mb": round(case.nbytes / 1e6, 2),
    }


def _artefact_call(case: Fresh, launcher: Any) -> Any:
    names = [spec.name for spec in case.arrays]
    return lambda t: launcher(*(t[name] for name in names), *case.scalars)


def main() -> int:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--each", type=int, default=2, help="cases of a kernel")
    parser.add_argument("--only", nargs="+", default=[], choices=list(MAKERS))
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--builds", nargs="+", default=[], metavar="NAME=FOLDER")
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cpu: tilec alone"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="that warm")
    parser.add_argument("--budget-ms", type=float, default=40)
    parser.add_argument("--seconds", type=float, default=600, help="in which cases begin")
    parser.add_argument("--out", type=Path, default=Path("fresh.json"))
    options = parser.parse_args()
    cases = draw(options.seed, options.each, options.only, small=options.device == "cpu")
    return _warm_all(options, cases) if options.warm else _time_all(options, cases)


def _warm_all(options: argparse.Namespace, cases: list[Fresh]) -> int:
    jobs = [TimeJob(case, {}, options.device, 0, 0) for case in cases]
    failed = 0
    for result in run_jobs(warm, jobs, timeout=WARM_S, processes=options.processes):
        if result.error is not None:
            failed += 1
            print(f"!! {result.job.case.name}: {result.error}"[:900], flush=True)
    print(f"{len(jobs) - failed} of {len(jobs)} cases warm")
    return int(failed > 0)


def _time_all(options: argparse.Namespace, cases: list[Fresh]) -> int:
    builds = {name: Path(folder) for name, _, folder in (b.partition("=") for b in options.builds)}
    manifests = {n: json.loads((f / "manifest.json").read_text()) for n, f in builds.items()}
    jobs = []
    for case in cases:
        files = {
            name: str(builds[name] / manifest[case.name]["file"])
            for name, manifest in manifests.items()
            if case.name in manifest
        }
        seed = hash_of(options.seed, case.name, 1)
        jobs.append(TimeJob(case, files, options.device, seed, options.budget_ms))
    records, failed = [], 0
    deadline = time.monotonic() + options.seconds
    for result in run_jobs(time_case, jobs, timeout=MEASURE_S, deadline=deadline):
        name = result.job.case.name
        if result.error is not None:
            failed += 1
            print(f"!! {name}: {result.error}"[:900], flush=True)
            continue
        for peer, why in result.value["failures"].items():
            failed += peer in builds
            print(f"!! {name}: {peer}: {why}"[:300], flush=True)
        about = {n: m[name] for n, m in manifests.items() if name in m}
        records.append({"case": name} | result.value | {"about": about})
    _write(options, records)
    for build in builds:
        print("\n".join(_table(build, records)))
    return int(failed > 0)


def _write(options: argparse.Namespace, records: list[dict[str, Any]]) -> None:
    date = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    about = {"date": date, "command": sys.argv, "versions": versions(), "records": records}
    options.out.write_text(record_text(about) + "\n")


def _table(build: str, records: list[dict[str, Any]]) -> Iterator[str]:
    rows = []
    for record in records:
        times = {name: median for name, (median, *_) in record["us"].items()}
        rivals = [name for name in times if name.startswith("triton")]
        if build in times and rivals:
            rival = min(rivals, key=times.__getitem__)
            rows.append((times[rival] / times[build], record, times[build], rival))
    if not rows:
        return
    ratios = sorted(ratio for ratio, *_ in rows)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    least = ratios[round(0.05 * (len(ratios) - 1))]
    reached = sum(ratio >= 1 for ratio in ratios) / len(ratios)
    yield f"{build}: {len(rows)} cases, mean {mean:.3f}, at least 1 {reached:.0%}"
    yield f"5th percentile {least:.3f}, least {ratios[0]:.3f}"
    for ratio, record, us, rival in sorted(rows, key=lambda row: row[0]):
        about = record["about"][build]
        code = f"{about['constants']} {about['threads'] // 32}w {about.get('registers')}r"
        rate = record["mb"] / us
        yield f"{ratio:6.3f} {record['case']}: {us:.2f} us {rate:.2f} TB/s; {rival}; {code}"


if __name__ == "__main__":
    sys.exit(main())
