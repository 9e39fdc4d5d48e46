"""tilec: a tile compiler from Python to PTX. Importing it imports nothing else; names load on use."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_ROOT = Path(__file__).resolve().parent.parent
if (_ROOT / "pyproject.toml").exists() and (_ROOT / "dialects").is_dir():
    __path__.append(str(_ROOT))  # an uninstalled checkout: dialects/, passes/, runtime/ lie beside us

_LAZY = {
    "kernel": ("tilec.jit", "kernel"),
    "load": ("tilec.runtime.artefact", "load"),
    "device": ("tilec.runtime.device", "device"),
    "CompileError": ("tilec.diagnostics", "CompileError"),
    "InternalError": ("tilec.diagnostics", "InternalError"),
}
__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tilec' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value
