"""What `estimate-registers` says of kernels, and what ptxas does with them. No GPU needed.

    python test/bench/register_verdicts.py --half 0 --out build/verdicts0 [--count 70] [--seed N]
    python test/bench/register_verdicts.py --half 1 --out build/verdicts1
    python test/bench/register_verdicts.py --again build/verdicts0 [build/verdicts1]

Compiles the kernels of `register_cases.py`, assembles them, and writes `verdicts.json`: for each
what the compiler counted for its parts, the bytes that ptxas spills, its registers, and its advice
about wgmma (C7510 to C7519). A table says how often the two agree. The programs that were counted
lie beside it: `--again` counts them anew without compiling. What is fitted is fitted to half 0 and
judged by half 1, whose kernels are others and drawn by another seed. What ptxas said is kept by the
PTX's hash, in --cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from mlir import ir
from records import record_text
from register_cases import ROOT, RegisterCase, cases

from tilec.call import jit
from tilec.compile import compiler
from tilec.compile.assembler import assemble, find_tool, tool_version
from tilec.dialects.context import make_context
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.passes.analysis.register_pressure import SUBJECT
from tilec.passes.contract import PassContext, TilePass
from tilec.passes.rewriting.walk import kernels
from tilec.passes.roles.parts import parts_of

PASS = "estimate-registers"
SERIALISED = re.compile(r"C751\d")


def collect(half: int, seed: int, count: int, out: Path, cache: Path) -> dict[str, Any]:
    """Compiles and assembles; what was found of each kernel, by name."""
    found = {}
    for case in cases(half, seed, count):
        found[case.name] = _verdict(case, out, cache)
        shown = {k: v for k, v in found[case.name].items() if k not in ("threads", "target")}
        print(case.name, shown, flush=True)
    return found


def _verdict(case: RegisterCase, out: Path, cache: Path) -> dict[str, Any]:
    with _watched(out / f"{case.name}.mlir") as compiled:
        try:
            case.compile(out)
        except CompileError as error:
            return {"refused": error.message}
    kernel = compiled[0]
    said = _assembled(kernel.ptx, case.target, cache)
    parts = recount(out / f"{case.name}.mlir", case.target)
    # What specialize-warps says itself, of a load role's tiles, is in no program.
    said["load"] = any(
        entry["about"] == SUBJECT and "live" not in entry for entry in kernel.report["decisions"]
    )
    return {"parts": parts, **said, "threads": kernel.threads, "target": case.target}


@contextmanager
def _watched(path: Path) -> Iterator[list[Any]]:
    """Collects the kernels that are compiled; of the first, the program in front of PASS."""
    found: list[Any] = []
    whole, run = compiler.compile_module, TilePass.__call__

    def compile_module(*arguments: Any, **options: Any) -> Any:
        found.append(whole(*arguments, **options))
        return found[-1]

    def noted(self: TilePass, module: Any, context: PassContext) -> None:
        if self.name == PASS and not found:
            path.write_text(f"// {context.num_warps}\n{module}")
        run(self, module, context)

    with (
        mock.patch.object(compiler, "compile_module", compile_module),
        mock.patch.object(TilePass, "__call__", noted),
        mock.patch.object(jit, "announce"),
        mock.patch("variant_compiler.locate_tool", return_value=None),
    ):
        yield found


def _assembled(ptx: str, target: str, cache: Path) -> dict[str, Any]:
    """What ptxas says, from the cache where it said it before."""
    about = f"{tool_version(find_tool('ptxas'))} {target}\n{ptx}"
    path = cache / f"{hashlib.sha256(about.encode()).hexdigest()[:24]}.json"
    if not path.exists():
        assembly = assemble(ptx, find_target(target))
        advice = sorted(set(SERIALISED.findall(" ".join(assembly.messages))))
        said = {"spills": assembly.spills, "registers": assembly.registers, "advice": advice}
        path.write_text(json.dumps(said))
    return json.loads(path.read_text())


def recount(path: Path, target: str) -> list[tuple[str, int, int]]:
    """Of each part of a stored program: its name, what is counted, the registers it has."""
    text = path.read_text()
    warps = int(text.partition("\n")[0].removeprefix("// "))
    context = PassContext(find_target(target), num_warps=warps)
    with make_context() as mlir:
        module = ir.Module.parse(text, mlir)
        return [
            (part.name, part.peak(function).registers, part.registers)
            for function in kernels(module)
            for part in parts_of(function, context)
        ]


def is_warned_of(verdict: Mapping[str, Any]) -> bool:
    """Whether the compiler says that it spills."""
    counted_too_many = any(counted > registers for _, counted, registers in verdict["parts"])
    return counted_too_many or verdict["load"]


def table(found: Mapping[str, Any]) -> str:
    """How often the verdicts agree, and about which kernels they do not."""
    done = {name: verdict for name, verdict in found.items() if "spills" in verdict}
    count = Counter((is_warned_of(e), e["spills"] > 0) for e in done.values())
    right = count[True, True] + count[False, False]
    lines = [f"{right} of {count.total()} agree ({100 * right / max(1, count.total()):.1f} %)"]
    for warned in (True, False):
        word = "a warning" if warned else "no warning"
        lines.append(f"{word}: {count[warned, True]} spill, {count[warned, False]} do not")
    for name, e in done.items():
        if is_warned_of(e) != (e["spills"] > 0):
            lines.append(f"  {name}: {e['parts']}, {e['spills']} bytes, {e['registers']} registers")
    serialised = {name: e for name, e in done.items() if e["advice"]}
    told = sum(map(is_warned_of, serialised.values()))
    lines.append(f"wgmma serialised: {len(serialised)}, of which {told} are warned of")
    return "\n".join(lines)


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "verdicts")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "assembled")
    parser.add_argument("--half", type=int, choices=(0, 1), default=1)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--count", type=int, default=70, help="drawn kernels")
    parser.add_argument("--again", type=Path, nargs="+", help="folders of earlier runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for folder in options.again or ():
        print(folder, table(_counted_again(folder)), sep="\n")
    if not options.again:
        options.out.mkdir(parents=True, exist_ok=True)
        options.cache.mkdir(parents=True, exist_ok=True)
        found = collect(options.half, options.seed, options.count, options.out, options.cache)
        about = {
            "command": f"--half {options.half} --seed {options.seed} --count {options.count}",
            "date": time.strftime("%Y-%m-%d"),
            "ptxas": tool_version(find_tool("ptxas")),
        }
        (options.out / "verdicts.json").write_text(record_text(about | {"kernels": found}))
        print(table(found))


def _counted_again(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "verdicts.json").read_text())["kernels"]
    for name, verdict in found.items():
        if "spills" in verdict:
            verdict["parts"] = recount(folder / f"{name}.mlir", verdict["target"])
    return found


if __name__ == "__main__":
    main()
