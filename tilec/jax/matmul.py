"""`tilec.jax.matmul`: the product of `tilec.ops` inside `jax.jit`, with gradients."""

# JAX is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax

from tilec.call.jit import Kernel
from tilec.hardware.sizes import ALLOCATION_BYTES
from tilec.jax.description import ArrayArgument
from tilec.jax.devices import default_device, place_of
from tilec.jax.kernel_call import array_of, launch_seen
from tilec.jax.shards import alike
from tilec.messages.tracebacks import short_traceback
from tilec.ops import matmul_kernel
from tilec.ops.multiply_plan import ACTIVATIONS, Options, make_plan
from tilec.ops.product_launch import Launch
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.dlpack import contiguous_strides
from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import BY_MLIR

XLA_STREAM = 0
"""Stands for the stream that XLA launches on. A caller's own stream is told apart from a
framework's: a product on one is a single kernel, which makes no arrays that another would free."""

_SLOPES = {
    None: lambda z: z,
    "relu": jax.nn.relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "silu": jax.nn.silu,
}
"""Activations as JAX has them, which knows their derivatives."""


@dataclass(frozen=True)
class How:
    """What is asked of a product beside its arrays; see `matmul`. `factor`: None for 1."""

    activation: str | None
    factor: float | None
    out_dtype: str | None
    precision: str
    transposed: tuple[str, ...]


@short_traceback
def matmul(
    a: Any,
    b: Any,
    *,
    bias: Any = None,
    activation: str | None = None,
    scale: float | None = None,
    residual: Any = None,
    out_dtype: Any = None,
    precision: str = "ieee",
    transposed: str | tuple[str, ...] = (),
) -> Any:
    """`activation((a @ b) * scale + bias) + residual`, as `tilec.ops.matmul`, in `jax.jit` or
    outside.

    `transposed`: "a", "b" or both, where these are given as their transposes: (..., K, M) and
    (..., N, K), as a weight often lies; nothing is copied. `scale`: a number. Differentiable, in
    reverse, with respect to a, b, bias and residual, once; `jax.vmap` launches once for each
    element: leading dimensions of a and b are one launch. ArgumentError, while JAX traces, names
    the argument that is wrong.
    """
    if activation is not None and activation not in ACTIVATIONS:
        raise ArgumentError(
            f"argument 'activation': expected None, {', '.join(map(repr, ACTIVATIONS))}, found "
            f"{activation!r}"
        )
    if scale is not None and not isinstance(scale, (int, float)):
        raise ArgumentError(f"argument 'scale': expected a number, found {type(scale).__name__}")
    names = (transposed,) if isinstance(transposed, str) else tuple(transposed)
    if not {*names} <= {"a", "b"}:
        raise ArgumentError(
            f"argument 'transposed': expected 'a', 'b' or a tuple of them, found {transposed!r}"
        )
    dtype = None if out_dtype is None else jax.numpy.dtype(out_dtype).name
    how = How(activation, None if scale is None else float(scale), dtype, precision, names)
    return _multiply(*alike(a, b, bias, residual), how)


@partial(jax.custom_vjp, nondiff_argnums=(4,))
def _multiply(a: Any, b: Any, bias: Any, residual: Any, how: How) -> Any:
    """The product; see `matmul`."""
    given = {"a": a, "b": b, "bias": bias, "residual": residual}
    arrays = {name: value for name, value in given.items() if value is not None}
    memory = {name: array_of(name, value) for name, value in arrays.items()}
    device = default_device(matmul_kernel.product)
    views = {
        name: _planned(array, number, name in how.transposed, place_of(device))
        for number, (name, array) in enumerate(memory.items())
    }
    options = Options(how.activation, how.factor is not None, how.out_dtype, None, how.precision)
    plan = make_plan(views, options)
    dtype = plan.out_dtype
    memory["out"] = ArrayArgument("out", plan.out_shape, dtype.mlir, False)
    if 0 in plan.out_shape:
        return jax.numpy.zeros(plan.out_shape, BY_MLIR[dtype.mlir].array)
    views["out"] = _planned(memory["out"], len(views), False, place_of(device))
    factor = 1.0 if how.factor is None else how.factor
    (step,) = Launch(plan, views, views, factor, device, XLA_STREAM).steps
    names = [parameter.name for parameter in step.kernel.parameters]
    sources = {
        name: source
        for name, (source, _) in zip(names, step.arguments, strict=False)
        if source in memory
    }
    return launch_seen(
        _anywhere(step.kernel),
        {**dict(zip(names, step.values, strict=False)), **step.constants},
        {name: memory[source] for name, source in sources.items()},
        {name: arrays[source] for name, source in sources.items() if source in arrays},
    )


