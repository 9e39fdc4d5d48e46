"""Runs named passes on a `.tile` file of any level and prints the result.

A pass is one of tilec's (`--list-passes`) or one of MLIR's (`canonicalize`, `cse`, ...). The
program is verified before, between and after, and has the level that a pass reads. If its rings
keep their protocol, what a pass makes of them must, too; of a fragment that nobody fills, or reads,
no more is asked. Without `--passes` the file is parsed, verified and printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from mlir import ir
from mlir.passmanager import PassManager

from tilec.cli.arguments import add_demand, add_target, usage
from tilec.cli.streams import complain, write_out
from tilec.compile import progress
from tilec.compile.expectations import SEPARATOR, check_expectations, split_input
from tilec.compile.mlir_errors import compile_error
from tilec.compile.pipeline import ALL_PASSES, check_order
from tilec.compile.source import can_be_parsed, parse_source, read_source, source_name
from tilec.dialects.context import make_context
from tilec.messages.diagnostics import CompileError
from tilec.messages.names import did_you_mean
from tilec.passes.checks.levels import check_level, entry_level
from tilec.passes.checks.verify_ops import verify_ops
from tilec.passes.checks.verify_rings import ONE_IN, verify_rings
from tilec.passes.contract import Level, PassContext, TilePass
from tilec.records import dataclass
from tilec.terms.demands import NUM_WARPS


@dataclass(frozen=True)
class Steps:
    """A parsed pass list: runs of tilec's passes and pipelines of MLIR's, in order."""

    passes: tuple[TilePass | str, ...]


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
            complain(error)
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
        module = parse_source(text, name, mlir, survives=survives)
        context.given = entry_level(module)
        run_passes(module, arguments.passes, context)
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


def parse_passes(names: str, known: Iterable[TilePass] = ALL_PASSES) -> Steps:
    """Reads `simplify,canonicalize{max-iterations=2},cse`. ValueError: what is unknown, or stands
    where it cannot work."""
    ours = {tile_pass.name: tile_pass for tile_pass in known}
    steps: list[TilePass | str] = []
    for name in _split(names):
        if name in ours:
            steps.append(ours[name])
            continue
        _check_upstream(name, ours)
        if steps and isinstance(steps[-1], str):
            steps[-1] += f",{name}"
        else:
            steps.append(name)
    check_order([step for step in steps if isinstance(step, TilePass)])
    return Steps(tuple(steps))


def _split(names: str) -> list[str]:
    """Splits at the commas outside of braces and parentheses."""
    parts, depth = [""], 0
    for character in names:
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _check_upstream(name: str, ours: Iterable[str]) -> None:
    try:
        with ir.Context():
            PassManager.parse(f"builtin.module({name})")
    except ValueError as error:
        reason = str(error).strip().split("\n")[0].rpartition("error: ")[2]
        notes = did_you_mean(name, ours) or ("help: `tilec opt --list-passes` shows tilec's",)
        text = f"unknown pass {name!r}: none of tilec's, and MLIR says: {reason}"
        raise ValueError("\n".join([text, *notes])) from None


def run_passes(module: ir.Module, steps: Steps, context: PassContext) -> None:
    """Runs every step, verifying after each. CompileError carries what a step diagnosed, or what
    it broke."""
    speaks_of_rings = [step for step in steps.passes if isinstance(step, TilePass) and step.rings]
    sound = bool(speaks_of_rings) and _broken_ring(module, context) is None
    for step in steps.passes:
        progress.at(f"'{step.name if isinstance(step, TilePass) else step}'")
        try:
            if isinstance(step, TilePass):
                _check_level(module, step)
                with module.context, ir.Location.unknown():
                    step(module, context)
                module.operation.verify()
            else:
                with module.context:
                    PassManager.parse(f"builtin.module({step})").run(module.operation)
        except ir.MLIRError as error:
            raise compile_error(error) from None
        verify_ops(module)
        if sound and step in speaks_of_rings:
            broken = _broken_ring(module, context)
            if broken is not None:
                raise _noted(broken, f"'{step.name}' was given rings that kept their protocol")


def _broken_ring(module: ir.Module, context: PassContext) -> CompileError | None:
    """Finds what breaks the protocol of a ring, if anything does."""
    try:
        verify_rings(module, context, one_in=ONE_IN)
    except CompileError as error:
        return error
    return None


def _check_level(module: ir.Module, step: TilePass) -> None:
    """CompileError for a program of another level than a pass reads. Passes over scalars read any
    program that has some."""
    if step.requires is Level.NVVM:
        return
    try:
        check_level(module, step.requires)
    except CompileError as error:
        level = step.requires.value
        note = f"'{step.name}' reads programs of level '{level}': tilec opt --list-passes shows all"
        raise _noted(error, note) from None


def _noted(error: CompileError, note: str) -> CompileError:
    """The same errors; the first of them says `note`, too."""
    first, *others = error.errors
    noted = CompileError(first.message, first.location, (*first.notes, f"note: {note}"))
    return CompileError.group([noted, *others])
