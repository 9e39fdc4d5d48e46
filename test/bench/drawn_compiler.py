"""Compiles a drawn case in a process of its own: tilec's untuned variants, and for a run on a GPU
what its peers compile, into their caches."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from drawn_cases import Drawn
from drawn_results import reason
from variant_compiler import compile_variant

from tilec.executable.kernel import CompiledKernel
from tilec.messages.diagnostics import CompileError
from tilec.runtime.artefact import load


@dataclass(frozen=True)
class CompileJob:
    """A drawn case, and where its artefacts go. `device`: "cuda" if the peers are to
    be compiled for it, too."""

    drawn: Drawn
    target: str
    folder: Path
    device: str
    seed: int


def compile_drawn(job: CompileJob) -> dict[str, dict[str, Any]]:
    """An entry a variant: what launches need and the telling line of its report, or the compiler's
    "error". What the folder has of the case, of an earlier run, is taken from there."""
    job.folder.mkdir(parents=True, exist_ok=True)
    kept = job.folder / f"{job.drawn.number:04}.json"
    about = {"case": job.drawn.name, "target": job.target}
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if known and not about.items() <= known.items():
        raise ValueError(f"{kept} is of {known['case']} for {known['target']}: of other cases")
    found = known["variants"] if known else dict(_variants(job))
    peers = known.get("peers", False)
    if job.device == "cuda" and not peers:
        _compile_peers(job)
        peers = True
    kept.write_text(json.dumps(about | {"variants": found, "peers": peers}))
    return found


def _variants(job: CompileJob) -> Iterator[tuple[str, dict[str, Any]]]:
    for variant in job.drawn.variants:
        path = job.folder / f"{job.drawn.number:04}-{variant.label}.tilec"
        try:
            taken = compile_variant(job.drawn.case, variant, job.target, path)
        except CompileError as error:
            yield variant.label, {"error": str(error)}
            continue
        entry = {"kernel": variant.kernel, **taken}
        if "steps" not in entry:
            entry["file"] = path.name
        kernels = list(_kernels(job.folder, entry))
        decisions = [each for kernel in kernels for each in kernel.report["decisions"]]
        shown = "; ".join(map(_shown, kernels))
        if "registers" in entry:
            shown = f"{shown}, {entry['registers']} registers"
        yield variant.label, entry | {"reason": f"{reason(entry, decisions)} [{shown}]"}


def _kernels(folder: Path, entry: dict[str, Any]) -> Iterator[CompiledKernel]:
    """All that a variant launches, but for copies and sums of parts."""
    for name in entry.get("steps") or [entry["file"]]:
        yield from load(str(folder / name)).kernels


def _shown(kernel: CompiledKernel) -> str:
    """Its constants that are numbers, and its warps, as in "BM=64 BN=64 w4"."""
    constants = {n: v for n, v in kernel.constants.items() if type(v) is int}
    return " ".join([*(f"{n}={v}" for n, v in constants.items()), f"w{kernel.threads // 32}"])


def _compile_peers(job: CompileJob) -> None:
    from regime_timing import Duration
    from regimes import RegimeJob, warm_candidates, warm_compiled

    about = RegimeJob(job.drawn.case, {}, job.device, job.seed, Duration())
    warm_candidates(about)
    warm_compiled(about)
