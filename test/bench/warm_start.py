"""How long a new process waits for a kernel: compiled, or from the cache on disk.

    python test/bench/warm_start.py [--runs 20] [--target sm_90a]

The kernel is the bf16 product in tiles of 128 x 256 x 64, 8 warps, warp-specialised and persistent
where the target can; the time is that of its first `compiled(...)`, behind the imports. No GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHILD = "--child"


def first_compile() -> float:
    """Milliseconds of the kernel's first `compiled(...)` in this process."""
    sys.path.insert(0, str(ROOT))
    import ml_dtypes
    import numpy as np

    from tilec.examples.matmul import matmul

    a, b, c = (np.zeros((512, 512), ml_dtypes.bfloat16) for _ in range(3))
    kernel = matmul.demanding(num_warps=8).on("emulator")
    start = time.perf_counter()
    kernel.compiled(a, b, c, BM=128, BN=256, BK=64)
    return (time.perf_counter() - start) * 1e3


def in_new_process(environment: dict[str, str]) -> float:
    """`first_compile` of a fresh interpreter."""
    command = [sys.executable, __file__, CHILD]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def main() -> int:
    """Parses the command line, prints the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--target", default="sm_90a")
    options = parser.parse_args()
    found: dict[str, list[float]] = {"compiled": [], "from the cache": []}
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TILEC_CACHE_DIR": folder, "TILEC_TARGET": options.target}
            for times in found.values():
                times.append(in_new_process(environment))
    print(f"{options.target}, {options.runs} runs, {os.cpu_count()} cores: ms, fastest, median")
    for what, times in found.items():
        print(f"{what:16} {min(times):8.2f} {statistics.median(times):8.2f}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == [CHILD]:
        print(first_compile())
    else:
        sys.exit(main())
