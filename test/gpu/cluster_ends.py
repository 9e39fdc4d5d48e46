"""Small products in clusters whose CTAs end as they do now, and as they once did.

    python test/gpu/cluster_ends.py --build                    # into build/gpu/cluster_ends; no GPU
    python test/gpu/cluster_ends.py [--seconds 12] [--tries 3] # torch and a GPU

A product in clusters of four stopped H200s within seconds: its CTAs parted by a relaxed meeting, so
that an arrival at a neighbour's mbarrier could find the shared memory of the next launch. Here
today's compiler makes it, but for the pass that decides how clusters end, and each way runs in
processes of its own: series of launches right behind each other, some with torch's kernels between,
each result compared bit for bit. The way of now comes first, since the others may stop the GPU.
Exit code 1 if that one stops it, or differs.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from bench_cases import Variant
from drawn_demands import Drawn
from product_cases import OPS, ProductCase
from soak import Soaked, others, soaked

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "gpu" / "cluster_ends"
MANIFEST = "manifest.json"
TARGET = "sm_90a"
SHAPES = ((3456, 112, 3456), (3456, 112, 2048))
"""Products that stopped a GPU."""
STAGES = (None, 3)
"""Slots of a ring: as many as there is room for, and so few that several CTAs share it."""
NOW, RELAXED, AT_ONCE = "now", "relaxed meeting", "no meeting"
WAYS = (NOW, RELAXED, AT_ONCE)
IN_SERIES = 0.7
"""So often a product follows itself, in which eight of nine processes of that time stopped."""
LAUNCHES, SERIES_SECONDS = 20, 0.5
"""Of a graph, and its replays between two looks; how long it is replayed."""
START_SECONDS = 40
"""Until a process has loaded what it compares."""
STOPPED, DIFFERED = 2, 3
"""Exit codes of a process, beside 0 and 1, which a traceback has."""


def run_way(out: Path, way: str, seconds: float, seed: int) -> int:
    """Launches the products of a way, over and over; how that went."""
    import torch

    entries = json.loads((out / MANIFEST).read_text())
    kernels = [
        compared(out, name, entry, seed) for name, entry in entries.items() if entry["way"] == way
    ]
    rng, start = random.Random(seed), time.monotonic()
    launches = 0
    try:
        between = others()
        for other in between:
            other()
        torch.cuda.synchronize()
        while time.monotonic() - start < seconds:
            launches += replayed(rng, kernels, between)
        differed = sum(int(kernel.differed) for kernel in kernels)
    except Exception as error:  # the context is lost
        after = f"{time.monotonic() - start:.1f} s, {launches:,} launches"
        print(f"the GPU stopped after {after}: {str(error).splitlines()[0]}")
        return STOPPED
    took = time.monotonic() - start
    print(f"{launches:,} launches in {took:.0f} s, {differed} elements differed")
    return DIFFERED if differed else 0


def compared(out: Path, name: str, entry: dict[str, Any], seed: int) -> Soaked:
    """A product that is right alone."""
    from tilec_calls import with_folder

    case = ProductCase("bf16", "bf16", tuple(entry["shape"]), "NN", ())
    drawn = Drawn(case, Variant("ops", OPS, ()), TARGET, entry["file"])
    told = with_folder(out, {**entry, "kernel": OPS})
    return replace(soaked(drawn, told, seed), name=name)


def replayed(
    rng: random.Random, kernels: Sequence[Soaked], between: Sequence[Callable[[], Any]]
) -> int:
    """Half a second of one product behind itself, or of a few with torch's kernels between; gives
    how many launches those were."""
    import torch

    alone = rng.random() < IN_SERIES
    chosen = [rng.choice(kernels)] if alone else rng.sample(kernels, 2)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for kernel in chosen:
            kernel.prepare()
        for _ in range(LAUNCHES):
            for kernel in chosen:
                kernel.launch()
            if not alone:
                rng.choice(between)()
    start, replays = time.monotonic(), 0
    while time.monotonic() - start < SERIES_SECONDS:
        for _ in range(LAUNCHES):
            graph.replay()
        replays += LAUNCHES
        torch.cuda.synchronize()
    for kernel in chosen:
        kernel.compare()
    return LAUNCHES * replays * len(chosen)


def run(out: Path, seconds: float, tries: int) -> int:
    """Each way in processes of its own, what is right now first; prints a line each."""
    verdicts: dict[str, list[int]] = {way: [] for way in WAYS}
    for way in WAYS:
        for number in range(tries):
            words = ["--way", way, "--seconds", str(seconds), "--seed", str(number)]
            command = [sys.executable, __file__, "--out", str(out), *words]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=seconds + START_SECONDS
                )
                code, told = done.returncode, (done.stdout or done.stderr).strip()
            except subprocess.TimeoutExpired:
                code, told = STOPPED, "does not end"
            verdicts[way].append(code)
            print(f"{way} ({number + 1}): {told.splitlines()[-1] if told else code}", flush=True)
    told = "; ".join(f"{way}: {_summary(codes)}" for way, codes in verdicts.items())
    bad = any(verdicts[NOW])
    print(f"VERDICT section 0: {'WRONG' if bad else 'right'}: {told}")
    return int(bad)


def _summary(codes: Sequence[int]) -> str:
    words = {0: "right", STOPPED: "stopped the GPU", DIFFERED: "differed"}
    counts = Counter(words.get(code, "did not run") for code in codes)
    return ", ".join(f"{word} in {number} of {len(codes)}" for word, number in counts.items())


def main() -> int:
    """Builds, runs one way, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", action="store_true", help="compile only")
    parser.add_argument("--way", choices=WAYS, help="this one, in this process")
    parser.add_argument("--seconds", type=float, default=12, help="a process")
    parser.add_argument("--tries", type=int, default=3, help="processes a way")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    told = parser.parse_args()
    if told.build:
        from cluster_ways import build

        build(told.out)
        return 0
    if told.way:
        return run_way(told.out, told.way, told.seconds, told.seed)
    return run(told.out, told.seconds, told.tries)


if __name__ == "__main__":
    sys.exit(main())
