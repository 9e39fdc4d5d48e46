"""Norms and a loss of `tilec.torch.layers` with their gradients, beside torch's.

    python test/bench/torch_layers.py           # on a GPU
    python test/bench/torch_layers.py --tiny    # on the emulator: that it is right

Results and gradients are checked against float64 first. Times are of the gradients alone, and of
both together, as CUDA graphs that take turns: no host is in them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch._functorch.config
import torch.nn.functional as F
from timing import rotated_sets

from tilec.torch import layers

TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1.6e-2}
"""Of an error, relative to the largest value: four roundings of bf16, sums of f32."""
SUMS = 3e-2
"""The same of the gradients of weights in bf16, which torch, too, sums over thousands of rows."""
WARM, ROUNDS = 5, 25
MOST_SETS = 8
"""Of arguments that calls rotate over, so that L2 keeps none of them."""


def at_least_f32(x: Any) -> Any:
    """What losses are taken of."""
    return x if x.dtype == torch.float64 else x.float()


Function = Callable[..., Any]
Case = tuple[str, torch.dtype, int, int]
"""A kind, the dtype, rows and columns of x."""
KINDS: dict[str, tuple[Function, Function]] = {
    "layer_norm": (
        layers.layer_norm,
        lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    ),
    "rms_norm": (layers.rms_norm, lambda x, w: F.rms_norm(x, w.shape, w, 1e-6)),
    "cross_entropy": (
        layers.cross_entropy,
        lambda x, labels: F.cross_entropy(at_least_f32(x), labels, reduction="none"),
    ),
}
"""Ours and torch's; x first."""
CASES: list[Case] = [
    ("layer_norm", torch.bfloat16, 16384, 768),
    ("layer_norm", torch.bfloat16, 4096, 1024),
    ("layer_norm", torch.bfloat16, 8192, 4096),
    ("layer_norm", torch.bfloat16, 2048, 8192),
    ("layer_norm", torch.float32, 5000, 1000),
    ("rms_norm", torch.bfloat16, 8192, 4096),
    ("cross_entropy", torch.bfloat16, 4096, 32000),
]
TINY: list[Case] = [
    ("layer_norm", torch.bfloat16, 37, 40),
    ("rms_norm", torch.float32, 9, 31),
    ("cross_entropy", torch.bfloat16, 11, 70),
]


def made(kind: str, dtype: torch.dtype, rows: int, columns: int, device: str) -> list[Any]:
    """Arguments; those that are floats want their gradients."""
    x = torch.randn(rows, columns, device=device).to(dtype).requires_grad_()
    if kind == "cross_entropy":
        return [x, torch.randint(columns, (rows,), device=device)]
    count = 2 if kind == "layer_norm" else 1
    some = [torch.randn(columns, device=device).to(dtype).requires_grad_() for _ in range(count)]
    return [x, *some]


def wanted(arguments: list[Any]) -> list[Any]:
    """Those whose gradients count."""
    return [value for value in arguments if value.requires_grad]


def both(function: Function, arguments: list[Any], slopes: Any) -> tuple[Any, ...]:
    """The result and the gradients."""
    result = function(*arguments)
    return result.detach(), *torch.autograd.grad(result, wanted(arguments), slopes)


def check(name: str, kind: str, function: Function, arguments: list[Any], slopes: Any) -> None:
    """SystemExit unless result and gradients are those of float64."""
    wide = [
        value.detach().double().requires_grad_() if value.requires_grad else value
        for value in arguments
    ]
    right = both(KINDS[kind][1], wide, slopes.double())
    found = both(function, arguments, slopes)
    for number, (ours, exact) in enumerate(zip(found, right, strict=True)):
        error = float((ours.double() - exact).abs().max() / exact.abs().max())
        dtype = arguments[0].dtype
        limit = SUMS if number > 1 and dtype == torch.bfloat16 else TOLERANCE[dtype]
        if not error <= limit:
            raise SystemExit(f"WRONG: {name} {kind}, result {number}: {error}")


def graph_of(call: Callable[[int], Any], sets: int) -> Callable[[], None]:
    """Replays of a launch on each set. Gradients run on the stream of their results, which is the
    current one."""
    for number in range(sets):
        call(number)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for number in range(sets):
            call(number)
    return graph.replay


def timed(runs: dict[str, Callable[[], None]], launches: int) -> dict[str, float]:
    """Microseconds of a launch of each, which take turns; medians."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(WARM + ROUNDS):
        for name, run in runs.items():
            start, end = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            run()
            end.record()
            end.synchronize()
            if turn >= WARM:
                times[name].append(start.elapsed_time(end) * 1e3 / launches)
    return {name: statistics.median(found) for name, found in times.items()}


def bench(case: Case, device: str) -> str:
    """Checks a case, times it where there is a GPU, and gives its line."""
    kind, dtype, rows, columns = case
    ours, torchs = KINDS[kind]
    peers = {"tilec": ours, "eager": torchs}
    if device == "cuda":
        peers["compiled"] = torch.compile(torchs, dynamic=False)
    count = rotated_sets(3 * rows * columns * dtype.itemsize, MOST_SETS) if device == "cuda" else 1
    sets = [made(*case, device) for _ in range(count)]
    like = ours(*sets[0])
    slopes = [torch.randn(like.shape, device=device).to(like.dtype) for _ in sets]
    for name, function in peers.items():
        check(name, kind, function, sets[0], slopes[0])
    title = f"{kind} {str(dtype).split('.')[-1]} {rows}x{columns}: "
    if device == "cpu":
        return title + "right"
    results = {name: [f(*arguments) for arguments in sets] for name, f in peers.items()}

    def gradients(name: str) -> Callable[[int], Any]:
        return lambda n: torch.autograd.grad(
            results[name][n], wanted(sets[n]), slopes[n], retain_graph=True
        )

    def whole(name: str) -> Callable[[int], Any]:
        return lambda n: both(peers[name], sets[n], slopes[n])

    shown = []
    for what, way in (("gradients", gradients), ("both", whole)):
        times = timed({name: graph_of(way(name), count) for name in peers}, count)
        best = min(us for name, us in times.items() if name != "tilec")
        each = ", ".join(f"{name} {us:.1f}" for name, us in times.items())
        shown.append(f"{what} us: {each}: {best / times['tilec']:.2f}")
    return title + "; ".join(shown)


def main() -> None:
    """Prints a line a case; the last figures are how much faster than the best of torch's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("kinds", nargs="*", help="of KINDS; without any, all")
    options = parser.parse_args()
    tiny, kinds = options.tiny, options.kinds or KINDS
    torch._functorch.config.donated_buffer = False  # gradients are taken many times
    with nullcontext() if tiny else torch.cuda.stream(torch.cuda.Stream()):
        for case in [case for case in (TINY if tiny else CASES) if case[0] in kinds]:
            print(bench(case, "cpu" if tiny else "cuda"), flush=True)


if __name__ == "__main__":
    main()
