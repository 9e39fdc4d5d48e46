"""A bench of kernels with products that no example, no rule and no other bench has.

python test/bench/unseen.py --seed N [--each 2] [--only NAME...] [--compile] [--device cpu]

Kinds (`unseen_*_cases.py`) say what each computes; sizes are drawn by the seed. `--compile` only
fills the compilers' caches, in processes side by side; without it each case is compared with
float64 on fresh random data, with poisoned outputs, then timed: tilec untuned, Triton the best of
its configurations, in turns. TILEC_TREE may name another checkout, whose compiler is timed.
`--tiles` times tilec with these constants, too; `--best-of RECORD` of Triton only what was fastest
there, and compiles none. Prints a line a case, the worst first; the record, with tilec's plan, goes
to `--out`. `--more NAME...`: three times as many of these. `--device cpu`: tilec's compiler alone.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, os.environ.get("TILEC_TREE") or str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

import exam_image_cases
import exam_place_cases
import exam_product_cases
import exam_row_cases
import exam_sequence_cases
import exam_update_cases
import torch
import unseen_attention_cases
import unseen_gather_cases
import unseen_masked_cases
import unseen_product_cases
from drawn_cases import Source
from records import record_text, versions
from unseen_case import Call, Kind, Maker, Sizes, Tensors

KINDS = {
    kind.name: kind
    for module in (
        unseen_product_cases,
        unseen_attention_cases,
        unseen_gather_cases,
        unseen_masked_cases,
        exam_row_cases,
        exam_update_cases,
        exam_place_cases,
        exam_image_cases,
        exam_product_cases,
        exam_sequence_cases,
    )
    for kind in module.KINDS
}
SETS_BYTES, MOST_SETS = 256_000_000, 24


def cases(
    seed: int, count: int, only: Sequence[str], more: Sequence[str] = ()
) -> list[tuple[Kind, Sizes, int]]:
    """`count` of each kind, three times as many of those named `more`, and the seed of their
    data."""
    sources = [Source(seed * 1000 + number, small=False) for number in range(len(KINDS))]
    return [
        (kind, kind.draw(source), seed * 1000 + number * 10 + turn)
        for turn in range(3 * count)
        for number, (kind, source) in enumerate(zip(KINDS.values(), sources, strict=True))
        if (not only or kind.name in only) and (turn < count or kind.name in more)
    ]


def candidates(
    kind: Kind, sizes: Sizes, tiles: Sequence[str], rivals: Sequence[str] | None
) -> dict[str, Callable[[Tensors], Any]]:
    """What makes launches of tensors, by label: tilec as it is, and with constants such as "BM=64
    BN=64"; Triton's configurations, or those of the labels `rivals`."""
    found: dict[str, Callable[[Tensors], Any]] = {"tilec": lambda t: kind.launches(t, sizes)}
    for text in tiles:
        given = {name: int(size) for name, size in (one.split("=") for one in text.split())}
        found[f"tilec {text}"] = lambda t, g=given: [
            replace(launch, constants={**launch.constants, **g})
            for launch in kind.launches(t, sizes)
        ]
    for config in kind.configurations(sizes):
        label = " ".join(f"{k}={v}" for k, v in config.items())
        if rivals is None or label in rivals:
            found[label] = lambda t, c=config: kind.rivals(t, sizes, c)
    if kind.library and (rivals is None or "torch" in rivals):
        found["torch"] = lambda t: [Call(kind.library(t, sizes))]
    return found


def compile_case(
    kind: Kind, sizes: Sizes, seed: int, device: str, tiles: Sequence[str], *, alone: bool
) -> list[str]:
    """What went wrong."""
    wrong = []
    tensors = kind.tensors(Maker(device, seed), sizes)
    for name, make in candidates(kind, sizes, tiles, () if alone else None).items():
        try:
            for launch in make(tensors):
                launch.compile()
                if launch.grid is None and device == "cuda":
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


