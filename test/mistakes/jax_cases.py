"""Mistakes of users of JAX, inside `jax.jit` and outside; on the CPU, by the emulator."""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

import jax
import jax.numpy as jnp
from cases import case

import tilec
import tilec.jax
import tilec.language as tl


@tilec.kernel(grid=lambda y, N: tl.cdiv(y.shape[0], N))
def copy(x: tl.array, y: tl.array, N: tl.const = 64):
    at = tl.program_id(0) * N
    tl.store(y, at, tl.load(x, at, N))


@tilec.kernel(grid=1)
def fill(y: tl.array, value: tl.f32):
    tl.store(y, 0, tl.full(64, value, tl.f32))


v = jnp.ones(100)
like = jax.ShapeDtypeStruct((100,), jnp.float32)


@case
def launch_in_jit():
    jax.jit(lambda x: copy(x, jnp.zeros_like(x)))(v)


@case
def result_as_a_shape():
    tilec.jax.call(copy, v, (100,))


@case
def no_result():
    tilec.jax.call(copy, v)


@case
def result_of_another_name():
    tilec.jax.call(copy, v, out=like)


@case
def kernel_without_a_derivative():
    jax.grad(lambda x: tilec.jax.call(copy, x, like).sum())(v)


@case
def constant_that_is_traced():
    jax.jit(lambda x, n: tilec.jax.call(copy, x, like, n))(v, 64)


@case
def number_that_is_traced():
    jax.jit(lambda s: tilec.jax.call(fill, like, s))(2.0)


@case
def function_for_a_kernel():
    tilec.jax.call(lambda x: x + 1, v)


@case
def products_in_two_dtypes():
    tilec.jax.matmul(jnp.ones((3, 4), jnp.bfloat16), jnp.ones((4, 3)))


@case
def attention_as_jax_says_it():
    q = jnp.ones((1, 2, 16, 32), jnp.float16)
    tilec.jax.attention(q, q, q, is_causal=True)


@case
def attention_with_a_bias():
    q = jnp.ones((1, 2, 16, 32), jnp.float16)
    tilec.jax.attention(q, q, q, bias=q)
