"""Kernels inside `jax.jit`. Needs JAX, which is loaded when something of it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec.jax.kernel_call import call

__all__ = ["call"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tilec.jax' has no attribute {name!r}")
    return importlib.import_module("tilec.jax.kernel_call").call
