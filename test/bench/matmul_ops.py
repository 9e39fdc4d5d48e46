"""`tilec.ops.matmul`, untuned and tuned, beside torch in one run; how good the model's order is.

python test/bench/matmul_ops.py [--only TEXT] [--tune] [--model] [--budget-ms 400] [--out FILE.json]

Each product is checked against float64 on 512 of its rows before timing; peers are interleaved on
rotating inputs, medians (see timing.py). --tune adds the tuned product and says what was chosen.
--model times every candidate of the tuning space and gives Spearman's rank correlation between
predicted and measured times, and how much slower the model's first choices are than the best.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from records import record_text
from timing import CudaClock, rotated_sets, time_peers

import tilec
from tilec.ops.matmul_kernel import product
from tilec.ops.tuned_tiles import tile_space

TOLERANCES = {"bf16": 1e-2, "f16": 2e-3, "tf32": 3e-3, "fp8": 1e-2, "s8": 0.0}


@dataclass(frozen=True)
class Product:
    """c = a @ b of `dtype`; `layout`: N row-major, T column-major, for a and b of C = A B.

    TN is what cuBLAS calls so: both operands contiguous along k.
    """

    dtype: str
    m: int
    n: int
    k: int
    layout: str = "TN"
    batch: int = 1

    @property
    def name(self) -> str:
        """As `--only` finds it."""
        batch = f" x{self.batch}" if self.batch > 1 else ""
        return f"{self.dtype} {self.m}x{self.n}x{self.k}{batch} {self.layout}"


CASES = (
    *(
        Product(dtype, size, size, size, layout)
        for dtype in ("bf16", "f16")
        for size in (8192, 4096, 2048, 1024, 512)
        for layout in ("TN", "NN")
    ),
    *(Product("fp8", size, size, size) for size in (8192, 4096)),
    *(Product(dtype, 2048, 2048, 2048, "TN", 8) for dtype in ("bf16",)),
    Product("tf32", 8192, 8192, 8192),
    Product("s8", 8192, 8192, 8192),
    *(
        Product("bf16", m, n, k)
        for m in (1, 16, 64, 256)
        for n, k in ((4096, 4096), (8192, 8192), (4096, 14336))
    ),
    Product("bf16", 1000, 1000, 1000, "NN"),
    Product("bf16", 4099, 4127, 4111, "NN"),
)
TORCH = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "tf32": torch.float32,
    "fp8": torch.float8_e4m3fn,
    "s8": torch.int8,
}


def operands(case: Product) -> tuple[Any, Any, Any]:
    """Random a and b in their layout, and an output that is no result."""
    dtype = TORCH[case.dtype]
    lead = (case.batch,) if case.batch > 1 else ()

    def draw(rows: int, columns: int, transposed: bool) -> Any:
        shape = (*lead, columns, rows) if transposed else (*lead, rows, columns)
        if dtype == torch.int8:
            values = torch.randint(-128, 128, shape, device="cuda", dtype=dtype)
        else:
            values = torch.randn(shape, device="cuda").to(dtype)
        return values.mT if transposed else values

    out_dtype = {"fp8": torch.bfloat16, "s8": torch.int32}.get(case.dtype, dtype)
    out = torch.zeros((*lead, case.m, case.n), device="cuda", dtype=out_dtype)
    return draw(case.m, case.k, False), draw(case.k, case.n, case.layout == "TN"), out


def torch_product(case: Product) -> Callable[[Any, Any, Any], Any] | None:
    """torch's own product, None where it has none."""
    if case.dtype == "fp8":
        one = torch.ones((), device="cuda")
        return lambda a, b, c: torch._scaled_mm(
            a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    if case.dtype == "s8":
        return lambda a, b, c: torch._int_mm(a, b)
    torch.backends.cuda.matmul.allow_tf32 = case.dtype == "tf32"
    return lambda a, b, c: torch.matmul(a, b, out=c)


def tilec_product(case: Product, tune: bool) -> Callable[[Any, Any, Any], Any]:
    """tilec's product."""
    precision = "tf32" if case.dtype == "tf32" else "ieee"
    return lambda a, b, c: tilec.ops.matmul(a, b, c, precision=precision, tune=tune)


def error_of(case: Product, call: Callable[[Any, Any, Any], Any]) -> float:
    """The largest error on some rows, relative to the largest value there."""
    a, b, c = operands(case)
    found = call(a, b, c)
    found = c if found is None else found
    rows = torch.randperm(case.m, device="cuda")[:512]
    expected = a[..., rows, :].double() @ b.double()
    return float((found[..., rows, :].double() - expected).abs().max() / expected.abs().max())


def measure(case: Product, tune: bool, budget_ms: float) -> dict[str, Any]:
    """Times of all peers in microseconds; what failed and why."""
    peers = {"torch": torch_product(case), "tilec": tilec_product(case, False)}
    if tune:
        peers["tilec tuned"] = tilec_product(case, True)
    failures, right = {}, {}
    for name, call in peers.items():
        try:
            error = error_of(case, call)
        except Exception as problem:
            failures[name] = f"{type(problem).__name__}: {str(problem)[:300]}"
            continue
        if not error <= TOLERANCES[case.dtype]:
            failures[name] = f"error {error:.1e}"
        else:
            right[name] = call
    sample = operands(case)
    nbytes = sum(t.numel() * t.element_size() for t in sample)
    sets = [operands(case) for _ in range(rotated_sets(nbytes))]
    calls = {name: (lambda i, f=call: f(*sets[i])) for name, call in right.items()}
    times = time_peers(calls, CudaClock(), sets=len(sets), budget_ms=budget_ms, least_rounds=10)
    return {
        "case": case.name,
        "us": {name: asdict(timing) for name, timing in times.items()},
        "failures": failures,
    }


def show(case: Product, record: dict[str, Any]) -> None:
    """A line a case."""
    flops = 2.0 * case.m * case.n * case.k * case.batch
    us = {name: timing["us"] for name, timing in record["us"].items()}
    parts = [f"{name} {t:9.1f} us {flops / t / 1e6:7.1f} T" for name, t in us.items()]
    parts += [f"{us['torch'] / t:.3f} of torch" for n, t in us.items() if n != "torch" in us]
    print(f"{case.name:28}", "; ".join(parts), record["failures"] or "", flush=True)


def correlation(one: Sequence[float], two: Sequence[float]) -> float:
    """Spearman's rank correlation."""

    def ranks(values: Sequence[float]) -> list[float]:
        order = sorted(range(len(values)), key=lambda i: values[i])
        places = [0.0] * len(values)
        for place, i in enumerate(order):
            places[i] = float(place)
        return places

    x, y = torch.tensor(ranks(one)), torch.tensor(ranks(two))
    return float(torch.corrcoef(torch.stack([x, y]))[0, 1])


def check_model(case: Product) -> None:
    """Times every candidate, and compares with the model's order."""
    a, b, c = operands(case)
    precision = "tf32" if case.dtype == "tf32" else "ieee"
    with tempfile.TemporaryDirectory() as directory:
        tuned = tilec.autotune(
            search=tile_space(a.element_size()), most=200, file=Path(directory, "all.json")
        )(product)
        outcome = tuned.outcome(a, b, c, 0, 0, 0, 0, 1.0, 0, PRECISION=precision)
    timed = [t for t in outcome.trials if t.measured_us is not None and t.predicted_us is not None]
    timed.sort(key=lambda trial: trial.predicted_us)
    measured = [trial.measured_us for trial in timed]
    rank = correlation([trial.predicted_us for trial in timed], measured)
    best = min(measured)
    first = {n: min(measured[:n]) / best for n in (1, 4, 12)}
    print(f"{case.name}: rank correlation {rank:.2f}; best of the model's first", end=" ")
    print(", ".join(f"{n}: {loss:.2f} of the best" for n, loss in first.items()))
    print(outcome.report())


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--budget-ms", type=float, default=400)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("TILEC_TUNING_FILE", str(Path(tempfile.mkdtemp(), "tuning.json")))
    records = []
    for case in (case for case in CASES if options.only in case.name):
        if options.model:
            check_model(case)
            continue
        records.append(measure(case, options.tune, options.budget_ms))
        show(case, records[-1])
    if options.out is not None:
        options.out.write_text(record_text(records) + "\n")


if __name__ == "__main__":
    main()
