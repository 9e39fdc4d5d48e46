"""Launches attention and its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.ops import attention_kernel, gradient_kernels
from tilec.ops.attention_plan import plan_attention
from tilec.ops.new_arrays import new_array
from tilec.ops.plain_product import refuse_gradients
from tilec.ops.product_launch import check_overlap
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import located
from tilec.runtime.streams import stream_number


def launch_attention(
    values: Mapping[str, Any], causal: Any, window: Any, scale: Any, device: Any, stream: Any
) -> Any:
    """`tilec.ops.attention` of the arrays q, k, v, out and logs, of which the last two may be None.
    Gives the result."""
    number = None if stream is None else stream_number(stream)
    views = _views(values, number, ("out", "logs"))
    plan = plan_attention(views, causal, window, scale)
    out = values["out"]
    if out is None:
        out = new_array(values["q"], views["q"], plan.out_shape, plan.dtype)
        views["out"] = located(describe(out, "out", number))
    for name in (name for name in ("out", "logs") if name in views):
        _check_written(views, name)
    if 0 not in plan.out_shape:
        kernel = _kernel_on("attention_forward", _device(views, device))
        arrays = (values[name] for name in "qkv")
        given = {**plan.numbers, **plan.constants}
        kernel(*arrays, out, logs=values["logs"], **given, stream=number)
    return out


def attention_gradients(
    do: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    logs: Any,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    device: Any = None,
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, new row-major arrays of their dtype, from that of the result.

    `do`: the gradient of `out`; `out`, `logs`: what `attention` gave for the same q, k, v and
    options. The same bits at every call. ArgumentError names the argument that is wrong.
    """
    values = {"q": q, "k": k, "v": v, "out": out, "logs": logs, "do": do}
    views = _views(values, None, ())
    plan = plan_attention(views, causal, window, scale)
    delta = new_array(q, views["q"], plan.logs_shape, tl.f32)
    dq, dk, dv = (new_array(values[n], views[n], views[n].shape, plan.dtype) for n in "qkv")
    where = _device(views, device)
    seen = (q, k, v, do, logs, delta)
    given = {**plan.numbers, **plan.constants}
    if 0 not in plan.out_shape:
        _kernel_on("weigh_gradients", where)(out, do, delta, DV=plan.constants["DV"])
    if 0 not in views["k"].shape:
        _kernel_on("key_gradients", where)(*seen, dk, dv, **given)
    if 0 not in plan.out_shape:
        _kernel_on("query_gradients", where)(*seen, dq, **given)
    return dq, dk, dv


def _views(
    values: Mapping[str, Any], stream: int | None, optional: tuple[str, ...]
) -> dict[str, ArrayView]:
    """Descriptions of what is given."""
    given = {n: x for n, x in values.items() if x is not None or n not in optional}
    for name, value in given.items():
        refuse_gradients(name, value, "gradients of attention")
    return {name: located(describe(value, name, stream)) for name, value in given.items()}


def _check_written(views: Mapping[str, ArrayView], name: str) -> None:
    if not views[name].writable:
        raise ArgumentError(f"argument {name!r}: the array is read-only")
    check_overlap(views, name)


def _device(views: Mapping[str, ArrayView], given: Any) -> Any:
    return device_of(list(views.items()), find_device(given) if isinstance(given, str) else given)


@cache
def _kernel_on(name: str, device: Any) -> Kernel[...]:
    """A kernel by its name: parameters without types are as given."""
    return {**vars(attention_kernel), **vars(gradient_kernels)}[name].on(device)
