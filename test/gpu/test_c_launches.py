"""Kernels' C on a real GPU, compiled by the C compiler at hand; runs without pytest, too:
python FILE. It needs cuda.h and libcuda. Results are compared with float64.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(ROOT / "test" / "unit"))

from c_kernels import STATUS, Error, array_of, write  # noqa: E402
from gpu_marks import needs_gpu  # noqa: E402
from torch_checks import run_tests  # noqa: E402

import tilec  # noqa: E402
from tilec.c_source.source import c_source  # noqa: E402
from tilec.examples.matmul import matmul  # noqa: E402
from tilec.runtime.arrays import describe  # noqa: E402

pytestmark = needs_gpu()

SPECS = [f"{name}:f16[?,?:8;?:8,1]" for name in "abc"]
TIMED = """
#include "matmul.h"
#include <time.h>
double microseconds(matmul_kernel *kernel, tilec_array *a, tilec_array *b, tilec_array *c, int n)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < n; i++)
        if (matmul_launch(kernel, a, b, c, 0).status) return -1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((end.tv_sec - begin.tv_sec) * 1e6 + (end.tv_nsec - begin.tv_nsec) * 1e-3) / n;
}
"""


def include_folder() -> Path:
    """A folder with cuda.h: the toolkit's, or of a package that brings it along."""
    places = [Path("/usr/local/cuda/include/cuda.h")]
    for folder in map(Path, sys.path):
        places += folder.glob("nvidia/*/include/cuda.h")
        places += folder.glob("triton/backends/nvidia/include/cuda.h")
    found = [place.parent for place in places if place.exists()]
    if not found:
        raise unittest.SkipTest("needs cuda.h")
    return found[0]


def driver_library() -> str:
    """The file of libcuda that this process has loaded."""
    tilec.device("cuda:0")
    maps = Path("/proc/self/maps").read_text().split()
    return next(word for word in maps if Path(word).name.startswith("libcuda.so"))


def built(folder: Path) -> ctypes.CDLL:
    """The library of a product for two targets, and of what times its launches."""
    source = c_source([matmul.compile(SPECS, target=target) for target in ("sm_80", "sm_90a")])
    write(source, folder)
    (folder / "timed.c").write_text(TIMED)
    files = [str(folder / name) for name in ("matmul.c", "timed.c")]
    made = str(folder / "matmul.so")
    command = ["cc", "-std=gnu99", "-O2", "-fPIC", "-shared", f"-isystem{include_folder()}", *files]
    done = subprocess.run([*command, driver_library(), "-o", made], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(made)
    library.matmul_load.restype = library.matmul_launch.restype = Error
    library.microseconds.restype = ctypes.c_double
    return library


def loaded(library: ctypes.CDLL) -> Any:
    """The kernel, loaded into the current context."""
    kernel = ctypes.create_string_buffer(4096)
    error = library.matmul_load(kernel)
    assert STATUS[error.status] == "OK", (STATUS[error.status], error.result)
    return kernel


def test_products_of_several_sizes() -> None:
    device, random = tilec.device("cuda:0"), np.random.default_rng()
    with tempfile.TemporaryDirectory() as folder:
        library = built(Path(folder))
        device.array(np.zeros((8, 8), np.float16))  # makes the context
        kernel = loaded(library)
        for m, n, k in ((304, 104, 208), (2048, 1024, 4096), (0, 8, 8), (1000, 888, 776)):
            a, b = (random.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
            c = np.full((m, n), np.nan, np.float16)
            arrays = [device.array(value) for value in (a, b, c)]
            views = [ctypes.byref(array_of(describe(array))) for array in arrays]
            error = library.matmul_launch(kernel, *views, ctypes.c_void_p(0))
            device.synchronize()
            assert STATUS[error.status] == "OK"
            device.copy_back(arrays[2], c)
            expected = a.astype(np.float64) @ b.astype(np.float64)
            assert np.all(abs(c - expected) <= 1e-3 * abs(expected).max(initial=0))


def report_costs() -> None:
    """Prints what a launch takes of the host's time, in C and in Python."""
    device, random = tilec.device("cuda:0"), np.random.default_rng()
    with tempfile.TemporaryDirectory() as folder:
        library = built(Path(folder))
        square = random.standard_normal((64, 64)).astype(np.float16)
        arrays = [device.array(square) for _ in range(3)]
        kernel, views = loaded(library), [array_of(describe(array)) for array in arrays]
        in_c, in_python = [], []
        for _ in range(5):
            in_c.append(library.microseconds(kernel, *map(ctypes.byref, views), 500))
            device.synchronize()
            start = time.perf_counter()
            for _ in range(500):
                matmul(*arrays)
            in_python.append((time.perf_counter() - start) * 2e3)
            device.synchronize()
        print(f"a launch, all checked: C {min(in_c):.2f} us, Python {min(in_python):.2f} us")


if __name__ == "__main__":
    failed = run_tests(globals())
    report_costs()
    sys.exit(failed)
