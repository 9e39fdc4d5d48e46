"""`tilec.ops.torch.matmul`: `tilec.ops.matmul` as a torch operator, which `torch.compile` keeps;
`attention` beside it (`torch_attention.py`).

Importing this module registers `torch.ops.tilec.matmul` and `attention`, and needs torch; nothing
else of tilec imports it but a call of theirs that torch traces. The operator has a shape function
for fake tensors, so graphs are traced without running it, and a gradient with respect to a, b, bias
and residual.
"""

# torch is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tilec.ops.multiply_plan import ACTIVATIONS, settled_names
from tilec.ops.plain_product import multiply_plain
from tilec.ops.torch_attention import attention
from tilec.ops.torch_batches import (
    batched_product,
    batched_product_gradients,
    register_batches,
)
from tilec.runtime.errors import ArgumentError
from tilec.runtime.operator_gradient import register

__all__ = ["attention", "matmul"]

NAME = "tilec::matmul"

GRADIENTS = "tilec::matmul_gradients"

SCHEMA = """(
    Tensor a, Tensor b, Tensor? bias, str? activation, Tensor? scale, float? factor,
    Tensor? row_scale, Tensor? column_scale, Tensor? residual, ScalarType? out_dtype,
    ScalarType? acc_dtype, str precision, bool tune, str settled) -> Tensor"""

GRADIENTS_SCHEMA = """(
    Tensor gradient, Tensor a, Tensor b, bool of_a, bool of_b, str precision
    ) -> (Tensor, Tensor)"""

_ACTIVATED = {
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda z: torch.nn.functional.gelu(z, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}
"""Activations as torch computes them."""

_SLOPES = {
    "relu": lambda y, z: torch.ops.aten.threshold_backward(y, z, 0),
    "gelu": lambda y, z: torch.ops.aten.gelu_backward(y, z, approximate="none"),
    "gelu_tanh": lambda y, z: torch.ops.aten.gelu_backward(y, z, approximate="tanh"),
    "silu": lambda y, z: torch.ops.aten.silu_backward(y, z),
}
"""The gradient with respect to an activation's argument z, from that of its result."""


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    activation: str | None = None,
    scale: torch.Tensor | float | None = None,
    row_scale: torch.Tensor | None = None,
    column_scale: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    acc_dtype: torch.dtype | None = None,
    precision: str = "ieee",
    settled: str | tuple[str, ...] = (),
    tune: bool = False,
) -> torch.Tensor:
    """See `tilec.ops.matmul`; here `activation` is one of its names, and the result a new tensor.

    Differentiable with respect to a, b, bias and residual; ArgumentError at once where another
    argument requires a gradient.
    """
    if activation is not None and activation not in ACTIVATIONS:
        raise ArgumentError(
            f"argument 'activation': expected None, {', '.join(map(repr, ACTIVATIONS))}, found "
            f"{activation!r}; functions of the tile language are for tilec.ops.matmul"
        )
    tensor, factor = (scale, None) if isinstance(scale, torch.Tensor) else (None, scale)
    scales: dict[str, Any] = {"scale": tensor, "row_scale": row_scale, "column_scale": column_scale}
    for name, value in scales.items():
        if value is not None and value.requires_grad and torch.is_grad_enabled():
            raise ArgumentError(f"argument {name!r}: there is no gradient with respect to scales")
    if activation is not None and _records((a, b, bias)):
        # Its argument is kept for the gradient, which would have to multiply again otherwise.
        dtype = _usual_dtype(a.dtype, is_plain=False) if out_dtype is None else out_dtype
        how: dict[str, Any] = {"out_dtype": dtype, "acc_dtype": acc_dtype, "precision": precision}
        how |= {"settled": settled, "tune": tune, "bias": bias, **scales, "scale": scale}
        y = _ACTIVATED[activation](matmul(a, b, **how))
        return y if residual is None else (y + residual).to(dtype)
    return _call(
        a,
        b,
        bias,
        activation,
        tensor,
        None if factor is None else float(factor),
        row_scale,
        column_scale,
        residual,
        out_dtype,
        acc_dtype,
        precision,
        tune,
        "".join(settled_names(settled)),
    )


