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

from typing import Any

import torch

from tilec.ops.multiply_plan import ACTIVATIONS, settled_names
from tilec.ops.plain_product import multiply_plain
from tilec.ops.torch_attention import attention
from tilec.runtime.errors import ArgumentError

__all__ = ["attention", "matmul"]

NAME = "tilec::matmul"

SCHEMA = """(
    Tensor a, Tensor b, Tensor? bias, str? activation, Tensor? scale, float? factor,
    Tensor? row_scale, Tensor? column_scale, Tensor? residual, ScalarType? out_dtype,
    ScalarType? acc_dtype, str precision, bool tune, str settled) -> Tensor"""

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
    return _operator(
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


_library = torch.library.Library("tilec", "DEF")
_library.define("matmul" + " ".join(SCHEMA.split()))
_operator = torch.ops.tilec.matmul.default


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
_library.impl("matmul", _launch, "CompositeExplicitAutograd")


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
    of_z = gradient.float() if gradient.dtype != torch.float64 else gradient
    if ctx.activation is not None:
        scales = {"scale": scale, "row_scale": row_scale, "column_scale": column_scale}
        if scale is None:
            scales["scale"] = ctx.factor
        z = matmul(a, b, bias=bias, out_dtype=of_z.dtype, precision=ctx.precision, **scales)
        of_z = _SLOPES[ctx.activation](of_z, z)
    of_product = of_z
    for factor in (ctx.factor, scale):
        of_product = of_product if factor is None else of_product * factor
    if row_scale is not None:
        of_product = of_product * row_scale[..., :, None]
    if column_scale is not None:
        of_product = of_product * column_scale
    needs = ctx.needs_input_grad
    of_a = _product_gradient(of_product, b, a, ctx.precision, 0) if needs[0] else None
    of_b = _product_gradient(of_product, a, b, ctx.precision, 1) if needs[1] else None
    of_bias = _summed(of_z, bias.shape, bias.dtype) if needs[2] else None
    of_residual = _summed(gradient, *ctx.residual) if needs[8] else None
    return (of_a, of_b, of_bias, *[None] * 5, of_residual, *[None] * 5)


def _product_gradient(gradient: Any, other: Any, like: Any, precision: str, side: int) -> Any:
    """Computes gradient @ b^T for a (side 0), a^T @ gradient for b (side 1), in the dtype of
    `like`."""
    if like.dim() == 1 or other.dim() == 1:
        raise ArgumentError("gradients of matmul need matrices; give vectors a dimension of size 1")
    mine = gradient.to(other.dtype)
    if side == 1 and like.dim() == 2:
        # One product over all rows instead of one a matrix, and their sum.
        mine, other = mine.flatten(0, -2), other.flatten(0, -2)
    transposed = other.mT
    pair = (mine, transposed) if side == 0 else (transposed, mine)
    return _summed(matmul(*pair, out_dtype=like.dtype, precision=precision), like.shape, like.dtype)


def _summed(gradient: Any, shape: Any, dtype: torch.dtype) -> Any:
    """The gradient of what was broadcast: summed over the dimensions it was repeated along."""
    return gradient.sum_to_size(shape).to(dtype)


torch.library.register_autograd(NAME, _backward, setup_context=_keep_for_backward, lib=_library)
