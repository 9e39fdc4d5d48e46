"""The transformer block of `transformer_block.py` in `jax.jit`, by tilec's kernels and by XLA's.

    python test/bench/jax_block.py           # on a GPU: how far results are off, and times
    python test/bench/jax_block.py --tiny    # on the emulator: that it is right

Products with their epilogues, attention, RMS norm and the loss are tilec's, the rest is XLA's. The
loss, and the gradients by all weights, are compared with XLA's in f32 on the CPU before anything is
timed. A line says what each program took to compile; XLA tries out many ways for each of its own
products on the GPU, which may take minutes: those that are not ready in time are left out.
"""

from __future__ import annotations

import argparse
import faulthandler
import math
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
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
SECONDS = 90.0
"""For all of it, on a machine of 16 cores."""
GRACE = 30.0
"""Seconds behind these, after which a call that never ends is shown and given up."""
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


def told(since: float, text: str) -> None:
    """Prints a line as soon as it is known, with the seconds since the beginning."""
    print(f"{time.monotonic() - since:6.1f} s  {text}", flush=True)


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


def compiled(way: Any, arguments: tuple[Any, ...], name: str, since: float) -> Future[Any]:
    """A program that is traced here, and compiled by a thread, of which others are independent."""
    begin = time.monotonic()
    lowered = way.lower(*arguments)
    traced = time.monotonic() - begin
    found: Future[Any] = Future()

    def work() -> None:
        begin = time.monotonic()
        try:
            result = lowered.compile()
        except Exception as error:  # what it is, says `result()`
            found.set_exception(error)
            return
        took = time.monotonic() - begin
        told(since, f"{name}: traced in {traced:.1f} s, compiled by XLA in {took:.1f} s")
        found.set_result(result)

    threading.Thread(target=work, daemon=True).start()
    return found


class Comparison:
    """Ours and XLA's programs of one kind, forward or with gradients, on the same arrays."""

    def __init__(self, options: argparse.Namespace, with_gradients: bool, since: float) -> None:
        self.kind = "with gradients" if with_gradients else "forward"
        self.options, self.since = options, since
        self.differentiated = jax.value_and_grad if with_gradients else lambda function: function
        rng = np.random.default_rng(1)
        shape = (options.batch, options.length)
        tokens = jnp.asarray(rng.integers(options.vocabulary, size=shape), jnp.int32)
        weights = new_weights(options.width, options.vocabulary)
        self.arguments = weights, tokens, (3 * tokens + 1) % options.vocabulary
        self.programs: dict[str, Future[Any]] = {}

    def program(self, operations: dict[str, Callable[..., Any]]) -> Any:
        """The program with these operations."""
        return jax.jit(self.differentiated(loss_of(operations, self.options.heads)))

    def compile(self, name: str, operations: dict[str, Callable[..., Any]]) -> None:
        """Begins to compile one."""
        label = f"{self.kind}, {name}"
        way = self.program(operations)
        self.programs[name] = compiled(way, self.arguments, label, self.since)

    def expected(self) -> Any:
        """What XLA computes in f32 on the CPU, where it tries nothing out."""
        cpu = jax.devices("cpu")[0]
        weights, *rest = jax.device_put(self.arguments, cpu)
        wide = {name: value.astype(jnp.float32) for name, value in weights.items()}
        found = jax.block_until_ready(self.program(XLAS)(wide, *rest))
        told(self.since, f"{self.kind}, f32 on the CPU: done")
        return found

    @property
    def is_compiling(self) -> bool:
        """Whether a thread still takes time from others."""
        return not all(program.done() for program in self.programs.values())

    def ready(self, name: str) -> Any:
        """The program, or None where it fails or is not ready in time, which is said."""
        left = self.options.seconds - (time.monotonic() - self.since)
        try:
            return self.programs[name].result(max(0.0, left))
        except NotInTime:
            told(self.since, f"{self.kind}, {name}: not compiled in time")
        except Exception as error:
            if name == "tilec":
                raise
            told(self.since, f"{self.kind}, {name}: {str(error).splitlines()[0]}")
        return None

    def is_right(self, ways: dict[str, Any], expected: Any) -> bool:
        """Whether ours is; prints how far each is off, and what a call takes."""
        off = {}
        for name, way in ways.items():
            off[name] = apart(way(*self.arguments), expected)
            told(self.since, f"{self.kind}, {name}: {off[name]:.1e} from f32")
        right = "XLA" in off and off.get("tilec", math.inf) <= FURTHER * off["XLA"] + 1e-3
        if right and not self.options.tiny:
            for name, took in milliseconds(ways, self.arguments).items():
                told(self.since, f"{self.kind}, {name}: {took:.3f} ms a call")
        return right


def main() -> int:
    """Ours first, forward and with gradients; then XLA's, which compile side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="on the emulator")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    large = {"batch": 4, "length": 1024, "width": 1024, "heads": 8, "vocabulary": 8192}
    small = {"batch": 1, "length": 40, "width": 32, "heads": 2, "vocabulary": 48}
    vars(options).update(small if options.tiny else large)
    since = time.monotonic()
    faulthandler.dump_traceback_later(options.seconds + GRACE, exit=True)
    kinds = [Comparison(options, with_gradients, since) for with_gradients in (False, True)]
    for kind in kinds:
        kind.compile("tilec", OURS)
        kind.ready("tilec")
    peers = {"XLA": XLAS} if options.tiny else {"XLA": XLAS, "XLA, cuDNN": CUDNNS}
    for name, operations in peers.items():
        for kind in kinds:
            kind.compile(name, operations)
    expected = [kind.expected() for kind in kinds]
    # Nothing is timed beside a compilation that anything can wait for.
    ready = [{name: kind.ready(name) for name in kind.programs} for kind in kinds]
    if any(kind.is_compiling for kind in kinds):
        told(since, "programs still compile beside what follows")
    right = []
    for kind, ways, wide in zip(kinds, ready, expected, strict=True):
        there = {name: way for name, way in ways.items() if way is not None}
        right.append(kind.is_right(there, wide))
    print("right" if all(right) else "WRONG, or not judged", flush=True)
    return 0 if all(right) else 1


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # programs that still compile are not waited for
