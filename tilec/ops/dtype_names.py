"""Dtypes as callers of operations write them."""

from __future__ import annotations

from typing import Any

from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import BY_ARRAY, BY_NAME, DType


def dtype_of(value: Any, argument: str) -> DType:
    """The dtype `value` means: `tl.f16`, "f16", "float16", `np.float16`, `torch.float16`, ...

    ArgumentError names the argument.
    """
    if isinstance(value, DType):
        return value
    name = value if isinstance(value, str) else _name_of(value)
    found = BY_NAME.get(name) or BY_ARRAY.get(name)
    if found is None:
        known = ", ".join(BY_ARRAY)
        raise ArgumentError(f"argument {argument!r}: unknown dtype {value!r}; known: {known}")
    return found


def _name_of(value: Any) -> str:
    """The name of a dtype object of torch, NumPy, ml_dtypes, JAX or CuPy."""
    name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
    return str(name).removeprefix("torch.")
