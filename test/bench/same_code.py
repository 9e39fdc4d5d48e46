"""Whether two trees compile the same: the PTX of all examples, and of kernels that are drawn.

    python test/bench/same_code.py FILE [--than FILE] [--drawn 200] [--seed 1] [--only WORD...]

Compiles every example for the main targets and so many drawn cases for one each, by turns, without
a cache; neither a GPU nor the emulator runs them. FILE gets, of each, the hash of each PTX and how
much of the CPU's time it took, LLVM's apart. `--than`: a FILE that another tree's script wrote,
with which this is compared. Exit code 1 where PTX differs, or one has a case that the other lacks.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import io
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from drawn_cases import Drawn, draw
from target_names import MAIN
from variant_compiler import compile_variant

from tilec.compile import compiler
from tilec.compile.emit_ptx import emit_ptx
from tilec.runtime.emulator_device import EmulatedKernel, EmulatorDevice

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(
    path.stem
    for path in (ROOT / "tilec/examples").glob("*.py")
    if path.stem not in ("__init__", "running")
)
_WHERE = re.compile(rf"{re.escape(str(ROOT))}|^\.global .* text\$\d+\[.*", re.MULTILINE)
"""What PTX has of the place of the author's file: its path, which assertions say, too."""
Found = dict[str, Any]
"""Of a case: `ptx`, a hash a kernel in the order in which they were compiled, `cpu_ms`, and
`error`, where it is not compiled."""


def compiled(name: str, target: str, drawn: Drawn | None) -> Found:
    """Compiles a case: a drawn one, or the example of that name."""
    ptx: list[str] = []

    def emit(*arguments: Any, **options: Any) -> str:
        text = emit_ptx(*arguments, **options)
        ptx.append(hashlib.sha256(_WHERE.sub("", text).encode()).hexdigest()[:16])
        return text

    os.environ |= {"TILEC_TARGET": target, "TILEC_DEVICE": "emulator", "TILEC_CACHE": "0"}
    start, error = time.process_time(), ""
    with mock.patch.object(compiler, "emit_ptx", emit), tempfile.TemporaryDirectory() as folder:
        try:
            if drawn is None:
                _run_example(name)
            else:
                for variant in drawn.variants:
                    compile_variant(drawn.case, variant, target, Path(folder, "one.tilec"))
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    cpu_ms = round(1000 * (time.process_time() - start))
    return {"ptx": ptx, "cpu_ms": cpu_ms, **({"error": error} if error else {})}


def _run_example(name: str) -> None:
    """Runs an example whose kernels do nothing, so that its results are wrong."""
    idle = {
        "load": lambda self, kernel: EmulatedKernel(kernel, mock.Mock()),
        "launch": lambda self, *arguments: None,
    }
    example = importlib.import_module(f"tilec.examples.{name}")
    with (
        mock.patch.multiple(EmulatorDevice, **idle),
        mock.patch("tilec.examples.running.compare"),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        if hasattr(example, "compare"):
            example.compare = lambda *arguments: None
        example.main()


def cases(count: int, seed: int) -> Iterator[tuple[str, str, Drawn | None]]:
    """The names of all cases, their targets, and those that are drawn."""
    for name in EXAMPLES:
        for target in MAIN:
            yield name, target, None
    for drawn in draw(seed, count):
        yield drawn.name, MAIN[drawn.number % len(MAIN)], drawn


def _one(case: tuple[str, str, Drawn | None]) -> tuple[str, Found]:
    name, target, _ = case
    return f"{name}, {target}", compiled(*case)


def compare(found: dict[str, Found], other: dict[str, Found]) -> list[str]:
    """What is not the same, a line each."""
    lines = [f"only one has: {name}" for name in sorted(found.keys() ^ other.keys())]
    for name in found.keys() & other.keys():
        one, two = ({k: v for k, v in f[name].items() if k != "cpu_ms"} for f in (found, other))
        if one != two:
            pairs = zip_longest(one["ptx"], two["ptx"])
            numbers = [number for number, (a, b) in enumerate(pairs) if a != b]
            lines.append(f"differs: {name}, kernels {numbers} of {len(one['ptx'])}")
    return lines


def main() -> int:
    """Parses the command line, compiles, compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--than", type=Path)
    parser.add_argument("--drawn", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[""], help="words that a case's name has")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    chosen = [
        case
        for case in cases(options.drawn, options.seed)
        if any(word in f"{case[0]}, {case[1]}" for word in options.only)
    ]
    # A process a case: a kernel that one has compiled would be none of the next.
    fork = multiprocessing.get_context("fork")
    with fork.Pool(options.processes, maxtasksperchild=1) as pool:
        found = dict(pool.imap_unordered(_one, chosen, chunksize=1))
    options.file.write_text(json.dumps(dict(sorted(found.items())), indent=1))
    kernels = sum(len(one["ptx"]) for one in found.values())
    seconds = sum(one["cpu_ms"] for one in found.values()) / 1000
    failed = [f"{name}: {one['error']}" for name, one in found.items() if "error" in one]
    print(f"{len(found)} cases, {kernels} kernels, {seconds:.1f} s of CPU, {len(failed)} failed")
    print(*failed, sep="\n")
    if options.than is None:
        return 0
    other = json.loads(options.than.read_text())
    if options.only != [""]:
        other = {name: one for name, one in other.items() if name in found}
    lines = compare(found, other)
    before = sum(one["cpu_ms"] for name, one in other.items() if name in found) / 1000
    times = f"{before:.1f} s of CPU there, {seconds:.1f} s here"
    print(*lines, f"{len(lines)} differ; {times}", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
