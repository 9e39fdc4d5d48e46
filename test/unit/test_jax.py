"""Kernels inside `jax.jit`, on JAX's CPU, where the emulator runs them."""

from __future__ import annotations

import re
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.runtime.errors import ArgumentError

jax = pytest.importorskip("jax")
jnp = jax.numpy
call = pytest.importorskip("tilec.jax").call
New = jax.ShapeDtypeStruct

ROOT = Path(__file__).resolve().parents[2]


@tilec.kernel(grid=lambda y, N: tl.cdiv(y.shape[0], N), device="emulator")
def scale(x: tl.array, y: tl.array, s: tl.f32, N: tl.const = 32):
    i = tl.program_id(0) * N
    tl.store(y, i, tl.load(x, i, N) * s)


@tilec.kernel(device="emulator")
def sums(x: tl.array, total: tl.array, y: tl.array, n, N: tl.const = 32):
    """y += x, and total = x + y."""
    for i in tl.range(tl.program_id(0) * N, n, tl.num_programs(0) * N):
        new = tl.load(x, i, N) + tl.load(y, i, N)
        tl.store(total, i, new)
        tl.store(y, i, new)


@tilec.kernel(grid=lambda c: (tl.cdiv(c.shape[0], 16), tl.cdiv(c.shape[1], 16)), device="emulator")
def matmul(a: tl.array, b: tl.array, c: tl.array):
    m, n = tl.program_id(0) * 16, tl.program_id(1) * 16
    acc = tl.zeros((16, 16), tl.f32)
    for k in tl.range(0, a.shape[1], 16):
        acc = tl.dot(tl.load(a, (m, k), (16, 16)), tl.load(b, (k, n), (16, 16)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=lambda xs: len(xs), device="emulator")
def doubled(xs: tl.arrays):
    x = xs[tl.program_id(0)]
    tl.store(x, 0, 2 * tl.load(x, 0, 32))


@tilec.kernel(grid=1, device="emulator")
def steps(parameters, gradients, rate: tl.f32, momentum=None):
    """The same step of several vectors."""
    for p, g in zip(parameters, gradients):  # noqa: B905 - the language's
        step = tl.load(g, 0, 32) * rate
        if momentum is not None:
            step += tl.load(momentum, 0, 32)
        tl.store(p, 0, tl.load(p, 0, 32) - step)


def rand(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_a_kernel_is_one_step_of_a_program():
    x = rand(75)
    twice = jax.jit(lambda x: call(scale, x + 1, New(x.shape, x.dtype), 2.5) - 1)
    np.testing.assert_allclose(twice(x), (x + 1) * 2.5 - 1, rtol=1e-6)
    np.testing.assert_array_equal(call(scale, x, s=0.5, y=New(x.shape, x.dtype)), x / 2)


def test_what_a_kernel_writes_are_its_results():
    x, y = rand(70), jnp.asarray(rand(71)[:70])
    before = np.array(y)
    update = jax.jit(lambda x, y: call(sums, x, New((70,), x.dtype), y, 70, grid=2))
    found = update(x, y)
    np.testing.assert_array_equal(found.total, x + before)
    np.testing.assert_array_equal(found.y, x + before)
    np.testing.assert_array_equal(y, before)
    assert found._fields == ("total", "y")


def test_groups_are_taken_apart():
    p, g, m = [rand(20), rand(30)], (rand(21)[:20], rand(31)[:30]), rand(32)
    step = jax.jit(lambda p, g, m: call(steps, p, g, 0.5, m))
    for momentum in (None, m):
        found = step(p, g, momentum)
        for new, old, slope in zip(found, p, g, strict=True):
            extra = 0 if momentum is None else m[: len(old)]
            np.testing.assert_allclose(new, old - (slope * np.float32(0.5) + extra), rtol=1e-6)
    assert found._fields == ("parameters_0", "parameters_1")


def test_bf16_is_multiplied():
    a, b = (jnp.asarray(rand(*s), jnp.bfloat16) for s in ((40, 24), (24, 20)))
    c = jax.jit(lambda a, b: call(matmul, a, b, New((40, 20), jnp.float32)))(a, b)
    want = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
    np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-5)


def test_constants_that_compare_equal_are_not_one():
    @tilec.kernel(grid=1, device="emulator")
    def halves(y: tl.array, S: tl.const):
        tl.store(y, 0, tl.full(4, S / 2, tl.f32))

    one, true = (call(halves, New((4,), jnp.float32), S)[0] for S in (0.0, -0.0))
    assert np.signbit(np.asarray([one, true])).tolist() == [False, True]


def test_vmap_launches_once_for_each_element():
    x, y = rand(3, 2, 33), rand(33)
    each = jax.jit(jax.vmap(jax.vmap(lambda x: call(scale, x, New(x.shape, x.dtype), 3.0))))
    np.testing.assert_array_equal(each(x), x * 3)
    across = jax.vmap(lambda x: call(scale, x, New(x.shape, x.dtype), 3.0), in_axes=1, out_axes=1)
    np.testing.assert_array_equal(across(x[0].T), x[0].T * 3)
    added = jax.vmap(lambda x: call(sums, x, New((33,), x.dtype), y, 33, grid=1).y)(x[0])
    np.testing.assert_array_equal(added, x[0] + y)
    outer = jax.vmap(
        jax.vmap(lambda a, b: call(sums, a, New((33,), a.dtype), b, 33, grid=1).total, (None, 0)),
        (0, None),
    )
    np.testing.assert_array_equal(outer(x[:, 0], x[0]), x[:, None, 0] + x[None, 0])


def test_each_launch_of_a_batch_takes_its_element():
    from tilec.jax.description import ArrayArgument, Description

    all_of_it = ArrayArgument("a", (3,), "f32", True, (True, False, True))
    fixed = ArrayArgument("b", (3,), "f32", True, (False, False, False))
    described = Description(scale, (all_of_it, fixed), (), (), None, (2, 2, 3))
    assert described.offsets(all_of_it) == [0, 12, 24, 0, 12, 24, 36, 48, 60, 36, 48, 60]
    assert described.offsets(fixed) == [0] * 12
    assert all_of_it.view(("cuda", 0)).pointer % 16 == 4
    assert fixed.view(("cuda", 0)).pointer % 16 == 0


def test_a_gradient_is_given_or_refused():
    x = rand(40)
    with pytest.raises(NotImplementedError, match=r"scale has no derivative: .*custom_vjp"):
        jax.grad(lambda x: call(scale, x, New(x.shape, x.dtype), 2.0).sum())(x)
    a, b = rand(20, 18), rand(18, 22)
    found = _of_the_page()["product"]
    da, db = jax.jit(jax.grad(lambda a, b: found(a, b).sum(), (0, 1)))(a, b)
    np.testing.assert_allclose(da, np.broadcast_to(b.sum(1), a.shape), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(
        db, np.broadcast_to(a.sum(0)[:, None], b.shape), rtol=1e-2, atol=1e-2
    )


def _of_the_page() -> dict[str, Any]:
    """What the page's programs make."""
    import functools

    names: dict[str, Any] = {"jax": jax, "tilec": tilec, "matmul": matmul, "functools": functools}
    page = (ROOT / "tilec/jax/README.md").read_text()
    for text in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        exec(text, names)
    return names


def test_the_pages_programs_run():
    names = _of_the_page()
    x, w, bias = rand(32, 18), rand(18, 16), rand(16)
    q = jnp.asarray(rand(1, 1, 17, 16), jnp.float16)
    dx, _, dq = names["slopes"](x, w.T, bias, q, q, q)
    assert (dx.shape, dq.shape) == (x.shape, q.shape)
    assert np.isfinite(np.asarray(dq)).all()
    with jax.default_matmul_precision("highest"):
        want = jax.nn.gelu(x @ w + bias)
    np.testing.assert_allclose(names["layer"](x, w, bias), want, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(names["sharded"](x, w), x @ w, rtol=1e-2, atol=2e-2)


CALLS = [f"<call of {name}>" for name in ("call", "scale", "__call__")]
"""What tracebacks show of ours."""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: call(scale, New(x.shape, x.dtype), x, 1.0), "'x': scale does not write it"),
        (lambda x: call(scale, x, 3, 1.0), "'y': expected an array of JAX, or a jax.ShapeDtype"),
        (lambda x: call(scale, x, New(x.shape, x.dtype), x[0]), "'s': a number that jax.jit trac"),
        (lambda x: call(scale, x, New(x.shape, x.dtype)), "argument: 's'(?!\nhelp)"),
        (lambda x: call(scale, x), "missing a required argument: 'y'\nhelp: for a new array that"),
        (lambda x: call(scale, x, New(x.shape, x.dtype), 1.0, [3]), "'N': expected a constant"),
        (lambda x: call(sums, x, New(x.shape, x.dtype), x, 9), "sums has no grid rule"),
        (lambda x: scale(x, x, 1.0), r"inside jax\.jit, kernels are called by tilec\.jax\.call"),
        (lambda x: call(doubled, [x, x]), "'xs': tilec.jax.call takes no lists of any length"),
        (lambda x: call(abs, x), "expected a kernel, found builtin_function"),
        (lambda x: call(scale, x, New(x.shape, "int64"), 1.0), "'y': JAX has no int64 now: give i"),
        (lambda x: call(scale, x, New(x.shape, "complex64"), 1.0), "dtype complex64 is not supp"),
    ],
)
def test_mistakes_are_found_where_jax_traces(wrong: Any, message: str):
    with pytest.raises(ArgumentError, match=message) as caught:
        jax.jit(wrong)(rand(40))
    # JAX leaves its own frames out.
    files = {frame.f_code.co_filename for frame, _ in walk_tb(caught.value.__traceback__)}
    assert {file for file in files if "site-packages" not in file} <= {__file__, *CALLS}


def test_operations_for_arrays_say_what_traces_take():
    with pytest.raises(ArgumentError, match=r"are tilec\.jax\.matmul and tilec\.jax\."):
        jax.jit(tilec.ops.matmul)(rand(4, 4), rand(4, 4))


def test_the_structures_are_those_of_the_installed_jaxlib():
    from tilec.jax.xla_ffi import interface

    found = interface().places
    assert found["XLA_FFI_Error_Create"] == 48
    assert {"XLA_FFI_Stream_Get", "XLA_FFI_DeviceOrdinal_Get"} <= found.keys()