def measure(
    kind: Kind,
    sizes: Sizes,
    seed: int,
    budget_ms: float,
    tiles: Sequence[str] = (),
    rivals: Sequence[str] | None = None,
) -> dict[str, Any]:
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
    peers, failed = {}, {}
    for label, make in candidates(kind, sizes, tiles, rivals).items():
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
    all_of_them: dict[str, float] = {}
    if peers:
        about = {"sets": count, "budget_ms": budget_ms}
        screened = time_peers(peers, CudaClock(), least_rounds=3, most_rounds=6, **about)
        others = sorted((t.us, n) for n, t in screened.items() if not n.startswith("tilec"))
        last = {n: peers[n] for n in ["tilec", *(n for _, n in others[:2])] if n in peers}
        timed = time_peers(last, CudaClock(), least_rounds=7, **about)
        us = {name: round(t.us, 2) for name, t in timed.items()}
        all_of_them = {name: round(t.us, 2) for name, t in screened.items()}
    record = {"case": kind.label(sizes), "us": us, "screened": all_of_them, "failed": failed}
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
    parser.add_argument("--more", nargs="+", default=[], choices=list(KINDS), metavar="NAME")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--budget-ms", type=float, default=60)
    parser.add_argument("--tiles", nargs="+", default=[], help='constants, as "BM=64 BN=64"')
    parser.add_argument("--best-of", type=Path, help="a record: of Triton what was fastest there")
    parser.add_argument("--out", type=Path, default=Path("unseen.json"))
    options = parser.parse_args()
    drawn = cases(options.seed, options.each, options.only, options.more)
    if options.compile or options.device == "cpu":
        return compile_all(drawn, options)
    records = []
    best = fastest(options.best_of) if options.best_of else {}
    for kind, sizes, seed in drawn:
        about = (options.budget_ms, options.tiles, best.get(kind.label(sizes)))
        try:
            records.append(measure(kind, sizes, seed, *about))
        except Exception as error:
            records.append({"case": kind.label(sizes), "us": {}, "failed": {"all": repr(error)}})
        torch.cuda.empty_cache()
        options.out.write_text(record_text({"versions": versions(), "records": records}) + "\n")
    print("\n".join(shown(records)))
    return 0


def fastest(record: Path) -> dict[str, list[str]]:
    """Of each case of a record Triton's fastest configuration."""
    found = {}
    for one in json.loads(record.read_text())["records"]:
        rivals = {name: us for name, us in one["us"].items() if not name.startswith("tilec")}
        found[one["case"]] = [min(rivals, key=lambda name: rivals[name])] if rivals else []
    return found


def compile_all(drawn: list[tuple[Kind, Sizes, int]], options: argparse.Namespace) -> int:
    """Cases of a kind one behind the other, as they share kernels."""
    context = torch.multiprocessing.get_context("spawn")
    by_kind: dict[str, list[Any]] = {}
    for one in drawn:
        by_kind.setdefault(one[0].name, []).append((one[0].name, *one[1:]))
    with concurrent.futures.ProcessPoolExecutor(options.processes, context) as pool:
        alone = options.device == "cpu" or options.best_of is not None
        about = (options.device, options.tiles, alone)
        jobs = [pool.submit(compile_kind, some, *about) for some in by_kind.values()]
        for job in concurrent.futures.as_completed(jobs):
            print("\n".join(job.result()), flush=True)
    return 0


def compile_kind(some: list[Any], device: str, tiles: Sequence[str], alone: bool) -> list[str]:
    """What went wrong with the cases of a kind."""
    start, lines = time.monotonic(), []
    for name, sizes, seed in some:
        lines += compile_case(KINDS[name], sizes, seed, device, tiles, alone=alone)
    return [*lines, f"{some[0][0]}: {time.monotonic() - start:.0f} s"]


def shown(records: list[dict[str, Any]]) -> list[str]:
    """The table, the worst first."""
    rows = []
    for record in records:
        us = record["us"]
        rivals = [(v, k) for k, v in us.items() if not k.startswith("tilec")]
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
