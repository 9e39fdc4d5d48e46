"""What the compiler's choice of `tl.auto` costs against the best of all tiles that were tried.

    python test/bench/auto_tiles.py [--seed N] [--only TEXT ...] [--out FILE] [--processes 12]
    python test/bench/auto_tiles.py --device emulator     # results only, small sizes; no GPU

Each case of `auto_cases.py` is compiled with the compiler's choice and with every tile of its list,
each in a process of its own; all are checked on random data against float64, with poisoned outputs,
then timed in turns. A line a case says which tile was chosen, which was best, and the ratio of
their times; the last lines the share of cases within 3 and 10 %. --out gets all that was measured.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "gpu"), str(Path(__file__).resolve().parent)]

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from array_spec import row_major  # noqa: E402
from auto_cases import AutoCase, Tile, cases  # noqa: E402

import tilec  # noqa: E402
from tilec.messages.diagnostics import CompileError  # noqa: E402
from tilec.runtime.errors import DeviceError  # noqa: E402

CHOICE = "choice"
TOLERANCE = 2e-2
"""Of the largest value: weights and sums are rounded to bf16 on the way."""
FINALISTS = 6
SCREENING_MS, FINAL_MS = 30.0, 60.0
GOALS = (1.03, 1.10)


def label(tile: Tile) -> str:
    """As in 128x64."""
    return "x".join(str(size) for size in tile.values()) or CHOICE


def described(case: AutoCase) -> dict[str, Any]:
    """The arguments of a call, arrays without memory behind."""
    name, shape = case.output
    arrays = {**case.inputs, name: shape}
    specs = [row_major(n, "f32" if n in case.floats else "bf16", s) for n, s in arrays.items()]
    views = {spec.name: spec.view() for spec in specs}
    values = [views.get(x, x) for x in case.order]
    names = [p.name for p in case.kernel.parameters]
    defaults = {p.name: p.default for p in case.kernel.parameters if p.kind == "const"}
    return {**defaults, **dict(zip(names, values, strict=False)), **case.constants}


def prepare(seed: int, number: int, tile: Tile) -> dict[str, Any]:
    """Compiles and loads, so that caches have it; what it takes, or why there is none."""
    warnings.simplefilter("ignore")
    case = list(cases(seed))[number]
    device = tilec.device("cuda")
    begin = time.process_time()
    try:
        kernel = case.kernel.resolve(device, {**described(case), **tile})
        seconds = time.process_time() - begin
        loaded = device.load(kernel)
    except (CompileError, DeviceError) as error:
        return {"refused": str(error)}
    names = [p.name for p in case.kernel.parameters]
    return {
        "seconds": seconds,
        "constants": {n: v for n, v in kernel.constants.items() if n in names},
        "threads": kernel.threads,
        "shared": kernel.shared_bytes,
        **_taken(loaded),
        "said": [
            f"{e['about']}: {e['chosen']}"
            for e in kernel.report["decisions"]
            if e["about"] in ("registers", "fit", "warps", "warp specialisation", "programs")
        ],
    }


def _taken(loaded: Any) -> dict[str, int]:
    """Registers and bytes of local memory of a thread, as the driver says."""
    driver = loaded.context.driver
    which = driver.CUfunction_attribute
    asked = {
        "registers": which.CU_FUNC_ATTRIBUTE_NUM_REGS,
        "local": which.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
    }
    return {n: int(driver.cuFuncGetAttribute(a, loaded.function)[1]) for n, a in asked.items()}


class Torch:
    """Arrays on the GPU."""

    def __init__(self, seed: int) -> None:
        import torch

        self.xp = torch
        self._random = torch.Generator(device="cuda").manual_seed(seed)

    def random(self, case: AutoCase, name: str) -> Any:
        """An input; f32 ones are none above 0."""
        shape = case.inputs[name]
        found = self.xp.randn(shape, generator=self._random, device="cuda") * case.scale
        return -found.abs() if name in case.floats else found.bfloat16()

    def poisoned(self, case: AutoCase) -> Any:
        """The output, full of NaN."""
        name, shape = case.output
        dtype = self.xp.float32 if name in case.floats else self.xp.bfloat16
        return self.xp.full(shape, float("nan"), dtype=dtype, device="cuda")

    def wide(self, array: Any) -> Any:
        """In float64."""
        return array.double()


class Numpy:
    """The same on the host, for the emulator."""

    xp = np

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def random(self, case: AutoCase, name: str) -> Any:
        """An input; f32 ones are none above 0."""
        found = self._random.standard_normal(case.inputs[name], np.float32) * case.scale
        found = -np.abs(found) if name in case.floats else found.astype(ml_dtypes.bfloat16)
        return found.astype(np.float32) if name in case.floats else found

    def poisoned(self, case: AutoCase) -> Any:
        """The output, full of NaN."""
        name, shape = case.output
        return np.full(shape, np.nan, np.float32 if name in case.floats else ml_dtypes.bfloat16)

    def wide(self, array: Any) -> Any:
        """In float64."""
        return array.astype(np.float64)


class _Wide(dict):
    """Inputs in float64, each converted when it is read."""

    def __init__(self, arrays: Any, inputs: Mapping[str, Any]) -> None:
        super().__init__(inputs)
        self._arrays = arrays

    def __getitem__(self, name: str) -> Any:
        return self._arrays.wide(super().__getitem__(name))


def call(case: AutoCase, inputs: Mapping[str, Any], out: Any, tile: Tile, kernel: Any) -> None:
    """Launches."""
    given = {**inputs, case.output[0]: out}
    kernel(*(given.get(x, x) for x in case.order), **case.constants, **tile)


def error_of(arrays: Any, out: Any, expected: Any) -> float:
    """The largest error of the rows compared, relative to the largest value; NaN where one is."""
    found, worst = arrays.wide(out), 0.0
    if not bool(arrays.xp.isfinite(found).all()):
        return float("nan")
    for at, rows in expected:
        worst = max(worst, float(abs(found[at] - rows).max() / abs(rows).max()))
    return worst


def measured(case: AutoCase, tiles: Mapping[str, Tile], seed: int) -> dict[str, Any]:
    """Microseconds of every tile that is right, and what the others did wrong."""
    from timing import CudaClock, rotated_sets, time_peers

    arrays = Torch(seed)
    sets = min(4, rotated_sets(sum(2 * int(np.prod(s)) for s in case.inputs.values())))
    inputs = [{name: arrays.random(case, name) for name in case.inputs} for _ in range(sets)]
    expected = list(case.expected(arrays.xp, _Wide(arrays, inputs[0])))
    wrong: dict[str, str] = {}
    for name, tile in tiles.items():
        out = arrays.poisoned(case)
        call(case, inputs[0], out, tile, case.kernel)
        if not (error := error_of(arrays, out, expected)) <= TOLERANCE:
            wrong[name] = f"error {error:.1e}"
    out = arrays.poisoned(case)

    def peer(tile: Tile) -> Any:
        return lambda number: call(case, inputs[number], out, tile, case.kernel)

    peers = {name: peer(tile) for name, tile in tiles.items() if name not in wrong}
    options: dict[str, Any] = {"sets": sets, "least_rounds": 4}
    first = time_peers(peers, CudaClock(), budget_ms=SCREENING_MS, **options)
    best = sorted(first, key=lambda name: first[name].us)[:FINALISTS]
    last = {name: peers[name] for name in dict.fromkeys([CHOICE, *best]) if name in peers}
    final = time_peers(last, CudaClock(), budget_ms=FINAL_MS, **options)
    times = {name: (final.get(name) or first[name]).us for name in peers}
    return {"us": times, "final": list(final), "wrong": wrong}


def sweep(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row a case."""
    chosen = [
        (number, case)
        for number, case in enumerate(cases(options.seed))
        if not options.only or any(text in case.name for text in options.only)
    ]
    jobs = [(n, tile) for n, case in chosen for tile in ({}, *case.tiles)]
    jobs.sort(key=lambda job: (bool(job[1]), job[0]))
    start = multiprocessing.get_context("spawn")
    begin = time.perf_counter()
    with ProcessPoolExecutor(options.processes, start) as pool:
        waiting = [pool.submit(prepare, options.seed, n, tile) for n, tile in _unlike(jobs, chosen)]
        known = {
            _code(dict(chosen)[n], tile): job.result()
            for (n, tile), job in zip(_unlike(jobs, chosen), waiting, strict=True)
        }
    print(f"{len(known)} compiled in {time.perf_counter() - begin:.0f} s", flush=True)
    for _, case in chosen:
        begin = time.perf_counter()
        taken = {label(tile): known[_code(case, tile)] for tile in ({}, *case.tiles)}
        able = {label(t): t for t in ({}, *case.tiles) if "refused" not in taken[label(t)]}
        taken_by = taken[CHOICE].get("constants", {})
        chosen_tile = label({name: taken_by.get(name) for name in case.tiles[0]})
        row = {"case": case.name, "chosen": chosen_tile, "taken": taken, "inputs": case.inputs}
        row |= measured(case, able, options.seed)
        yield {**row, "seconds": time.perf_counter() - begin}


