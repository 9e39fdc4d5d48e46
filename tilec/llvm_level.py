"""Goes on from a program that is already in the llvm dialect (`--emit llvm`, a late dump)."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import llvm
from mlir.passmanager import PassManager

from tilec.emit_ptx import emit_ptx
from tilec.mlir_errors import compile_error
from tilec.passes.checks.levels import check_level, entry_level
from tilec.passes.checks.verify_target import verify_target
from tilec.passes.contract import Level, PassContext
from tilec.pipeline import LLVM_PIPELINE, UPSTREAM_LOWERING
from tilec.target import Target

STAGES = ("llvm", "llvmir", "ptx")
"""Where `lower_llvm` can stop."""


def is_llvm_level(module: ir.Module) -> bool:
    """Whether a program has left tiles behind, and with them what a launch needs to know."""
    return entry_level(module) is Level.NVVM


def lower_llvm(
    module: ir.Module, target: Target, stage: str, ptx_version: int | None = None
) -> str:
    """The text of one of `STAGES`. CompileError for ops that do not belong at this level,
    or that the target does not have."""
    check_level(module, Level.NVVM)
    verify_target(module, target)
    context = PassContext(target)
    with module.context, ir.Location.unknown():
        # The passes after lower-to-nvvm leave alone what they have already done.
        for tile_pass in LLVM_PIPELINE[1:]:
            tile_pass(module, context)
        try:
            PassManager.parse(UPSTREAM_LOWERING).run(module.operation)
        except ir.MLIRError as error:
            raise compile_error(error) from None
        if stage == "llvm":
            return f"{module}\n"
        text = llvm.translate_module_to_llvmir(module.operation)
    return text if stage == "llvmir" else emit_ptx(text, target, ptx_version)
