"""Times the `sm_80` products of `ampere_cases`, each group interleaved, beside cuBLAS and Triton.

python test/bench/ampere_run.py [--only TEXT...] [--triton FOLDER...] [--out FILE.json]

Needs torch, CUDA's Python bindings for Triton's PTX, and of tilec the runtime. FOLDER holds PTX
files that Triton made for sm_80 and their meta.json. Every peer is checked against float64 on 256
rows of a poisoned output first; one that is wrong is reported and not timed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

import torch
from ampere_cases import Case, groups
from records import record_text
from tensors import Storage, random_values
from timing import CudaClock, rotated_sets, time_peers
from triton_ptx import TritonPtx, load_folder

from tilec.runtime.artefact import load

ROOT = Path(__file__).resolve().parents[2]
TOLERANCES = {"bf16": 6e-3, "f16": 1e-3, "f32": 1e-5, "tf32": 2e-3, "i8": 0.0, "f64": 1e-13}
"""Of the norm of the error, relative."""
SETS = 40
Tensors = Mapping[str, torch.Tensor]


def main() -> None:
    """Parses the command line; prints a block a group, writes the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="groups named so")
    parser.add_argument("--artefacts", type=Path, default=ROOT / "build" / "ampere_bench")
    parser.add_argument("--triton", nargs="*", type=Path, default=[])
    parser.add_argument("--budget-ms", type=float, default=400)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "ampere.json")
    options = parser.parse_args()
    manifest = json.loads((options.artefacts / "manifest.json").read_text())
    torch.zeros(1, device="cuda")  # the driver's calls need a context
    rivals = [kernel for folder in options.triton for kernel in load_folder(folder)]
    records = []
    for name, cases in groups().items():
        if name in manifest and any(text in name for text in options.only):
            found = measure(cases, manifest[name], options, rivals)
            records.append({"group": name, "cases": found})
            show(name, found)
            options.out.write_text(record_text(about() | {"groups": records}) + "\n")


def about() -> dict[str, Any]:
    """What the figures were measured with."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
        "command": " ".join(sys.argv),
        "gpu": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }


def measure(
    cases: tuple[Case, ...], files: Any, options: argparse.Namespace, rivals: list[TritonPtx]
) -> list[dict[str, Any]]:
    """All peers of all cases of a group, interleaved: a record a case."""
    peers: dict[tuple[str, str], Callable[[int], Any]] = {}
    failures: dict[str, dict[str, str]] = {case.name: {} for case in cases}
    sets = SETS
    for case in cases:
        nbytes = sum(spec.nbytes for spec in case.arrays())
        sets = min(sets, rotated_sets(nbytes))
    for case in cases:
        inputs = [draw(case, seed) for seed in range(sets)]
        for label, call in calls(case, files[case.name], options.artefacts, rivals).items():
            reason = wrong(case, call, inputs[0])
            if reason:
                failures[case.name][label] = reason
            else:
                peers[case.name, label] = lambda i, f=call, t=inputs: f(t[i])
    times = time_peers(
        peers, CudaClock(), sets=sets, budget_ms=options.budget_ms * len(cases), least_rounds=7
    )
    return [
        {
            "case": case.name,
            "flops": case.flops,
            "us": {label: asdict(t) for (name, label), t in times.items() if name == case.name},
            "failures": failures[case.name],
        }
        for case in cases
    ]


def draw(case: Case, seed: int) -> dict[str, torch.Tensor]:
    """Random operands and a poisoned output."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    storages = {spec.name: Storage(spec, "cuda") for spec in case.arrays()}
    for name in "ab":
        storages[name].fill(random_values(storages[name].spec, generator))
    return {name: storage.tensor for name, storage in storages.items()}


def calls(
    case: Case, files: Mapping[str, Any], folder: Path, rivals: list[TritonPtx]
) -> dict[str, Callable[[Tensors], Any]]:
    """The peers of a case by label."""
    found = {f"tilec {label}": tilec_call(entry, folder) for label, entry in files.items()}
    if case.pitch == 1:
        found["cuBLAS"] = cublas_call(case)
    if case.pitch == 1 and case.layout == "TN" and not any(size % 16 for size in case.shape):
        dtype = "tf32" if case.precision == "tf32" else case.dtype
        fitting = [kernel for kernel in rivals if kernel.dtype == dtype]
        found |= {f"Triton {kernel.label}": kernel for kernel in fitting}
    return found


def tilec_call(entry: Mapping[str, Any], folder: Path) -> Callable[[Tensors], Any]:
    """The product, behind the copies of unaligned operands."""
    launcher = load(str(folder / entry["file"]))
    copies = {
        name: (load(str(folder / copy["file"])), copy["pitch"])
        for name, copy in entry.get("copies", {}).items()
    }

    def call(t: Tensors) -> None:
        operands = {name: t[name] for name in "ab"}
        for name, (copier, pitch) in copies.items():
            transposed = t[name].stride(-1) != 1
            rows = t[name].T if transposed else t[name]
            made = torch.empty((rows.shape[0], pitch), dtype=rows.dtype, device=rows.device)
            made = made[:, : rows.shape[1]]
            copier(rows, made)
            operands[name] = made.T if transposed else made
        launcher(operands["a"], operands["b"], t["c"])

    return call


def cublas_call(case: Case) -> Callable[[Tensors], Any]:
    """torch's product."""
    if case.dtype == "i8":
        return lambda t: torch._int_mm(t["a"], t["b"])

    def call(t: Tensors) -> None:
        torch.backends.cuda.matmul.allow_tf32 = case.precision == "tf32"
        torch.mm(t["a"], t["b"], out=t["c"])

    return call


def wrong(case: Case, call: Callable[[Tensors], Any], tensors: Tensors) -> str:
    """Why a peer's result is wrong, or nothing."""
    a, b, c = (tensors[name] for name in "abc")
    c.fill_(0 if not c.dtype.is_floating_point or case.output else float("nan"))
    try:
        result = call(tensors)
        torch.cuda.synchronize()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    result = c if result is None else result
    at = torch.randint(0, a.shape[0], (256,), device="cuda")
    at[:2] = torch.tensor([0, a.shape[0] - 1], device="cuda")
    expected = a[at].double() @ b.double()
    error = ((result[at].double() - expected).norm() / expected.norm()).item()
    name = "tf32" if case.precision == "tf32" else case.output or case.dtype
    if not error <= TOLERANCES[name] or bool(torch.isnan(result).any()):
        return f"WRONG: error {error:.1e}"
    return ""


def show(name: str, cases: list[dict[str, Any]]) -> None:
    """A line a peer."""
    print(f"== {name}")
    for record in cases:
        print(record["case"], record["failures"] or "")
        for label, time in sorted(record["us"].items(), key=lambda item: item[1]["us"]):
            speed = record["flops"] / time["us"] / 1e6
            print(f"  {label:36s} {time['us']:10.2f} us {speed:8.1f} TFLOP/s", flush=True)


if __name__ == "__main__":
    main()
