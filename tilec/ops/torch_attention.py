"""`tilec.ops.torch.attention`: `tilec.ops.attention` as a torch operator, with gradients.

Two operators: `torch.ops.tilec.attention`, which also gives what gradients need of each query, and
`torch.ops.tilec.attention_gradients`. Imported by `tilec.ops.torch`.
"""

# torch is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

import torch

from tilec.ops.attention_launch import attention_gradients, launch_attention

NAME, GRADIENTS = "tilec::attention", "tilec::attention_gradients"

_OPTIONS = "bool causal, int? window, float? scale"
_library = torch.library.Library("tilec", "FRAGMENT")
_library.define(f"attention(Tensor q, Tensor k, Tensor v, {_OPTIONS}) -> (Tensor, Tensor)")
_library.define(
    "attention_gradients(Tensor do, Tensor q, Tensor k, Tensor v, Tensor out, Tensor logs, "
    f"{_OPTIONS}) -> (Tensor, Tensor, Tensor)"
)
_operator = torch.ops.tilec.attention.default
_gradients = torch.ops.tilec.attention_gradients.default


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> torch.Tensor:
    """See `tilec.ops.attention`; the result is a new tensor, differentiable once with respect to q,
    k and v."""
    return _operator(q, k, v, causal, window, scale)[0]


def _launch(q: Any, k: Any, v: Any, causal: Any, window: Any, scale: Any) -> Any:
    logs = q.new_empty(q.shape[:-1], dtype=torch.float32)
    values = {"q": q, "k": k, "v": v, "out": None, "logs": logs}
    return launch_attention(values, causal, window, scale, None, None), logs


def _launch_gradients(
    do: Any, q: Any, k: Any, v: Any, out: Any, logs: Any, causal: Any, window: Any, scale: Any
) -> Any:
    options = {"causal": causal, "window": window, "scale": scale}
    return attention_gradients(do, q, k, v, out, logs, **options)


_library.impl("attention", _launch, "CompositeExplicitAutograd")
_library.impl("attention_gradients", _launch_gradients, "CompositeExplicitAutograd")


@torch.library.register_fake(NAME, lib=_library)
def _shape_of(q: Any, k: Any, v: Any, *_: Any) -> Any:
    """Empty tensors of the results' shapes and dtypes, sizes symbolic or not."""
    out = q.new_empty((*q.shape[:-1], v.shape[-1]))
    return out, q.new_empty(q.shape[:-1], dtype=torch.float32)


@torch.library.register_fake(GRADIENTS, lib=_library)
def _shapes_of_gradients(do: Any, q: Any, k: Any, v: Any, *_: Any) -> Any:
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, *ctx.options = inputs
    out, logs = output
    ctx.mark_non_differentiable(logs)
    ctx.save_for_backward(q, k, v, out, logs)


def _backward(ctx: Any, gradient: Any, _: Any) -> tuple[Any, ...]:
    """The gradients of q, k and v. That of a sum lies in memory once, for all elements: it is laid
    out for the copy engine."""
    laid_out = gradient.contiguous() if 0 in gradient.stride() else gradient
    found = _gradients(laid_out, *ctx.saved_tensors, *ctx.options)
    return (*found, *[None] * len(ctx.options))


def _refuse(ctx: Any, *_: Any) -> Any:
    raise NotImplementedError("tilec.ops.torch.attention is differentiable once")


torch.library.register_autograd(NAME, _backward, setup_context=_keep_for_backward, lib=_library)
torch.library.register_autograd(GRADIENTS, _refuse, lib=_library)
