"""tilec: a tile compiler from Python to PTX. Importing it imports nothing else; names load on
use."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec import jax as jax
    from tilec import language as language
    from tilec import ops as ops
    from tilec import torch as torch
    from tilec import triton as triton
    from tilec.call.jit import kernel
    from tilec.language.builtin import function
    from tilec.messages.diagnostics import CompileError, InternalError
    from tilec.runtime.artefact import load
    from tilec.runtime.device import device
    from tilec.torch.entry import autograd
    from tilec.tuning.tuned_kernel import autotune

if sys.platform == "win32":
    raise ImportError(
        "tilec does not run on Windows itself: use it in WSL 2, as on Linux "
        "(https://learn.microsoft.com/windows/wsl)"
    )

__version__ = "0.2.0"

_ROOT = Path(__file__).resolve().parent.parent
if (_ROOT / "pyproject.toml").exists() and (_ROOT / "dialects").is_dir():
    __path__.append(
        str(_ROOT)
    )  # an uninstalled checkout: dialects/, passes/, runtime/ lie beside us

_LAZY = {
    "kernel": ("tilec.call.jit", "kernel"),
    "autograd": ("tilec.torch.entry", "autograd"),
    "autotune": ("tilec.tuning.tuned_kernel", "autotune"),
    "function": ("tilec.language.builtin", "function"),
    "load": ("tilec.runtime.artefact", "load"),
    "device": ("tilec.runtime.device", "device"),
    "CompileError": ("tilec.messages.diagnostics", "CompileError"),
    "InternalError": ("tilec.messages.diagnostics", "InternalError"),
}
_PACKAGES = {"language": "tilec.language", "ops": "tilec.ops"}
# Not in `__all__`: `from tilec import *` must not take the place of others' own names.
_FOREIGN = {"jax": "tilec.jax", "torch": "tilec.torch", "triton": "tilec.triton"}
__all__ = [
    "CompileError",
    "InternalError",
    "__version__",
    "autograd",
    "autotune",
    "device",
    "function",
    "kernel",
    "language",
    "load",
    "ops",
]


def _loaded(name: str) -> Any:
    packages = _PACKAGES | _FOREIGN
    if name in packages:
        return importlib.import_module(packages[name])
    if name not in _LAZY:
        __tracebackhide__ = True
        tracebacks = importlib.import_module("tilec.messages.tracebacks")
        raise tracebacks.shortened(_unknown(name))
    module, attribute = _LAZY[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def _unknown(name: str) -> AttributeError:
    text = f"module 'tilec' has no attribute {name!r}"
    elsewhere = importlib.import_module("tilec.language.elsewhere")
    if instead := None if name.startswith("_") else elsewhere.of_package(name):
        return AttributeError(f"{text}; write {instead}")
    return AttributeError(text, name=name, obj=sys.modules[__name__])  # Python guesses from these


if not TYPE_CHECKING:  # which would take any name for one of ours
    __getattr__ = _loaded


def __dir__() -> list[str]:
    return [*__all__, *_FOREIGN]
