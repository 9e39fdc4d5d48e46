"""What `estimate-registers` says of kernels, and what ptxas does with them. No GPU needed.

    python test/bench/register_verdicts.py --out build/verdicts [--count 120] [--seed N]

Compiles attention of all head sizes and drawn products, fused and grouped kernels (the same as
`test/gpu/drawn_demands.py`), assembles them, and writes `verdicts.json`: for each kernel what the
compiler counted, the bytes that ptxas spills, its registers, and its advice about wgmma (C7510 to
C7519). A table says how often the two agree. What is there already is not done again; programs in
front of `estimate-registers` lie beside it, so that another estimate can be tried on them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from attention_cases import AttentionCase
from bench_cases import Variant
from configurations import variant_of
from drawn_demands import draw
from variant_compiler import compile_variant

from tilec import compiler, jit
from tilec.assembler import assemble
from tilec.diagnostics import CompileError
from tilec.target import find_target

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("sm_90a", "sm_80", "sm_100a")
HEADS = (16, 32, 64, 72, 96, 128, 192, 256)
TILES = ({}, {"BM": 64, "BN": 64}, {"BM": 128, "BN": 128})
BEFORE = "alternate-programs"
"""The pass in front of `estimate-registers`."""


def cases(seed: int, count: int) -> Iterator[tuple[str, Any, Variant, str]]:
    """A name, a case, how it is compiled and for what: attention and drawn ones by turns."""
    drawn = iter(draw(seed, count))
    for number, head in enumerate(HEADS):
        for tiles in TILES:
            target = TARGETS[number % 3]
            for name in TARGETS if not tiles else (target,):
                case = AttentionCase("bf16", head, 512, bool(number % 2), 4, 2)
                constants = {"D": head, "CAUSAL": case.causal}
                label = "-".join(f"{key}{value}" for key, value in tiles.items()) or "auto"
                yield (
                    f"attention{head}-{label}-{name}",
                    case,
                    variant_of("attention", tiles, constants),
                    name,
                )
            yield from (
                (f"drawn{d.file[:4]}-{d.target}", d.case, d.variant, d.target)
                for d in take(drawn, 2)
            )
    for d in drawn:
        yield f"drawn{d.file[:4]}-{d.target}", d.case, d.variant, d.target


def take(items: Iterator[Any], count: int) -> Iterator[Any]:
    """The next few."""
    for _ in range(count):
        if (item := next(items, None)) is not None:
            yield item


def collect(out: Path, seed: int, count: int, shard: int, shards: int) -> dict[str, Any]:
    """Compiles and assembles what is not there; everything found so far."""
    path = out / f"verdicts{shard}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for number, (name, case, variant, target) in enumerate(cases(seed, count)):
        if number % shards == shard and name not in found:
            found[name] = _verdict(out, name, case, variant, target)
            path.write_text(json.dumps(found, indent=1))
            print(name, {k: v for k, v in found[name].items() if k != "counted"}, flush=True)
    return found


def _verdict(out: Path, name: str, case: Any, variant: Variant, target: str) -> dict[str, Any]:
    kernels = []
    whole = compiler.compile_module

    def dumped(module: Any, *arguments: Any, **options: Any) -> Any:
        folder = out / name / str(len(kernels))
        kernels.append((whole(module, *arguments, **(options | {"dump_dir": str(folder)})), folder))
        return kernels[-1][0]

    try:
        with (
            mock.patch.object(compiler, "compile_module", dumped),
            mock.patch.object(jit, "_announced", side_effect=lambda kernel: kernel),
            mock.patch("variant_compiler.locate_tool", return_value=None),
        ):
            compile_variant(case, variant, target, out / f"{name}.tilec")
    except CompileError as error:
        return {"refused": error.message}
    kernel, folder = kernels[0]
    for file in folder.iterdir():
        if BEFORE not in file.name:
            file.unlink()
    assembly = assemble(kernel.ptx, find_target(target))
    advice = sorted(set(re.findall(r"C75\d\d", " ".join(assembly.messages))))
    counted = [e for e in kernel.report["decisions"] if e["about"] == "registers"]
    return {
        "counted": counted,
        "warned": bool(counted),
        "spills": assembly.spills,
        "registers": assembly.registers,
        "advice": advice,
        "threads": kernel.threads,
        "target": target,
    }


def table(found: Mapping[str, Any]) -> str:
    """How often the verdicts agree."""
    count = Counter((e["warned"], e["spills"] > 0) for e in found.values() if "spills" in e)
    right = count[True, True] + count[False, False]
    lines = [f"{right} of {count.total()} agree ({100 * right / max(1, count.total()):.1f} %)"]
    for warned in (True, False):
        word = "a warning" if warned else "no warning"
        lines.append(f"{word}: {count[warned, True]} spill, {count[warned, False]} do not")
    return "\n".join(lines)


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "verdicts")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--count", type=int, default=150, help="drawn kernels")
    parser.add_argument("--shard", default="0/1", metavar="N/M")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    shard, shards = map(int, options.shard.split("/"))
    print(table(collect(options.out, options.seed, options.count, shard, shards)))


if __name__ == "__main__":
    main()
