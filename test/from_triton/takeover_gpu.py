"""Triton's kernels where they run, on a GPU: by both compilers in one process.

    python test/from_triton/takeover_gpu.py kernels    # results, graphs, streams, hooks, then times
    python test/from_triton/takeover_gpu.py cost       # of the host, a launch

Results are checked in float64 before anything is timed; the compilers take turns.
"""

from __future__ import annotations

import statistics
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import jit_kernels
import torch
import triton
from jit_kernels import CASES, assert_right

import tilec.triton

ROUNDS = 15
LAUNCHES = 20
"""Of a graph that is timed."""

SIZES: dict[str, dict[str, Any]] = {
    "add": {"n": 1 << 24},
    "softmax": {"rows": 8192, "columns": 1000},
    "matmul": {"m": 4096, "n": 4096, "k": 4096, "activation": None},
    "layer_norm": {"rows": 8192, "n": 4096},
    "attention": {"heads": 32, "n": 4096},
    "histogram": {"n": 1 << 20},
}


def graph_of(launch: Callable[[], Any]) -> Any:
    """A graph of launches."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            launch()
    return graph


class Recorded:
    """A function whose launches are kept, to be repeated: host code makes data anew each time."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.again: Callable[[], Any] = lambda: None

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def launch(*arguments: Any, **named: Any) -> Any:
            self.again = lambda: self.function[grid](*arguments, **named)
            return self.again()

        return launch


def time_of(graph: Any) -> float:
    """Microseconds a launch."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return 1e3 * begin.elapsed_time(end) / LAUNCHES


def look(name: str) -> str:
    """Results of a kernel by both ways in, then times against Triton's."""
    function, launch = CASES[name]
    assert_right(*launch(function, "cuda"))
    ours = tilec.triton.kernel(function)
    tilec.triton.enable()
    try:
        for _ in range(2):  # the second launch of the same shapes is known
            assert_right(*launch(function, "cuda"))
    finally:
        tilec.triton.disable()
    both = [Recorded(one) for one in (function, ours)]  # keep what the graphs read and write
    graphs = []
    for recorded in both:
        assert_right(*launch(recorded, "cuda", **SIZES[name]))
        graphs.append(graph_of(recorded.again))
    times = [[time_of(graph) for graph in graphs] for _ in range(ROUNDS)]
    theirs, mine = (statistics.median(column) for column in zip(*times, strict=True))
    return f"right; Triton {theirs:.1f} us, tilec {mine:.1f} us, ratio {theirs / mine:.2f}"


def side_stream() -> str:
    """A launch on a stream of its own waits for what is queued there."""
    add, n = tilec.triton.kernel(jit_kernels.add), 1 << 22
    stream = torch.cuda.Stream()
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.full_like(x, float("nan"))
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.copy_(2 * x)
        add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    early = stream.query()
    torch.cuda.synchronize()
    assert_right(out, x.double() + y.double())
    return f"right; the launch {'waited' if early else 'did not wait'} for the GPU"


def graphs() -> str:
    """A graph replays the launch on new data."""
    add, n = tilec.triton.kernel(jit_kernels.add), 4099
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.full_like(x, float("nan"))
    graph = graph_of(lambda: add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024))
    x.normal_()
    out.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    assert_right(out, x.double() + y.double())
    return "right"


def hooks() -> str:
    """Hooks hear of each launch; in place and not are told apart; warmup compiles."""
    heard: list[str] = []
    hook = lambda given: heard.append(given.get()["name"])  # noqa: E731
    add, n = tilec.triton.kernel(jit_kernels.add), 4000
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    add.warmup(x, y, x, n, BLOCK=1024, grid=(4,))
    expected, out = x.double() + y.double(), torch.empty_like(x)
    for _ in range(3):
        add[(4,)](x, y, out, n, BLOCK=1024)
        assert_right(out, expected)
    chain = triton.knobs.runtime.launch_enter_hook
    chain.add(hook)
    for _ in range(3):
        expected = x.double() + y.double()
        add[(4,)](x, y, x, n, BLOCK=1024)
        assert_right(x, expected)
    chain.remove(hook)
    for _ in range(3):
        expected = x.double() + y.double()
        add[(4,)](x, y, x, n, BLOCK=1024)
        assert_right(x, expected)
    assert heard == ["add"] * 3, heard
    return "right"


def host_time(launch: Callable[[], Any], count: int = 300) -> float:
    """Microseconds of the host a launch: the best of some rounds."""
    best = float("inf")
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            launch()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / count


def cost() -> str:
    """Of the host, for a launch like one before."""
    lines = []
    for name, small in (("add", {"n": 5003}), ("softmax", {}), ("matmul", {}), ("attention", {})):
        function, launch = CASES[name]
        times = []
        for one in (function, tilec.triton.kernel(function)):
            recorded = Recorded(one)
            assert_right(*launch(recorded, "cuda", **small))
            times.append(host_time(recorded.again))
        lines.append(f"{name}: Triton {times[0]:.1f} us, tilec {times[1]:.1f} us")
    return "\n  ".join(["host, a launch", *lines])


PARTS: dict[str, list[tuple[str, Callable[[], str]]]] = {
    "kernels": [
        ("stream", side_stream),
        ("graph", graphs),
        ("hooks", hooks),
        *((name, lambda name=name: look(name)) for name in CASES),
    ],
    "cost": [("cost", cost)],
}


def main() -> None:
    """Prints a line a part; one that fails says so, and the exit code."""
    failed = 0
    for word in sys.argv[1:]:
        for name, part in PARTS[word]:
            torch.manual_seed(int(time.time()))
            try:
                print(f"{name}: {part()}", flush=True)
            except Exception as error:
                failed += 1
                print(f"{name}: FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
                traceback.print_exc()
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
