"""Loads what `tilec compile` and `tilec opt` need and what takes long: LLVM in its own process,
MLIR here."""

from __future__ import annotations

import importlib
import os
import sys

from tilec.emit_ptx import start_worker


def start_compiler() -> None:
    """Starts LLVM's process, and loads MLIR while that one loads."""
    start_worker()
    load_mlir()


def load_mlir() -> None:
    """Imports MLIR's bindings without two things that take as long to load as they do.

    NumPy: where it is not installed, the bindings leave out what makes dense attributes of arrays,
    and nothing here does that. A kernel's file may import it afterwards. And the Python classes of
    the llvm dialect's ops, which MLIR would import for the dialect's first type: passes make those
    ops by name, and of `mlir.dialects.llvm` only what its C++ half has is used.
    """
    if "numpy" in sys.modules or "mlir.ir" in sys.modules:
        return
    flags = sys.getdlopenflags()
    sys.modules["numpy"] = None  # type: ignore[assignment] # makes `import numpy` an ImportError
    sys.setdlopenflags(os.RTLD_LAZY)  # Python asks for all functions at once, of 200 MB of them
    try:
        importlib.import_module("mlir.ir")
        llvm_types = importlib.import_module("mlir._mlir_libs._mlirDialectsLLVM")
    finally:
        del sys.modules["numpy"]
        sys.setdlopenflags(flags)
    sys.modules["mlir.dialects.llvm"] = llvm_types
