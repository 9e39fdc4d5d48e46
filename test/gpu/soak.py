"""Runs many kernels as people do, for minutes: overlapping, in graphs, beside other libraries'.

    python test/gpu/soak.py --build [--count 240] [--seed N] [--processes 2]     # no GPU
    python test/gpu/soak.py [--minutes 10] [--seed N]                            # torch and a GPU

A kernel that is right alone may break beside others: what one leaves under way meets the shared
memory, the barriers or the arrays of the next. Each kernel of `soak_cases` is first compared with
its float64 reference. Then groups of them run over and over, on one to three streams, launched one
by one or as a graph, with products, norms, attention and copies of torch between, and every result
must be equal bit for bit to the one that was compared. Half of the time one kernel follows itself
in a long series: what a launch leaves under way is most likely to meet the same code again, and on
an H200 it took 50,000 to 200,000 launches until one did. Exit code 1 if a result differs, or the
GPU stops.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pickle
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from drawn_demands import Drawn
from records import record_text
from soak_cases import soak_cases
from worker_pool import run_jobs

from tilec.messages.diagnostics import CompileError

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "gpu" / "soak"
CASES, MANIFEST = "cases.pickle", "manifest.json"
MOST_STREAMS = 3
MOST_IN_GROUP = (1, 2, 8)
"""Kernels of a group at most, one of these: of few, launches of one meet each other more often."""
MOST_REPEATS = 40
"""Launches of a kernel in a group, one behind the other."""
SERIES_LAUNCHES, SERIES_SECONDS = 20, 0.5
"""Launches in a graph of one kernel, and how long it is replayed."""
MOST_REPLAYS = 30
LOADED_AT_A_TIME = 8
MOST_RECENT = 16
"""Groups that are named where the GPU stops."""


# -- without a GPU --------------------------------------------------------------------------------


def compile_soaked(job: tuple[Drawn, str]) -> dict[str, Any] | None:
    """Compiles into files, to machine code where there is a ptxas; None where it is refused."""
    from variant_compiler import compile_variant

    drawn, out = job
    try:
        path = Path(out) / drawn.file
        entry = compile_variant(drawn.case, drawn.variant, drawn.target, path, cubin=True)
    except CompileError:
        return None
    return {"file": drawn.file, "kernel": drawn.variant.kernel, **entry}


def build(out: Path, seed: int, count: int, processes: int) -> int:
    """Compiles what is drawn; gives how many broke the compiler."""
    out.mkdir(parents=True, exist_ok=True)
    cases, plans = soak_cases(seed, count)
    entries, broken = {}, 0
    jobs = [(drawn, str(out)) for drawn in cases]
    for result in run_jobs(compile_soaked, jobs, timeout=180, processes=processes):
        if result.error is not None:
            broken += 1
            print(f"BROKEN {result.job[0].name}\n       {result.error}", flush=True)
        elif result.value is not None:
            entries[result.job[0].file] = result.value
    (out / CASES).write_bytes(pickle.dumps(cases))  # read by the same sources
    about = {"seed": seed, "count": count, "products": plans, "entries": entries}
    (out / MANIFEST).write_text(json.dumps(about))
    print(f"{len(entries)} of {len(cases)} compiled, {broken} broken; products: {plans}")
    return broken


# -- on the GPU -----------------------------------------------------------------------------------


@dataclass
class Soaked:
    """A kernel with its arrays. `outputs`: arrays it writes; `before`: what they hold in front of a
    launch, poison or inputs; `right`: their bits after it, once compared with the reference.

    `once`: a second launch finds changed inputs.
    `differed`: on the GPU, how many elements were not equal since the last look.
    """

    name: str
    launch: Callable[[], Any]
    outputs: list[Any]
    before: list[Any]
    right: list[Any]
    once: bool
    differed: Any

    def prepare(self) -> None:
        """Poisons the outputs, or restores what the kernel changes."""
        for output, before in zip(self.outputs, self.before, strict=True):
            output.copy_(before)

    def compare(self) -> None:
        """Counts the elements whose bits are not the right ones."""
        for output, right in zip(self.outputs, self.right, strict=True):
            self.differed += (output != right).sum()


def soaked(drawn: Drawn, entry: dict[str, Any], seed: int) -> Soaked:
    """Launches a kernel once, alone. ValueError if the result is wrong."""
    import torch
    from measured_cases import changed, expected_of, filled, written
    from tilec_calls import tilec_call

    generator = torch.Generator(device="cuda").manual_seed(seed)
    storages = filled(drawn.case, "cuda", generator)
    tensors = {name: storage.tensor for name, storage in storages.items()}
    call = tilec_call(drawn.case, entry, "cuda")
    found = [tensors[name] for name in written(drawn.case)]
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    outputs = [tensor.view(bits[tensor.itemsize]) for tensor in found]
    before = [output.clone() for output in outputs]
    expected = expected_of(drawn.case, tensors)
    call(tensors)
    torch.cuda.synchronize()
    wrong = expected.wrong(found[0] if len(found) == 1 else found)
    if wrong:
        raise ValueError(f"{drawn.name}: {wrong}")
    right = [output.clone() for output in outputs]
    counter = torch.zeros((), dtype=torch.int64, device="cuda")
    once = bool(changed(drawn.case))
    return Soaked(drawn.name, lambda: call(tensors), outputs, before, right, once, counter)


def others() -> list[Callable[[], Any]]:
    """Kernels of torch, cuBLAS and cuDNN for all parts of the GPU."""
    import torch
    import torch.nn.functional as F

    def normal(*shape: int, dtype: Any = torch.bfloat16) -> Any:
        return torch.randn(shape, device="cuda", dtype=dtype)

    a, b, c = normal(512, 768), normal(768, 640), normal(3000, 3000)
    wide, heads = normal(4000, 4096, dtype=torch.float32), normal(2, 8, 512, 64)
    into = torch.empty_like(wide)
    return [
        lambda: torch.mm(a, b),
        lambda: torch.mm(c, c),
        lambda: torch.relu(wide[:100]),
        lambda: torch.softmax(wide, -1),
        lambda: F.layer_norm(wide, (4096,)),
        lambda: into.copy_(wide),
        lambda: torch.cumsum(wide[:64], -1),
        lambda: F.scaled_dot_product_attention(heads, heads, heads),
        lambda: into[:200].fill_(1.5),
    ]


Turn = tuple[Soaked, list[Callable[[], Any]], int]
"""A kernel, what else runs between its launches, and how many times it is launched."""


@dataclass
class Group:
    """Turns on each of some streams; a kernel is in one of them at most."""

    lanes: list[list[Turn]]

    def run(self) -> None:
        """Issues all of it; the streams begin behind the current one, which then waits for them."""
        import torch

        current = torch.cuda.current_stream()
        streams = [current, *(torch.cuda.Stream() for _ in self.lanes[1:])]
        for stream, lane in zip(streams, self.lanes, strict=True):
            stream.wait_stream(current)
            with torch.cuda.stream(stream):
                for kernel, between, times in lane:
                    _run_turn(kernel, between, times)
        for stream in streams[1:]:
            current.wait_stream(stream)

    @property
    def names(self) -> list[str]:
        """What is in it."""
        return [kernel.name for lane in self.lanes for kernel, _, _ in lane]


def _run_turn(kernel: Soaked, between: Sequence[Callable[[], Any]], times: int) -> None:
    kernel.prepare()
    for _ in range(times):
        kernel.launch()
        for other in between:
            other()
    kernel.compare()


def drawn_group(rng: random.Random, kernels: Sequence[Soaked], torch_ones: Any) -> Group:
    """Some kernels dealt out to one to three streams."""
    lanes: list[list[Turn]] = [[] for _ in range(rng.randint(1, MOST_STREAMS))]
    size = rng.randint(1, rng.choice(MOST_IN_GROUP))
    for kernel in rng.sample(kernels, min(len(kernels), size)):
        between = rng.sample(torch_ones, rng.choice((0, 0, 1, 2)))
        times = 1 if kernel.once else rng.randint(1, MOST_REPEATS)
        rng.choice(lanes).append((kernel, between, times))
    return Group([lane for lane in lanes if lane])


def soak(kernels: Sequence[Soaked], minutes: float, seed: int) -> dict[str, Any]:
    """Runs groups until the time is over; what was done, and what differed."""
    import torch

    rng, torch_ones = random.Random(seed), others()
    for other in torch_ones:  # what a library sets up at the first call, a capture forbids
        other()
    torch.cuda.synchronize()
    done: Counter[str] = Counter()
    differed: Counter[str] = Counter()
    start = last = time.monotonic()
    in_series = 0.0
    recent: list[list[str]] = []
    while (now := time.monotonic() - start) < minutes * 60:
        try:
            if in_series < now / 2:
                kernel = rng.choice(kernels)
                recent = [*recent[-MOST_RECENT:], [kernel.name, "in a series"]]
                done["launches"] += _run_series(kernel)
                done["series"] += 1
                in_series += time.monotonic() - start - now
                differed += _look(kernels)
                continue
            replays = rng.choice((0, rng.randint(1, MOST_REPLAYS)))
            group = drawn_group(rng, kernels, torch_ones)
            recent = [*recent[-MOST_RECENT:], group.names]
            done["launches"] += _run_group(group, replays)
            done["graphs" if replays else "plain groups"] += 1
        except Exception as error:  # the context is lost: nothing more can run
            text = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            seconds = time.monotonic() - start
            return {"stopped": text, "after": seconds, "done": done, "recent": recent}
        if time.monotonic() - last > 30:
            last = time.monotonic()
            print(f"{last - start:.0f} s: {dict(done)}, differed {differed.total()}", flush=True)
    torch.cuda.synchronize()
    differed += _look(kernels)
    return {"done": done, "differed": differed, "seconds": time.monotonic() - start}


def _run_group(group: Group, replays: int) -> int:
    """Plainly, or as a graph that is replayed; gives the number of launches of our kernels."""
    import torch

    launches = sum(times for lane in group.lanes for _, _, times in lane)
    if not replays:
        group.run()
        return launches
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        group.run()
    for _ in range(replays):
        graph.replay()
    torch.cuda.synchronize()  # the graph's memory goes with it
    return launches * replays


def _run_series(kernel: Soaked) -> int:
    """Launches a kernel right behind itself, over and over; gives how often."""
    import torch

    times = 1 if kernel.once else SERIES_LAUNCHES
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.prepare()
        for _ in range(times):
            kernel.launch()
        if kernel.once:
            kernel.compare()
    start, replays = time.monotonic(), 0
    while time.monotonic() - start < SERIES_SECONDS:
        for _ in range(SERIES_LAUNCHES):
            graph.replay()
        replays += SERIES_LAUNCHES
        torch.cuda.synchronize()
    kernel.compare()
    return times * replays


def _look(kernels: Sequence[Soaked]) -> Counter[str]:
    """How many elements differed, by kernel, since the last look."""
    import torch

    counts = torch.stack([kernel.differed for kernel in kernels]).tolist()
    for kernel in kernels:
        kernel.differed.zero_()
    return Counter({k.name: n for k, n in zip(kernels, counts, strict=True) if n})


def run(out: Path, minutes: float, seed: int, only: str) -> int:
    """Compares each kernel, then soaks them; 1 if anything is wrong."""
    import torch

    built = json.loads((out / MANIFEST).read_text())
    kernels, wrong = _compared(out, built["entries"], seed, only)
    print(f"{len(kernels)} kernels are right alone, wrong: {wrong}", flush=True)
    found = soak(kernels, minutes, seed)
    found |= {
        "gpu": torch.cuda.get_device_name(0),
        "date": datetime.date.today().isoformat(),
        "seeds": {"drawn": built["seed"], "run": seed},
        "kernels": len(kernels),
        "products": built["products"],
        "wrong alone": wrong,
    }
    print(record_text(found))
    folder = Path(os.environ.get("OUT") or ROOT / "build")
    (folder / "soak.json").write_text(record_text(found) + "\n")
    return int(bool(wrong or found.get("stopped") or found.get("differed")))


def _compared(out: Path, entries: Any, seed: int, only: str) -> tuple[list[Soaked], list[str]]:
    """The kernels that are right alone, and what is wrong with the others."""
    from tilec_calls import with_folder

    def compared(drawn: Drawn) -> Soaked | str:
        try:
            return soaked(drawn, with_folder(out, entries[drawn.file]), seed + int(drawn.file[:4]))
        except ValueError as error:
            return str(error)

    cases = pickle.loads((out / CASES).read_bytes())
    chosen = [one for one in cases if one.file in entries and re.search(only, one.name)]
    with ThreadPoolExecutor(LOADED_AT_A_TIME) as threads:  # drivers assemble without the GIL
        found = list(threads.map(compared, chosen))
    kernels = [one for one in found if isinstance(one, Soaked)]
    return kernels, [one for one in found if isinstance(one, str)]


def main() -> int:
    """Builds or runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", action="store_true", help="compile only")
    parser.add_argument("--count", type=int, default=240, help="of kernels drawn")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, and in which order")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--processes", type=int, default=2, help="that compile")
    parser.add_argument("--only", default="", help="kernels whose names match")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.build:
        return int(build(options.out, options.seed, options.count, options.processes) > 0)
    return run(options.out, options.minutes, options.seed, options.only)


if __name__ == "__main__":
    sys.exit(main())
