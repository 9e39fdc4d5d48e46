"""The transformer block of `transformer_block.py` in `jax.jit`, by tilec's kernels and by XLA's.

    python test/bench/jax_block.py           # on a GPU: how far results are off, and times
    python test/bench/jax_block.py --tiny    # on the emulator: that it is right

Products with their epilogues, attention, RMS norm and the loss are tilec's, the rest is XLA's. The
loss, and the gradients by all weights, are compared with XLA's in f32 before anything is timed.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import tilec.jax  # noqa: E402
from tilec.examples.cross_entropy import cross_entropy  # noqa: E402
from tilec.examples.rms_norm import rms_norm, rms_norm_gradients, sum_columns  # noqa: E402

EPS = 1e-6
PROGRAMS = 264
"""Partial sums of a norm's weight, two a multiprocessor of an H200; not timed."""
ROUNDS, CALLS = 7, 20
FURTHER = 2.0
"""How much further than XLA's bf16 ours may be from f32: sums are taken in another order."""


def like(x: Any, *shape: int, dtype: Any = None) -> Any:
    """A new array that a kernel writes."""
    return jax.ShapeDtypeStruct(shape or x.shape, dtype or x.dtype)


@jax.custom_vjp
def norm(x: Any, weight: Any) -> Any:
    """RMS norm of rows by tilec."""
    return _norm(x, weight)[0]


def _norm(x: Any, weight: Any) -> tuple[Any, Any]:
    scales = like(x, x.shape[0], dtype=jnp.float32)
    y, scales = tilec.jax.call(rms_norm, x, weight, like(x), scales, EPS, x.shape[1])
    return y, (x, weight, scales)


def _norm_gradients(kept: Any, dy: Any) -> tuple[Any, Any]:
    x, weight, scales = kept
    partial = like(x, min(PROGRAMS, x.shape[0]), x.shape[1], dtype=jnp.float32)
    given = dy, x, weight, scales
    dx, partial = tilec.jax.call(rms_norm_gradients, *given, like(x), partial, x.shape[1])
    return dx, tilec.jax.call(sum_columns, partial, like(weight))


norm.defvjp(_norm, _norm_gradients)


@jax.custom_vjp
def losses(logits: Any, labels: Any) -> Any:
    """Cross-entropy of rows by tilec."""
    return _losses(logits, labels)[0]


def _losses(logits: Any, labels: Any) -> tuple[Any, Any]:
    found = like(logits, logits.shape[0], dtype=jnp.float32)
    slopes, found = tilec.jax.call(cross_entropy, logits, labels, found, 0.0)
    return found, slopes


def _loss_gradients(slopes: Any, dlosses: Any) -> tuple[Any, None]:
    return (slopes * dlosses[:, None]).astype(slopes.dtype), None


losses.defvjp(_losses, _loss_gradients)


def xla_norm(x: Any, weight: Any) -> Any:
    """RMS norm by XLA."""
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt((wide * wide).mean(1, keepdims=True) + EPS)
    return (wide * scale * weight.astype(jnp.float32)).astype(x.dtype)


