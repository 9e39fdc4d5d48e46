"""The same on a GPU: each kernel several times on fresh numbers, on two streams, and up to three
times on the same, one launch right behind the other, which reads what the one before wrote.

    python test/random_functions/on_gpu.py --seed 7 --seconds 60 [--progress FILE]

Needs torch; compiles just in time for the GPU, each fifth kernel for `sm_80`. Several such
processes side by side keep a GPU busy. `--progress`: a file that says which kernel is the next,
should the GPU stop.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from random_functions.cases import Case, difference, drawn, expected_of  # noqa: E402
from random_functions.run_kernels import loaded  # noqa: E402
from tilec.messages.diagnostics import CompileError  # noqa: E402

DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2, "i8": torch.int8, "f32": torch.float32, "i32": torch.int32,
}  # fmt: skip
OTHERS = 5
"""Each so many-th kernel is compiled for `sm_80`."""


def tensors_of(case: Case) -> list[torch.Tensor]:
    """The arguments on the GPU."""
    pairs = zip(case.arguments, case.kernel.arrays, strict=True)
    return [torch.from_numpy(a.copy()).to(DTYPES[array.dtype]).cuda() for a, array in pairs]


def outcome(case: Case, seed: int, launches: int, folder: Path) -> str:
    """ "right", "refused", "rounds", or "WRONG" with what is wrong."""
    kernel = loaded(case.text, folder, f"random_kernel_{len(list(folder.iterdir()))}")
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    waiting: list[tuple[list[torch.Tensor], list[np.ndarray]]] = []
    for data in range(launches):
        case.arguments = drawn(seed, (case.target,), data).arguments
        expected = expected_of(case, 1 + data)
        if expected is None:
            return "rounds"
        tensors = tensors_of(case)
        torch.cuda.synchronize()
        with torch.cuda.stream(streams[data % 2]):
            try:
                for _ in range(1 + data):
                    kernel[case.grid](*tensors)
            except CompileError:
                return "refused"
        waiting.append((tensors, expected))
    torch.cuda.synchronize()
    for tensors, expected in waiting:
        found = [tensor.double().cpu().numpy() for tensor in tensors]
        wrong = difference(case, found, expected)
        if wrong:
            return f"WRONG {wrong}\n{case.text}"
    return "right"


def received(seed: int, target: str, launches: int) -> str:
    """The outcome with the demands that are not refused."""
    case = drawn(seed, (target,))
    with tempfile.TemporaryDirectory() as folder:
        for demands, in_loops in ((case.demands, True), ("", True), ("", False)):
            case.demands, case.in_loops = demands, in_loops
            found = outcome(case, seed, launches, Path(folder))
            if found != "refused":
                break
    return found


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
            found = received(seed, target, options.launches)
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
