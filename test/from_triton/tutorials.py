"""What becomes of the pointers of Triton's tutorials: the table of tilec/triton/TUTORIALS.md.

    python test/from_triton/tutorials.py FOLDER > table.md

FOLDER has the TTIR of their kernels, `compiled.asm["ttir"]` each, a file a kernel, named by the
tutorial's number and anything behind a dash. A row says which arrays the pointers became, which
accesses did not, and what was decided for a target.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from tilec.compile.compiler import compile_module
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.triton.ahead import parameters_ahead, plan_ahead
from tilec.triton.importer import build_module
from tilec.triton.reader import read_ttir

SHOWN = ("dot instruction", "asynchronous copy", "tensor store", "programs", "warp specialisation")
"""Decisions of the report that stand in a row."""


def row(path: Path, target: str) -> str:
    """The table's line of a file's kernel."""
    text, number = path.read_text(), path.stem.partition("-")[0]
    name = next(one.name for one in read_ttir(text, path.name) if one.is_public)
    try:
        plan = plan_ahead(text, path.name, name)
        compiled = compile_module(build_module(plan, parameters_ahead(plan)), find_target(target))
    except CompileError as error:
        return f"| {number} | `{name}` | not imported: {error.message.splitlines()[0]} | | |"
    arrays = "; ".join(
        f"{rule.dtype} [{', '.join('?' if n is None else str(n) for n in rule.sizes)}]"
        for rule in plan.arrays
    )
    kept = Counter(re.sub(r"the index .* may", "the index may", why) for _, why in plan.kept)
    gathers = "; ".join(f"{count}: {why}" for why, count in kept.items()) or "none"
    decisions = [one for one in compiled.report["decisions"] if one["about"] in SHOWN]
    counts = Counter(f"{one['about']}: {one['chosen']}" for one in decisions)
    said = "; ".join(f"{what} ({n} times)" if n > 1 else what for what, n in counts.items())
    return f"| {number} | `{name}` | {arrays} | {gathers} | {said} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a")
    given = parser.parse_args()
    print(
        "| | kernel | its pointers | accesses that stay gathers | decided |\n|---|---|---|---|---|"
    )
    for path in sorted(given.folder.glob("*.ttir")):
        print(row(path, given.target), flush=True)


if __name__ == "__main__":
    main()