def xla_attention(implementation: str) -> Callable[..., Any]:
    """Causal attention by XLA, or by cuDNN; heads in front of rows."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        o = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=implementation)
        return o.swapaxes(1, 2)

    return attention


def xla_product(x: Any, weight: Any, activation: str | None = None) -> Any:
    """A linear layer by XLA."""
    y = x @ weight
    return y if activation is None else jax.nn.silu(y)


def xla_losses(logits: Any, labels: Any) -> Any:
    """Cross-entropy of rows by XLA."""
    logs = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.take_along_axis(logs, labels[:, None], 1)[:, 0]


OURS = {
    "attention": lambda q, k, v: tilec.jax.attention(q, k, v, causal=True),
    "norm": norm,
    "product": lambda x, w, activation=None: tilec.jax.matmul(x, w, activation=activation),
    "losses": losses,
}
XLAS = {
    "attention": xla_attention("xla"),
    "norm": xla_norm,
    "product": xla_product,
    "losses": xla_losses,
}
CUDNNS = {**XLAS, "attention": xla_attention("cudnn")}


def loss_of(operations: dict[str, Callable[..., Any]], heads: int) -> Callable[..., Any]:
    """The block with these operations: weights, tokens (batch, length) and labels to the loss."""
    normal, multiply = operations["norm"], operations["product"]

    def loss(w: dict[str, Any], tokens: Any, labels: Any) -> Any:
        batch, length = tokens.shape
        x = w["embedding"][tokens.reshape(-1)]
        qkv = multiply(normal(x, w["norm1"]), w["qkv"]).reshape(batch, length, 3, heads, -1)
        q, k, v = (qkv[:, :, n].swapaxes(1, 2) for n in range(3))
        o = operations["attention"](q, k, v).swapaxes(1, 2).reshape(x.shape)
        x = x + multiply(o, w["out"])
        x = x + multiply(multiply(normal(x, w["norm2"]), w["up"], "silu"), w["down"])
        logits = multiply(normal(x, w["norm3"]), w["head"])
        return operations["losses"](logits, labels.reshape(-1)).mean()

    return loss


def new_weights(width: int, vocabulary: int) -> dict[str, Any]:
    """Random ones, in f32."""
    rng = np.random.default_rng(0)
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width)}
    shapes |= {"down": (4 * width, width), "head": (width, vocabulary)}
    w = {name: rng.standard_normal(s) / math.sqrt(s[0]) for name, s in shapes.items()}
    w["embedding"] = rng.standard_normal((vocabulary, width))
    w |= {f"norm{n}": rng.uniform(0.5, 1.5, width) for n in (1, 2, 3)}
    return {name: jnp.asarray(value, jnp.bfloat16) for name, value in w.items()}


def apart(found: Any, expected: Any) -> float:
    """The largest of the arrays' errors, in the mean square, relative to their values."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    wide = [[np.asarray(x, np.float64) for x in pair] for pair in pairs]
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in wide)


def milliseconds(ways: dict[str, Any], arguments: tuple[Any, ...]) -> dict[str, float]:
    """Of a call of each, the medians of rounds in which they take turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.perf_counter()
            for _ in range(CALLS):
                result = way(*arguments)
            jax.block_until_ready(result)
            times[name].append((time.perf_counter() - begin) / CALLS * 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def compare(options: argparse.Namespace, with_gradients: bool) -> bool:
    """Whether ours is right; prints how far each is off, and what a call takes."""
    rng = np.random.default_rng(1)
    weights = new_weights(options.width, options.vocabulary)
    shape = (options.batch, options.length)
    tokens = jnp.asarray(rng.integers(options.vocabulary, size=shape), jnp.int32)
    arguments = weights, tokens, (3 * tokens + 1) % options.vocabulary
    made = {"tilec": OURS, "XLA": XLAS, "XLA, cuDNN": CUDNNS}
    if options.tiny:
        made.pop("XLA, cuDNN")
    gradients = jax.value_and_grad if with_gradients else lambda function: function
    ways = {n: jax.jit(gradients(loss_of(o, options.heads))) for n, o in made.items()}
    wide = {name: value.astype(jnp.float32) for name, value in weights.items()}
    with jax.default_matmul_precision("highest"):
        expected = jax.block_until_ready(ways["XLA"](wide, *arguments[1:]))
    off = {}
    for name, way in list(ways.items()):
        try:
            off[name] = apart(way(*arguments), expected)
        except RuntimeError as error:  # a JAX without cuDNN
            if name != "XLA, cuDNN":
                raise
            print(f"{name}: {str(error).splitlines()[0]}")
            del ways[name]
    times = {} if options.tiny else milliseconds(ways, arguments)
    for name, value in off.items():
        print(
            f"{'with gradients' if with_gradients else 'forward':14} {name:10} {value:.1e} from "
            f"f32{f', {times[name]:.3f} ms a call' if times else ''}",
            flush=True,
        )
    return off["tilec"] <= FURTHER * off["XLA"] + 1e-3


def main() -> int:
    """Forward, then with gradients."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="on the emulator")
    options = parser.parse_args()
    large = {"batch": 4, "length": 1024, "width": 1024, "heads": 8, "vocabulary": 8192}
    small = {"batch": 1, "length": 40, "width": 32, "heads": 2, "vocabulary": 48}
    vars(options).update(small if options.tiny else large)
    right = [compare(options, with_gradients) for with_gradients in (False, True)]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
