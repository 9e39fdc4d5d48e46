"""FBGEMM: rows of unlike lengths, tokens sent to experts, numbers of few bits."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "pytorch/FBGEMM"
SLL, MOE = "fbgemm_gpu.sll.triton", "fbgemm_gpu.experimental.gen_ai.moe"
FP8 = "fbgemm_gpu.experimental.gemm.triton_gemm.fp8_gemm"


def prepare(folder: Path) -> None:
    """`folder`: of the repository. Its packages ask for all of its installation."""
    root = folder / "fbgemm_gpu"
    places = {
        "fbgemm_gpu": root / "fbgemm_gpu",
        "fbgemm_gpu.sll": root / "fbgemm_gpu/sll",
        SLL: root / "fbgemm_gpu/sll/triton",
        "fbgemm_gpu.triton": root / "fbgemm_gpu/triton",
        "fbgemm_gpu.triton.jagged": root / "fbgemm_gpu/triton/jagged",
        "fbgemm_gpu.experimental": root / "experimental",
        "fbgemm_gpu.experimental.gemm": root / "experimental/gemm",
        "fbgemm_gpu.experimental.gemm.triton_gemm": root / "experimental/gemm/triton_gemm",
        "fbgemm_gpu.experimental.gen_ai": root / "experimental/gen_ai/gen_ai",
        MOE: root / "experimental/gen_ai/gen_ai/moe",
    }
    for name, place in places.items():
        bare_package(name, place)


def _of(module: str) -> Any:
    return importlib.import_module(module)


class Rows:
    """Rows of unlike lengths, one sequence behind another."""

    def __init__(self, draw: Draw) -> None:
        self.b, self.longest, self.d = draw.size((3, 40, 32), (256, 500, 128))
        self.lengths = draw.integers(self.longest, self.b) + 1
        none = torch.zeros(1, dtype=torch.int64, device=draw.device)
        self.starts = torch.cat([none, self.lengths.cumsum(0)])
        self.total = int(self.starts[-1])
        self.draw = draw

    def values(self, *more: int) -> Any:
        """Of each row, with a gradient."""
        shape = (self.total, *(more or (self.d,)))
        return self.draw.normal(*shape, dtype=torch.float32, grad=True)


def jagged_rows(draw: Draw) -> None:
    """Cut, put together, subtracted, multiplied, padded."""
    one = Rows(draw)
    flat = draw.normal(one.total, dtype=torch.float32)
    dense = draw.normal(one.b, dtype=torch.float32)
    m = _of(f"{SLL}.triton_dense_jagged_cat_jagged_out")
    m.dense_jagged_cat_jagged_out(dense, flat, one.starts, one.longest)
    m = _of(f"{SLL}.triton_jagged_dense_elementwise_mul_jagged_out")
    squares = one.lengths**2
    starts = torch.cat([one.starts[:1], squares.cumsum(0)])
    values = draw.normal(int(starts[-1]), dtype=torch.float32)
    mask = draw.normal(one.longest, one.longest, dtype=torch.float32)
    m.triton_jagged_dense_elementwise_mul_jagged_out(
        values, mask, one.lengths, starts[:-1], one.longest
    )
    m = _of(f"{SLL}.triton_jagged2_to_padded_dense")
    draw.backward(
        m.jagged2_to_padded_dense(values.clone().requires_grad_(), starts, one.longest, 0.5)
    )


def jagged_products(draw: Draw) -> None:
    one = Rows(draw)
    m = _of(f"{SLL}.triton_jagged_bmm")
    w = draw.normal(one.b, one.d, draw.size(24, 192), dtype=torch.float32, grad=True)
    draw.backward(m.jagged_dense_bmm(one.values(), w, one.starts, one.longest, True, False))
    x, y = one.values(), one.values(draw.size(24, 192))
    draw.backward(m.jagged_jagged_bmm(x, y, one.starts, one.longest, True, False))


def jagged_softmax(draw: Draw) -> None:
    one = Rows(draw)
    m = _of(f"{SLL}.triton_jagged_softmax")
    draw.backward(m.jagged_softmax(one.values(), one.starts, one.longest, False))


def jagged_attention(draw: Draw) -> None:
    one = Rows(draw)
    m = _of(f"{SLL}.triton_jagged_flash_attention_basic")
    q, k, v = (one.values() for _ in range(3))
    draw.backward(m.jagged_flash_attention_basic(q, k, v, one.starts, one.longest, True))
    m = _of(f"{SLL}.triton_multi_head_jagged_flash_attention")
    h = draw.size(2, 4)
    q, k, v = (draw.normal(h, one.total, one.d, dtype=torch.float32, grad=True) for _ in range(3))
    draw.backward(m.multi_head_jagged_flash_attention(q, k, v, one.starts, one.longest))


def jagged_dense_attention(draw: Draw) -> None:
    one = Rows(draw)
    m = _of(f"{SLL}.triton_jagged_dense_flash_attention")
    columns = draw.size(16, 64)
    k = draw.normal(one.b, one.d, columns, dtype=torch.float32, grad=True)
    bias = draw.normal(one.b, one.longest, columns, dtype=torch.float32, grad=True)
    q, v = one.values(), one.values()
    draw.backward(m.jagged_dense_flash_attention(q, k, v, bias, one.starts, one.longest))


def jagged_tensors(draw: Draw) -> None:
    """To dense ones and back, with an operation on the way."""
    one = Rows(draw)
    m = _of("fbgemm_gpu.triton.jagged.triton_jagged_tensor_ops")
    x = draw.normal(one.total, one.d, dtype=torch.float32)
    dense = m.jagged_to_dense(x, [one.starts], [one.longest], 0.25)
    m.dense_to_jagged(dense, [one.starts])
    m.jagged_dense_elementwise_add_jagged_output(x, [one.starts], dense)
    m.jagged_dense_elementwise_mul_jagged_output(x, [one.starts], dense)
    h = draw.size(2, 8)
    vectors = draw.normal(one.b * h, one.longest, dtype=torch.float32)
    m.batched_dense_vec_jagged_2d_matmul(
        vectors, draw.normal(one.total, h * one.d, dtype=torch.float32), one.starts
    )


def mx4(draw: Draw) -> None:
    m = _of("fbgemm_gpu.triton.quantize")
    x = draw.normal(*draw.size((16, 128), (4096, 4096)), dtype=torch.float32)
    m.triton_dequantize_mx4(m.triton_quantize_mx4(x))


def fp8_rows(draw: Draw) -> None:
    """Quantised by rows, blocks and groups, and back."""
    m = _of(FP8)
    x = draw.normal(*draw.size((16, 512), (4096, 4096)))
    quantised, scale = m.triton_quantize_fp8_row(x)
    m.dequantize_fp8_row(quantised, scale)
    m.scale_fp8_row(x, scale, draw.uniform(x.shape[1]))
    quantised, scale = m.triton_quantize_fp8_block(x)
    m.dequantize_fp8_block(quantised, scale)
    m.triton_quantize_fp8_group(x)


def fp8_products(draw: Draw) -> None:
    m = _of(FP8)
    rows, k, n = draw.size((40, 256, 128), (4096, 4096, 4096))
    a, b = draw.normal(rows, k), draw.normal(n, k)
    (aq, a_scale), (bq, b_scale) = m.triton_quantize_fp8_row(a), m.triton_quantize_fp8_row(b)
    m.matmul_fp8_row(aq, bq, a_scale, b_scale, tma_persistent=False)
    (aq, a_scale), (bq, b_scale) = m.triton_quantize_fp8_block(a), m.triton_quantize_fp8_block(b)
    m.matmul_fp8_block(aq, bq, a_scale, b_scale)


def experts(draw: Draw) -> None:
    """Tokens gathered for experts, their products, what comes back."""
    t, d, count, n = draw.size((24, 1024, 4, 128), (8192, 2048, 16, 2048))
    x = draw.normal(t, d)
    x0, x1 = draw.normal(t, d), draw.normal(t, d)
    m = _of(f"{MOE}.activation")
    m.silu_mul(x0, x1)
    m.silu_mul_quant(x0, x1)
    m = _of(f"{MOE}.gather_scatter")
    tokens = torch.randperm(t, device=draw.device).int()
    chosen = draw.integers(count, t, dtype=torch.int32)
    scores = draw.uniform(t, count).to(x.dtype)
    m.gather_scale_dense_tokens(x, tokens, chosen, scores)
    m.gather_scale_quant_dense_tokens(x, tokens, chosen, scores)
    m.scatter_add_dense_tokens(torch.zeros_like(x), x0, tokens)
    sizes = torch.full((count,), t // count, dtype=torch.int32, device=draw.device)
    w = draw.normal(count * n, d)
    m = _of("fbgemm_gpu.experimental.gemm.triton_gemm.grouped_gemm")
    m.grouped_gemm(x, w, sizes, _use_warp_specialization=False)


def shuffled_tokens(draw: Draw) -> None:
    t, d, ranks, count = draw.size((24, 128, 2, 4), (8192, 2048, 4, 16))
    counts = torch.full((ranks, count), t // (ranks * count), dtype=torch.int32)
    m = _of(f"{MOE}.shuffling")
    x = draw.normal(t, d)
    counts = counts.to(draw.device)
    m.combine_shuffling(x, counts)
    m.split_shuffling(x, counts)


CALLS = {
    "jagged_rows": jagged_rows,
    "jagged_products": jagged_products,
    "jagged_softmax": jagged_softmax,
    "jagged_attention": jagged_attention,
    "jagged_dense_attention": jagged_dense_attention,
    "jagged_tensors": jagged_tensors,
    "mx4": mx4,
    "fp8_rows": fp8_rows,
    "fp8_products": fp8_products,
    "experts": experts,
    "shuffled_tokens": shuffled_tokens,
}
