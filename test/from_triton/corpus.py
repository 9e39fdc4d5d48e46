"""Imports a folder of Triton's IR, and says what came of it.

    python test/from_triton/corpus.py DIR
    599 files: 597 read, 540 imported, 531 compiled for sm_90a
    32  tt.make_tensor_ptr: tilec has no rule for it

Each file is one kernel, or several. A cause is the message without what is particular to a file.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tilec.compile.compiler import compile_module
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.triton.ahead import parameters_ahead, plan_ahead
from tilec.triton.importer import build_module
from tilec.triton.reader import read_ttir


class Tally:
    """What became of the files seen so far."""

    def __init__(self, targets: Iterable[str]) -> None:
        self.targets = tuple(targets)
        self.counts: Counter[str] = Counter()
        self.causes: dict[str, list[str]] = {}
        self.accesses: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.seconds: list[float] = []

    def file(self, path: Path) -> None:
        """Reads, imports and compiles one file."""
        self.counts["files"] += 1
        try:
            self._file(path)
        except (CompileError, InternalError) as error:
            self._failed(path, error)
        except Exception as error:
            self._failed(path, InternalError(f"{type(error).__name__}: {error}"))

    def _file(self, path: Path) -> None:
        text = path.read_text()
        kernels = [function.name for function in read_ttir(text, str(path)) if function.is_public]
        self.counts["read"] += 1
        start = time.process_time()
        plan = plan_ahead(text, str(path), kernels[0])
        module = build_module(plan, parameters_ahead(plan))
        self.seconds.append(time.process_time() - start)
        self.counts["imported"] += 1
        self.accesses["raised"] += len(plan.raised)
        self.accesses["all"] += len(plan.of)
        self.kept.update(re.sub(r"the index .* may", "the index may", why) for _, why in plan.kept)
        for target in self.targets:
            compile_module(module, find_target(target))
            self.counts[f"compiled for {target}"] += 1
            module = build_module(plan, parameters_ahead(plan))

    def _failed(self, path: Path, error: CompileError | InternalError) -> None:
        cause = error.message if isinstance(error, CompileError) else f"bug: {error.message}"
        cause = re.sub(r"%\w+|\d+", "_", cause.split("\n")[0])[:110]
        self.causes.setdefault(cause, []).append(path.name)

    def table(self) -> str:
        """Counts, then causes, the most frequent first."""
        lines = [", ".join(f"{count} {what}" for what, count in self.counts.items())]
        if self.seconds:
            middle = sorted(self.seconds)[len(self.seconds) // 2]
            lines.append(f"import: {1000 * middle:.0f} ms of CPU in the median")
        lines.append(
            f"accesses: {self.accesses['all']}, raised to arrays: {self.accesses['raised']}"
        )
        lines += [f"  {count:4}  {why}" for why, count in self.kept.most_common()]
        lines.append("not imported, or not compiled:")
        ranked = sorted(self.causes.items(), key=lambda row: -len(row[1]))
        lines += [f"  {len(names):4}  {cause}  (as {names[0]})" for cause, names in ranked]
        return "\n".join(lines)


def main() -> None:
    """Prints the table of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--every", type=int, default=1, help="only each n-th file")
    parser.add_argument("--first", type=int, default=0, help="from that on")
    arguments = parser.parse_args()
    tally = Tally(arguments.target)
    for path in sorted(arguments.folder.rglob("*.ttir"))[arguments.first :: arguments.every]:
        tally.file(path)
    print(tally.table())


if __name__ == "__main__":
    main()
