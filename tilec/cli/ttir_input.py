"""How a kernel in Triton's IR becomes what `tilec compile` compiles; imported for such an input
alone, since the importer takes a while to load."""

from __future__ import annotations

import argparse

from mlir import ir

from tilec.cli.arguments import given_demands, option_of
from tilec.cli.input import Input
from tilec.compile.source import read_source, source_name
from tilec.hardware.target import Target
from tilec.terms.demands import NUM_WARPS
from tilec.triton.ahead import module_ahead


def read(arguments: argparse.Namespace) -> Input:
    """The kernel of the `.ttir` file INPUT. CompileError for what is not imported."""
    if arguments.arg or arguments.const:
        arguments.fail("--arg and --const are for Python kernels; a .ttir file has its own")
    for name in given_demands(arguments):
        if name != NUM_WARPS.name:  # which the compiler is told
            arguments.fail(f"{option_of(name)} is for Python kernels; a .ttir file has its own")
    text, name = read_source(arguments.input), source_name(arguments.input)

    def module(_: Target) -> ir.Module:
        return module_ahead(text, name, arguments.kernel)

    return Input(module, None, name)
