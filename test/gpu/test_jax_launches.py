"""Kernels inside `jax.jit` on a real GPU; runs without pytest, too: python FILE.

Results are compared with float64. Alone, it prints what calls cost beside XLA's own kernels.
"""

from __future__ import annotations

import os
import sys
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_marks import needs_gpu  # noqa: E402
from torch_checks import run_tests  # noqa: E402

import tilec  # noqa: E402
import tilec.language as tl  # noqa: E402
from tilec.examples.matmul import matmul  # noqa: E402

pytestmark = needs_gpu()

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.4")
try:
    import jax
    import jax.numpy as jnp

    import tilec.jax
except ImportError:
    jax: Any = None
    jnp: Any = None

RANDOM = np.random.default_rng()


@tilec.kernel(grid=lambda y, N: tl.cdiv(y.shape[0], N))
def scale(x, y, s: tl.f32, N: tl.const = 1024):
    i = tl.program_id(0) * N
    tl.store(y, i, tl.load(x, i, N) * s)


@tilec.kernel(grid=lambda y, N: tl.cdiv(y.shape[0], N))
def add_to(x, y, N: tl.const = 1024):
    i = tl.program_id(0) * N
    tl.store(y, i, tl.load(x, i, N) + tl.load(y, i, N))


def needs_jax() -> None:
    """Skips where there is no JAX that sees the GPU."""
    if jax is None or jax.default_backend() != "gpu":
        raise unittest.SkipTest("needs JAX with CUDA")


def product(a: Any, b: Any, dtype: Any = None) -> Any:
    """a @ b by a kernel."""
    c = jax.ShapeDtypeStruct((a.shape[0], b.shape[1]), dtype or a.dtype)
    return tilec.jax.call(matmul, a, b, c=c)


def scaled(x: Any, s: float = 2.0) -> Any:
    """x * s by a kernel."""
    return tilec.jax.call(scale, x, jax.ShapeDtypeStruct(x.shape, x.dtype), s)


