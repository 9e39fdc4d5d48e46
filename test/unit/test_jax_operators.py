"""`tilec.jax.matmul` and `attention` in `jax.jit`, on JAX's CPU, where the emulator runs them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tilec.runtime.errors import ArgumentError

jax = pytest.importorskip("jax")
jnp = jax.numpy
tj = pytest.importorskip("tilec.jax")


@pytest.fixture(autouse=True)
def _on_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")


def rand(*shape: int, dtype: Any = np.float32) -> Any:
    return jnp.asarray(np.random.default_rng(sum(shape)).standard_normal(shape), dtype)


def close(found: Any, expected: Any, limit: float) -> None:
    """The largest error, relative to the largest value."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    found, expected = (np.asarray(x, np.float64) for x in (found, expected))
    assert np.abs(found - expected).max() <= limit * np.abs(expected).max()


def swapped(turned: str, *arrays: Any) -> list[Any]:
    """a and b, of which those named are transposed."""
    pairs = zip("ab", arrays, strict=True)
    return [jnp.swapaxes(x, -1, -2) if name in turned else x for name, x in pairs]


@pytest.mark.parametrize(
    ("turned", "lead"),
    [
        ("", ((), ())),
        ("a", ((), ())),
        ("b", ((), ())),
        ("ab", ((), ())),
        ("a", ((2,), ())),
        ("b", ((2, 1), (3,))),
    ],
)
def test_products_and_their_gradients(turned: str, lead: Any) -> None:
    """Against jnp's, through an epilogue; a, b given as they are or as their transposes."""
    given = swapped(turned, rand(*lead[0], 9, 24), rand(*lead[1], 24, 7))
    bias, residual = rand(7), rand(9, 1)

    def ours(a: Any, b: Any, bias: Any, residual: Any) -> Any:
        more = {"bias": bias, "residual": residual, "transposed": tuple(turned)}
        return tj.matmul(a, b, activation="silu", scale=0.5, **more)

    def theirs(a: Any, b: Any, bias: Any, residual: Any) -> Any:
        a, b = swapped(turned, a, b)
        return jax.nn.silu(a @ b * 0.5 + bias) + residual

    arguments = (*given, bias, residual)
    close(jax.jit(ours)(*arguments), theirs(*arguments), 1e-5)

    def loss(function: Any, *arguments: Any) -> Any:
        return (function(*arguments) ** 2).sum()

    found = jax.jit(jax.grad(partial(loss, ours), (0, 1, 2, 3)))(*arguments)
    expected = jax.grad(partial(loss, theirs), (0, 1, 2, 3))(*arguments)
    for one, two in zip(found, expected, strict=True):
        close(one, two, 1e-4)


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh"])
def test_activations(activation: str | None) -> None:
    x, w = rand(8, 16), rand(16, 8)
    named = {
        None: lambda z: z,
        "relu": jax.nn.relu,
        "gelu": partial(jax.nn.gelu, approximate=False),
        "gelu_tanh": jax.nn.gelu,
    }
    found, found_gradient = jax.vjp(lambda x: tj.matmul(x, w, activation=activation), x)
    expected, gradient = jax.vjp(lambda x: named[activation](x @ w), x)
    close(found, expected, 1e-4)
    close(found_gradient(expected)[0], gradient(expected)[0], 1e-4)


def test_dtypes_of_results_and_what_is_empty() -> None:
    a, b = rand(16, 32, dtype=jnp.bfloat16), rand(32, 16, dtype=jnp.bfloat16)
    wide = a.astype(jnp.float32) @ b.astype(jnp.float32)
    close(tj.matmul(a, b, out_dtype=jnp.float32), wide, 1e-5)
    close(tj.matmul(a, b), wide.astype(jnp.bfloat16), 1e-2)
    assert tj.matmul(rand(0, 32), rand(32, 16)).shape == (0, 16)


def test_a_batch_by_vmap() -> None:
    x, w = rand(3, 8, 16), rand(16, 24)
    slope = jax.grad(lambda x, w: tj.matmul(x, w, transposed="b").sum())
    found = jax.jit(jax.vmap(slope, (0, None)))(x, w.T)
    close(found, jnp.broadcast_to(w.sum(1), (3, 8, 16)), 1e-5)


def reference(q: Any, k: Any, v: Any, causal: bool, window: int | None, scale: float | None) -> Any:
    """Attention in f32, by JAX."""
    q, k, v = (x.astype(jnp.float32) for x in (q, k, v))
    k, v = (jnp.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ jnp.swapaxes(k, 2, 3) * (scale or q.shape[3] ** -0.5)
    i, j = jnp.arange(q.shape[2])[:, None], jnp.arange(k.shape[2])
    seen = (j <= i) if causal else jnp.ones_like(i >= j)
    seen = seen & (j > i - window) if window else seen
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1) @ v


@pytest.mark.parametrize(("causal", "window", "scale"), [(False, None, None), (True, 9, 0.3)])
def test_attention_and_its_gradients(causal: bool, window: int | None, scale: float | None) -> None:
    q, k, v = (rand(1, h, 37, d, dtype=jnp.float16) for h, d in ((2, 32), (1, 32), (1, 16)))
    weight = rand(1, 2, 37, 16)

    def loss(function: Any, *arrays: Any) -> Any:
        return (function(*arrays).astype(jnp.float32) * weight).sum()

    ours = partial(tj.attention, causal=causal, window=window, scale=scale)

    def theirs(*arrays: Any) -> Any:
        return reference(*arrays, causal, window, scale)

    close(jax.jit(ours)(q, k, v), theirs(q, k, v).astype(jnp.float16), 2e-3)
    found = jax.jit(jax.grad(partial(loss, ours), (0, 1, 2)))(q, k, v)
    expected = jax.grad(partial(loss, theirs), (0, 1, 2))(q, k, v)
    for one, two in zip(found, expected, strict=True):
        close(one, two, 1e-2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda a: tj.matmul(a, a), "argument 'b': expected 8 rows"),
        (lambda a: tj.matmul(a, a, transposed="c"), "argument 'transposed'"),
        (lambda a: tj.matmul(a, a[0], transposed="b"), "'b' has no two dimensions"),
        (lambda a: tj.matmul(a, a.T, scale=a), "argument 'scale': expected a number"),
        (lambda a: tj.matmul(a, a.T, activation="tanh"), "argument 'activation'"),
        (lambda a: jax.grad(lambda b: tj.matmul(a, b).sum())(a[0]), "a dimension of size 1"),
        (lambda a: tj.attention(*[a[None, None]] * 3), "argument 'q': expected dtype f16 or bf16"),
    ],
)
def test_mistakes(wrong: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        wrong(rand(6, 8))
