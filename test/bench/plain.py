"""Kernels as a reader of tilec's README writes them beside torch.compile of the same formula.

python test/bench/plain.py --seed N --warm --processes 16   # compiles, compares with float64
python test/bench/plain.py --seed N [--only KERNEL...] --out plain.json

Prints the ratios of speeds, the worst first.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from plain_cases import MAKERS, Plain, draw
from records import record_text, versions
from worker_pool import run_jobs

CASE_S = 170


def tensors_of(case: Plain, device: str, seed: int) -> dict[str, Any]:
    """Fresh random arrays; what is only written is poisoned."""
    import torch
    from tensors import DTYPES

    generator = torch.Generator(device).manual_seed(seed)
    found = {}
    for name, (dtype, shape) in case.arrays.items():
        kind = (DTYPES | {"u8": torch.uint8, "f8e4m3": torch.float8_e4m3fn})[dtype]
        x = torch.randn(shape, generator=generator, device=device)
        match case.made.get(name):
            case "positive":
                x = x.abs() + 0.5
            case "logs":
                x = x.log_softmax(-1)
            case "bytes":
                x = torch.randint(0, 256, shape, generator=generator, device=device)
            case "places":
                rows = case.arrays["y"][1][0]
                x = torch.randint(0, rows, shape, generator=generator, device=device)
            case "small":
                x = x / math.sqrt(shape[-1])
            case "near one":
                x = 1 + 0.01 * x
            case "unlike":
                x = x.argsort(-1) * 0.25
        found[name] = x.to(kind)
    return found


def call_of(case: Plain) -> Any:
    """Launches tilec's kernel on tensors by name."""
    import plain_kernels

    kernel = getattr(plain_kernels, case.kernel)
    names = list(case.arrays)
    return lambda t: kernel(*(t[n] for n in names), *case.numbers, **case.constants)


def rivals_of(case: Plain) -> dict[str, Any]:
    """torch's own by name, on tensors by name; they write the outputs, too."""
    import torch
    from plain_formulas import FORMULAS

    names = list(case.arrays)

    def written(formula):
        def run(*args):
            t = dict(zip(names, args, strict=True))
            for name, value in zip(case.outputs, formula(t), strict=True):
                t[name].copy_(value)

        return run

    torch._dynamo.reset()
    eager = written(FORMULAS.get(f"{case.kernel}_own", FORMULAS[case.kernel]))
    compiled = torch.compile(written(FORMULAS[case.kernel]), fullgraph=True, dynamic=False)
    return {
        "torch eager": lambda t: eager(*(t[n] for n in names)),
        "torch compile": lambda t: compiled(*(t[n] for n in names)),
    }


def wrong(case: Plain, got: dict[str, Any], first: dict[str, Any]) -> str:
    """Why the results differ from float64's by more than their dtype explains."""
    import torch
    from plain_formulas import FORMULAS

    exact = {
        n: x.double() if x.is_floating_point() or n in case.outputs else x.clone()
        for n, x in first.items()
    }
    if "places" in case.made:
        exact["places"] = first["places"].long()
    small = case.kernel == "nearest_point"
    wanted = (
        [
            torch.cat(
                [FORMULAS[case.kernel](exact | {"x": part})[0] for part in exact["x"].split(256)]
            )
        ]
        if small
        else FORMULAS[case.kernel](exact)
    )
    for name, value in zip(case.outputs, wanted, strict=True):
        x = got[name].double()
        if case.arrays[name][0] == "i32":
            if (x != value).any():
                return f"{name}: {int((x != value).sum())} of {x.numel()} places differ"
            continue
        bound = {"f32": 1e-4, "f16": 4e-3, "bf16": 3e-2, "f8e4m3": 0.14}[case.arrays[name][0]]
        bound = max(bound, case.tolerance)
        error = ((x - value).abs() / (value.abs() + value.abs().mean() + 1e-6)).max().item()
        if not error <= bound:
            return f"{name}: relative error {error:.2e} > {bound:.0e}"
    return ""


