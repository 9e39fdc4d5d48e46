"""How long a cold `tilec compile` of the matmul takes, by stage, and Triton beside it.

    python test/bench/cold_compile.py [--runs 20] [--target sm_80] [--triton-python PATH]

Cold: a new process each time and no cache of results; the files and Python's byte code have been
read before. Both compile the bf16 product, tiles of 128 x 128 x 64, 4 warps, aligned, to PTX:
`matmul.tile` here, `triton_kernels.matmul` there (3 stages). The runs alternate; the table has the
fastest and the median. PATH is a Python that has Triton; without it tilec is timed alone. No GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STAGES = {
    "gpu_tile": "passes on tiles",
    "llvm": "lowering to the llvm dialect",
    "llvmir": "LLVM IR as text",
    "ptx": "LLVM, in its own process",
}
REST = "Python's start, imports, parsing, writing"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Byte code is written: else each run would translate every module anew."""


def tilec_seconds(target: str, folder: Path) -> dict[str, float]:
    """One cold compile: seconds by stage, and "total"."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "tilec", "compile", ROOT / "tilec/examples/matmul.tile"]
    start = time.perf_counter()
    subprocess.run(
        [*command, "--target", target, "--emit", "report-json", "-o", report],
        check=True,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    total = time.perf_counter() - start
    stages = json.loads(report.read_text())["milliseconds"]
    seconds = {STAGES[name]: ms / 1000 for name, ms in stages.items()}
    return {REST: total - sum(seconds.values()), **seconds, "tilec, total": total}


def triton_seconds(python: str, target: str, folder: Path) -> dict[str, float]:
    """One cold compile with an empty cache, the time up to PTX alone."""
    capability = "".join(c for c in target if c.isdigit())
    cache = folder / "triton"
    environment = ENVIRONMENT | {
        "TRITON_CACHE_DIR": tempfile.mkdtemp(dir=folder, prefix=cache.name)
    }
    start = time.perf_counter()
    done = subprocess.run(
        [python, HERE / "cold_triton.py", capability],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    end = float(done.stdout) - time.time() + time.perf_counter()
    return {"Triton, total": end - start}


def main() -> int:
    """Parses the command line, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--triton-python", metavar="PATH")
    options = parser.parse_args()
    found: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for run in range(options.runs + 1):
            seconds = tilec_seconds(options.target, folder)
            if options.triton_python:
                seconds |= triton_seconds(options.triton_python, options.target, folder)
            if run:  # the first fills the caches of the file system
                for stage, value in seconds.items():
                    found[stage].append(value)
    print(f"{options.target}, {options.runs} runs, {os.cpu_count()} cores{'':22}fastest  median")
    for stage, values in found.items():
        print(f"{stage:50} {min(values):6.3f}  {statistics.median(values):6.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
