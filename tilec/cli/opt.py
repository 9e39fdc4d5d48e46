"""Runs named passes on a `.tile` file of any level and prints the result.

A pass is one of tilec's (`--list-passes`) or one of MLIR's (`canonicalize`, `cse`, ...). Without
`--passes` the file is parsed, verified and printed.
"""

from __future__ import annotations

import argparse
import sys

from mlir import ir

from tilec.cli.arguments import add_demand, add_target, usage
from tilec.cli.streams import write_out
from tilec.demands import NUM_WARPS
from tilec.diagnostics import CompileError
from tilec.dialects.context import make_context
from tilec.expectations import SEPARATOR, split_input
from tilec.opt import Steps, check_expectations, optimize, parse_passes
from tilec.passes.contract import PassContext
from tilec.pipeline import ALL_PASSES
from tilec.source import can_be_parsed, read_source, source_name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec opt`."""
    parser.add_argument("input", nargs="?", default="-", help="a file; - (default): standard input")
    parser.add_argument(
        "--passes", type=usage(parse_passes), default=Steps(()), metavar="A,B,...", help="in order"
    )
    add_target(parser, several=False)
    add_demand(parser, NUM_WARPS, 4)
    parser.add_argument(
        "--split-input-file",
        action="store_true",
        help=f"run each part between lines '{SEPARATOR}' for itself",
    )
    parser.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare the errors with the file's '// expected-error @below {{text}}' comments",
    )
    parser.add_argument("--locations", action="store_true", help="print source positions, too")
    parser.add_argument("--list-passes", action="store_true", help="list tilec's passes and stop")
    parser.set_defaults(fail=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec opt`; the exit code."""
    if arguments.list_passes:
        _list_passes()
        return 0
    if arguments.input.endswith(".py"):
        arguments.fail(
            f"{arguments.input} is Python: `tilec compile {arguments.input}:NAME --emit tile ...` "
            "writes a kernel's program"
        )
    name = source_name(arguments.input)
    text = read_source(arguments.input)
    mlir = make_context()
    outputs: list[str] = []
    wrong = False
    parts = split_input(text) if arguments.split_input_file else [text]
    survives = len(parts) > 1 and can_be_parsed(parts, mlir)
    for part in parts:
        output, errors = _run_part(part, name, arguments, mlir, survives)
        for error in errors:
            print(error, file=sys.stderr)
            wrong = True
        if output is not None:
            outputs.append(output)
    write_out(f"{SEPARATOR}\n".join(outputs))
    return 1 if wrong else 0


def _run_part(
    text: str, name: str, arguments: argparse.Namespace, mlir: ir.Context, survives: bool
) -> tuple[str | None, list[CompileError]]:
    """The printed result, None if there is none, and the errors to show."""
    context = PassContext(target=arguments.target, num_warps=arguments.num_warps)
    output, errors = None, []
    try:
        module = optimize(text, name, arguments.passes, context, mlir, survives=survives)
        output = module.operation.get_asm(enable_debug_info=arguments.locations) + "\n"
    except CompileError as error:
        errors.append(error)
    if arguments.verify_diagnostics:
        errors = check_expectations(text, name, errors)
    return output, errors


def _list_passes() -> None:
    width = max((len(entry.name) for entry in ALL_PASSES), default=0)
    for entry in ALL_PASSES:
        after = entry.ensures.value if entry.ensures else "the same"
        levels = f"{entry.requires.value} -> {after}"
        print(f"{entry.name:{width}}  {levels:24}{entry.summary}")
