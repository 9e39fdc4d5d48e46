"""LLVM IR as functions of this process, for its own processor."""

from __future__ import annotations

import llvmlite.binding as llvm

_engines: list[llvm.ExecutionEngine] = []
"""What holds the functions made here, one each, as long as the process lives: others keep their
addresses."""


def function_address(text: str, name: str) -> int:
    """The address of the function `name` of a module of LLVM IR. RuntimeError for wrong IR."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _engines.append(engine)
    return engine.get_function_address(name)
