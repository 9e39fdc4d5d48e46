"""Draws kernels, shapes, tiles and demands together, and runs what compiles on a GPU.

    python test/gpu/drawn_demands.py --build [--count 300] [--seed N]     # no GPU
    python test/gpu/drawn_demands.py [--launches 4]                       # needs torch and a GPU

What the examples choose is checked by `run_all.py`; this looks for the combination nobody tried:
rings of any depth, roles, persistent CTAs, clusters and turns, on rows that the copy engine takes
and on rows that it does not. Every launch has fresh data and a poisoned output, and is compared
element by element with a float64 reference. The build fails if a combination neither compiles nor
is refused with a diagnostic; the run if a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from attention_cases import AttentionCase
from bench_cases import Variant
from configurations import Configuration, label_of, variant_of
from fused_cases import FusedCase
from grouped_cases import ARRANGED, SEARCHED, GroupedCase
from product_cases import OPS, ProductCase
from worker_pool import JobResult, run_jobs

from tilec.messages.diagnostics import CompileError

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "gpu" / "drawn"
MANIFEST = "manifest.json"
TARGETS = ("sm_90a", "sm_90a", "sm_90a", "sm_80")
STEPS = (1, 2, 8, 16, 64)
"""Sizes are multiples of one: rows of 16 bytes and more go by the copy engine."""
SIDES = (90, 700, 2200)
"""Largest sizes: a few programs, a round of them, and many that persistent CTAs share."""
PRODUCTS = (
    ("bf16", "bf16"), ("bf16", "f32"), ("f16", "f16"), ("f32", "f32"), ("f8E4M3FN", "f16"),
    ("f8E4M3FN", "f8E4M3FN"), ("i8", "i32"),
)  # fmt: skip
FUSED = ("activated_product", "dequantised_product", "gated_product")


@dataclass(frozen=True)
class Drawn:
    """A case, how it is compiled, for what, and into which file."""

    case: Any
    variant: Variant
    target: str
    file: str

    @property
    def name(self) -> str:
        """Everything that was drawn, in words."""
        shape = "x".join("x".join(map(str, spec.shape)) for spec in self.case.arrays[-1:])
        settings = dict(self.variant.constants or ())
        return f"{self.file} {self.target} {self.case.name} [{shape}] {label_of(settings)}"


def draw(seed: int, count: int) -> list[Drawn]:
    """The same for the same seed, here and where they run."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        target = rng.choice(TARGETS)
        kind = rng.choice((_product, _product, _ops, _fused, _grouped, _attention))
        case, variant = kind(rng, target)
        found.append(Drawn(case, variant, target, f"{number:04}.tilec"))
    return found


