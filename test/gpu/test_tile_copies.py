"""Copies of tiles by the copy engine on a GPU: drawn at random, compared with NumPy bit for bit.

python test/gpu/test_tile_copies.py --build   # compiles the cases into build/gpu; no GPU
python test/gpu/test_tile_copies.py           # runs them; needs a GPU, NumPy and ml_dtypes

Every array lies in memory of random bits, and that around it must stay as it was. Exit code 0 only
if every case passed; `--device emulator` runs the same on the CPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "unit")]

import numpy as np  # noqa: E402
from gpu_marks import needs_gpu  # noqa: E402
from tma_copies import TileCopy, aligned, draw, memory_with, random_copy, same  # noqa: E402
from worker_pool import run_jobs  # noqa: E402

from tilec.runtime.arrays import ArrayView, describe  # noqa: E402
from tilec.runtime.device import device  # noqa: E402
from tilec.runtime.manifest import checked_kernel  # noqa: E402

pytestmark = needs_gpu()

BUILT = ROOT / "build" / "gpu" / "tile-copies.json"
TRIALS = 4
"""Arrays and corners per program."""
CHUNK = 20


def build(seeds: range, target: str) -> list[dict[str, Any]]:
    """The compiled program of each seed, as JSON."""
    programs = importlib.import_module("tma_programs")  # needs the compiler
    records = []
    for seed in seeds:
        made = programs.compile_copy(random_copy(random.Random(seed)), target)
        records.append({"seed": seed, "kernel": made.to_json(), "ptx": made.ptx})
    return records


def run_chunk(job: tuple[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What was wrong with each case of a chunk, up to the first that the GPU stopped at."""
    name, records = job
    found = []
    for record in records:
        copy = random_copy(random.Random(record["seed"]))
        entry = {"seed": record["seed"], "case": str(copy), "wrong": ""}
        found.append(entry)
        try:
            entry["wrong"] = check_program(record, copy, device(name))
        except Exception as error:
            entry["wrong"] = f"{type(error).__name__}: {error}"
            break
    return found


def check_program(record: dict[str, Any], copy: TileCopy, gpu: Any) -> str:
    """Runs one program on several arrays; says what differed, if anything."""
    loaded = gpu.load(checked_kernel(json.loads(json.dumps(record["kernel"])), record["ptx"]))
    rng = np.random.default_rng(record["seed"])
    for _ in range(TRIALS):
        sizes, corner = copy.draw_place(rng)
        array = copy.array(sizes, rng)
        tile = aligned(draw(copy.dtype, copy.shape, rng))
        stores = copy.combine is not None
        want_tile = tile if stores else copy.loaded(array, corner)
        want = copy.stored(array, tile, corner) if stores else array
        memory, expected = memory_with(array, want)
        if gpu.kind == "cuda":
            on_gpu, remote = copied(gpu, memory, array)
            remote_tile = gpu.array(tile)
            gpu.launch(loaded, [remote, remote_tile, *corner], 1)
            got, got_tile = on_gpu.numpy(), remote_tile.numpy()
        else:
            got, got_tile = memory, tile.copy()
            gpu.launch(loaded, [array, got_tile, *corner], 1)
        where = f"array {array.shape}, strides {array.strides} bytes, corner {corner}"
        if not same(got_tile, want_tile):
            return f"{where}: {(got_tile != want_tile).sum()} elements of the tile differ"
        if not same(got, expected):
            return f"{where}: {(got != expected).sum()} bytes of memory differ"
    return ""


def copied(gpu: Any, memory: np.ndarray, array: np.ndarray) -> tuple[Any, ArrayView]:
    """All of `memory` on the GPU, and `array`, a view of it, there."""
    on_gpu = gpu.array(memory.view(np.int8))
    view = describe(array)
    pointer = on_gpu.pointer + array.ctypes.data - memory.ctypes.data
    return on_gpu, ArrayView(
        pointer, view.shape, view.strides, view.dtype, on_gpu.device, "tilec", owner=on_gpu
    )


def run(records: list[dict[str, Any]], name: str, processes: int) -> list[dict[str, Any]]:
    """All cases; the rest of a chunk that the GPU stopped in is for another process."""
    jobs = [(name, records[first : first + CHUNK]) for first in range(0, len(records), CHUNK)]
    found = []
    while jobs:
        rest = []
        for result in run_jobs(run_chunk, jobs, timeout=60, processes=processes, spent=_is_lost):
            chunk = result.job[1]
            done = result.value or [{"seed": chunk[0]["seed"], "case": "", "wrong": result.error}]
            found += done
            rest += [(name, chunk[len(done) :])] if chunk[len(done) :] else []
        jobs = rest
    return found


def _is_lost(found: list[dict[str, Any]]) -> bool:
    return bool(found[-1]["wrong"])


def test_tile_copies() -> None:
    """The first cases, compiled now."""
    for record in build(range(40), "sm_90a"):
        copy = random_copy(random.Random(record["seed"]))
        assert check_program(record, copy, device("cuda")) == ""


def main() -> int:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", action="store_true", help="compile instead of run")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--show", type=int, default=25, help="failures printed")
    options = parser.parse_args()
    if options.build:
        BUILT.parent.mkdir(parents=True, exist_ok=True)
        BUILT.write_text(json.dumps(build(range(options.count), options.target)))
        print(f"{options.count} programs in {BUILT}")
        return 0
    start = time.monotonic()
    found = run(json.loads(BUILT.read_text()), options.device, options.processes)
    failures = [entry for entry in found if entry["wrong"]]
    for entry in sorted(failures, key=lambda entry: entry["seed"])[: options.show]:
        print(f"FAILED {entry['seed']} {entry['case']}\n       {entry['wrong'][:200]}")
    seconds = time.monotonic() - start
    print(f"{len(found) - len(failures)} passed / {len(failures)} failed in {seconds:.0f} s")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
