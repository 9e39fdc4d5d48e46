"""Kernels out of a Python file, for the command line: `kernel.py:name`."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tilec.call.jit import Kernel
from tilec.messages.diagnostics import CompileError, Location, quote_file
from tilec.messages.names import did_you_mean


def load_kernel(path: str, name: str | None = None) -> Kernel:
    """The kernel `name` of a Python file, or its only one; runs the file's top level.

    CompileError where the file cannot be read or raises (with the position in it), or has no such
    kernel.
    """
    return kernel_of(load_file(path), path, name)


def kernel_of(module: ModuleType, path: str, name: str | None = None) -> Kernel:
    """The kernel of a file that was run; see `load_kernel`."""
    return _untuned(picked(kernels_of(module, path), path, name))


def kernels_of(module: ModuleType, path: str) -> dict[str, Any]:
    """The kernels that a file declares, by name: each a `Kernel`, or a tuned one around it."""
    return {
        value.name: value
        for value in vars(module).values()
        if isinstance(kernel := _untuned(value), Kernel)
        and kernel.fn.__code__.co_filename == str(_absolute(path))
    }


def picked(kernels: Mapping[str, Any], path: str, name: str | None) -> Any:
    """The kernel `name` of those of a file, the only one where nobody says which. CompileError
    where there is none, or there are several."""
    known = ", ".join(kernels) or "none; a kernel is a function under @tilec.kernel"
    if name is None:
        if len(kernels) != 1:
            raise CompileError(f"{path}: say which kernel, as in {path}:NAME; found: {known}")
        return next(iter(kernels.values()))
    if name not in kernels:
        raise CompileError(
            f"{path} has no kernel '{name}'; found: {known}", None, did_you_mean(name, kernels)
        )
    return kernels[name]


def _untuned(value: Any) -> Any:
    """The kernel in a tuned one: what is compiled by name is the default."""
    if isinstance(value, Kernel) or not getattr(type(value), "__tilec_kernel__", False):
        return value
    return value.kernel


def _absolute(path: str) -> Path:
    return Path(path).resolve()


def load_file(path: str) -> ModuleType:
    """The file as a module of its own; its directory is importable, as for a script. CompileError
    where it cannot be read or raises."""
    file = _absolute(path)
    if not file.is_file():
        raise CompileError(f"cannot read {path}: no such file")
    spec = importlib.util.spec_from_file_location(f"__tilec_kernels__{file.stem}", file)
    if spec is None or spec.loader is None:
        raise CompileError(f"cannot read {path}: expected a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    quote_file(str(file))
    sys.path.insert(0, str(file.parent))
    try:
        sys.modules[spec.name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    except CompileError:
        raise
    except SyntaxError as error:
        raise syntax_mistake(error, str(file)) from None
    except Exception as error:  # whatever the author's file raises is the author's mistake
        message = f"running {path} failed: {type(error).__name__}: {error}"
        raise CompileError(message, _innermost(error, str(file))) from None
    finally:
        sys.path.remove(str(file.parent))
    return module


def syntax_mistake(error: SyntaxError, file: str) -> CompileError:
    """What Python says of a file that it cannot read, with the line; of `file` where it names
    none."""
    where = Location(error.filename or file, error.lineno or 1, error.offset or 1)
    quote_file(where.file)
    return CompileError(f"syntax error: {error.msg}", where)


def _innermost(error: Exception, file: str) -> Location | None:
    """The line of `file` where an exception came through last."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    if not frames or frames[-1].lineno is None:
        return None
    return Location(file, frames[-1].lineno, (getattr(frames[-1], "colno", None) or 0) + 1)
