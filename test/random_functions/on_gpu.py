"""The same on a GPU: each kernel several times on fresh numbers, on two streams, and up to three
times on the same, one launch right behind the other, which reads what the one before wrote.

    python test/random_functions/on_gpu.py --seed 7 --seconds 60 [--progress FILE]

Needs torch; compiles just in time for the GPU, each fifth kernel for `sm_80`. Several such
processes side by side keep a GPU busy. `--progress`: a file that says which kernel is the next,
should the GPU stop.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from random_functions.cases import (  # noqa: E402
    NUMPY,
    Case,
    beside,
    difference,
    drawn,
    expected_of,
)
from random_functions.pairs import (  # noqa: E402
    Pair,
    drawn_pair,
    expected_of_pair,
    joined,
    text_of_pair,
)
from random_functions.placing import Placed, placed  # noqa: E402
from random_functions.run_kernels import loaded, with_demands  # noqa: E402
from tilec.messages.diagnostics import CompileError  # noqa: E402

DTYPES = {
    "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
}  # fmt: skip
"""Those that NumPy has not."""
OTHERS = 5
"""Each so many-th kernel is compiled for `sm_80`."""
PAIRS = 3
"""Each so many-th is two kernels, one launched right behind the other."""


def tensors_of(case: Case) -> list[Placed]:
    """The arguments on the GPU, where they lie."""

    def made(number: int, numbers: np.ndarray) -> torch.Tensor:
        dtype = case.kernel.arrays[number].dtype
        if dtype == "int":
            return torch.from_numpy(numbers.astype(np.int64)).cuda()
        if dtype in NUMPY:
            return torch.from_numpy(numbers.astype(NUMPY[dtype])).cuda()
        return torch.from_numpy(numbers.astype(np.float32)).to(DTYPES[dtype]).cuda()

    return placed(case.arguments, case.lies, made, torch.as_strided)


def numbers_of(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's numbers for NumPy."""
    if tensor.dtype in DTYPES.values():
        tensor = tensor.float()
    return tensor.cpu().numpy().astype(np.float64)


def wrong_on_gpu(case: Case, places: Sequence[Placed], expected: Sequence[np.ndarray]) -> str:
    """Where a launch left other numbers, in its arrays or beside them."""
    found = difference(case, [numbers_of(one.array) for one in places], expected)
    memories = [one.memory.float() if one.memory.dtype in DTYPES.values() else one.memory
                for one in places]  # fmt: skip
    return found or beside(case, places, [memory.cpu().numpy() for memory in memories])


def launched(number: int, launch: Callable[[], object]) -> bool:
    """Whether nothing is refused, on the stream of these numbers."""
    streams = (torch.cuda.current_stream(), torch.cuda.Stream())
    with torch.cuda.stream(streams[number % 2]):
        try:
            launch()
        except CompileError:
            return False
    return True


def outcome(case: Case, seed: int, launches: int, folder: Path) -> str:
    """ "right", "refused", "rounds", or "WRONG" with what is wrong."""
    kernel = loaded(case.text, folder, f"random_kernel_{len(list(folder.iterdir()))}")
    fresh = [
        dataclasses.replace(
            drawn(seed, (case.target,), data, near=True),
            demands=case.demands, in_loops=case.in_loops,
        )
        for data in range(launches)
    ]  # fmt: skip
    placed_ones = [tensors_of(each) for each in fresh]
    torch.cuda.synchronize()

    def launch(data: int, places: Sequence[Placed]) -> None:
        for _ in range(1 + data):
            fresh[data].launch(kernel, places)

    done = all(
        launched(data, functools.partial(launch, data, places))
        for data, places in enumerate(placed_ones)
    )
    torch.cuda.synchronize()
    if not done:
        return "refused"
    for data, (each, places) in enumerate(zip(fresh, placed_ones, strict=True)):
        expected = expected_of(each, 1 + data)
        if expected is None:
            return "rounds"
        if wrong := wrong_on_gpu(each, places, expected):
            return f"WRONG {wrong}\n{each.text}\n{each.sizes} {each.grid} {each.lies}"
    return "right"


def outcome_of_pair(pair: Pair, seed: int, launches: int, folder: Path) -> str:
    """The same of two kernels on each of two streams, each launch right behind the one before."""
    names = (f"random_kernel_{len(list(folder.iterdir()))}_{part}" for part in "ab")
    kernels = [loaded(c.text, folder, name) for c, name in zip(pair.cases, names, strict=True)]
    fresh = [drawn_pair(seed, (pair.cases[0].target,), data).cases for data in range(launches)]
    placed_ones = [[tensors_of(case) for case in cases] for cases in fresh]
    for places in placed_ones:
        joined(pair, places)
    torch.cuda.synchronize()

    def launch(places: Sequence[Sequence[Placed]]) -> None:
        for number in pair.order:
            pair.cases[number].launch(kernels[number], places[number])

    done = all(
        launched(data, functools.partial(launch, places)) for data, places in enumerate(placed_ones)
    )
    torch.cuda.synchronize()
    if not done:
        return "refused"
    for cases, places in zip(fresh, placed_ones, strict=True):
        for case, other in zip(pair.cases, cases, strict=True):
            case.arguments = other.arguments
        expected = expected_of_pair(pair)
        if expected is None:
            return "rounds"
        for case, each, wanted in zip(pair.cases, places, expected, strict=True):
            if wrong := wrong_on_gpu(case, each, wanted):
                return f"WRONG {wrong}\n{text_of_pair(pair)}"
    return "right"


def received(seed: int, target: str, launches: int, paired: bool) -> str:
    """The outcome with the demands that are not refused."""
    with tempfile.TemporaryDirectory() as folder:
        if paired:
            pair = drawn_pair(seed, (target,))
            cases = list(pair.cases)
            return with_demands(
                cases, lambda: outcome_of_pair(pair, seed, launches, Path(folder)), Counter()
            )
        case = drawn(seed, (target,))
        return with_demands([case], lambda: outcome(case, seed, launches, Path(folder)), Counter())


def main() -> int:
    """Runs kernels until the time is over; 1 if one is wrong, 2 if the GPU stopped."""
    parser: Any = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="leave out the first ones")
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--progress", type=Path, default=Path(os.devnull))
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    end = time.monotonic() + options.seconds
    for number in range(options.start, options.count):
        if time.monotonic() > end:
            break
        options.progress.write_text(str(number + 1))
        seed = options.seed * 1_000_000 + number
        target = "sm_80" if number % OTHERS == OTHERS - 1 else "sm_90a"
        os.environ["TILEC_TARGET"] = target
        try:
            paired = number % PAIRS == PAIRS - 1
            found = received(seed, target, options.launches, paired)
            counts["pairs"] += paired and found == "right"
        except Exception as error:
            print(f"===== {seed} {target}: {type(error).__name__}: {error}", flush=True)
            counts["error"] += 1
            try:
                torch.cuda.synchronize()
            except Exception:
                print(options.seed, options.start, dict(counts), flush=True)
                return 2
            continue
        counts[found.split(" ")[0]] += 1
        if found.startswith("WRONG"):
            print(f"===== {seed} {target}: {found}", flush=True)
    print(options.seed, options.start, dict(counts), flush=True)
    return int(counts["WRONG"] + counts["error"] > 0)


if __name__ == "__main__":
    sys.exit(main())