def _records(inputs: tuple[Any, ...]) -> bool:
    """Whether torch wants the derivative of what is done to one of these, None among them."""
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in inputs)


_library = torch.library.Library("tilec", "DEF")
_library.define("matmul" + " ".join(SCHEMA.split()))
_library.define("matmul_gradients" + " ".join(GRADIENTS_SCHEMA.split()))
_operator = torch.ops.tilec.matmul.default
_gradients = torch.ops.tilec.matmul_gradients.default


def _launch(
    a: Any,
    b: Any,
    bias: Any,
    activation: Any,
    scale: Any,
    factor: Any,
    row_scale: Any,
    column_scale: Any,
    residual: Any,
    out_dtype: Any,
    acc_dtype: Any,
    precision: Any,
    tune: Any,
    settled: Any,
) -> Any:
    arrays = (a, b, None, bias, row_scale, column_scale, scale, residual)
    has_scale = scale is not None or factor is not None
    asked = (activation, has_scale, out_dtype, acc_dtype, precision)
    number = 1.0 if factor is None else factor
    return multiply_plain(arrays, asked, tuple(settled), number, None, None, tune)


# Not `torch.library.custom_op`, whose wrappers take 40 us of every call: what they look for, an
# output that is an input or an input that changes, cannot be here.
@torch.library.register_fake(NAME, lib=_library)
def _shape_of(
    a: Any,
    b: Any,
    bias: Any,
    activation: Any,
    scale: Any,
    factor: Any,
    row_scale: Any,
    column_scale: Any,
    residual: Any,
    out_dtype: Any,
    *_: Any,
) -> Any:
    """An empty tensor of the result's shape and dtype, sizes symbolic or not."""
    plain = torch.matmul(
        a.new_empty(a.shape, dtype=torch.float32), b.new_empty(b.shape, dtype=torch.float32)
    )
    if out_dtype is None:
        epilogue = (bias, activation, scale, factor, row_scale, column_scale, residual)
        is_plain = all(part is None for part in epilogue)
        out_dtype = _usual_dtype(a.dtype, is_plain)
    return a.new_empty(plain.shape, dtype=out_dtype)


def _usual_dtype(dtype: torch.dtype, is_plain: bool) -> torch.dtype:
    """The result's dtype where none is asked for."""
    if dtype == torch.int8:
        return torch.int32 if is_plain else torch.float32
    return torch.bfloat16 if dtype.itemsize == 1 else dtype


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    a, b, bias, activation, scale, factor, row_scale, column_scale, residual, *rest = inputs
    ctx.save_for_backward(a, b, bias, scale, row_scale, column_scale)
    ctx.activation, ctx.factor, ctx.precision = activation, factor, rest[2]
    ctx.residual = None if residual is None else (residual.shape, residual.dtype)


def _backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
    """Computes the gradients of y = f(z) + r with z = s (a @ b) + bias: products with tilec, the
    rest by torch."""
    a, b, bias, scale, row_scale, column_scale = ctx.saved_tensors
    factors = (ctx.factor, scale, row_scale, column_scale)
    is_plain = ctx.activation is None and all(factor is None for factor in factors)
    of_z = gradient if is_plain else _wide(gradient)
    if ctx.activation is not None:
        scales = {"scale": scale, "row_scale": row_scale, "column_scale": column_scale}
        if scale is None:
            scales["scale"] = ctx.factor
        z = matmul(a, b, bias=bias, out_dtype=of_z.dtype, precision=ctx.precision, **scales)
        of_z = _SLOPES[ctx.activation](of_z, z)
    of_product = of_z
    row = None if row_scale is None else row_scale[..., :, None]
    for factor in (ctx.factor, scale, row, column_scale):
        of_product = of_product if factor is None else of_product * factor
    needs = ctx.needs_input_grad
    of_a, of_b = _product_gradients(of_product, a, b, needs[:2], ctx.precision)
    of_bias = _summed(_wide(of_z), bias.shape, bias.dtype) if needs[2] else None
    of_residual = _summed(gradient, *ctx.residual) if needs[8] else None
    return (of_a, of_b, of_bias, *[None] * 5, of_residual, *[None] * 5)


