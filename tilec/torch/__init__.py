"""What PyTorch programs need beside a call: gradients; and layers that have theirs (`layers`, which
needs torch, and is loaded when it is asked for)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec.torch import layers

__all__ = ["layers"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tilec.torch' has no attribute {name!r}")
    return importlib.import_module(f"tilec.torch.{name}")
