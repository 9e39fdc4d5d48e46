"""The table of targets: `python test/targets/table.py [target ...]` prints it as Markdown.

A row for each example, run on the emulator in check mode (right, no findings), and for each kernel
of `example_defaults.py`, compiled with its own defaults: the KiB of shared memory that one of its
kernels takes at most; ptxas has assembled all of them. "-": the example runs on other targets'
instructions.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from example_defaults import CASES

import tilec.examples
from tilec.assembler import assemble
from tilec.diagnostics import CompileError, InternalError
from tilec.kernel import CompiledKernel
from tilec.runtime.emulator_device import EmulatorDevice
from tilec.target import TARGETS, find_target

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


def cell(name: str, target: str) -> str:
    """A cell, or what went wrong."""
    try:
        return compile_default(name, target) if name in CASES else run_example(name, target)
    except (CompileError, InternalError, SystemExit) as error:
        print(f"{name} {target}: {error}", file=sys.stderr)
        return f"**{type(error).__name__}**"


def main() -> None:
    """Prints the table, row by row."""
    warnings.simplefilter("ignore")
    targets = [find_target(name).name for name in sys.argv[1:]] or list(TARGETS)
    print(f"| | {' | '.join(targets)} |\n|---|{'---|' * len(targets)}")
    for name in (*EXAMPLES, *CASES):
        print(f"| {name} | {' | '.join(cell(name, target) for target in targets)} |", flush=True)


if __name__ == "__main__":
    main()