def _size(rng: random.Random, most: int) -> int:
    step = rng.choice(STEPS)
    return max(1, rng.randint(1, most) // step) * step


def _demands(rng: random.Random, target: str) -> Configuration:
    """Most are left to the compiler: of many at once, one is impossible."""
    found: Configuration = {"num_warps": rng.choice((None, None, 4, 8, 8, 12))}
    found["STAGES"] = rng.choice((None, None, None, 2, 3, 4, 5))
    found["persistent"] = rng.choice((None, True))
    found["order"] = rng.choice((*(None,) * 6, "hilbert", "rows"))
    if target != TARGETS[-1]:
        found["WARP_SPECIALIZE"] = rng.choice((None, True))
        found["cluster"] = rng.choice((*(None,) * 6, 2, (1, 2), (2, 2)))
        found["consumers"] = rng.choice((*(None,) * 6, "pingpong"))
    return {name: value for name, value in found.items() if value is not None}


def _tiles(rng: random.Random) -> Configuration:
    columns = rng.choice((8, 16, 32, 48, 64, 96, 128, 160, 192, 256))
    return {"BM": rng.choice((16, 64, 64, 128, 128, 192, 256)), "BN": columns,
            "BK": rng.choice((16, 32, 64, 64, 128))}  # fmt: skip


def _drawn_product(rng: random.Random) -> ProductCase:
    dtype, output = rng.choice(PRODUCTS)
    batch = rng.choice((0, 0, 3))
    most = rng.choice(SIDES[: 2 if batch else 3])
    shape = (_size(rng, most), _size(rng, most), _size(rng, most))
    return ProductCase(dtype, output, shape, rng.choice(("TN", "NN")), (), batch)


def _product(rng: random.Random, target: str) -> tuple[Any, Variant]:
    case = _drawn_product(rng)
    settings = _tiles(rng) | _demands(rng, target) | {"ANY_ORDER": rng.choice((False, False, True))}
    kernel = "batched_matmul" if case.batch else "swept_matmul"
    return case, variant_of(kernel, settings, {"PRECISION": case.precision})


def _ops(rng: random.Random, target: str) -> tuple[Any, Variant]:
    """As `tilec.ops.matmul` chooses for the sizes."""
    return _drawn_product(rng), Variant("ops", OPS, ())


def _grouped(rng: random.Random, target: str) -> tuple[Any, Variant]:
    most = rng.choice(SIDES) // 2
    sizes = tuple(rng.choice((0, rng.randint(1, most))) for _ in range(rng.randint(1, 9)))
    case = GroupedCase((*sizes, 1), _size(rng, most), _size(rng, most), f"{len(sizes) + 1} groups")
    settings = _tiles(rng) | _demands(rng, target)
    return case, variant_of(rng.choice((SEARCHED, ARRANGED)), settings, {})


def _fused(rng: random.Random, target: str) -> tuple[Any, Variant]:
    kernel, most = rng.choice(FUSED), rng.choice(SIDES)
    case = FusedCase(kernel, (_size(rng, most), _size(rng, most), _size(rng, most)))
    return case, variant_of(kernel, _tiles(rng) | _demands(rng, target), {})


def _attention(rng: random.Random, target: str) -> tuple[Any, Variant]:
    head, length = rng.choice((64, 128)), _size(rng, 900)
    case = AttentionCase(
        rng.choice(("f16", "bf16")), head, length, rng.random() < 0.5, rng.randint(1, 40), 2
    )
    settings: Configuration = {
        "BM": rng.choice((64, 128, 192)),
        "BN": rng.choice((32, 64, 96, 128)),
    }
    settings["num_warps"] = rng.choice((4, 8, 12))
    return case, variant_of("attention", settings, {"D": head, "CAUSAL": case.causal})


# -- without a GPU --------------------------------------------------------------------------------


def compile_drawn(job: tuple[Drawn, str]) -> dict[str, Any]:
    """Compiles into files and gives what launches them need; "refused": a diagnostic instead."""
    from variant_compiler import compile_variant

    drawn, out = job
    path = Path(out) / drawn.file
    try:
        entry = compile_variant(drawn.case, drawn.variant, drawn.target, path)
    except CompileError as error:
        return {"refused": str(error)}
    return {"file": drawn.file, "kernel": drawn.variant.kernel, **entry}


def build(out: Path, seed: int, count: int, processes: int) -> int:
    """Compiles all; gives how many broke the compiler."""
    out.mkdir(parents=True, exist_ok=True)
    jobs = [(drawn, str(out)) for drawn in draw(seed, count)]
    entries = {}
    broken = 0
    for result in run_jobs(compile_drawn, jobs, timeout=120, processes=processes):
        drawn = result.job[0]
        if result.error is not None:
            broken += 1
            print(f"BROKEN {drawn.name}\n       {result.error}", flush=True)
        else:
            entries[drawn.file] = result.value
    (out / MANIFEST).write_text(json.dumps({"seed": seed, "count": count, "entries": entries}))
    refused = [entry["refused"] for entry in entries.values() if "refused" in entry]
    print(f"{len(entries) - len(refused)} compiled, {broken} broken, {len(refused)} refused:")
    for reason, times in Counter(map(_reason, refused)).most_common(25):
        print(f"  {times:4}  {reason}")
    return broken


def _reason(diagnostic: str) -> str:
    """The message, without place and numbers, to count like ones together."""
    message = diagnostic.partition("error: ")[2].partition("\n")[0]
    return "".join("N" if letter.isdigit() else letter for letter in message).replace("NN", "N")


# -- on the GPU -----------------------------------------------------------------------------------


def run_drawn(job: tuple[Drawn, dict[str, Any], int, int]) -> str:
    """Launches with fresh data several times; what is wrong, or nothing."""
    import torch
    from measured_cases import expected_of, filled, written
    from tilec_calls import tilec_call

    drawn, entry, seed, launches = job
    case = drawn.case
    call = tilec_call(case, entry, "cuda")
    for launch in range(launches):
        generator = torch.Generator(device="cuda").manual_seed(seed + launch)
        storages = filled(case, "cuda", generator)
        tensors = {name: storage.tensor for name, storage in storages.items()}
        expected = expected_of(case, tensors)
        call(tensors)
        torch.cuda.synchronize()
        output = storages[written(case)[0]]
        wrong = expected.wrong(output.tensor)
        stray = output.stray_writes()
        if wrong or stray:
            return f"launch {launch}: {wrong}; {stray} bytes written outside the array"
    return ""


def run(out: Path, launches: int, processes: int, only: Sequence[str]) -> int:
    """Runs what was built; gives how many are wrong."""
    from tilec_calls import with_folder

    built = json.loads((out / MANIFEST).read_text())
    seed = time.time_ns() % 2**31
    jobs = []
    for one in draw(built["seed"], built["count"]):
        entry = built["entries"].get(one.file, {})
        if "file" in entry and any(text in one.name for text in only):
            jobs.append((one, with_folder(out, entry), seed, launches))
    start = time.monotonic()
    results = list(run_jobs(run_drawn, jobs, timeout=60, processes=processes))
    wrong = [result for result in results if result.error or result.value]
    for result in wrong:
        print(f"WRONG {result.job[0].name}\n      {(result.error or result.value)[:600]}")
    seconds = time.monotonic() - start
    print(
        f"{len(results) - len(wrong)} of {len(results)} right in {launches} launches each, "
        f"{seconds:.0f} s (drawn by seed {built['seed']}, data seed {seed})"
    )
    about = {name: built[name] for name in ("seed", "count")}
    _record(results, about | {"data_seed": seed, "launches": launches, "seconds": seconds})
    return len(wrong)


def _record(results: Sequence[JobResult], about: dict[str, Any]) -> None:
    folder = Path(os.environ.get("OUT") or ROOT / "build")
    folder.mkdir(parents=True, exist_ok=True)
    records = {r.job[0].name: r.error or r.value for r in results}
    (folder / "drawn-demands.json").write_text(json.dumps(about | {"wrong": records}))


def main() -> int:
    """Builds or runs; exit code 1 if anything broke or was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", action="store_true", help="compile only")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31, help="of what is drawn")
    parser.add_argument("--launches", type=int, default=4)
    parser.add_argument("--processes", type=int, help="2 that compile, 8 that run")
    parser.add_argument("--only", nargs="+", default=[""], help="those named like one of these")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.build:
        return int(build(options.out, options.seed, options.count, options.processes or 2) > 0)
    return int(run(options.out, options.launches, options.processes or 8, options.only) > 0)


if __name__ == "__main__":
    sys.exit(main())
