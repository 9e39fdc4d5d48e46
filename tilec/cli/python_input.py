"""How a kernel in a Python file becomes what `tilec compile` compiles; imported for such an input
alone, since the frontend takes a while to load."""

from __future__ import annotations

import argparse

from mlir import ir

from tilec.call.kernel_file import load_kernel
from tilec.cli.arguments import given_demands, split_name
from tilec.cli.input import Input
from tilec.hardware.target import Target
from tilec.messages.diagnostics import CompileError

_HELP = "help: describe arrays and scalars with --arg, constants with --const"


def read(arguments: argparse.Namespace) -> Input:
    """The kernel INPUT names. CompileError if its file cannot be read or run."""
    path, name = split_name(arguments.input)
    kernel = load_kernel(path, name or arguments.kernel).demanding(**given_demands(arguments))

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
