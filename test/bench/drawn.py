"""A bench that draws its own cases: kernels of all classes, compiled as nobody tuned them, beside
the best of Triton, torch.compile, cuBLAS and cuDNN.

python test/bench/drawn.py --seed N [--minutes M] [--count N] [--only CLASS...] [--peers torch]
    [--listed LIST...] [--device cpu] [--compile] [--artefacts FOLDER]

Needs the compiler, torch, Triton and a GPU; what `--compile` leaves in a folder (tilec's alone
where there is no GPU) is not compiled again. In a part of the time all cases are compiled, by
tilec, Triton and torch, in as many processes as there are cores; then, one by one, each is checked
against float64 on fresh random data and timed beside its peers, in rounds. A case begins while time
is left. Prints the distribution and the worst cases, and writes a record (`--out`, else drawn.json
in $OUT or build/). Exit code 1 if a result was wrong, or a case neither compiled nor ran.
"""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from drawn_cases import CLASSES, Drawn, draw
from drawn_compiler import CompileJob, compile_drawn
from drawn_results import table, verdicts
from listed_cases import LISTS, listed
from product_cases import INTERLEAVED
from records import record_text, versions
from worker_pool import JobResult, run_jobs

from tilec.runtime.cuda.driver import no_device_reason

ROOT = Path(__file__).resolve().parents[2]
COMPILING = 0.45
"""The part of the time in which compiling begins."""
COMPILE_S, MEASURE_S = 150, 60
"""Seconds for a case, to compile and to measure it."""
SHOWN_FAILURES = 12
EMULATED = "sm_90a"
"""The target where there is no GPU: of a dry run, and of what is compiled for another machine."""


@dataclass(frozen=True)
class MeasureJob:
    """A drawn case, and by variant what `compile_drawn` said, of artefacts in `folder`."""

    drawn: Drawn
    folder: Path
    entries: Mapping[str, Mapping[str, Any]]
    device: str
    seed: int
    interleaved_ms: float
    peers: str = "all"


def measure_drawn(job: MeasureJob) -> dict[str, Any]:
    """The record of a case. `us`: median, 10th and 90th percentile of those that went on from the
    screening, which has medians of all."""
    from regime_timing import Duration
    from regimes import RegimeJob, measure_regimes
    from tilec_calls import with_folder

    case, entries = job.drawn.case, job.entries
    compiled = {label: dict(e) for label, e in entries.items() if "error" not in e}
    files = {label: with_folder(job.folder, entry) for label, entry in compiled.items()}
    duration = Duration(interleaved_ms=job.interleaved_ms, few=True)
    on_gpu = job.device == "cuda"
    every = job.peers == "all"
    about = {"finalists": 0, "compiled": on_gpu and every, "peers": job.peers}
    about |= {"small": not on_gpu, "regimes": (INTERLEAVED,)}
    measured = measure_regimes(RegimeJob(case, files, job.device, job.seed, duration, **about))
    return {
        "number": job.drawn.number,
        "kind": job.drawn.kind,
        "case": case.name,
        "untuned": list(case.untuned),
        "us": {
            name: [round(timing[which], 3) for which in ("us", "low", "high")]
            for name, timing in measured["regimes"][INTERLEAVED].items()
        },
        "screened": {name: round(t["us"], 3) for name, t in measured["screened"].items()},
        "failures": measured["failures"],
        "reasons": {label: entry["reason"] for label, entry in compiled.items()},
        "input_sets": measured["input_sets"],
        "data_seed": job.seed,
    }


def main() -> int:
    """Parses the command line and runs."""
    options = _options()
    start = time.monotonic()
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # there is a process a core already
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    cases = listed(options.listed) or draw(
        options.seed, options.count, options.only, small=options.device == "cpu"
    )
    with tempfile.TemporaryDirectory(prefix="tilec-drawn-") as folder:
        compiled, failures = _compile(options, cases, options.artefacts or Path(folder), start)
        print(f"{len(compiled)} of {len(cases)} cases compiled: {_since(start)}", flush=True)
        if options.compile:
            return _named(failures)
        records: list[dict[str, Any]] = []
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            for record in _measure(options, compiled, failures, start):
                records.append(record)
        except KeyboardInterrupt:
            print(f"cut short after {len(records)} of {len(compiled)} cases")
    return _report(options, records, failures, time.monotonic() - start)


def _interrupt(number: int, frame: Any) -> None:
    """What was measured until a `timeout` is reported too."""
    raise KeyboardInterrupt


