"""A bench of kernels with products that no example, no rule and no other bench has.

python test/bench/unseen.py --seed N [--each 2] [--only NAME...] [--compile] [--device cpu]

Kinds (`unseen_*_cases.py`) say what each computes; sizes are drawn by the seed. `--compile` only
fills the compilers' caches, in processes side by side; without it each case is compared with
float64 on fresh random data, with poisoned outputs, then timed: tilec untuned, Triton the best of
its configurations, in turns. TILEC_TREE may name another checkout, whose compiler is timed.
Prints a line a case, the worst first, with tilec's plan; the record goes to `--out`.
`--device cpu`: tilec's compiler alone.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, os.environ.get("TILEC_TREE") or str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

import torch
import unseen_attention_cases
import unseen_gather_cases
import unseen_product_cases
from drawn_cases import Source
from records import record_text, versions
from unseen_case import Kind, Maker, Sizes, Tensors

KINDS = {
    kind.name: kind
    for module in (unseen_product_cases, unseen_attention_cases, unseen_gather_cases)
    for kind in module.KINDS
}
SETS_BYTES, MOST_SETS = 256_000_000, 24


def cases(seed: int, count: int, only: list[str]) -> list[tuple[Kind, Sizes, int]]:
    """`count` of each kind, and the seed of their data."""
    sources = [Source(seed * 1000 + number, small=False) for number in range(len(KINDS))]
    return [
        (kind, kind.draw(source), seed * 1000 + number * 10 + turn)
        for turn in range(count)
        for number, (kind, source) in enumerate(zip(KINDS.values(), sources, strict=True))
        if not only or kind.name in only
    ]


def compile_case(kind: Kind, sizes: Sizes, seed: int, device: str) -> list[str]:
    """What went wrong."""
    wrong = []
    tensors = kind.tensors(Maker(device, seed), sizes)
    launches = [("tilec", lambda: kind.launches(tensors, sizes))]
    if device == "cuda":
        for config in kind.configurations(sizes):
            launches.append((str(config), lambda c=config: kind.rivals(tensors, sizes, c)))
    for name, made in launches:
        try:
            for launch in made():
                launch.compile()
                if name == "tilec" and device == "cuda":
                    launch.run()  # the driver keeps the machine code
        except Exception as error:
            wrong.append(f"{kind.label(sizes)}: {name}: {type(error).__name__}: {str(error)[:300]}")
    return wrong


def run_all(launches: Any) -> None:
    """One behind the other."""
    for launch in launches:
        launch.run()


def wrong(kind: Kind, tensors: Tensors, sizes: Sizes, expected: Tensors) -> str:
    """Why the tensors are not what is expected, or nothing."""
    found = kind.found(tensors, sizes)
    for name, right in expected.items():
        off = (found[name].double() - right).norm() / right.norm().clamp(min=1e-30)
        if not off.item() < kind.tolerance:
            return f"{name} is off by {off.item():.2e}"
    return ""


def poison(tensors: Tensors, fresh: Tensors) -> None:
    """Outputs as they were made: NaN, or zeros where launches add."""
    for name, made in fresh.items():
        tensors[name].view(torch.uint8).copy_(made.view(torch.uint8))


def measure(kind: Kind, sizes: Sizes, seed: int, budget_ms: float) -> dict[str, Any]:
    """A record: microseconds of tilec and of Triton's configurations, the plan, what failed."""
    from timing import CudaClock, time_peers

    maker = Maker("cuda", seed)
    tensors = kind.tensors(maker, sizes)
    expected = kind.reference(tensors, sizes)
    nbytes = sum(t.nbytes for t in tensors.values())
    count = max(1, min(MOST_SETS, SETS_BYTES // nbytes + 1))
    sets = [tensors] + [
        kind.tensors(Maker("cuda", seed + 7919 * i), sizes) for i in range(1, count)
    ]
    fresh = {
        name: tensor.clone()
        for name, tensor in tensors.items()
        if name in kind.added or id(tensor) in maker.filled
    }
    makers: dict[str, Any] = {"tilec": lambda t: kind.launches(t, sizes)}
    for config in kind.configurations(sizes):
        label = " ".join(f"{k}={v}" for k, v in config.items())
        makers[label] = lambda t, c=config: kind.rivals(t, sizes, c)
    peers, failed = {}, {}
    for label, make in makers.items():
        poison(tensors, fresh)
        try:
            run_all(make(tensors))
            torch.cuda.synchronize()
            why = wrong(kind, tensors, sizes, expected)
        except Exception as error:
            why = f"{type(error).__name__}: {str(error)[:200]}"
        if why:
            failed[label] = why
            continue
        made = [make(t) for t in sets]
        peers[label] = lambda i, m=made: run_all(m[i])
    del expected
    us: dict[str, float] = {}
    if peers:
        about = {"sets": count, "budget_ms": budget_ms}
        screened = time_peers(peers, CudaClock(), least_rounds=3, most_rounds=6, **about)
        rivals = sorted((t.us, n) for n, t in screened.items() if n != "tilec")
        last = {n: peers[n] for n in ["tilec", *(n for _, n in rivals[:2])] if n in peers}
        timed = time_peers(last, CudaClock(), least_rounds=7, **about)
        us = {name: round(t.us, 2) for name, t in timed.items()}
    record = {"case": kind.label(sizes), "us": us, "failed": failed}
    return record | {"plan": plan(kind.launches(tensors, sizes))}


def plan(launches: Any) -> list[str]:
    """The lines of tilec's report that say most."""
    words = ("warps:", "tile", "specialis", "programs:", "copy", "register", "instruction", "auto")
    lines = []
    for launch in launches:
        report = launch.kernel.report(*launch.arguments, **launch.constants)
        lines += [one[:230] for one in report.splitlines() if any(word in one for word in words)]
    return lines[:24]


def main() -> int:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--each", type=int, default=2, help="cases of a kind")
    parser.add_argument("--only", nargs="+", default=[], choices=list(KINDS), metavar="NAME")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--budget-ms", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path("unseen.json"))
    options = parser.parse_args()
    drawn = cases(options.seed, options.each, options.only)
    if options.compile or options.device == "cpu":
        return compile_all(drawn, options)
    records = []
    for kind, sizes, seed in drawn:
        try:
            records.append(measure(kind, sizes, seed, options.budget_ms))
        except Exception as error:
            records.append({"case": kind.label(sizes), "us": {}, "failed": {"all": repr(error)}})
        torch.cuda.empty_cache()
        options.out.write_text(record_text({"versions": versions(), "records": records}) + "\n")
    print("\n".join(shown(records)))
    return 0


def compile_all(drawn: list[tuple[Kind, Sizes, int]], options: argparse.Namespace) -> int:
    """Cases of a kind one behind the other, as they share kernels."""
    context = torch.multiprocessing.get_context("spawn")
    by_kind: dict[str, list[Any]] = {}
    for one in drawn:
        by_kind.setdefault(one[0].name, []).append((one[0].name, *one[1:]))
    with concurrent.futures.ProcessPoolExecutor(options.processes, context) as pool:
        jobs = [pool.submit(compile_kind, some, options.device) for some in by_kind.values()]
        for job in concurrent.futures.as_completed(jobs):
            print("\n".join(job.result()), flush=True)
    return 0


def compile_kind(some: list[Any], device: str) -> list[str]:
    """What went wrong with the cases of a kind."""
    start, lines = time.monotonic(), []
    for name, sizes, seed in some:
        lines += compile_case(KINDS[name], sizes, seed, device)
    return [*lines, f"{some[0][0]}: {time.monotonic() - start:.0f} s"]


def shown(records: list[dict[str, Any]]) -> list[str]:
    """The table, the worst first."""
    rows = []
    for record in records:
        us = record["us"]
        rivals = [(v, k) for k, v in us.items() if k != "tilec"]
        if "tilec" in us and rivals:
            best, label = min(rivals)
            rows.append((best / us["tilec"], record, best, label))
    lines = [
        f"{ratio:5.2f} {one['case']:52} {one['us']['tilec']:9.2f} us, Triton {best:9.2f} {label}"
        for ratio, one, best, label in sorted(rows, key=lambda row: row[0])
    ]
    if rows:
        mean = math.exp(sum(math.log(row[0]) for row in rows) / len(rows))
        lines.append(
            f"{len(rows)} cases, mean {mean:.3f}, {sum(r[0] >= 1 for r in rows)} at least 1"
        )
    for record in records:
        lines += [f"!! {record['case']}: {k}: {v[:160]}" for k, v in record["failed"].items()]
    return lines


if __name__ == "__main__":
    sys.exit(main())
