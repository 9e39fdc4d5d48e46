"""`tilec.ops.attention`: for any framework, strides and heads."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilec.messages.tracebacks import is_shortened, short_traceback, shortened
from tilec.ops.attention_launch import launch_attention
from tilec.ops.attention_options import Asked, Options
from tilec.ops.plain_product import GradientWanted
from tilec.runtime.errors import ArgumentError, TracedTensorError

if TYPE_CHECKING:
    from typing_extensions import Unpack


def attention(
    q: Any,
    k: Any,
    v: Any,
    out: Any = None,
    *,
    sinks: Any = None,
    starts: Any = None,
    key_starts: Any = None,
    lengths: Any = None,
    table: Any = None,
    logs: Any = None,
    device: Any = None,
    stream: Any = None,
    **asked: Unpack[Asked],
) -> Any:
    """`softmax(q @ k^T * scale) @ v`, scores in f32, never in memory.

    `q`: (batch, heads, length, elements of a head), `k`: (batch, fewer heads, keys, the same
    elements), `v`: (batch, fewer heads, keys, its own elements), f16, bf16 or fp8, any strides.
    Heads of k and v divide those of q: each serves as many neighbours. A head has 1 to 256
    elements. Gives `out`, or a new row-major array: (batch, heads, length, elements of v), bf16 of
    fp8.

    `causal`: query i sees keys 0 to i; with `window` the last so many of these, its own among them.
    `scale`: a positive number, 1 / sqrt(elements of q) if not given. `cap`: scores become cap *
    tanh(score / cap). `sinks`: a number a head, f32, f16 or bf16: the score of one more key, of
    value 0. `dropout`: the probability that a weight counts as 0, where the others grow to match;
    which ones follows from `seed`, a whole number. A query that sees no key gives zeros. `logs`: an
    array (batch, heads, length) of f32 that takes the base-2 logarithm of each query's sum of
    weights, as `attention_gradients` wants it.

    **Packed**: with `starts` (sequences + 1, i32), where sequences begin and the last one ends, q,
    k, v and `out` are (tokens, heads, elements), `logs` (heads, tokens); each sequence sees itself.
    `key_starts`: the same of k and v, where theirs differ. `longest`, `longest_key`: no sequence
    has more queries, keys; without them programs begin for as many as there are in all.

    **Caches**: `lengths` (batch, i32) says how many keys each sequence has, the last of which its
    queries are: `causal` and `window` count from there. What lies behind may be anything. With
    `table` (batch, pages of one, i32) k and v are (pages, keys of one, fewer heads, elements), and
    page i of a sequence is `table[sequence, i]`. Of one query a sequence several programs share the
    keys, where there are too few sequences for the device.

    `scratch`: gradients take at most so many bytes beside the results and a number a query; 2 GB if
    not given. Fewer are slower, 0: none. Where they are not free, gradients do without, and a
    PerformanceWarning says so.

    `device`, `stream`: as in a launch. Runs where the arrays are, NumPy arrays on the emulator.

    ArgumentError (a TypeError) names the argument that is wrong. Inside `torch.compile`, and where
    a tensor requires a gradient, this is the operator `tilec.ops.torch.attention`, which has it.
    """
    torch = sys.modules.get("torch")
    arrays = {"sinks": sinks, "starts": starts, "key_starts": key_starts}
    arrays |= {"lengths": lengths, "table": table}
    placed = {"out": out, "logs": logs}
    if torch is None or not torch.compiler.is_compiling():
        values = {"q": q, "k": k, "v": v, **placed, **arrays}
        try:
            return launch_attention(values, Options.of(asked), device, stream)
        except (GradientWanted, TracedTensorError):
            pass  # which the operator computes
        except Exception as error:
            if not is_shortened(error):
                raise
            __tracebackhide__ = True
            raise shortened(error) from None
    return _as_operator((q, k, v), arrays, {**placed, "device": device, "stream": stream}, asked)


@short_traceback
def _as_operator(
    qkv: tuple[Any, Any, Any],
    arrays: Mapping[str, Any],
    placed: Mapping[str, Any],
    asked: Asked,
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
    return operator(*qkv, **arrays, **asked)
