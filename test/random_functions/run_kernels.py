"""Random kernels on the emulator beside NumPy; the same seed, the same kernels.

    python test/random_functions/run_kernels.py --count 1000 --seed 1 [--targets sm_90a sm_100a]

A kernel that is refused with its demands is compiled without them. What is received otherwise, or
gives other numbers, is shrunk and printed; the exit code says whether there was any.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from random_functions.cases import (  # noqa: E402
    NUMPY,
    TARGETS,
    Case,
    beside,
    difference,
    drawn,
    expected_of,
)
from random_functions.pairs import (  # noqa: E402
    Pair,
    difference_of_pair,
    drawn_pair,
    expected_of_pair,
    joined,
    text_of_pair,
)
from random_functions.placing import Placed, placed  # noqa: E402
from random_functions.shrinking import shrunk  # noqa: E402
from tilec.call import specialization  # noqa: E402
from tilec.messages.diagnostics import CompileError  # noqa: E402
from tilec.runtime import emulator, emulator_device  # noqa: E402
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError  # noqa: E402

CTAS = 2
"""Of a launch in which they stay for several programs."""


def typed(case: Case) -> list[Placed]:
    """The arguments in the dtypes of their arrays, where they lie."""
    import ml_dtypes

    dtypes = {
        "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn,
        "f8e5m2": ml_dtypes.float8_e5m2, "int": np.int64, **NUMPY,
    }  # fmt: skip

    def made(number: int, numbers: np.ndarray) -> np.ndarray:
        return numbers.astype(dtypes[case.kernel.arrays[number].dtype])

    def strided(
        memory: np.ndarray, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> np.ndarray:
        bytes_ = [stride * memory.itemsize for stride in strides]
        begin = offset * memory.itemsize
        return np.ndarray(sizes, memory.dtype, memory.view(np.uint8).data, begin, bytes_)

    return placed(case.arguments, case.lies, made, strided)


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
    places = typed(case)

    def run() -> None:
        launched(case, places, mode)

    wrong = wrong_with(run, case.target)
    if not wrong:
        different = difference(case, [one.array.astype(np.float64) for one in places], expected)
        different = different or beside(case, places, [one.memory for one in places])
        wrong = f"WRONG {different}" if different else ""
    return wrong or "right"


def outcome_of_pair(pair: Pair, mode: str, seed: int) -> str:
    """The same of two kernels whose launches overlap."""
    expected = expected_of_pair(pair)
    if expected is None:
        return "rounds"
    places = [typed(case) for case in pair.cases]
    joined(pair, places)
    runs: list[emulator.Run] = []

    def collect(self: EmulatorDevice, loaded: Any, arguments: Any, grid: Any) -> None:
        run = self.run_of(loaded, arguments, grid)
        runs.extend([run] if run is not None else [])

    def run() -> None:
        with mock.patch.object(EmulatorDevice, "launch", collect):
            for number in pair.order:
                launched(pair.cases[number], places[number], mode)
        results = emulator.run_stream(runs, mode, seed=seed if mode == "late" else None)
        found = [finding for result in results for finding in result.findings]
        if any(finding.severity == "error" for finding in found):
            raise FindingsError("a pair", found)

    wrong = wrong_with(run, pair.cases[0].target)
    if not wrong:
        numbers = [[one.array.astype(np.float64) for one in each] for each in places]
        different = difference_of_pair(pair, numbers, expected)
        for case, each in zip(pair.cases, places, strict=True):
            different = different or beside(case, each, [one.memory for one in each])
        wrong = f"WRONG {different}" if different else ""
    return wrong or "right"


def launched(case: Case, places: Sequence[Placed], mode: str) -> None:
    """One launch on the emulator."""
    with tempfile.TemporaryDirectory() as folder:
        kernel = loaded(case.text, Path(folder), "random_kernel")
        case.launch(kernel.on(f"emulator:{mode}"), places)


def wrong_with(run: Callable[[], None], target: str) -> str:
    """What comes of launches for a target: "" if all went well."""
    with (
        mock.patch.dict(os.environ, TILEC_TARGET=target),
        mock.patch.object(emulator_device, "RESIDENT_CTAS", CTAS),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            run()
        except CompileError as error:
            return "refused: " + str(error).split("error: ")[-1].splitlines()[0]
        except Exception as error:
            frames = "".join(traceback.format_tb(error.__traceback__)[-3:])
            return f"WRONG {type(error).__name__}: {error}\n{frames}"
    return ""


def with_demands(cases: Sequence[Case], tried: Callable[[], str], counts: Counter[str]) -> str:
    """The outcome with the demands that are not refused, which the cases have then."""
    demands = [case.demands for case in cases]
    for kept, in_loops in ((True, True), (False, True), (False, False)):
        for case, own in zip(cases, demands, strict=True):
            case.demands, case.in_loops = own if kept else "", in_loops
        found = tried()
        counts[re.sub(r"\d+", "N", found.splitlines()[0])[:110]] += 1
        if not found.startswith("refused"):
            break
    return found


def checked(seed: int, mode: str, targets: Sequence[str], counts: Counter[str]) -> str:
    """One kernel: its outcome, and if it is wrong the smallest that is."""
    case = drawn(seed, targets)
    found = with_demands([case], lambda: outcome(case, mode), counts)
    if not found.startswith("WRONG"):
        return found
    small = shrunk(case, lambda one: outcome(one, mode), found)
    return f"{found}\n{case.target} {mode}\n{small}"


def checked_pair(seed: int, mode: str, targets: Sequence[str], counts: Counter[str]) -> str:
    """Two kernels, likewise."""
    pair = drawn_pair(seed, targets)
    found = with_demands(pair.cases, lambda: outcome_of_pair(pair, mode, seed), counts)
    if not found.startswith("WRONG"):
        return found
    return f"{found}\n{pair.cases[0].target} {mode}\n{text_of_pair(pair)}"


def run(options: argparse.Namespace, end: float, counts: Counter[str]) -> tuple[int, int]:
    """Runs kernels until there are enough, or it is late: the number of the next one, and how many
    were wrong."""
    wrong, number = 0, options.start
    while number < options.count and time.monotonic() < end:
        seed, mode = options.seed * 1_000_000 + number, options.modes[number % len(options.modes)]
        found = (checked_pair if options.pairs else checked)(seed, mode, options.targets, counts)
        if found.startswith("WRONG"):
            wrong += 1
            print(f"===== {seed}: {found}", flush=True)
        number += 1
    return number, wrong


def main() -> int:
    """Runs kernels; 1 if one is received wrongly."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="leave out the first ones")
    parser.add_argument("--pairs", action="store_true", help="two kernels, whose launches overlap")
    parser.add_argument(
        "--wide", action="store_true", help="indices of 64 bits, as large arrays ask"
    )
    parser.add_argument("--targets", nargs="*", default=TARGETS)
    parser.add_argument("--modes", nargs="*", default=["check", "check", "late"], help="in turn")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after these")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    bits = mock.patch.object(specialization, "index_bits", return_value=64)
    begin = time.monotonic()
    with bits if options.wide else contextlib.nullcontext():
        number, wrong = run(options, begin + 60 * options.minutes, counts)
    print(f"{time.monotonic() - begin:.0f} s, {number - options.start} kernels, {wrong} wrong")
    print(*(f"{times:6} {word}" for word, times in counts.most_common()), sep="\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
