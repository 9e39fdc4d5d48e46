"""`tilec.jax.attention`: attention of `tilec.ops` inside `jax.jit`, with gradients."""

# JAX is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import jax

from tilec.jax.devices import default_device, place_of
from tilec.jax.kernel_call import array_of, call
from tilec.jax.shards import alike
from tilec.messages.tracebacks import short_traceback
from tilec.ops import attention_kernel, gradient_kernels
from tilec.ops.attention_options import ELSEWHERE, Options
from tilec.ops.attention_plan import Plan, plan_attention
from tilec.runtime.errors import ArgumentError

_ELSEWHERE = {
    name: ELSEWHERE[name]
    for name in ("is_causal", "softmax_scale", "sm_scale", "window_size", "enable_gqa")
}
"""What other libraries' functions take and this one has, too, and what it is called."""


@short_traceback
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    **others: NoReturn,
) -> Any:
    """`softmax(q @ k^T * scale) @ v`, as `tilec.ops.attention`, in `jax.jit` or outside.

    Differentiable, in reverse, with respect to q, k and v, once; `jax.vmap` launches once for each
    element. The gradients take no memory beside the results and a number a query: scores are
    computed twice. ArgumentError, while JAX traces, names the argument that is wrong.
    """
    for name in others:
        known = _ELSEWHERE.get(name, "attention takes q, k, v, causal, window, scale")
        raise ArgumentError(f"argument {name!r}: {known}")
    return _attend(*alike(q, k, v), Options(causal, window, scale))


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def _attend(q: Any, k: Any, v: Any, options: Options) -> Any:
    """The result; see `attention`."""
    return _forward(q, k, v, options)[0]


def _forward(q: Any, k: Any, v: Any, options: Options) -> tuple[Any, Any]:
    """The result, and what its gradients need: the arrays, and a number a query."""
    plan = _plan(q, k, v, options)
    out, logs = (
        jax.numpy.zeros(plan.out_shape, plan.dtype.array),
        jax.numpy.zeros(plan.logs_shape, jax.numpy.float32),
    )
    if 0 not in plan.out_shape:
        new = (jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (out, logs))
        shapes = dict(zip(("o", "logs"), new, strict=True))
        out, logs = call(attention_kernel.attention, q, k, v, **shapes, **_given(plan))
    return out, (q, k, v, out, logs)


def _backward(options: Options, saved: Any, gradient: Any) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, by the kernels of `tilec.ops.attention_gradients`."""
    q, k, v, out, logs = saved
    plan = _plan(q, k, v, options)
    dq, dk, dv = (jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (q, k, v))
    if 0 in plan.out_shape or 0 in k.shape:
        return tuple(jax.numpy.zeros(x.shape, x.dtype) for x in (dq, dk, dv))
    given = _given(plan)
    new = jax.ShapeDtypeStruct(logs.shape, logs.dtype)
    seen = (q, k, v, out, gradient, logs)
    delta, dq = call(gradient_kernels.query_gradients, *seen, new, dq, **given)
    seen = (q, k, v, gradient, logs, delta)
    return dq, *call(gradient_kernels.key_gradients, *seen, dk, dv, **given)


def _plan(q: Any, k: Any, v: Any, options: Options) -> Plan:
    """The plan, for arrays as they are described. ArgumentError names the one that is wrong."""
    place = place_of(default_device(attention_kernel.attention))
    arrays = {"q": q, "k": k, "v": v}
    views = {name: array_of(name, value).view(place) for name, value in arrays.items()}
    return plan_attention(views, options)


def _given(plan: Plan) -> dict[str, Any]:
    """The numbers and constants of a plan that are there."""
    given = {**plan.numbers, **plan.constants}
    return {name: value for name, value in given.items() if value is not None}


_attend.defvjp(_forward, _backward)
