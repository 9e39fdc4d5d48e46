"""Kernels inside `jax.jit`. Needs JAX, which is loaded when something of it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec.jax.attention import attention
    from tilec.jax.kernel_call import call
    from tilec.jax.matmul import matmul

_MODULES = {"attention": "attention", "call": "kernel_call", "matmul": "matmul"}
__all__ = ["attention", "call", "matmul"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tilec.jax' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"tilec.jax.{_MODULES[name]}"), name)
    globals()[name] = found  # in place of the module of that name
    return found