def _code(case: AutoCase, tile: Tile) -> Any:
    """Equal where a compiled kernel serves both; choices may differ by sizes."""
    sizes = () if tile else tuple(case.inputs.values())
    exact = tuple(tuple(n % 8 == 0 for n in shape) for shape in case.inputs.values())
    constants = (*case.constants.items(), *tile.items())
    return (case.kernel.name, constants, exact, sizes, isinstance(case.order[-1], int))


def _unlike(jobs: list[Any], chosen: list[Any]) -> list[Any]:
    """The jobs, of those that share code the first."""
    by_number = dict(chosen)
    return list({_code(by_number[n], tile): (n, tile) for n, tile in reversed(jobs)}.values())


def summary(row: Mapping[str, Any]) -> tuple[str, float]:
    """A line a case, and the ratio of the choice's time to the best one's."""
    times, taken = row["us"], row["taken"]
    if CHOICE not in times:
        return f"{row['case']:44} NO CHOICE {row['wrong'].get(CHOICE)} {taken[CHOICE]}", 0.0
    best = min(times, key=lambda name: times[name])
    ratio = times[CHOICE] / times[best]
    wrong = f" WRONG {row['wrong']}" if row["wrong"] else ""
    ours = f"{row['chosen']:11} {times[CHOICE]:8.1f}"
    text = f"{row['case']:40} {ours} best {best:11} {times[best]:8.1f}"
    return f"{text} {ratio:5.2f}{wrong}", ratio