def _planned(
    array: ArrayArgument, number: int, is_transposed: bool, device: tuple[str, int]
) -> ArrayView:
    """An array as tiles are chosen for it: at an address of its own, aligned as XLA allocates;
    what is compiled assumes less."""
    shape, strides = array.shape, contiguous_strides(array.shape)
    if is_transposed:
        if len(shape) < 2:
            raise ArgumentError(f"argument 'transposed': {array.name!r} has no two dimensions")
        shape, strides = ((*x[:-2], x[-1], x[-2]) for x in (shape, strides))
    return ArrayView((number + 1) * ALLOCATION_BYTES, shape, strides, array.dtype, device, "jax")


@cache
def _anywhere(kernel: Kernel[...]) -> Kernel[...]:
    """A kernel that is bound to one device, on whichever XLA launches it."""
    return kernel.on(None)


def _forward(a: Any, b: Any, bias: Any, residual: Any, how: How) -> tuple[Any, Any]:
    # Of the residual, shape and dtype are kept, which an array without elements carries.
    kept = (
        None
        if residual is None
        else jax.numpy.empty((0, *jax.numpy.shape(residual)), residual.dtype)
    )
    return _multiply(a, b, bias, residual, how), (a, b, bias, kept)


def _backward(how: How, saved: Any, gradient: Any) -> tuple[Any, Any, Any, Any]:
    """The gradients of y = f(z) + r with z = s (a @ b) + bias: products with tilec, the rest by
    JAX."""
    a, b, bias, residual = saved
    wide = jax.numpy.promote_types(gradient.dtype, jax.numpy.float32)
    of_z = gradient.astype(wide)
    if how.activation is not None:
        plain = replace(how, activation=None, out_dtype=jax.numpy.dtype(wide).name)
        z = _multiply(a, b, bias, None, plain)
        of_z = jax.vjp(_SLOPES[how.activation], z)[1](of_z)[0]
    of_product = of_z if how.factor is None else of_z * how.factor
    return (
        _operand_gradient(of_product, a, b, how, "a"),
        _operand_gradient(of_product, a, b, how, "b"),
        None if bias is None else _summed(of_z, bias.shape, bias.dtype),
        None if residual is None else _summed(gradient, residual.shape[1:], residual.dtype),
    )


def _operand_gradient(gradient: Any, a: Any, b: Any, how: How, name: str) -> Any:
    """dy b^T for a and a^T dy for b; of one that is given as its transpose, the transpose of
    that."""
    mine, other = (a, b) if name == "a" else (b, a)
    if mine.ndim == 1 or other.ndim == 1:
        raise ArgumentError("gradients of matmul need matrices; give vectors a dimension of size 1")
    turned = {"a": "a" in how.transposed, "b": "b" in how.transposed}
    dy = gradient.astype(other.dtype)
    if name == "b" and b.ndim == 2 and a.ndim > 2:
        # One product over all rows instead of one a matrix, and their sum.
        other = jax.numpy.swapaxes(other, -1, -2) if turned["a"] else other
        turned["a"] = False
        dy, other = (x.reshape(-1, x.shape[-1]) for x in (dy, other))
    # Each factor, and whether it is given as its transpose.
    if name == "a":
        factors = ((dy, False), (other, not turned["b"]))
        flipped = ((other, turned["b"]), (dy, True))
    else:
        factors = ((other, not turned["a"]), (dy, False))
        flipped = ((dy, True), (other, turned["a"]))
    (first, second) = flipped if turned[name] else factors
    names = tuple(n for n, (_, is_turned) in zip("ab", (first, second), strict=True) if is_turned)
    plain = How(None, None, jax.numpy.dtype(mine.dtype).name, how.precision, names)
    found = _multiply(first[0], second[0], None, None, plain)
    return _summed(found, mine.shape, mine.dtype)


def _summed(gradient: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The gradient of what was broadcast: summed over the dimensions it was repeated along."""
    extra = gradient.ndim - len(shape)
    repeated = [n + extra for n, size in enumerate(shape) if size == 1 < gradient.shape[n + extra]]
    axes = (*range(extra), *repeated)
    total = gradient.sum(axes, keepdims=True) if axes else gradient
    return total.reshape(shape).astype(dtype)


_multiply.defvjp(_forward, _backward)
