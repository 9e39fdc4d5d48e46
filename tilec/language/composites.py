"""Functions written in the tile language itself; kernels inline them.

They are ordinary helper functions: read them as examples of what a kernel may do.
"""

from __future__ import annotations

from typing import Any

from tilec.language import arithmetic, reduction, shape
from tilec.language.tile import Tile
from tilec.terms.numbers import Number

__all__ = [
    "block_scales",
    "cdiv",
    "sigmoid",
    "silu",
    "softmax",
]


def cdiv(x: Number, y: Number) -> Any:
    """`x / y` rounded up, for integers; also in grid rules and on plain ints.

    `y` must be positive.
    """
    return -(-x // y)


def sigmoid(x: Number, approx: bool = False) -> Tile:
    """1 / (1 + exp(-x)), divided as `/` does: a correctly rounded quotient of `f32` branches in
    each element, and exp rounds more than it saves."""
    below = 1.0 + arithmetic.exp(-x, approx=approx)
    return arithmetic.div(1.0, below, approx=True) if approx else 1.0 / below


def silu(x: Number, approx: bool = False) -> Tile:
    """x * sigmoid(x)."""
    return x * sigmoid(x, approx)


def softmax(x: Tile, axis: int = -1, approx: bool = False) -> Tile:
    """exp(x) along `axis`, scaled to sum 1; the maximum is subtracted first.

    `approx`: the hardware's approximations, and one division for all elements of a sum, which is 1
    at least: by 1 / sum each is within 3 ulp of its quotient.
    """
    e = arithmetic.exp(x - reduction.max(x, axis, keepdims=True), approx=approx)
    total = reduction.sum(e, axis, keepdims=True)
    return e * arithmetic.div(1.0, total, approx=True) if approx else e / total


def block_scales(x: Tile) -> Tile:
    """Scales (R, B) of a tile (R / 128, B / 4, 2, 256) of an array as cuBLAS arranges them.

    There the scales of 128 rows and 4 blocks are 512 bytes: rows r, r + 32, r + 64 and r + 96
    together, four blocks of each. Tensor copies bring such arrays to where the tensor cores read
    them, others go through threads (`tilec.ops.arranged_scales` makes them).
    """
    pieces, groups = x.shape[0], x.shape[1]
    apart = shape.reshape(x, (pieces, groups, 32, 4, 4))
    rows = shape.permute(apart, (0, 3, 2, 1, 4))
    return shape.reshape(rows, (128 * pieces, 4 * groups))
