"""Goes on from a program that is already in the llvm dialect (`--emit llvm`, a late dump)."""

from __future__ import annotations

from mlir import ir
from mlir._mlir_libs._mlirDialectsLLVM import translate_module_to_llvmir
from mlir.passmanager import PassManager

from tilec.compile import progress
from tilec.compile.emit_ptx import LLVMError, emit_ptx
from tilec.compile.mlir_errors import compile_error
from tilec.compile.pipeline import LLVM_PIPELINE, UPSTREAM_LOWERING
from tilec.hardware.target import Target
from tilec.messages.diagnostics import CompileError, Location
from tilec.passes.checks.levels import check_level, entry_level
from tilec.passes.checks.verify_target import verify_target
from tilec.passes.contract import Level, PassContext
from tilec.passes.rewriting.locations import source_location

TEXTS = ("llvm", "llvmir", "ptx")
"""Where `lower_llvm` can stop."""


def is_llvm_level(module: ir.Module) -> bool:
    """Whether a program has left tiles behind, and with them what a launch needs to know."""
    return entry_level(module) is Level.NVVM


def lower_llvm(module: ir.Module, target: Target, kind: str, ptx_version: int | None = None) -> str:
    """The text of one of `TEXTS`.

    CompileError for ops that do not belong at this level, or that the target does not have, and for
    what LLVM cannot take.
    """
    check_level(module, Level.NVVM)
    verify_target(module, target)
    context = PassContext(target)
    kernel = _first_function(module)
    progress.at("MLIR's lowering to LLVM IR", kernel)
    with module.context, ir.Location.unknown():
        # The passes after lower-to-nvvm leave alone what they have already done.
        for tile_pass in LLVM_PIPELINE[1:]:
            tile_pass(module, context)
        try:
            PassManager.parse(UPSTREAM_LOWERING).run(module.operation)
        except ir.MLIRError as error:
            raise compile_error(error) from None
        check_level(module, Level.NVVM)  # inline assembly that nvvm ops became
        if kind == "llvm":
            return f"{module}\n"
        text = translate_module_to_llvmir(module.operation)
    if kind == "llvmir":
        return text
    try:
        return emit_ptx(text, target, ptx_version)
    except LLVMError as error:
        raise CompileError(error.message, kernel) from None


def _first_function(module: ir.Module) -> Location | None:
    """Finds where the text has its code."""
    ops = [op.operation for op in module.body.operations]
    found = next((op for op in ops if op.name == "llvm.func"), module.operation)
    return source_location(found.location)
