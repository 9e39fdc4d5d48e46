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
    """Imports MLIR's bindings without NumPy, which takes longer to load than they do.

    They do without it where it is not installed: what they leave out then makes dense attributes
    of arrays, and nothing here does that. A kernel's file may import NumPy afterwards.
    """
    if "numpy" in sys.modules or "mlir.ir" in sys.modules:
        return
    flags = sys.getdlopenflags()
    sys.modules["numpy"] = None  # type: ignore[assignment] # makes `import numpy` an ImportError
    sys.setdlopenflags(os.RTLD_LAZY)  # Python asks for all functions at once, of 200 MB of them
    try:
        importlib.import_module("mlir.ir")
    finally:
        del sys.modules["numpy"]
        sys.setdlopenflags(flags)
