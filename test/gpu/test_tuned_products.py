"""`tilec.autotune` and `tilec.ops` on a real GPU; runs without pytest, too: python FILE.

Everything is compared with float64; no test asserts a speed but that tuning does not lose.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_marks import needs_gpu  # noqa: E402
from torch_checks import check, needs_torch, random, run_tests, torch  # noqa: E402

import tilec  # noqa: E402
import tilec.language as tl  # noqa: E402
from tilec.examples.matmul import matmul  # noqa: E402

pytestmark = needs_gpu()


def own_file() -> str:
    """A fresh place for winners, so that a run does not depend on earlier ones."""
    path = str(Path(tempfile.mkdtemp()) / "winners.json")
    os.environ["TILEC_TUNING_FILE"] = path
    return path


def product_of(search: Any) -> Any:
    """The README's product, tuned."""
    return tilec.autotune(search=search, most=6, progress=False)(matmul)


SEARCH = {"BM": [64, 128], "BN": [64, 128], "BK": [32, 64], "num_warps": [4, 8]}


# -- autotune


def test_tuning_measures_and_keeps_and_loses_nothing() -> None:
    needs_torch()
    own_file()
    a, b = (random(2048, 2048, dtype=torch.float16) for _ in range(2))
    c = torch.full((2048, 2048), 7.0, device="cuda", dtype=torch.float16)
    tuned = product_of(SEARCH)
    outcome = tuned.outcome(a, b, c)
    print(outcome.report())
    assert outcome.source == "measured"
    assert bool((c == 7).all()), "tuning wrote to the caller's array"
    tuned(a, b, c)
    check(c, a.double() @ b.double(), 2e-3)
    default, best = outcome.trials[0], outcome.best
    assert best.measured_us <= default.measured_us
    again = product_of(SEARCH).outcome(a, b, c)
    assert again.source == "file"
    assert again.winner == outcome.winner


def test_in_place_sums_are_untouched_while_tuning() -> None:
    needs_torch()
    own_file()

    @tilec.autotune([{"B": 256}, {"B": 512}, {"B": 2048}], progress=False)
    @tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
    def add_to(x: tl.array, y: tl.array, B: tl.const = 1024):
        i = tl.program_id(0) * B
        tl.store(y, i, tl.load(y, i, B) + tl.load(x, i, B))

    x = torch.randn(1_000_003, device="cuda")
    y = torch.randn(1_000_003, device="cuda")
    expected = x + y
    add_to(x, y)
    assert torch.equal(y, expected)


def test_without_any_framework() -> None:
    own_file()
    numpy = importlib.import_module("numpy")
    device = tilec.device("cuda")
    rng = numpy.random.default_rng(0)
    a, b = (rng.standard_normal((300, 300)).astype(numpy.float16) for _ in range(2))
    c = device.empty((300, 300), "f16")
    product_of(SEARCH)(device.array(a), device.array(b), c)
    expected = a.astype(float) @ b.astype(float)
    assert abs(c.numpy() - expected).max() <= 2e-3 * abs(expected).max()


def test_a_captured_stream_gets_the_models_choice() -> None:
    needs_torch()
    own_file()
    a, b, c = (random(512, 512, dtype=torch.float16) for _ in range(3))
    tuned = product_of(SEARCH)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tuned(a, b, c)
    graph.replay()
    check(c, a.double() @ b.double(), 2e-3)
    assert tuned.outcome(a, b, c).source == "measured"


def test_on_a_stream_of_ones_own() -> None:
    needs_torch()
    own_file()
    a, b, c = (random(700, 700, dtype=torch.bfloat16) for _ in range(3))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        product_of(SEARCH)(a, b, c)
    torch.cuda.current_stream().wait_stream(stream)
    check(c, a.double() @ b.double(), 1e-2)


# -- ops.matmul

INPUTS = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2, "int8": 0.0}
INPUTS |= {"float8_e4m3fn": 1e-2, "float8_e5m2": 1e-2}


def test_every_dtype_and_layout() -> None:
    needs_torch()
    for name, tolerance in INPUTS.items():
        dtype = getattr(torch, name)
        for m, n, k in ((1, 4096, 4096), (17, 257, 1031), (512, 512, 512), (1000, 1000, 1000)):
            for transposed_a in (False, True):
                for transposed_b in (False, True):
                    a = random(k, m, dtype=dtype).t() if transposed_a else random(m, k, dtype=dtype)
                    b = random(n, k, dtype=dtype).t() if transposed_b else random(k, n, dtype=dtype)
                    found = tilec.ops.matmul(a, b)
                    check(found, a.double() @ b.double(), tolerance)


def test_batches_epilogues_and_large_products() -> None:
    needs_torch()
    gelu = torch.nn.functional.gelu
    cases = [
        ((8, 300, 256), (8, 256, 200)),
        ((4, 1, 33, 64), (5, 64, 70)),
        ((7, 129, 96), (96, 40)),
    ]
    cases += [((4096, 4096), (4096, 4096)), ((16, 8192), (8192, 8192))]
    for a_shape, b_shape in cases:
        a, b = random(*a_shape, dtype=torch.bfloat16), random(*b_shape, dtype=torch.bfloat16)
        bias = random(b_shape[-1], dtype=torch.float32)
        rows = random(a_shape[-2], dtype=torch.float32)
        found = tilec.ops.matmul(
            a, b, bias=bias, row_scale=rows, scale=0.1, activation="gelu", out_dtype=torch.float32
        )
        expected = gelu(0.1 * rows.double()[:, None] * (a.double() @ b.double()) + bias.double())
        check(found, expected, 1e-4)


def test_fp8_with_scales_and_an_fp8_result() -> None:
    needs_torch()
    a = random(256, 512, dtype=torch.float8_e4m3fn)
    b = random(128, 512, dtype=torch.float8_e4m3fn).t()
    scale = torch.tensor(0.05, device="cuda")
    columns = torch.rand(128, device="cuda")
    found = tilec.ops.matmul(a, b, scale=scale, column_scale=columns, out_dtype=torch.float8_e4m3fn)
    expected = (a.double() @ b.double()) * 0.05 * columns.double()
    assert found.dtype == torch.float8_e4m3fn
    check(found, expected, 0.07)


def test_tuned_products() -> None:
    needs_torch()
    own_file()
    a, b = random(1024, 1024, dtype=torch.float16), random(1024, 1024, dtype=torch.float16)
    check(tilec.ops.matmul(a, b, tune=True), a.double() @ b.double(), 2e-3)


def test_the_callers_stream_and_graph() -> None:
    needs_torch()
    a, b = random(3, 64, 512, dtype=torch.float16), random(3, 512, 64, dtype=torch.float16)
    tilec.ops.matmul(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = tilec.ops.matmul(a, b)
    a.normal_()
    graph.replay()
    check(c, a.double() @ b.double(), 2e-3)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
