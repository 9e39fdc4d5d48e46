"""Compiles the `sm_80` products of `ampere_cases` into build/ampere_bench; no GPU.

python test/bench/ampere_build.py [--only TEXT...] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from ampere_cases import COPIED, Case, Variant, groups
from array_spec import ArraySpec
from product_kernels import swept_matmul

from tilec.call.jit import Kernel
from tilec.examples.sgemm_steps import STEPS
from tilec.examples.stream_k import stream_k
from tilec.hardware.sizes import LINE_BYTES, VECTOR_BYTES
from tilec.ops.matmul_kernel import copy_rows
from tilec.runtime.artefact import save
from tilec.runtime.facts import index_bits, observe_parameter

ROOT = Path(__file__).resolve().parents[2]
TARGET = "sm_80"


def main() -> None:
    """Compiles what is named; writes manifest.json: group -> case -> variant -> files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="groups named so")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "ampere_bench")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    manifest: dict[str, dict[str, dict[str, Any]]] = {}
    for name, cases in groups().items():
        if any(text in name for text in options.only):
            manifest[name] = {
                case.name: {v.label: entry(case, v, options.out) for v in case.variants}
                for case in cases
            }
    (options.out / "manifest.json").write_text(json.dumps(manifest, indent=1))
    print(len(list(options.out.glob("*.tilec"))), "artefacts")


def entry(case: Case, variant: Variant, out: Path) -> dict[str, Any]:
    """The artefact of a variant, and those of the copies it needs with their pitch."""
    if variant.kind != COPIED:
        return {"file": compiled(*_kernel(case, variant), case.arrays(), out)}
    width = case.arrays()[0].view().element_bytes
    copies, arrays = {}, list(case.arrays())
    for number, aligned in enumerate(case.arrays(LINE_BYTES // width)[:2]):
        spec = arrays[number]
        pitch = max(aligned.strides)
        if max(spec.strides) * width % VECTOR_BYTES == 0:
            continue
        arrays[number] = aligned
        rows = [_as_rows(replace(s, name=name)) for s, name in ((spec, "x"), (aligned, "y"))]
        copies[spec.name] = {"file": compiled(copy_rows, {}, rows, out), "pitch": pitch}
    return {"file": compiled(*_kernel(case, variant), arrays, out), "copies": copies}


def _as_rows(spec: ArraySpec) -> ArraySpec:
    if spec.strides[-1] == 1:
        return spec
    return replace(spec, shape=spec.shape[::-1], strides=spec.strides[::-1])


def _kernel(case: Case, variant: Variant) -> tuple[Kernel, dict[str, Any]]:
    """The kernel with its demands, and its constants."""
    if variant.kind.startswith("step"):
        step = STEPS[int(variant.kind.split()[1]) - 1]
        return step.kernel, dict(step.constants)
    tile = dict(zip(("BM", "BN", "BK"), variant.tile, strict=True)) | {"STAGES": variant.stages}
    if variant.kind == "stream_k":
        return stream_k.demanding(num_warps=variant.warps), tile
    return swept_matmul.demanding(num_warps=variant.warps), tile | {"PRECISION": case.precision}


def compiled(kernel: Kernel, constants: dict[str, Any], arrays: Any, out: Path) -> str:
    """The name of the artefact for arrays like these, made if it is not there."""
    views = [spec.view() for spec in arrays]
    facts = [observe_parameter(s.name, view) for s, view in zip(arrays, views, strict=True)]
    bits = index_bits(views)
    about = repr((kernel.name, kernel.demands(), sorted(constants.items()), facts, bits))
    file = out / f"{kernel.name}-{hashlib.sha256(about.encode()).hexdigest()[:12]}.tilec"
    if not file.exists():
        save(file, [kernel.compile(facts, constants, target=TARGET, index_bits=bits)])
    return file.name


if __name__ == "__main__":
    main()
