"""Runs named passes on text: the engine behind `tilec opt`.

Names out of `pipeline.ALL_PASSES` are tilec's; any other goes to MLIR's pass manager
(`canonicalize`, `cse`, `func.func(...)`). The module is verified before, between and after, and
has the level that a pass reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.passmanager import PassManager

from tilec import progress
from tilec.diagnostics import CompileError
from tilec.expectations import find_expectations, unmet
from tilec.mlir_errors import compile_error
from tilec.names import did_you_mean
from tilec.passes.checks.levels import check_level
from tilec.passes.checks.verify_ops import verify_ops
from tilec.passes.contract import Level, PassContext, TilePass
from tilec.pipeline import ALL_PASSES, check_order
from tilec.source import parse_source


@dataclass(frozen=True)
class Steps:
    """A parsed pass list: runs of tilec's passes and pipelines of MLIR's, in order."""

    passes: tuple[TilePass | str, ...]


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
    """Runs every step, verifying after each. CompileError carries what a step diagnosed."""
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
        first, *others = error.errors
        noted = CompileError(first.message, first.location, (*first.notes, f"note: {note}"))
        raise CompileError.group([noted, *others]) from None


def optimize(
    text: str,
    name: str,
    steps: Steps,
    context: PassContext,
    mlir: ir.Context,
    *,
    survives: bool = False,
) -> ir.Module:
    """Parses a text, runs the steps, and returns the module. CompileError for wrong programs.

    `survives`: see `tilec.source.parse_source`.
    """
    module = parse_source(text, name, mlir, survives=survives)
    run_passes(module, steps, context)
    return module


def check_expectations(text: str, name: str, errors: Sequence[CompileError]) -> list[CompileError]:
    """What differs between the `// expected-error` comments of a text and the errors it gave."""
    try:
        expected = find_expectations(text, name)
    except CompileError as error:
        return list(error.errors)
    flat = [single for error in errors for single in error.errors]
    return unmet(expected, flat)
