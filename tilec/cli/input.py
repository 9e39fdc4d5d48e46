"""What `tilec compile` compiles, and how a `.tile` file becomes it."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from mlir import ir

from tilec.cli.arguments import given_demands, option_of
from tilec.compile.source import parse_source, read_source, source_name
from tilec.dialects.context import make_context
from tilec.hardware.target import Target
from tilec.passes.checks.verify_kernels import verify_signatures
from tilec.records import dataclass
from tilec.terms.demands import NUM_WARPS


@dataclass(frozen=True)
class Input:
    """The kernel to compile: `module(target)` makes a fresh tile program of it.

    `name`: the text's, where mistakes of the whole text are put; None for a Python kernel.
    `other(target, number)`: the same with the compiler's choice of tiles of that number, None past
    the last; None of a text, whose tiles are written there.
    """

    module: Callable[[Target], ir.Module]
    kernel: str | None
    name: str | None
    other: Callable[[Target, int], ir.Module | None] | None = None


def read_tile(arguments: argparse.Namespace) -> Input:
    """The text INPUT names. CompileError if it cannot be read."""
    if arguments.arg or arguments.const:
        arguments.fail("--arg and --const are for Python kernels; a .tile file has its own")
    for name in given_demands(arguments):
        if name != NUM_WARPS.name:  # which the compiler is told
            arguments.fail(f"{option_of(name)} is for Python kernels; a .tile file has its own")
    text, name = read_source(arguments.input), source_name(arguments.input)
    context = make_context()

    def module(_: Target) -> ir.Module:
        parsed = parse_source(text, name, context)
        verify_signatures(parsed)
        return parsed

    return Input(module, arguments.kernel, name)
