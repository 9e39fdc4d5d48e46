"""Kernels in `jax.shard_map`, over two GPUs or over two parts of a CPU: python FILE.

Each part of an array has its own launch. Gradients of arrays that are the same on all devices are
sums over them, which JAX adds.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import jax
import jax.numpy as jnp
import numpy as np

import tilec
import tilec.jax
import tilec.language as tl

jax.config.update("jax_default_matmul_precision", "highest")
MESH = jax.sharding.Mesh(jax.devices()[:2], ("rows",))
ROWS, COLUMNS, WHOLE = jax.P("rows"), jax.P(None, "rows"), jax.P()
RANDOM = np.random.default_rng(0)


@tilec.kernel(grid=lambda y, N: tl.cdiv(y.shape[0], N))
def add_to(x, y, N: tl.const = 32):
    i = tl.program_id(0) * N
    tl.store(y, i, tl.load(x, i, N) + tl.load(y, i, N))


def random(*shape: int) -> Any:
    """Random f32 values."""
    return jnp.asarray(RANDOM.standard_normal(shape), jnp.float32)


def sharded(inputs: Any, outputs: Any) -> Callable[[Any], Any]:
    """`jit` of `shard_map` over two devices."""
    return lambda function: jax.jit(
        functools.partial(jax.shard_map, mesh=MESH, in_specs=inputs, out_specs=outputs)(function)
    )


def check(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    """The largest error, relative to the largest value; NaN is wrong."""
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        a, b = (np.asarray(x, np.float64) for x in (ours, theirs))
        error = abs(a - b).max() / abs(b).max()
        assert a.shape == b.shape, (a.shape, b.shape)
        assert error <= tolerance, error


def compare(ours: Any, theirs: Any, *arrays: Any, tolerance: float = 2e-5) -> None:
    """Results and gradients by all arrays are those of the function without parts."""
    slopes = random(*theirs(*arrays).shape)
    numbers = tuple(range(len(arrays)))
    check(ours(*arrays), theirs(*arrays), tolerance)
    losses = [lambda *x, f=f: (f(*x).astype(jnp.float32) * slopes).sum() for f in (ours, theirs)]
    check(*(jax.jit(jax.grad(loss, numbers))(*arrays) for loss in losses), tolerance)


def check_products() -> None:
    """Rows on each device beside weights on all, and k on each, whose sums are added up."""
    x, w, bias = random(46, 38), random(38, 22), random(22)

    @sharded((ROWS, WHOLE, WHOLE), ROWS)
    def layer(x: Any, w: Any, bias: Any) -> Any:
        return tilec.jax.matmul(x, w, bias=bias, activation="silu")

    @sharded((COLUMNS, ROWS), WHOLE)
    def summed(x: Any, w: Any) -> Any:
        return jax.lax.psum(tilec.jax.matmul(x, w), "rows")

    compare(layer, lambda x, w, bias: jax.nn.silu(x @ w + bias), x, w, bias)
    compare(summed, lambda x, w: x @ w, x, w)


def check_attention() -> None:
    """A sequence on each device."""
    q, k, v = (random(2, 2, 19, 16).astype(jnp.float16) for _ in range(3))

    @sharded((ROWS, ROWS, ROWS), ROWS)
    def attend(q: Any, k: Any, v: Any) -> Any:
        return tilec.jax.attention(q, k, v, causal=True)

    def plain(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.astype(jnp.float32).swapaxes(1, 2) for x in (q, k, v))
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).swapaxes(1, 2)

    compare(attend, plain, q, k, v, tolerance=5e-3)


def check_launches() -> None:
    """A launch that changes its array, of which one operand is the same on all devices."""
    x, y = random(35), random(70)
    update = sharded((WHOLE, ROWS), ROWS)(lambda x, y: tilec.jax.call(add_to, x, y))
    check(update(x, y), jnp.concatenate([x, x]) + y, 0)
    said = ""
    try:
        sharded((WHOLE, ROWS), WHOLE)(lambda x, y: tilec.jax.call(add_to, x, y))(x, y)
    except ValueError as error:
        said = str(error)
    assert "rows" in said, "results that differ are taken for one"


def main() -> int:
    """Runs all of them."""
    if len(jax.devices()) < 2:
        print("needs two devices")
        return 1
    for each in (check_products, check_attention, check_launches):
        each()
        print(f"right: {each.__doc__.splitlines()[0]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