def _wide(gradient: Any) -> Any:
    return gradient if gradient.dtype == torch.float64 else gradient.float()


def _product_gradients(
    gradient: Any, a: Any, b: Any, wanted: Sequence[bool], precision: str
) -> tuple[Any, Any]:
    """The gradients of a and b from that of a @ b; None for what is not wanted."""
    if not any(wanted):
        return None, None
    if a.dim() == 1 or b.dim() == 1:
        raise ArgumentError("gradients of matmul need matrices; give vectors a dimension of size 1")
    if a.dtype == b.dtype:
        gradient = gradient.to(a.dtype)  # once for both
    # A second derivative is one of products.
    find = _products if torch.is_grad_enabled() else _gradients
    of_a, of_b = find(gradient, a, b, wanted[0], wanted[1], precision)
    return (of_a if wanted[0] else None), (of_b if wanted[1] else None)


def _products(gradient: Any, a: Any, b: Any, of_a: bool, of_b: bool, precision: str) -> Any:
    """What the operator gives, by products that have gradients themselves."""

    def multiply(x: Any, y: Any, dtype: torch.dtype) -> Any:
        return matmul(x, y, out_dtype=dtype, precision=precision)

    return _both(multiply, gradient, a, b, of_a, of_b)


def _launch_gradients(gradient: Any, a: Any, b: Any, of_a: Any, of_b: Any, precision: Any) -> Any:
    def multiply(x: Any, y: Any, dtype: torch.dtype) -> Any:
        asked = (None, False, dtype, None, precision)
        return multiply_plain((x, y, *[None] * 6), asked, (), 1.0, None, None, False)

    return _both(multiply, gradient, a, b, of_a, of_b)


def _both(multiply: Any, gradient: Any, a: Any, b: Any, of_a: bool, of_b: bool) -> Any:
    """Gives gradient @ b^T and a^T @ gradient, in the dtypes of a and b; nothing for what is not
    wanted."""
    first = second = None
    if of_a:
        first = multiply(gradient.to(b.dtype), b.mT, a.dtype)
        first = _summed(first, a.shape, a.dtype)
    if of_b:
        mine, rows = gradient.to(a.dtype), a
        if b.dim() == 2 < a.dim():  # one product over all rows instead of one a matrix, and a sum
            mine, rows = mine.flatten(0, -2), a.flatten(0, -2)
        second = _summed(multiply(rows.mT, mine, b.dtype), b.shape, b.dtype)
    return (
        _nothing_like(a) if first is None else first,
        _nothing_like(b) if second is None else second,
    )


def _nothing_like(x: Any) -> Any:
    return x.new_empty(0)


_library.impl("matmul_gradients", _launch_gradients, "CompositeExplicitAutograd")


@torch.library.register_fake(GRADIENTS, lib=_library)
def _shapes_of_gradients(gradient: Any, a: Any, b: Any, of_a: bool, of_b: bool, _: str) -> Any:
    """Empty tensors of the results' shapes and dtypes, sizes symbolic or not."""
    first = a.new_empty(a.shape) if of_a else _nothing_like(a)
    return first, b.new_empty(b.shape) if of_b else _nothing_like(b)


def _summed(gradient: Any, shape: Any, dtype: torch.dtype) -> Any:
    """The gradient of what was broadcast: summed over the dimensions it was repeated along."""
    if gradient.dtype == dtype and gradient.shape == shape:
        return gradient
    return gradient.sum_to_size(shape).to(dtype)


_call = register(_library, _operator, _launch, _keep_for_backward, _backward)
register_batches(_library, {_operator: batched_product, _gradients: batched_product_gradients})
