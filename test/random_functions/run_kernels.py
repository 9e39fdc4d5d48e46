"""Random kernels on the emulator beside NumPy; the same seed, the same kernels.

    python test/random_functions/run_kernels.py --count 1000 --seed 1 [--targets sm_90a sm_100a]

A kernel that is refused with its demands is compiled without them. What is received otherwise, or
gives other numbers, is shrunk and printed; the exit code says whether there was any.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from random_functions.cases import TARGETS, Case, difference, drawn, expected_of  # noqa: E402
from random_functions.shrinking import shrunk  # noqa: E402
from tilec.messages.diagnostics import CompileError  # noqa: E402
from tilec.runtime import emulator_device  # noqa: E402

CTAS = 2
"""Of a launch in which they stay for several programs."""


def typed(case: Case) -> list[np.ndarray]:
    """The arguments in the dtypes of their arrays."""
    import ml_dtypes

    dtypes = {
        "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn,
        "f8e5m2": ml_dtypes.float8_e5m2, "i8": np.int8, "f32": np.float32, "i32": np.int32,
    }  # fmt: skip
    pairs = zip(case.arguments, case.kernel.arrays, strict=True)
    return [argument.astype(dtypes[array.dtype]) for argument, array in pairs]


def loaded(text: str, folder: Path, name: str) -> Any:
    """The kernel of a text, whose lines Python shows."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def outcome(case: Case, mode: str) -> str:
    """ "right", "refused: ...", "rounds", or "WRONG ...": how a case is received."""
    expected = expected_of(case)
    if expected is None:
        return "rounds"
    arguments = typed(case)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, TILEC_TARGET=case.target),
        mock.patch.object(emulator_device, "RESIDENT_CTAS", CTAS),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            kernel = loaded(case.text, Path(folder), "random_kernel")
            kernel.on(f"emulator:{mode}")[case.grid](*arguments)
        except CompileError as error:
            return "refused: " + str(error).split("error: ")[-1].splitlines()[0]
        except Exception as error:
            frames = "".join(traceback.format_tb(error.__traceback__)[-3:])
            return f"WRONG {type(error).__name__}: {error}\n{frames}"
    wrong = difference(case, [a.astype(np.float64) for a in arguments], expected)
    return f"WRONG {wrong}" if wrong else "right"


def received(case: Case, mode: str, counts: Counter[str]) -> str:
    """The outcome with the demands that are not refused, which `case` has then."""
    for demands, in_loops in ((case.demands, True), ("", True), ("", False)):
        case.demands, case.in_loops = demands, in_loops
        found = outcome(case, mode)
        counts[re.sub(r"\d+", "N", found.splitlines()[0])[:110]] += 1
        if not found.startswith("refused"):
            break
    return found


def main() -> int:
    """Runs kernels; 1 if one is received wrongly."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="leave out the first ones")
    parser.add_argument("--targets", nargs="*", default=TARGETS)
    parser.add_argument("--modes", nargs="*", default=["check", "check", "late"], help="in turn")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after these")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    begin, wrong, number = time.monotonic(), 0, options.start
    while number < options.count and time.monotonic() < begin + 60 * options.minutes:
        seed, mode = options.seed * 1_000_000 + number, options.modes[number % len(options.modes)]
        case = drawn(seed, tuple(options.targets))
        found = received(case, mode, counts)
        if found.startswith("WRONG"):
            wrong += 1
            small = shrunk(case, lambda one, mode=mode: outcome(one, mode), found)
            print(f"===== {seed} {case.target} {mode}: {found}\n{small}", flush=True)
        number += 1
    print(f"{time.monotonic() - begin:.0f} s, {number - options.start} kernels, {wrong} wrong")
    print(*(f"{times:6} {word}" for word, times in counts.most_common()), sep="\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
