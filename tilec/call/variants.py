"""Kernels of the same function under other demands: `kernel.demanding(...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilec.runtime.traced_calls import TracedVariant, is_traced_call

MOST_VARIANTS = 64
"""Of one kernel; the one that was asked for first goes."""


def variant(kernel: Any, demands: Mapping[str, Any]) -> Any:
    """The kernel under other demands; where torch traces the caller, what has its number."""
    if not is_traced_call():
        return kernel.demanded(demands)
    # Needs torch, which is optional; and Dynamo follows a statement, not importlib.
    from tilec.runtime.torch_operator import variant_traced

    return TracedVariant(variant_traced(kernel.number, tuple(demands.items())))


def demanded(kernel: Any, demands: Mapping[str, Any]) -> Any:
    """`kernel.demanding`, where nothing is traced: each variant is made once, so that a call of
    `kernel.demanding(...)(...)` finds what the one before compiled."""
    variants: dict[str, Any] = vars(kernel).setdefault("variants", {})
    asked = {**kernel.demands(), **demands}
    key = repr(sorted(asked.items()))  # in which True is not 1
    found = variants.get(key)
    if found is None:
        found = type(kernel)(kernel.fn, kernel.grid, device=kernel.device, **asked)
        while len(variants) >= MOST_VARIANTS:
            variants.pop(next(iter(variants)), None)
        variants[key] = found
    return found
