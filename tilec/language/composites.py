"""Functions written in the tile language itself; kernels inline them.

They are ordinary helper functions: read them as examples of what a kernel may do.
"""

from __future__ import annotations

from typing import Any

from tilec.language import arithmetic, matmul, reduction, shape
from tilec.language.dtypes import bf16, i16

__all__ = [
    "cdiv",
    "dot_scaled",
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


def dot_scaled(a: Any, a_scale: Any, b: Any, b_scale: Any, acc: Any = None) -> Any:
    """`(a * a_scale) @ (b * b_scale) + acc` in f32, with scales of blocks along K (mx formats).

    `a`: (M, K), `b`: (K, N), of fp8, f16 or bf16. `a_scale`: (M, K / block), `b_scale`: (K / block,
    N), i8 exponents of 2 with a bias of 127, as ue8m0; 255 is NaN. Multiplied out in bf16, which
    has every product of an fp8 number and a scale that is not at the edge of its range.
    """
    left = a.to(bf16) * _repeated(_power_of_two(a_scale), a.shape, 1)
    right = b.to(bf16) * _repeated(_power_of_two(b_scale), b.shape, 0)
    return matmul.dot(left, right, acc)


def _power_of_two(code: Any) -> Any:
    """2 ** (code - 127) in bf16, whose exponent is stored alike.

    Code 0 is a subnormal number there, 255 an infinity and here none.
    """
    exponent = code.to(i16) & 255
    bits = shape.where(exponent > 0, exponent << 7, 0x40)
    return shape.bitcast(shape.where(exponent < 255, bits, 0x7FC0).to(i16), bf16)


def _repeated(scale: Any, sizes: Any, axis: int) -> Any:
    """Each scale for all elements of its block along `axis`."""
    blocks = scale.shape[axis]
    if axis == 1:
        whole = shape.broadcast_to(scale[:, :, None], (sizes[0], blocks, sizes[1] // blocks))
    else:
        whole = shape.broadcast_to(scale[:, None, :], (blocks, sizes[0] // blocks, sizes[1]))
    return shape.reshape(whole, sizes)
