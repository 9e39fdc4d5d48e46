"""Loads what compiling needs and what takes long: LLVM in its own process, MLIR here."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from tilec.compile.collection import collecting_seldom
from tilec.compile.emit_ptx import start_worker
from tilec.messages.diagnostics import CompileError

_PACKAGES = {"mlir": "xtc-mlir-python-bindings", "llvmlite": "llvmlite"}
"""What compiling imports, and which package brings it."""


def start_compiler() -> None:
    """Starts LLVM's process, and loads MLIR while that one loads. For a process of our own.

    CompileError where they are not installed.
    """
    check_installed()
    start_worker()
    load_mlir()


@contextmanager
def compiling_inside() -> Iterator[None]:
    """The same while the process of an author compiles something."""
    with collecting_seldom:
        start_inside()
        yield


def start_inside() -> None:
    """The same for the process of an author, who may use NumPy and MLIR for other things."""
    if "mlir.ir" not in sys.modules:
        check_installed()
        start_worker()
        _import_mlir()


def check_installed() -> None:
    """CompileError, naming what is missing, where only what runs kernels is installed."""
    missing = [
        package for module, package in _PACKAGES.items() if importlib.util.find_spec(module) is None
    ]
    if missing:
        raise CompileError(
            f"the compiler is not installed here: {', '.join(missing)}",
            notes=[
                "help: pip install tilec brings it; without it run artefacts (tilec.load), the "
                "emulator on them, and tilec check"
            ],
        )


def load_mlir() -> None:
    """Imports MLIR's bindings without NumPy, which takes as long to load as they do: where it is
    not installed, the bindings leave out what makes dense attributes of arrays, and nothing here
    does that. A kernel's file may import it afterwards.
    """
    check_installed()
    if "numpy" in sys.modules or "mlir.ir" in sys.modules:
        return
    sys.modules["numpy"] = None  # type: ignore[assignment] # makes `import numpy` an ImportError
    try:
        _import_mlir()
    finally:
        del sys.modules["numpy"]


def _import_mlir() -> None:
    """Imports MLIR's bindings without the Python classes of the ops of gpu, llvm and nvvm, which
    MLIR would import for a dialect's first op, type or attribute: passes make those ops by name,
    and know them by it. MLIR looks for the classes once, and has what it finds; who imports them
    has them from then on."""
    with _lazy_functions():
        importlib.import_module("mlir.ir")
        importlib.import_module("mlir._mlir_libs._mlirDialectsLLVM")
    known = importlib.import_module("mlir._mlir_libs._mlir").globals
    for dialect in ("gpu", "llvm", "nvvm"):
        module = f"mlir.dialects.{dialect}"
        sys.modules[module] = ModuleType(module)
        known._check_dialect_module_loaded(dialect)
        del sys.modules[module]


@contextmanager
def _lazy_functions() -> Iterator[None]:
    """Libraries find their functions when they are called; Python asks for all of them at once,
    which are those of 200 MB."""
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY)
    try:
        yield
    finally:
        sys.setdlopenflags(flags)
