"""How a `@triton.jit` function becomes what `tilec compile` compiles; imported for one alone, since
Triton and the importer take a while to load."""

from __future__ import annotations

import argparse
from typing import Any

from mlir import ir

from tilec.cli.arguments import given_demands, option_of
from tilec.cli.input import Input
from tilec.hardware.target import Target
from tilec.terms.demands import NUM_WARPS
from tilec.triton.ahead import module_ahead
from tilec.triton.takeover.ahead_of_time import text_of


def read(function: Any, name: str, arguments: argparse.Namespace) -> Input:
    """The kernel of a function called `name`. CompileError for what is not imported."""
    for demand in given_demands(arguments):
        if demand != NUM_WARPS.name:  # which the compiler is told
            arguments.fail(f"{option_of(demand)} is for kernels of tilec's language")

    def module(target: Target) -> ir.Module:
        text = text_of(function, arguments.arg, dict(arguments.const), target)
        return module_ahead(text, f"{name}.ttir")

    return Input(module, None, None)
