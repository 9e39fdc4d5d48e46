"""How a kernel in a Python file becomes what `tilec compile` compiles; imported for such an input
alone, since the frontend takes a while to load."""

from __future__ import annotations

import argparse
import importlib

from mlir import ir

from tilec.call.kernel_file import kernel_of, load_file
from tilec.cli.arguments import given_demands, split_name
from tilec.cli.input import Input
from tilec.hardware.target import Target
from tilec.messages.diagnostics import CompileError
from tilec.runtime.cuda.driver import no_device_reason
from tilec.runtime.device import EMULATOR
from tilec.runtime.when_imported import when_imported

_HELP = "help: describe arrays and scalars with --arg, constants with --const"


def _take_over_without_a_gpu() -> None:
    """Triton alone would find no device for the file's tensors. To ask the driver takes longer than
    all else of reading a file, which need not import Triton."""
    if no_device_reason() is not None:
        importlib.import_module("tilec.triton").enable(device=EMULATOR)


def read(arguments: argparse.Namespace) -> Input:
    """The kernel INPUT names. CompileError if its file cannot be read or run."""
    path, name = split_name(arguments.input)
    name = name or arguments.kernel
    when_imported("triton", _take_over_without_a_gpu)
    module = load_file(path)
    found = getattr(module, name or "", None)
    if name is not None and type(found).__module__.startswith("triton."):
        return importlib.import_module("tilec.cli.jit_input").read(found, name, arguments)
    for parameter in arguments.arg:
        if parameter.kind == "scalar" and parameter.facts.align > 1:
            arguments.fail(f"--arg {parameter.name}: only Triton's kernels know of multiples")
    kernel = kernel_of(module, path, name).demanding(**given_demands(arguments))

    def other(target: Target, number: int) -> ir.Module | None:
        try:
            return kernel.other_module(
                arguments.arg,
                dict(arguments.const),
                number,
                target=target.name,
                index_bits=arguments.index_bits,
            )
        except ValueError as error:
            raise CompileError(str(error), notes=[_HELP]) from None

    return Input(lambda target: other(target, 0), None, None, other)
