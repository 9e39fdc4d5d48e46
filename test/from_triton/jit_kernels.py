"""Kernels in Triton's language, each with a launch on random data and what it should give.

For `test_takeover.py` on the emulator and `takeover_gpu.py` on a GPU. Imports Triton and torch.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + tl.load(y_ptr + at, mask=inside), mask=inside)


@triton.jit
def softmax(x_ptr, out_ptr, stride, rows, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride + at, mask=at < columns, other=-float("inf"))
        raised = tl.exp(x - tl.max(x, 0))
        tl.store(out_ptr + row * stride + at, raised / tl.sum(raised, 0), mask=at < columns)


@triton.jit
def leaky(x, slope):
    return tl.where(x >= 0, x, slope * x)


CONFIGS = [
    triton.Config({"BM": 128, "BN": 128, "BK": 64, "GROUP": 8}, num_warps=8, num_stages=3),
    triton.Config({"BM": 64, "BN": 128, "BK": 32, "GROUP": 4}, num_warps=4, num_stages=4),
]


@triton.autotune(configs=CONFIGS, key=["m", "n", "k"])
@triton.heuristics({"EVEN": lambda given: given["k"] % given["BK"] == 0})
@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    EVEN: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    rows = min(tiles_m - first, GROUP)
    pid_m = first + (pid % (GROUP * tiles_n)) % rows
    pid_n = (pid % (GROUP * tiles_n)) // rows
    at_m = (pid_m * BM + tl.arange(0, BM)) % m
    at_n = (pid_n * BN + tl.arange(0, BN)) % n
    at_k = tl.arange(0, BK)
    a = a_ptr + at_m[:, None] * stride_am + at_k[None, :] * stride_ak
    b = b_ptr + at_k[:, None] * stride_bk + at_n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        if EVEN:
            acc = tl.dot(tl.load(a), tl.load(b), acc)
        else:
            left = k - step * BK
            x = tl.load(a, mask=at_k[None, :] < left, other=0.0)
            acc = tl.dot(x, tl.load(b, mask=at_k[:, None] < left, other=0.0), acc)
        a += BK * stride_ak
        b += BK * stride_bk
    if ACTIVATION is not None:
        acc = ACTIVATION(acc, 0.01)
    out_m, out_n = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    out = c_ptr + stride_cm * out_m[:, None] + stride_cn * out_n[None, :]
    tl.store(out, acc.to(c_ptr.dtype.element_ty), (out_m[:, None] < m) & (out_n[None, :] < n))


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    square = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        total += x
        square += x * x
    mean = tl.sum(total, 0) / n
    scale = 1 / tl.sqrt(tl.sum(square, 0) / n - mean * mean + eps)
    tl.store(mean_ptr + row, mean)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        w, b = tl.load(w_ptr + at, mask=at < n), tl.load(b_ptr + at, mask=at < n)
        tl.store(out_ptr + row * stride + at, (x - mean) * scale * w + b, mask=at < n)


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    head,
    n,
    scale,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
):
    start = tl.program_id(0) * BM
    skip = tl.program_id(1) * head
    at_m, at_d = start + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + skip + at_m[:, None] * D + at_d[None, :], mask=at_m[:, None] < n, other=0.0)
    most = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for first in range(0, tl.minimum(start + BM, n), BN):
        at_n = first + tl.arange(0, BN)
        k = tl.load(
            k_ptr + skip + at_n[None, :] * D + at_d[:, None], mask=at_n[None, :] < n, other=0.0
        )
        v = tl.load(
            v_ptr + skip + at_n[:, None] * D + at_d[None, :], mask=at_n[:, None] < n, other=0.0
        )
        scores = tl.where(at_m[:, None] >= at_n[None, :], tl.dot(q, k) * scale, -float("inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        raised = tl.exp(scores - new[:, None])
        shrunk = tl.exp(most - new)
        total = total * shrunk + tl.sum(raised, 1)
        acc = acc * shrunk[:, None] + tl.dot(raised.to(v.dtype), v)
        most = new
    out = out_ptr + skip + at_m[:, None] * D + at_d[None, :]
    tl.store(out, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=at_m[:, None] < n)


@triton.jit
def histogram(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.atomic_add(bins_ptr + x, 1, mask=at < n)


@triton.jit
def scaled(out_ptr, x_ptr, n, scale, shift=3, offset: tl.constexpr = 0.5, BLOCK: tl.constexpr = 64):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * scale + offset + shift, mask=at < n)


def launch_add(function, device, n=5003):
    """Result and reference."""
    x, y = torch.randn(n, device=device), torch.randn(n, device=device)
    out = torch.full_like(x, float("nan"))
    function[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)
    return out, x.double() + y.double()


def launch_softmax(function, device, rows=37, columns=781):
    """Result and reference."""
    x = torch.randn(rows, columns, device=device)
    out = torch.full_like(x, float("nan"))
    function[(8,)](
        x, out, x.stride(0), rows, columns, BLOCK=triton.next_power_of_2(columns), num_warps=4
    )
    return out, x.double().softmax(1)


def launch_matmul(function, device, m=200, n=136, k=104, activation=leaky):
    """Result and reference."""
    a = torch.randn(m, k, device=device, dtype=torch.float16)
    b = torch.randn(k, n, device=device, dtype=torch.float16)
    c = torch.full((m, n), float("nan"), device=device, dtype=torch.float16)
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)  # noqa: E731
    function[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), ACTIVATION=activation)
    right = a.double() @ b.double()
    return c, right if activation is None else torch.nn.functional.leaky_relu(right, 0.01)


def launch_layer_norm(function, device, rows=5, n=1303):
    """Result and reference."""
    x = torch.randn(rows, n, device=device, dtype=torch.float16)
    w = torch.nn.Parameter(torch.randn(n, device=device, dtype=torch.float16))
    b = torch.nn.Parameter(torch.randn(n, device=device, dtype=torch.float16))
    out, mean = torch.full_like(x, float("nan")), torch.empty(rows, device=device)
    function[(rows,)](x, w, b, out, mean, x.stride(0), n, 1e-5, BLOCK=512)
    return out, torch.nn.functional.layer_norm(x.double(), (n,), w.double(), b.double()).detach()


def launch_attention(function, device, heads=3, n=200, d=64):
    """Result and reference."""
    q, k, v = (torch.randn(heads, n, d, device=device, dtype=torch.float16) for _ in range(3))
    out = torch.full_like(q, float("nan"))
    function[(triton.cdiv(n, 64), heads)](q, k, v, out, n * d, n, d**-0.5, BM=64, BN=64, D=d)
    full = torch.nn.functional.scaled_dot_product_attention
    return out, full(q.double(), k.double(), v.double(), is_causal=True)


def launch_histogram(function, device, n=3001):
    """Result and reference."""
    x = torch.randint(0, 7, (n,), device=device, dtype=torch.int32)
    bins = torch.zeros(7, device=device, dtype=torch.int32)
    function[(triton.cdiv(n, 512),)](x, bins, n, BLOCK=512)
    return bins, torch.bincount(x, minlength=7)


CASES = {
    "add": (add, launch_add),
    "softmax": (softmax, launch_softmax),
    "matmul": (matmul, launch_matmul),
    "layer_norm": (layer_norm, launch_layer_norm),
    "attention": (attention, launch_attention),
    "histogram": (histogram, launch_histogram),
}
"""A function and its launch, by name."""


def assert_right(found: torch.Tensor, right: torch.Tensor) -> None:
    """Within the rounding of the result's dtype."""
    wide = {torch.float16: 1e-2, torch.float32: 1e-5}.get(found.dtype, 0)
    torch.testing.assert_close(found.double(), right.double(), rtol=wide, atol=wide)