def on_emulator(seed: int, only: list[str]) -> int:
    """Checks every small case with the choice and two of its tiles; how many are wrong."""
    wrong, arrays = 0, Numpy(seed)
    os.environ.setdefault("TILEC_TARGET", "sm_90a")
    for case in cases(seed, small=True):
        if only and not any(text in case.name for text in only):
            continue
        inputs = {name: arrays.random(case, name) for name in case.inputs}
        expected = list(case.expected(arrays.xp, _Wide(arrays, inputs)))
        for tile in ({}, case.tiles[0]):
            out = arrays.poisoned(case)
            call(case, inputs, out, tile, case.kernel.on("emulator"))
            error = error_of(arrays, out, expected)
            wrong += not error <= TOLERANCE
            print(f"{case.name:44} {label(tile):12} error {error:.1e}", flush=True)
    return wrong


def main() -> int:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--device", choices=("cuda", "emulator"), default="cuda")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.device == "emulator":
        return on_emulator(options.seed, options.only)
    rows, ratios = [], []
    for row in sweep(options):
        rows.append(row)
        text, ratio = summary(row)
        ratios.append(ratio)
        print(text, flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1))
    shares = [sum(0 < ratio <= goal for ratio in ratios) / len(ratios) for goal in GOALS]
    print(f"within 3 %: {shares[0]:.0%}, within 10 %: {shares[1]:.0%}; worst {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