def _since(start: float) -> str:
    return f"{time.monotonic() - start:.0f} s"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, required=True, help="of the cases and their data")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--count", type=int, default=140, help="cases to draw")
    parser.add_argument("--only", nargs="+", default=[], choices=list(CLASSES), metavar="CLASS")
    parser.add_argument("--listed", nargs="+", default=[], choices=list(LISTS), help="none drawn")
    parser.add_argument("--peers", choices=("all", "torch"), default="all", help="torch: eager")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: dry run")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="that compile")
    parser.add_argument("--interleaved-ms", type=float, default=80, help="of timing a case")
    parser.add_argument("--out", type=Path, help="the record")
    parser.add_argument("--artefacts", type=Path, help="a folder for compiled cases, or with such")
    parser.add_argument("--compile", action="store_true", help="into that folder, and no more")
    options = parser.parse_args()
    if options.compile and options.artefacts is None:
        parser.error("--compile leaves what it compiles in a folder: give --artefacts FOLDER, too")
    return options


Failures = dict[str, str]
"""What went wrong: a case, maybe with a peer -> why."""


def _compile(
    options: argparse.Namespace, cases: list[Drawn], folder: Path, start: float
) -> tuple[list[MeasureJob], Failures]:
    """The cases of which at least one variant compiled, as drawn; what is not begun is left out."""
    gpu = options.device == "cuda" and not (options.compile and no_device_reason())
    target = _target() if gpu else EMULATED
    seed = options.seed
    compiled_for = "cuda" if gpu and options.peers == "all" else "cpu"
    jobs = [CompileJob(one, target, folder, compiled_for, seed + one.number) for one in cases]
    failures: Failures = {}
    ready = []
    for result in run_jobs(
        compile_drawn,
        jobs,
        timeout=COMPILE_S,
        processes=options.processes,
        deadline=start + 60 * options.minutes * COMPILING,
    ):
        drawn = result.job.drawn
        if result.error is not None:
            if not result.error.startswith("not begun"):
                failures[f"{drawn.name}: compiling"] = result.error
            continue
        for label, entry in result.value.items():
            if "error" in entry:
                failures[f"{drawn.name}: tilec {label}"] = entry["error"]
        job = MeasureJob(
            *(drawn, folder, result.value),
            *(options.device, result.job.seed, options.interleaved_ms, options.peers),
        )
        ready.append(job)
    return sorted(ready, key=lambda job: job.drawn.number), failures


def _target() -> str:
    """Of the GPU that is there."""
    import torch

    from tilec.hardware.target import target_for_device

    found = target_for_device(torch.cuda.get_device_capability())
    if found is None:
        raise SystemExit(f"no target runs on {torch.cuda.get_device_name()}")
    return found.name


def _measure(
    options: argparse.Namespace, jobs: list[MeasureJob], failures: Failures, start: float
) -> Iterator[dict[str, Any]]:
    deadline = start + 60 * options.minutes
    result: JobResult
    for result in run_jobs(measure_drawn, jobs, timeout=MEASURE_S, deadline=deadline):
        if result.error is None:
            yield result.value | {"seconds": round(result.seconds, 1)}
        elif not result.error.startswith("not begun"):
            failures[f"{result.job.drawn.name}: measuring"] = result.error


def _named(failures: Failures) -> int:
    """Prints the first ones; 1 if there are any."""
    for name, why in list(failures.items())[:SHOWN_FAILURES]:
        print(f"!! {name}: {why.splitlines()[0][:200]}")
    return int(bool(failures))


def _report(
    options: argparse.Namespace, records: list[dict[str, Any]], failures: Failures, seconds: float
) -> int:
    """The distribution; peers that failed are counted, tilec's failures named."""
    others: Counter[str] = Counter()
    for record in records:
        for name, why in record["failures"].items():
            if name.startswith("tilec"):
                failures[f"{record['number']} {record['kind']}: {record['case']}: {name}"] = why
            else:
                others[name.split()[0]] += 1
    summary: dict[str, Any] = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": sys.argv,
        "seed": options.seed,
        "seconds": round(seconds, 1),
        "versions": versions(),
        "table": table(verdicts(records)),
        "failures": failures,
        "records": records,
    }
    out = options.out or Path(os.environ.get("OUT") or ROOT / "build") / "drawn.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(record_text(summary) + "\n")
    _named(failures)
    print("\n".join(line[:200] for line in summary["table"]))
    print(", ".join(f"{name} {version}" for name, version in summary["versions"].items()))
    refused = ", ".join(f"{count} of {name}" for name, count in others.items()) or "none"
    print(
        f"seed {options.seed}: {len(records)} cases in {seconds:.0f} s, {len(failures)} failures;"
    )
    print(f"of the peers' candidates did not run, or were wrong: {refused}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
