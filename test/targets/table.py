"""The table of targets: `python test/targets/table.py [target ...]` prints it as Markdown.

A row for each example, run on the emulator in check mode (right, no findings), and for each kernel
of `example_defaults.py`, compiled with its own defaults: the KiB of shared memory that one of its
kernels takes at most; ptxas has assembled all of them. "-": the example runs on other targets'
instructions. With `--record` the columns take their place in `record.json` and the page's table,
beside those of other runs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from example_defaults import CASES

import tilec.examples
from tilec.compile.assembler import assemble
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import TARGETS, find_target
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.runtime.emulator_device import EmulatorDevice

EXAMPLES = sorted(
    path.stem
    for path in Path(tilec.examples.__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "running")
)


@contextlib.contextmanager
def launched() -> Iterator[list[CompiledKernel]]:
    """Collects the kernels that the emulator loads."""
    found: list[CompiledKernel] = []
    load = EmulatorDevice.load

    def noted(self: EmulatorDevice, kernel: CompiledKernel) -> object:
        if kernel not in found:
            found.append(kernel)
        return load(self, kernel)

    EmulatorDevice.load = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        EmulatorDevice.load = load  # type: ignore[method-assign]


def assembled(kernels: list[CompiledKernel]) -> str:
    """The most shared memory of kernels, in KiB, once ptxas has taken all of them, and let roles
    have the registers that they ask for."""
    for kernel in kernels:
        messages = assemble(kernel.ptx, find_target(kernel.target)).messages
        assert not [message for message in messages if "setmaxnreg" in message], messages
    return f"{max(kernel.shared_bytes for kernel in kernels) / 1024:.0f}"


def run_example(name: str, target: str) -> str:
    """A cell: shared memory where it is right, "-" where it runs for another target."""
    os.environ.update(TILEC_TARGET=target, TILEC_DEVICE="emulator:check")
    shown = io.StringIO()
    with launched() as kernels, contextlib.redirect_stdout(shown):
        importlib.import_module(f"tilec.examples.{name}").main()
    own = [kernel for kernel in kernels if kernel.target == target]
    if not own:
        return "-"
    wrong = "WRONG" in shown.getvalue() or "ok" not in shown.getvalue()
    return "**wrong**" if wrong else assembled(own)


def compile_default(name: str, target: str) -> str:
    """A cell: shared memory of an example's kernel with its own defaults."""
    kernel, specs, constants = CASES[name]
    return assembled([kernel.compile(specs, constants, target=target)])


ROWS = {
    **{name: (run_example, name) for name in EXAMPLES},
    **{f"{name}, defaults": (compile_default, name) for name in CASES},
}
"""What makes the cells of a row, and of what; an example may have a row of either kind."""


def cell(row: str, target: str) -> str:
    """A cell, or what went wrong."""
    made, name = ROWS[row]
    try:
        return made(name, target)
    except (CompileError, InternalError, SystemExit) as error:
        print(f"{name} {target}: {error}", file=sys.stderr)
        return f"**{type(error).__name__}**"


RECORD, PAGE = (Path(__file__).parent / name for name in ("record.json", "README.md"))
Table = Mapping[str, Mapping[str, str]]
"""By row, then by target: a cell."""


def recorded() -> Table:
    """What runs with `--record` found."""
    return json.loads(RECORD.read_text())


def markdown(table: Table) -> Iterator[str]:
    """The lines of a table, columns in the order of `TARGETS`."""
    targets = [name for name in TARGETS if any(name in row for row in table.values())]
    yield f"| | {' | '.join(targets)} |"
    yield f"|---|{'---|' * len(targets)}"
    for name, row in table.items():
        yield f"| {name} | {' | '.join(row.get(target, '?') for target in targets)} |"


def _record(found: Table) -> None:
    """Merges columns into the record, and shows it on the page."""
    before = recorded() if RECORD.exists() else {}
    whole = {name: {**before.get(name, {}), **row} for name, row in found.items()}
    RECORD.write_text(json.dumps(whole, indent=1) + "\n")
    before_it, _, _ = PAGE.read_text().partition("| | sm_")  # the page ends with the table
    PAGE.write_text(before_it + "\n".join(markdown(whole)) + "\n")


def _rows(targets: Sequence[str], jobs: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows as they are done, their cells by so many processes."""
    cells = [(name, target) for name in ROWS for target in targets]
    with ProcessPoolExecutor(jobs, get_context("spawn"), _quiet) as pool:
        done = pool.map(cell, *zip(*cells, strict=True))
        for name in ROWS:
            yield name, {target: next(done) for target in targets}


def _quiet() -> None:
    warnings.simplefilter("ignore")


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help="all of them by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--record", action="store_true", help="into record.json and README.md")
    told = parser.parse_args()
    targets = [find_target(name).name for name in told.targets] or list(TARGETS)
    table: dict[str, dict[str, str]] = {}
    for name, row in _rows(targets, told.jobs):
        table[name] = row
        lines = list(markdown({name: dict.fromkeys(targets, "") | row}))
        print("\n".join(lines if len(table) == 1 else lines[2:]), flush=True)
    if told.record:
        _record(table)


if __name__ == "__main__":
    main()
