"""A step of Adam over lists of tensors in one launch, beside torch's fused one.

    python test/bench/optimizer_steps.py [--seed 1]

Needs torch and a GPU, and compiles just in time. Results are checked against float64 first. GPU
times are of CUDA graphs that take turns, behind a kernel that only waits; host times, of calls on
an idle GPU, what a call takes before it returns. Medians count.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from tilec.examples.adam import adam

RATE, BETAS, EPS, STEP = 1e-3, (0.9, 0.999), 1e-8, 3
LEFT = [1 - beta**STEP for beta in BETAS]
NUMBERS = (RATE, 1 - BETAS[0], 1 - BETAS[1], EPS, *LEFT)
ROUNDS = 15
CYCLES = 200_000
"""That the GPU waits in front of each timing: a tenth of a millisecond, in which the host queues
the next launch."""
TOLERANCE = {torch.float32: (1e-6, 1.0), torch.bfloat16: (4.5e-3, 0.01)}
"""Of an element's error: relative to what is more, its value or that."""

Lists = tuple[list[Any], list[Any], list[Any], list[Any]]


def drawn(random_: random.Random, count: int, most: int) -> list[int]:
    """Sizes from 1 to `most`, evenly by their logarithms."""
    return [int(math.exp(random_.uniform(0, math.log(most)))) for _ in range(count)]


def made(sizes: list[int], dtype: torch.dtype) -> Lists:
    """Parameters, gradients, and the two states."""
    p, g = ([torch.randn(n, device="cuda").to(dtype) for n in sizes] for _ in range(2))
    m = [0.1 * torch.randn(n, device="cuda") for n in sizes]
    return p, g, m, [0.1 * torch.rand(n, device="cuda") for n in sizes]


def check(sizes: list[int], dtype: torch.dtype) -> None:
    """SystemExit unless a step is right element by element."""
    lists = made(sizes, dtype)
    before = [[t.double() for t in each] for each in lists]
    adam(*lists, *NUMBERS)
    for number, (p, g, m, v) in enumerate(zip(*before, strict=True)):
        m = BETAS[0] * m + (1 - BETAS[0]) * g
        v = BETAS[1] * v + (1 - BETAS[1]) * g * g
        p = p - RATE * m / LEFT[0] / ((v / LEFT[1]).sqrt() + EPS)
        wanted = ((p, lists[0], dtype), (m, lists[2], torch.float32), (v, lists[3], torch.float32))
        for wide, found, kind in wanted:
            tolerance, least = TOLERANCE[kind]
            error = ((wide - found[number].double()).abs() / (wide.abs() + least)).max()
            if not float(error) <= tolerance:
                raise SystemExit(f"WRONG: {dtype}, array {number} of {sizes[number]}: {error}")
    print(f"right: {dtype}, {len(sizes)} arrays, {sum(sizes)} elements")


def graph_of(run: Callable[[], Any]) -> Callable[[], Any]:
    """Replays of a launch."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def gpu_times(runs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds of each, which take turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start, end = torch.cuda.Event(True), torch.cuda.Event(True)
            torch.cuda._sleep(CYCLES)
            start.record()
            run()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) * 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def host_time(run: Callable[[], Any]) -> float:
    """Microseconds until a call returns."""
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def bench(name: str, sizes: list[int]) -> None:
    """Prints the times of one list of sizes."""
    p, g, m, v = lists = made(sizes, torch.float32)
    steps = [torch.tensor(float(STEP), device="cuda") for _ in sizes]
    options = {"weight_decay": 0.0, "amsgrad": False, "maximize": False, "eps": EPS, "lr": RATE}

    def fused() -> None:
        torch._fused_adam_(p, g, m, v, [], steps, beta1=BETAS[0], beta2=BETAS[1], **options)

    def ours() -> None:
        adam(*lists, *NUMBERS)

    def moved() -> None:
        adam(p, next(fresh), m, v, *NUMBERS)

    times = gpu_times({"torch": graph_of(fused), "tilec": graph_of(ours)})
    optimizer = torch.optim.Adam([torch.nn.Parameter(t.clone()) for t in p], fused=True)
    for parameter, gradient in zip(optimizer.param_groups[0]["params"], g, strict=True):
        parameter.grad = gradient
    optimizer.step()
    fresh = iter([[t.clone() for t in g] for _ in range(ROUNDS)])
    calls = {"torch's op": fused, "optimizer.step": optimizer.step, "tilec": ours, "moved": moved}
    hosts = ", ".join(f"{name} {host_time(run):.0f}" for name, run in calls.items())
    ratio = times["torch"] / times["tilec"]
    shown = ", ".join(f"{peer} {us:.1f}" for peer, us in times.items())
    print(f"{name}, {sum(sizes)} elements: us {shown}, ratio {ratio:.2f}; host us: {hosts}")


def main() -> None:
    """Checks, then times four lists."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    random_ = random.Random(seed)
    torch.manual_seed(seed)
    sizes = drawn(random_, 300, 4_000_000)
    for dtype in TOLERANCE:
        check(sizes, dtype)
    bench("300 arrays of 1 to 4 M", sizes)
    bench("300 arrays of 1 to 1000", drawn(random_, 300, 1000))
    bench("one of 1e8 beside 299 short ones", [100_000_007, *drawn(random_, 299, 50)])
    bench("64 arrays of 2^20", [1 << 20] * 64)


if __name__ == "__main__":
    main()
