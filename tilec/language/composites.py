"""Functions written in the tile language itself; kernels inline them.

They are ordinary helper functions: read them as examples of what a kernel may do.
"""

from __future__ import annotations

from typing import Any

from tilec.language import arithmetic, reduction

__all__ = [
    "cdiv",
    "sigmoid",
    "silu",
    "softmax",
]


def cdiv(x: Any, y: Any) -> Any:
    """`x / y` rounded up, for integers; also in grid rules and on plain ints.

    `y` must be positive.
    """
    return -(-x // y)


def sigmoid(x: Any, approx: bool = False) -> Any:
    """1 / (1 + exp(-x))."""
    return arithmetic.div(1.0, 1.0 + arithmetic.exp(-x, approx=approx), approx=approx)


def silu(x: Any, approx: bool = False) -> Any:
    """x * sigmoid(x)."""
    return x * sigmoid(x, approx)


def softmax(x: Any, axis: int = -1, approx: bool = False) -> Any:
    """exp(x) along `axis`, scaled to sum 1; the maximum is subtracted first."""
    e = arithmetic.exp(x - reduction.max(x, axis, keepdims=True), approx=approx)
    return e / reduction.sum(e, axis, keepdims=True)
