"""`tilec.ops.attention`: for any framework, strides and heads."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tilec.ops.attention_launch import launch_attention
from tilec.ops.plain_product import GradientWanted
from tilec.runtime.errors import ArgumentError


def attention(
    q: Any,
    k: Any,
    v: Any,
    out: Any = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    logs: Any = None,
    device: Any = None,
    stream: Any = None,
) -> Any:
    """`softmax(q @ k^T * scale) @ v`, scores in f32, never in memory.

    `q`: (batch, heads, length, elements of a head), `k`: (batch, fewer heads, keys, the same
    elements), `v`: (batch, fewer heads, keys, its own elements), f16 or bf16, any strides. Heads of
    k and v divide those of q: each serves as many neighbours. A head has 1 to 256 elements.
    Gives `out`, or a new row-major array: (batch, heads, length, elements of v).

    `causal`: query i sees keys 0 to i; with `window` the last so many of these, its own among them.
    `scale`: a positive number, 1 / sqrt(elements of q) if not given. A query that sees no key gives
    zeros. `logs`: an array (batch, heads, length) of f32 that takes the base-2 logarithm of each
    query's sum of weights, as `attention_gradients` wants it.
    `device`, `stream`: as in a launch. Runs where the arrays are, NumPy arrays on the emulator.

    ArgumentError (a TypeError) names the argument that is wrong. Inside `torch.compile`, and where
    a tensor requires a gradient, this is the operator `tilec.ops.torch.attention`, which has it.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.compiler.is_compiling():
        values = {"q": q, "k": k, "v": v, "out": out, "logs": logs}
        try:
            return launch_attention(values, causal, window, scale, device, stream)
        except GradientWanted:
            pass  # which the operator computes
    placed = {"out": out, "logs": logs, "device": device, "stream": stream}
    return _as_operator(q, k, v, placed, causal, window, scale)


def _as_operator(
    q: Any, k: Any, v: Any, placed: Mapping[str, Any], causal: Any, window: Any, scale: Any
) -> Any:
    """The call where torch traces the caller, which must not see what a launch looks at, or wants
    its gradient."""
    # Needs torch, which is optional; and torch follows a statement, not importlib.
    from tilec.ops.torch import attention as operator

    for name, value in placed.items():
        if value is not None:
            raise ArgumentError(
                f"argument {name!r}: where torch traces attention or wants its gradient, the "
                "result is a new tensor where q, k and v are, on the current stream"
            )
    return operator(q, k, v, causal=causal, window=window, scale=scale)
