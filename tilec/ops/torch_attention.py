"""`tilec.ops.torch.attention`: `tilec.ops.attention` as a torch operator, with gradients.

Two operators: `torch.ops.tilec.attention`, which also gives what gradients need of each query, and
`torch.ops.tilec.attention_gradients`. Imported by `tilec.ops.torch`.
"""

# torch is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tilec.ops.attention_launch import launch_attention
from tilec.ops.attention_options import Asked, Options, check_names
from tilec.ops.gradient_launch import attention_gradients
from tilec.ops.torch_batches import (
    batched_attention,
    batched_attention_gradients,
    register_batches,
)
from tilec.runtime.errors import ArgumentError
from tilec.runtime.operator_gradient import register

if TYPE_CHECKING:
    from typing_extensions import Unpack

NAME, GRADIENTS = "tilec::attention", "tilec::attention_gradients"

_ARRAYS = "Tensor? sinks, Tensor? starts, Tensor? key_starts"
_OPTIONS = (
    "bool causal, int? window, float? scale, float? cap, float dropout, int? seed, "
    "SymInt? longest, SymInt? longest_key, int? scratch"
)
"""Without defaults, as `register` wants it: callers pass every one, in the order of `Options`."""

_DEFAULTS = vars(Options())
"""A dictionary, which Dynamo reads where it does not trace a dataclass."""

_library = torch.library.Library("tilec", "FRAGMENT")
_library.define(
    f"attention(Tensor q, Tensor k, Tensor v, {_ARRAYS}, Tensor? lengths, Tensor? table, "
    f"{_OPTIONS}) -> (Tensor, Tensor)"
)
_library.define(
    "attention_gradients(Tensor do, Tensor q, Tensor k, Tensor v, Tensor out, Tensor logs, "
    f"{_ARRAYS}, {_OPTIONS}) -> (Tensor, Tensor, Tensor, Tensor)"
)
_operator = torch.ops.tilec.attention.default
_gradients = torch.ops.tilec.attention_gradients.default


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    sinks: torch.Tensor | None = None,
    starts: torch.Tensor | None = None,
    key_starts: torch.Tensor | None = None,
    lengths: torch.Tensor | None = None,
    table: torch.Tensor | None = None,
    **asked: Unpack[Asked],
) -> torch.Tensor:
    """See `tilec.ops.attention`; the result is a new tensor, differentiable once with respect to q,
    k, v and sinks, but with `lengths` and `table`, and of fp8, not at all."""
    check_names(asked)
    options = {**_DEFAULTS, **asked}.values()
    return _call(q, k, v, sinks, starts, key_starts, lengths, table, *options)[0]


def _launch(
    q: Any,
    k: Any,
    v: Any,
    sinks: Any,
    starts: Any,
    key_starts: Any,
    lengths: Any,
    table: Any,
    *asked: Any,
) -> Any:
    logs = q.new_empty(_logs_shape(q, starts), dtype=torch.float32)
    values = {"q": q, "k": k, "v": v, "out": None, "logs": logs, "sinks": sinks, "starts": starts}
    values |= {"key_starts": key_starts, "lengths": lengths, "table": table}
    return launch_attention(values, Options(*asked), None, None), logs


def _launch_gradients(
    do: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    logs: Any,
    sinks: Any,
    starts: Any,
    key_starts: Any,
    *asked: Any,
) -> Any:
    arrays = {"sinks": sinks, "starts": starts, "key_starts": key_starts}
    options = vars(Options(*asked))
    found = attention_gradients(do, q, k, v, out, logs, **arrays, **options)
    return found if sinks is not None else (*found, _no_sinks(q))


def _logs_shape(q: Any, starts: Any) -> Any:
    return q.shape[:-1] if starts is None else (q.shape[1], q.shape[0])


def _no_sinks(q: Any) -> Any:
    return q.new_empty(0, dtype=torch.float32)


@torch.library.register_fake(NAME, lib=_library)
def _shape_of(q: Any, k: Any, v: Any, sinks: Any, starts: Any, *_: Any) -> Any:
    """Empty tensors of the results' shapes and dtypes, sizes symbolic or not."""
    dtype = torch.bfloat16 if q.dtype.itemsize == 1 else q.dtype
    out = q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=dtype)
    return out, q.new_empty(_logs_shape(q, starts), dtype=torch.float32)


@torch.library.register_fake(GRADIENTS, lib=_library)
def _shapes_of_gradients(
    do: Any, q: Any, k: Any, v: Any, out: Any, logs: Any, sinks: Any, *_: Any
) -> Any:
    made = tuple(x.new_empty(x.shape) for x in (q, k, v))
    if sinks is None:
        return (*made, _no_sinks(q))
    return (*made, sinks.new_empty(sinks.shape, dtype=torch.float32))


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, sinks, starts, key_starts, lengths, table, *ctx.options = inputs
    out, logs = output
    ctx.is_of_caches = lengths is not None or table is not None
    ctx.mark_non_differentiable(logs)
    ctx.save_for_backward(q, k, v, out, logs, sinks, starts, key_starts)


def _backward(ctx: Any, gradient: Any, _: Any) -> tuple[Any, ...]:
    """The gradients of q, k, v and sinks. That of a sum lies in memory once, for all elements: it
    is laid out for the copy engine."""
    if ctx.is_of_caches:
        raise ArgumentError("argument 'lengths': attention of caches has no gradients")
    laid_out = gradient.contiguous() if 0 in gradient.stride() else gradient
    sinks = ctx.saved_tensors[5]
    *found, dsinks = _call_gradients(laid_out, *ctx.saved_tensors, *ctx.options)
    of_sinks = None if sinks is None else dsinks.to(sinks.dtype)
    return (*found, of_sinks, *[None] * (4 + len(ctx.options)))


def _refuse(ctx: Any, *_: Any) -> Any:
    raise NotImplementedError("tilec.ops.torch.attention is differentiable once")


def _keep_nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """There is no second derivative."""


_call = register(_library, _operator, _launch, _keep_for_backward, _backward)
_call_gradients = register(_library, _gradients, _launch_gradients, _keep_nothing, _refuse)
register_batches(_library, {_operator: batched_attention, _gradients: batched_attention_gradients})