def run_case(job: tuple[Plain, str, int, float]) -> dict[str, Any]:
    """Compares results, then microseconds by peer where there is a budget."""
    import torch
    from timing import CudaClock, HostClock, rotated_sets, time_peers

    case, device, seed, budget_ms = job
    torch._dynamo.config.cache_size_limit = 64
    clock = CudaClock() if device == "cuda" else HostClock()
    first = tensors_of(case, device, seed)
    calls = {"tilec": call_of(case)} | (rivals_of(case) if device == "cuda" else {})
    failures = {}
    for name, call in list(calls.items()):
        t = {n: x.clone() for n, x in first.items()}
        try:
            started = time.perf_counter()
            call(t)
            clock.wait()
            if reason := wrong(case, t, first):
                failures[name] = reason
            if name == "tilec":
                seconds = time.perf_counter() - started
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}"[:500]
        if name in failures:
            del calls[name]
    found: dict[str, Any] = {"failures": failures, "us": {}}
    if budget_ms:
        nbytes = sum(x.nbytes for x in first.values())
        sets = rotated_sets(nbytes)
        every = [{n: x.clone() for n, x in first.items()} for _ in range(sets)]
        peers = {n: (lambda i, call=call: call(every[i])) for n, call in calls.items()}
        about = {"sets": sets, "budget_ms": budget_ms, "least_rounds": 5, "most_rounds": 200}
        found["us"] = {
            n: [round(v, 3) for v in (t.us, t.low, t.high)]
            for n, t in time_peers(peers, clock, **about).items()
        }
        found["mb"] = round(nbytes / 1e6, 2)
    elif "tilec" in calls:
        found["seconds"] = round(seconds, 2)
    return found


def main() -> int:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--each", type=int, default=2, help="cases of a kernel")
    parser.add_argument("--only", nargs="+", default=[], choices=list(MAKERS))
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="that warm")
    parser.add_argument("--budget-ms", type=float, default=40)
    parser.add_argument("--seconds", type=float, default=600, help="in which cases begin")
    parser.add_argument("--out", type=Path, default=Path("plain.json"))
    options = parser.parse_args()
    cases = [
        c for c in draw(options.seed, options.each) if not options.only or c.kernel in options.only
    ]
    budget = 0.0 if options.warm else options.budget_ms
    jobs = [(case, "cuda", options.seed + number, budget) for number, case in enumerate(cases)]
    deadline = time.monotonic() + options.seconds
    records, failed = [], 0
    processes = options.processes if options.warm else 1
    for result in run_jobs(run_case, jobs, timeout=CASE_S, processes=processes, deadline=deadline):
        name = result.job[0].name
        if result.error is not None:
            failed += 1
            print(f"!! {name}: {result.error}"[:900], flush=True)
            continue
        for peer, why in result.value["failures"].items():
            failed += peer == "tilec"
            print(f"!! {name}: {peer}: {why}"[:400], flush=True)
        records.append({"case": name} | result.value)
    if options.warm:
        print(f"{len(records)} of {len(cases)} cases warm")
        return int(failed > 0)
    date = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    about = {"date": date, "command": sys.argv, "versions": versions(), "records": records}
    options.out.write_text(record_text(about) + "\n")
    print("\n".join(table(records)))
    return int(failed > 0)


def table(records: list[dict[str, Any]]) -> list[str]:
    """The distribution, then the cases, the worst first."""
    rows = []
    for record in records:
        times = {name: median for name, (median, *_) in record["us"].items()}
        rivals = [name for name in times if name != "tilec"]
        if "tilec" in times and rivals:
            rival = min(rivals, key=times.__getitem__)
            rows.append((times[rival] / times["tilec"], record, times["tilec"], rival))
    if not rows:
        return ["nothing was timed"]
    rows.sort(key=lambda row: row[0])
    ratios = [row[0] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    reached = sum(ratio >= 1 for ratio in ratios) / len(ratios)
    least = ratios[round(0.05 * (len(ratios) - 1))]
    found = [
        f"{len(rows)} cases, mean {mean:.3f}, at least 1 {reached:.0%}, 5th percentile {least:.3f}"
    ]
    for ratio, record, us, rival in rows:
        found.append(
            f"{ratio:6.3f} {record['case']}: {us:.2f} us {record['mb'] / us:.2f} TB/s; {rival}"
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
