"""Row kernels with several rows a program, at once or in turn, to see when that pays."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def softmax_block(x: tl.array, y: tl.array, R: tl.const = 4, N: tl.const = 1024):
    """softmax along rows of at most N elements, R rows per program."""
    row = tl.program_id(0) * R
    v = tl.load(x, (row, 0), (R, N), padding=-tl.inf).to(tl.f32)
    e = tl.exp(v - tl.max(v, 1, keepdims=True))
    tl.store(y, (row, 0), (e / tl.sum(e, 1, keepdims=True)).to(y.dtype))


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def layer_norm_block(
    x: tl.array,
    weight: tl.array,
    bias: tl.array,
    y: tl.array,
    eps: tl.f32,
    R: tl.const = 4,
    N: tl.const = 1024,
):
    """Layer norm of rows of at most N elements, R rows per program."""
    row = tl.program_id(0) * R
    columns = x.shape[1]
    v = tl.load(x, (row, 0), (R, N)).to(tl.f32)
    mean = tl.sum(v, 1, keepdims=True) / columns
    centred = tl.where(tl.arange(N)[None, :] < columns, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 1, keepdims=True) / columns + eps)
    w, b = tl.load(weight, 0, N).to(tl.f32), tl.load(bias, 0, N).to(tl.f32)
    tl.store(y, (row, 0), (centred * scale * w[None, :] + b[None, :]).to(y.dtype))


@tilec.kernel(grid=lambda P: P)
def softmax_persistent(x: tl.array, y: tl.array, P: tl.const = 1056, N: tl.const = 1024):
    """softmax along rows of at most N elements by P programs, a row at a time."""
    for row in tl.range(tl.program_id(0), x.shape[0], P):
        v = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
        e = tl.exp(v - tl.max(v))
        tl.store(y, (row, 0), (e / tl.sum(e)).to(y.dtype))


@tilec.kernel(grid=lambda P: P)
def layer_norm_persistent(
    x: tl.array,
    weight: tl.array,
    bias: tl.array,
    y: tl.array,
    eps: tl.f32,
    P: tl.const = 1056,
    N: tl.const = 1024,
):
    """Layer norm of rows of at most N elements by P programs, which load the weights once."""
    columns = x.shape[1]
    w, b = tl.load(weight, 0, N).to(tl.f32), tl.load(bias, 0, N).to(tl.f32)
    for row in tl.range(tl.program_id(0), x.shape[0], P):
        v = tl.load(x, (row, 0), N).to(tl.f32)
        mean = tl.sum(v) / columns
        centred = tl.where(tl.arange(N) < columns, v - mean, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred) / columns + eps)
        tl.store(y, (row, 0), (centred * scale * w + b).to(y.dtype))