def random(*shape: int) -> np.ndarray:
    """Random f32 values."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def matrices(m: int, n: int, k: int) -> tuple[Any, Any, np.ndarray]:
    """Random bf16 matrices m x k and k x n, and their product in f64."""
    a, b = (jnp.asarray(random(*shape), jnp.bfloat16) for shape in ((m, k), (k, n)))
    return a, b, np.asarray(a, np.float64) @ np.asarray(b, np.float64)


def check(found: Any, expected: np.ndarray, tolerance: float) -> None:
    """The largest error, relative to the largest value; NaN is wrong."""
    found = np.asarray(found, np.float64)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    error = abs(found - expected).max() / abs(expected).max()
    assert error <= tolerance, error


def test_a_kernel_among_operators_of_xla() -> None:
    needs_jax()
    for n in (1, 300, 100_003):
        x = random(n)
        check(jax.jit(lambda x: scaled(x + 1) * 2)(x), (x.astype(np.float64) + 1) * 4, 1e-6)
        check(scaled(jnp.asarray(x)), x.astype(np.float64) * 2, 0)


def test_products_with_tensor_maps_and_without() -> None:
    needs_jax()
    for m, n, k in ((304, 104, 208), (1000, 888, 776), (2048, 2048, 2048), (333, 77, 201)):
        a, b, expected = matrices(m, n, k)
        compiled = jax.jit(lambda a, b: product(a, b, jnp.float32))
        for _ in range(2):
            check(compiled(a, b), expected, 2e-5)
        chain = jax.jit(lambda a, b: scaled((product(a, b, jnp.float32) + 1).reshape(-1), 0.5))
        check(chain(a, b), ((expected + 1) / 2).reshape(-1), 2e-5)


def test_donated_memory_is_worked_in() -> None:
    needs_jax()
    x, y = random(5001), random(5001)
    expected = x.astype(np.float64) + y
    given = jnp.asarray(y)
    place = given.unsafe_buffer_pointer()
    found = jax.jit(lambda x, y: tilec.jax.call(add_to, x, y), donate_argnums=1)(x, given)
    assert given.is_deleted()
    assert found.unsafe_buffer_pointer() == place
    check(found, expected, 1e-6)
    kept = jnp.asarray(y)
    check(jax.jit(lambda x, y: tilec.jax.call(add_to, x, y))(x, kept), expected, 1e-6)
    check(kept, y.astype(np.float64), 0)


def test_batches_begin_at_their_elements() -> None:
    needs_jax()
    a, b = (jnp.asarray(random(*s), jnp.bfloat16) for s in ((5, 96, 200), (200, 72)))
    each = jax.vmap(lambda a, b: product(a, b, jnp.float32), (0, None))
    check(jax.jit(each)(a, b), np.asarray(a, np.float64) @ np.asarray(b, np.float64), 2e-5)
    x, y = random(7, 3, 301), random(301)
    check(jax.jit(jax.vmap(jax.vmap(scaled)))(x), x.astype(np.float64) * 2, 0)
    update = jax.vmap(lambda x: tilec.jax.call(add_to, x, jnp.asarray(y)))
    check(jax.jit(update)(x[0]), x[0].astype(np.float64) + y, 1e-6)


def test_gradients_by_a_kernel() -> None:
    needs_jax()

    @jax.custom_vjp
    def multiply(a: Any, b: Any) -> Any:
        return product(a, b)

    def backward(saved: Any, dc: Any) -> Any:
        a, b = saved
        return product(dc, b.T), product(a.T, dc)

    multiply.defvjp(lambda a, b: (multiply(a, b), (a, b)), backward)
    a, b, _ = matrices(256, 128, 512)
    by_a, by_b = jax.jit(jax.grad(lambda a, b: multiply(a, b).sum(), (0, 1)))(a, b)
    wide_a, wide_b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    check(by_a, np.broadcast_to(wide_b.sum(1), a.shape), 1e-2)
    check(by_b, np.broadcast_to(wide_a.sum(0)[:, None], b.shape), 1e-2)


def test_launches_in_a_loop_among_kernels_of_xla() -> None:
    needs_jax()
    x = random(70_001)

    def step(_: Any, x: Any) -> Any:
        return scaled(jnp.sin(x) + x, 0.5) + jnp.cos(x)

    expected = x.astype(np.float64)
    for _ in range(50):
        expected = (np.sin(expected) + expected) / 2 + np.cos(expected)
    check(jax.jit(lambda x: jax.lax.fori_loop(0, 50, step, x))(x), expected, 1e-4)


def microseconds(call: Callable[..., Any], *arguments: Any, count: int = 200) -> float:
    """A call, in the best of five rounds."""
    for _ in range(5):
        result = call(*arguments)
    jax.block_until_ready(result)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            result = call(*arguments)
        jax.block_until_ready(result)
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / count


def chained(count: int, function: Callable[[Any], Any]) -> Any:
    """A compiled function that calls `function` on its own result `count` times."""

    def chain(x: Any) -> Any:
        for _ in range(count):
            x = function(x)
        return x

    return jax.jit(chain)


def report_costs() -> None:
    """Prints what launches and products take, beside XLA's own."""
    x = jnp.asarray(random(4096))
    kept_apart = lambda x: jnp.flip(jax.lax.optimization_barrier(x))  # noqa: E731
    for name, function in (("tilec", scaled), ("XLA", kept_apart)):
        one, many = (microseconds(chained(count, function), x) for count in (1, 41))
        print(f"{name}: a call of jit {one:.1f} us, 40 launches more {(many - one) / 40:.2f} each")
    for size in (512, 2048, 4096):
        a, b, _ = matrices(size, size, size)
        functions = [jax.jit(product), jax.jit(lambda a, b: a @ b)]
        rounds = [[microseconds(f, a, b, count=60) for f in functions] for _ in range(3)]
        ours, theirs = map(min, zip(*rounds, strict=True))
        print(f"bf16 {size} cubed in jit: {ours:.1f} us, XLA {theirs:.1f}: {theirs / ours:.3f}")


if __name__ == "__main__":
    failed = run_tests(globals())
    if jax is not None and jax.default_backend() == "gpu":
        report_costs()
    sys.exit(failed)
